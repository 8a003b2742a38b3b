"""The sphere in the built page: turned and moved by mouse and keys, its numbers the package's."""

import re

import numpy as np

from browser.figures import drag, numbers, rest, same
from rmsnorm_edu import reference


def points(found):
    """The four points' inputs, after checking what the figure says of them."""
    texts = [p.get_attribute("aria-valuetext") for p in found.locator(".rmsn-point").all()]
    shown = np.array([numbers(text.replace("x =", "")) for text in texts])
    x, size, mean, rms, layer = np.split(shown, [3, 4, 5, 8], axis=1)
    assert same(size[:, 0], reference.rms(x))
    assert same(mean[:, 0], x.mean(axis=1))
    assert same(rms, reference.rms_norm(x, eps=0.0))
    assert same(layer, reference.layer_norm(x, eps=0.0))
    return x


def view(found):
    return numbers(found.locator(".rmsn-orbit").get_attribute("aria-valuetext"))


def test_a_point_by_mouse_and_keyboard(figure):
    page, found = figure("sphere")
    before = points(found)
    grip = found.locator(".rmsn-point").nth(2)
    box = grip.bounding_box()
    drag(page, grip, box["x"] + 70, box["y"] - 20)
    after = points(found)
    assert np.abs(after[2] - before[2]).max() > 0.3
    assert (np.delete(after, 2, 0) == np.delete(before, 2, 0)).all()
    assert "#sphere-1&x=" in page.url
    assert "C: x" in found.locator(".rmsn-equation").inner_text()
    for key in ("ArrowUp", "Shift+ArrowRight", "PageDown"):
        page.keyboard.press(key)
        rest(page)
        assert (points(found)[2] != after[2]).any()
        after = points(found)
    page.keyboard.press("Home")
    rest(page)
    assert (points(found) == before).all()
    assert page.problems == []


def test_the_view_by_mouse_and_keyboard(figure):
    page, found = figure("sphere")
    assert view(found) == [20, 20]
    box = found.locator(".rmsn-space").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.45
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 40, steps=6)
    page.mouse.up()
    rest(page)
    assert view(found) == [-10, 40]
    found.locator(".rmsn-orbit").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowUp")
    rest(page)
    assert view(found) == [-5, 90]
    page.keyboard.press("Home")
    rest(page)
    assert view(found) == [20, 20]
    points(found)
    assert page.problems == []


def test_the_sphere_says_what_the_buttons_promise(figure):
    page, found = figure("sphere")
    said = found.locator("output.rmsn-finding")
    for button, finding in {
        "Shift by 3: to the pole": r"now 1\d° from .*LayerNorm’s stay",
        "Look down (1, 1, 1)": r"on the outline",
        "× −1: opposite side": r"through the centre to the opposite side",
        "× 0.3: nothing moves": r"no output moves",
    }.items():
        found.get_by_role("button", name=button, exact=True).click()
        rest(page)
        assert re.search(finding, said.inner_text()), said.inner_text()
        points(found)
        beyond = found.get_by_text("beyond the picture").is_visible()
        assert beyond == button.startswith("Shift"), "held at the edge, and said so"
    slider = found.get_by_role("slider", name="Morph")
    slider.focus()
    page.keyboard.press("Home")
    rest(page)
    assert "The input" in said.inner_text()
    found.get_by_role("button", name="LayerNorm").click()
    rest(page)
    assert "norm=layer" in page.evaluate(
        "new Promise(f => setTimeout(() => f(location.hash), 300))"
    )


def test_a_point_and_the_view_by_finger(figure):
    page, found = figure("sphere", width=390, has_touch=True)
    cdp = page.context.new_cdp_session(page)
    top = page.evaluate("scrollY")

    def swipe(x, y, right, down):
        steps = [(0, 0), (right / 2, down / 2), (right, down)]
        for kind, (dx, dy) in zip(("touchStart", "touchMove", "touchMove"), steps, strict=True):
            points = [{"x": x + dx, "y": y + dy}]
            cdp.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        cdp.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        rest(page)

    before = points(found)
    box = found.locator(".rmsn-point").first.bounding_box()
    swipe(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, -20, 40)
    after = points(found)
    assert (after[0] != before[0]).any()
    assert (after[1:] == before[1:]).all()
    box = found.locator(".rmsn-space").bounding_box()
    swipe(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.45, 30, 30)
    assert view(found) == [5, 35]
    assert page.evaluate("scrollY") == top, "the page stays while the sphere is turned"
