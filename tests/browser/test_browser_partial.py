"""The figure of the partial chapter, alone in a page: by mouse, by keys and by its buttons."""

import re

import numpy as np
import pytest

pytest.importorskip("anywidget")

from browser.figures import by_slider, drag, numbers, pace, rest
from rmsnorm_edu import reference
from rmsnorm_edu.explorables import partial_estimate

NAMES = {
    "independent normal": "normal",
    "heavy tails": "heavy",
    "largest first": "largest",
    "smallest first": "smallest",
    "one outlier": "outlier",
}


def slider(found, name):
    return found.get_by_role("slider", name=name, exact=True)


def is_right(found):
    """k, mean and spread that the figure says are the package's at its p, n and features."""
    n, p, k, floor, *_ = spoken(found)
    features = NAMES[found.locator("button[aria-pressed=true]").inner_text()]
    assert k == reference.partial_size(int(n), p)
    assert floor == int(n * p)
    r = partial_estimate.ratios(features, int(n), int(k))
    percent, *shown = numbers(found.locator(".rmsn-marker").get_attribute("aria-valuetext"))
    assert percent == pytest.approx(100 * p)
    np.testing.assert_allclose(shown[2:], [np.mean(r), np.std(r)], rtol=0.006, atol=1e-12)
    return p, int(n), features


def spoken(found):
    """n, p, k, int(np), then what is derived and what is measured."""
    return numbers(
        re.sub("2019 code", "", found.locator(".rmsn-estimate").get_attribute("aria-label"))
    )


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)
    rest(page)


def test_partial_by_mouse(alone):
    page, found = alone("PartialEstimate")
    assert is_right(found) == (0.0625, 1024, "normal")
    box = found.locator("svg").first.bounding_box()
    drag(page, found.locator(".rmsn-marker"), box["x"] + box["width"] * 0.6, box["y"] + 200)
    p, *_ = is_right(found)
    assert p > 0.3
    found.get_by_role("button", name="one outlier").click()
    rest(page)
    assert is_right(found) == (p, 1024, "outlier")
    found.get_by_role("button", name="Reset").click()
    rest(page)
    assert is_right(found) == (0.0625, 1024, "normal")
    assert page.problems == []


def test_partial_by_keyboard(alone):
    page, found = alone("PartialEstimate", width=320)
    found.locator(".rmsn-marker").focus()
    press(page, "ArrowRight")
    assert is_right(found)[0] == 0.065
    press(page, "Shift+ArrowRight")
    assert is_right(found)[0] == 0.09
    press(page, "End")
    assert is_right(found)[0] == 1
    slider(found, "p").focus()
    press(page, "Home")
    assert is_right(found)[0] == 0.01
    slider(found, "n").focus()
    press(page, "Home", "ArrowRight")
    assert is_right(found) == (0.01, 8, "normal")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.problems == []


def test_partial_does_what_the_buttons_promise(alone):
    page, found = alone("PartialEstimate", width=390)
    said = found.locator("output.rmsn-finding")
    for button, (state, finding) in {
        "6.25% of 8": ((0.0625, 8, "normal"), r"^int\(8 × 0\.0625\) is 0: .* divides by zero"),
        "29% of 100": ((0.29, 100, "normal"), r"just below 29: the 2019 code takes 28"),
        "Sorted": ((0.0625, 1024, "largest"), r"times too small\. The first 64 are no sample"),
        "Reset": ((0.0625, 1024, "normal"), r"% too small and \d+% too large"),
    }.items():
        found.get_by_role("button", name=button).click()
        rest(page)
        assert is_right(found) == state
        assert re.search(finding, said.inner_text()), said.inner_text()
        assert bool(found.locator("[data-slot=floor].is-wrong").count()) == (state[1] == 8)
    assert page.problems == []


def test_the_crash_is_hatched_where_int_gives_nothing(alone):
    page, found = alone("PartialEstimate")
    zone = found.locator(".rmsn-crash")
    assert float(zone.get_attribute("width")) == 0, "n = 1024: one percent is ten features"
    found.get_by_role("button", name="6.25% of 8").click()
    rest(page)
    left, width = (float(zone.get_attribute(name)) for name in ("x", "width"))
    found.locator(".rmsn-marker").focus()
    for share, keys in {0.12: ["Home"] + ["Shift+ArrowRight"] * 4, 0.125: ["ArrowRight"]}.items():
        press(page, *keys)
        p, n, _ = is_right(found)
        assert p == share
        at = found.locator(".rmsn-marker > g").get_attribute("transform")
        inside = numbers(at)[0] < left + width - 1e-6
        assert inside == (int(n * p) == 0)


def test_a_move_is_quick(alone):
    """At most 8 ms for a move of p, with the work that follows it."""
    _, found = alone("PartialEstimate")
    assert pace(found, by_slider("(i * 37) % 147")) <= 8
