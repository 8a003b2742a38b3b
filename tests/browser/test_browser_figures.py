"""Every explorable in the built page: moved by mouse, keys and touch, its numbers the package's."""

import re

import numpy as np
import pytest

from browser.figures import drag, numbers, rest, same
from rmsnorm_edu import conventions, invariance, reference
from rmsnorm_edu.explorables import depth
from rmsnorm_edu.explorables.invariance_table import LAYER


def hero_is_right(found):
    texts = [bar.get_attribute("aria-valuetext") for bar in found.locator(".rmsn-bar").all()]
    x, rms, layer = np.array([numbers(text) for text in texts]).T
    assert same(rms, reference.rms_norm(x, eps=1e-6))
    assert same(layer, reference.layer_norm(x, eps=1e-6))
    return x


def test_hero_by_mouse(figure):
    page, found = figure("hero")
    before = hero_is_right(found)
    knob = found.locator(".rmsn-bar").nth(2).locator(".rmsn-knob")
    box = knob.bounding_box()
    drag(page, knob, box["x"] + 5, box["y"] - 50)
    after = hero_is_right(found)
    assert after[2] > before[2] + 1
    assert (np.delete(after, 2) == np.delete(before, 2)).all()
    assert "#hero-1&" in page.url, "the address keeps the state"
    assert page.problems == []


def test_hero_by_keyboard(figure):
    page, found = figure("hero")
    before = hero_is_right(found)
    found.locator(".rmsn-bar").first.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowUp")
    rest(page)
    after = hero_is_right(found)
    assert after[0] == pytest.approx(before[0] + 1.1)
    page.keyboard.press("End")
    rest(page)
    assert hero_is_right(found)[0] == 6
    found.get_by_role("slider", name="scale").focus()
    page.keyboard.press("Home")
    rest(page)
    hero_is_right(found)


def test_hero_says_what_the_buttons_promise(figure):
    _, found = figure("hero")
    said = found.locator("output.rmsn-finding")
    for button, finding in {
        "× 3: nothing moves": r"neither norm moves",
        "+ 2: only one moves": r"RMSNorm moves by up to .*, LayerNorm stays",
        "× −1: a mirror": r"both norms turn over",
        "Mean 0: they agree": r"the two norms agree",
    }.items():
        found.get_by_role("button", name=button, exact=True).click()
        rest(found.page)
        assert re.search(finding, said.inner_text()), said.inner_text()
        hero_is_right(found)


def test_hero_by_finger(figure):
    page, found = figure("hero", width=390, has_touch=True)
    bar = found.locator(".rmsn-bar").nth(3)
    box = bar.locator(".rmsn-knob").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    cdp = page.context.new_cdp_session(page)
    top = page.evaluate("scrollY")
    for kind, points in (
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x, "y": y - 20}]),
        ("touchMove", [{"x": x, "y": y - 40}]),
        ("touchEnd", []),
    ):
        cdp.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    rest(page, 200)
    assert hero_is_right(found)[3] > 2.5
    assert page.evaluate("scrollY") == top, "the page stays while a bar is dragged"


def depth_is_right(found):
    gain = numbers(found.get_by_role("slider", name="Gain").get_attribute("aria-valuetext"))[0]
    text = found.locator(".rmsn-marker").get_attribute("aria-valuetext")
    layer, *shown = numbers(text)
    true = [depth.sizes(norm, gain)[int(layer) - 1] for norm in ("none", "rms", "layer")]
    np.testing.assert_allclose(shown, true, rtol=0.06)
    return gain, int(layer)


def test_depth_by_mouse_and_keyboard(figure):
    page, found = figure("depth")
    assert depth_is_right(found) == (0.75, 50)
    slider = found.get_by_role("slider", name="Gain")
    box = slider.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
    rest(page)
    gain, _ = depth_is_right(found)
    assert gain > 1.2
    slider.focus()
    page.keyboard.press("ArrowLeft")
    rest(page)
    assert depth_is_right(found)[0] < gain
    found.locator(".rmsn-marker").focus()
    page.keyboard.press("Home")
    rest(page)
    assert depth_is_right(found)[1] == 1
    picture = found.locator("svg").first.bounding_box()
    drag(
        page,
        found.locator(".rmsn-marker"),
        picture["x"] + picture["width"] * 0.5,
        picture["y"] + 90,
    )
    assert depth_is_right(found)[1] > 20
    assert page.problems == []


def epsilons_are_right(found):
    size, *shown = numbers(
        re.sub(
            r"epsilon \S+ (in|out)side",
            "",
            found.locator(".rmsn-answers").get_attribute("aria-label"),
        )
    )
    names = ["paper_torch", "paper_tensorflow", "paper_lasagne", "paper_theano"]
    true = [conventions.apply(name, np.full(4, size))[0] for name in names]
    np.testing.assert_allclose(shown, true, rtol=0.06)
    return size


def test_epsilons_by_mouse_and_keyboard(figure):
    page, found = figure("epsilons")
    assert epsilons_are_right(found) == 1e-5
    marker = found.locator(".rmsn-marker")
    marker.focus()
    page.keyboard.press("End")
    rest(page)
    assert epsilons_are_right(found) == 100
    box = found.locator("svg").first.bounding_box()
    drag(page, marker, box["x"] + box["width"] * 0.5, box["y"] + 150)
    assert epsilons_are_right(found) < 1
    found.get_by_role("button", name="10⁻⁵: four answers").click()
    rest(page)
    shown = numbers(marker.get_attribute("aria-valuetext"))[1:]
    assert sorted(shown) == [0.00316, 0.01, 0.0995, 0.999]
    assert page.problems == []


METHODS = dict(
    zip(
        ["BatchNorm", "WeightNorm", "LayerNorm", "RMSNorm", "pRMSNorm"],
        invariance.METHODS,
        strict=True,
    )
)
CHANGES = dict(
    zip(
        [
            "Scale W",
            "Shift W",
            "Scale rows of W",
            "Scale the data",
            "Shift the data",
            "Scale one example",
            "Rotate W",
        ],
        invariance.TRANSFORMATIONS,
        strict=True,
    )
)


def table_is_right(found):
    """The number under the chosen cell is the one that `invariance` measures on the same layer."""
    cell = found.locator("td[aria-selected=true]")
    method, change = cell.get_attribute("aria-label").split(":")[0].split(", ")
    slider = found.locator(".rmsn-slider:not([hidden]) input")
    amount = numbers(slider.get_attribute("aria-valuetext"))[0]
    eps = 0.1 if found.get_by_role("checkbox").is_checked() else 0.0
    true = invariance.measure_one(METHODS[method], CHANGES[change], amount, eps=eps, layer=LAYER)
    shown = numbers(found.locator(".rmsn-equation").get_attribute("aria-label"))[-1]
    np.testing.assert_allclose(shown, true.max_change, rtol=0.006, atol=1e-12)
    return method, change, shown


def test_invariance_table_by_keyboard(figure):
    page, found = figure("invariance_table")
    found.locator("td[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    assert table_is_right(found)[:2] == ("RMSNorm", "Shift W")
    slider = found.locator(".rmsn-slider:not([hidden]) input")
    slider.focus()
    page.keyboard.press("End")
    rest(page)
    assert table_is_right(found)[2] > 0.1
    found.locator("td[tabindex='0']").focus()
    page.keyboard.press("ArrowLeft")
    rest(page)
    assert table_is_right(found)[0] == "LayerNorm"
    assert page.problems == []


def test_every_cell_of_the_table_by_mouse(figure):
    page, found = figure("invariance_table")
    seen = set()
    for cell in found.locator("td[aria-label]").all():
        cell.click()
        slider = found.locator(".rmsn-slider:not([hidden]) input")
        box = slider.bounding_box()
        page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
        rest(page)
        seen.add(table_is_right(found)[:2])
    assert len(seen) == 35
    assert "35 of 35" in found.inner_text()


def test_the_buttons_of_the_table_mark_their_cells(figure):
    page, found = figure("invariance_table")
    shown = found.locator(".rmsn-equation b")
    assert shown.inner_text() == "?", "nothing is measured before the reader has moved"
    for button, sign in {"mirror": "±", "Shift W": "✗", "no longer exact": "≈"}.items():
        found.get_by_role("button", name=button).click()
        rest(page)
        assert found.locator("td[aria-selected=true]").inner_text() == sign
        table_is_right(found)


def test_the_address_brings_a_state_back(figure, visit, site):
    page, found = figure("hero")
    found.get_by_role("button", name="+ 2: only one moves").click()
    rest(page, 400)
    again = visit(page.url)
    shift = again.locator(".rmsn-figure[data-ready]").first.get_by_role("slider", name="shift")
    assert numbers(shift.get_attribute("aria-valuetext")) == [2]
