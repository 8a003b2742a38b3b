"""The explorables of the gradients chapter, each alone in a page: by mouse, keys and touch."""

import re

import numpy as np
import pytest

pytest.importorskip("anywidget")

from browser.figures import drag, numbers, rest
from rmsnorm_edu import explorables, reference
from rmsnorm_edu.explorables import growing_weights


@pytest.fixture
def alone(visit, tmp_path):
    """alone("Name", width=…) -> a page that holds the figure only, and the figure."""

    def open_figure(name, **options):
        shown = getattr(explorables, name)()
        file = tmp_path / "figure.html"
        file.write_text(f"<!doctype html><meta charset=utf-8>{shown.to_html()}", encoding="utf-8")
        page = visit(file.as_uri(), **options)
        found = page.locator(".rmsn-figure[data-ready]")
        found.wait_for()
        return page, found

    return open_figure


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)
    rest(page)


def move(page, element, right, down):
    """Drag the element from its middle, by pixels."""
    box = element.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    drag(page, element, middle[0] + right, middle[1] + down)


def plane_is_right(found):
    """dx, x̂ and D of the figure are those of the reference at its x, dy, weight and ε."""
    texts = [tip.get_attribute("aria-valuetext") for tip in found.locator(".rmsn-tip").all()]
    (*x, dx1, dx2), dy = numbers(texts[0]), numbers(texts[1])[:2]
    sliders = found.locator("input[type=range]").all()
    eps, *weight = (numbers(s.get_attribute("aria-valuetext"))[0] for s in sliders)
    dx, _ = reference.rms_norm_vjp(dy, x, weight, eps=eps)
    # the inputs are shown to two or three digits, the answer to two decimals
    np.testing.assert_allclose([dx1, dx2], dx, rtol=0.02, atol=0.0051)
    spoken = numbers(found.locator(".rmsn-equation").get_attribute("aria-label"))
    unit = reference.rms_norm(x, eps=eps)
    np.testing.assert_allclose(spoken[2:4], unit, rtol=0.02, atol=0.0051)
    return np.array(x), np.array(dy), dx


def test_gradient_plane_by_mouse(alone):
    page, found = alone("GradientPlane")
    x, dy, _ = plane_is_right(found)
    tips = found.locator(".rmsn-tip")
    move(page, tips.nth(0), -90, 40)
    moved, same, _ = plane_is_right(found)
    assert moved[0] < x[0] - 0.8
    assert moved[1] < x[1] - 0.3
    assert (same == dy).all(), "dy comes along"
    move(page, tips.nth(1), 200, 300)
    assert plane_is_right(found)[1][1] == -1.2, "held in its box"
    assert page.problems == []


def test_gradient_plane_by_keyboard(alone):
    page, found = alone("GradientPlane", width=320)
    x, dy, _ = plane_is_right(found)
    press(page, "Tab")
    press(page, "ArrowRight", "Shift+ArrowDown")
    np.testing.assert_allclose(plane_is_right(found)[0], np.add(x, [0.1, -1.0]))
    press(page, "Tab", "ArrowUp")
    np.testing.assert_allclose(plane_is_right(found)[1], np.add(dy, [0, 0.1]))
    press(page, "Shift+Tab", "End")
    assert "there is no output and no gradient" in found.locator("output.rmsn-finding").inner_text()
    press(page, "Home")
    np.testing.assert_allclose(plane_is_right(found)[0], x)
    found.get_by_role("slider", name="ε").focus()
    press(page, "PageUp", "End")
    found.get_by_role("slider", name="g2").focus()
    press(page, "Shift+ArrowLeft")
    plane_is_right(found)


def test_gradient_plane_does_what_its_buttons_promise(alone):
    page, found = alone("GradientPlane", width=390)
    said = found.locator("output.rmsn-finding")
    start = plane_is_right(found)
    for button, finding, check in [
        ("dy along x", "takes all of u away", lambda x, dy, dx: abs(dx).max() < 1e-2),
        ("Double x", "0.50 times", lambda x, dy, dx: np.allclose(dx, start[2] / 2)),
        ("ε = 0.5", "points along x", lambda x, dy, dx: x @ dx > 0.1),
        ("x = 0:", "All of u passes", lambda x, dy, dx: np.allclose(dx, 2 * dy)),
        ("Reset", "at a right angle", lambda x, dy, dx: np.allclose(dx, start[2])),
    ]:
        found.get_by_role("button", name=button).click()
        rest(page)
        assert finding in said.inner_text()
        assert check(*plane_is_right(found)), button


def test_gradient_plane_by_finger(alone):
    page, found = alone("GradientPlane", width=390, has_touch=True)
    box = found.locator(".rmsn-tip").nth(0).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    cdp = page.context.new_cdp_session(page)
    for kind, points in (
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x, "y": y + 30}]),
        ("touchMove", [{"x": x - 20, "y": y + 60}]),
        ("touchEnd", []),
    ):
        cdp.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    rest(page)
    assert plane_is_right(found)[0][1] < 0
    assert page.evaluate("scrollY") == 0


def weights_are_right(found):
    """The step that the reader stands on: its norm and angle are those of the simulation."""
    sliders = found.locator("input[type=range]").all()
    rate, decay = (numbers(s.get_attribute("aria-valuetext"))[0] for s in sliders)
    step, square, turn = numbers(found.locator(".rmsn-marker").get_attribute("aria-valuetext"))
    w = growing_weights.walk(rate, decay)
    step = int(step)
    # the rate is shown to three digits, and ‖w‖² moves by at most twice its relative error
    np.testing.assert_allclose(square, w[step] @ w[step], rtol=0.02)
    cosine = w[step] @ w[step - 1] / np.linalg.norm(w[step]) / np.linalg.norm(w[step - 1])
    np.testing.assert_allclose(turn, np.degrees(np.arccos(cosine)), rtol=0.02, atol=0.06)
    return rate, decay, step


def test_growing_weights_by_mouse(alone):
    page, found = alone("GrowingWeights")
    assert weights_are_right(found) == (0.3, 0, 1)
    move(page, found.locator(".rmsn-marker"), 150, 0)
    assert weights_are_right(found)[2] > 60
    box = found.get_by_role("slider", name="Decay").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.8, box["y"] + box["height"] / 2)
    rest(page)
    assert weights_are_right(found)[1] > 0.01
    assert page.problems == []


def test_growing_weights_by_keyboard(alone):
    page, found = alone("GrowingWeights", width=320)
    press(page, "Tab", "ArrowRight", "Shift+ArrowRight")
    assert weights_are_right(found)[2] == 12
    press(page, "End")
    assert weights_are_right(found)[2] == growing_weights.STEPS
    press(page, "Tab", "End")
    assert weights_are_right(found)[0] > 3
    assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_growing_weights_do_what_the_buttons_promise(alone):
    page, found = alone("GrowingWeights", width=390)
    said = found.locator("output.rmsn-finding")
    for button, finding, state in [
        ("10 × rate", r"calms them: the last 50 turn w by 2\.8°", (3, 0, 1)),
        ("Decay: a balance", r"settles near 1\.66", (0.3, 0.1, 200)),
        ("0.1 × rate", r"from 1 to 1\.26", (0.03, 0, 200)),
        ("Reset", r"from 1 to 7\.64", (0.3, 0, 1)),
    ]:
        found.get_by_role("button", name=button).click()
        rest(page)
        assert re.search(finding, said.inner_text())
        assert weights_are_right(found) == state
