"""The figure of the cost chapter, alone in a page: by mouse, by keys and by its buttons."""

import re

import numpy as np
import pytest

pytest.importorskip("anywidget")

from browser.figures import by_slider, drag, pace, rest
from rmsnorm_edu import cost
from rmsnorm_edu.explorables import roofline as figure

SIZES = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


SHOWN = """(el) => {
  const pressed = (name) =>
    el.querySelector(`[aria-label="${name}"] button[aria-pressed=true]`).innerText;
  const sliders = [...el.querySelectorAll(".rmsn-slider:not([hidden]) input")];
  return { choices: ["Operation", "Way", "Chip", "Type"].map(pressed),
    sizes: sliders.map((input) => +input.getAttribute("aria-valuetext")),
    said: el.querySelector(".rmsn-costs").getAttribute("aria-label") };
}"""


def is_right(found):
    """The flops, bytes, intensity and least time that the figure says are those of `cost`."""
    shown = found.evaluate(SHOWN)
    label, way, name, dtype = shown["choices"]
    family = {f["label"]: f for f in figure.data()["families"].values()}[label]
    operation = dict(family["ways"])[{text: key for key, text in figure.WAYS.items()}[way]]
    chip = {chip.name: key for key, chip in cost.CHIPS.items()}[name]
    rows, n, *programs = shown["sizes"]
    more = {"programs": programs[0]} if programs else {}
    shape = (operation, rows, n, dtype)
    moved = cost.bytes_moved(*shape, **more)
    true = [cost.flops(operation, rows, n, **more), moved, cost.intensity(*shape, **more), moved]
    true += [cost.CHIPS[chip].bandwidth, cost.floor(*shape, chip, **more)]
    np.testing.assert_allclose(amounts(shown["said"])[:6], true, rtol=0.006)
    return operation, chip, dtype, rows, n, *(programs or [0])


def amounts(text):
    """ "134 MB over 3.35 TB/s is 40.1 µs." as [1.34e8, 3.35e12, 4.01e-5]."""
    found = re.findall(r"([\d.]+) ([nµmkMGT]?)(?:B/s|B|s|flop/B|flop)\b", text.replace("\xa0", " "))
    return [float(value) * SIZES[prefix] for value, prefix in found]


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)
    rest(page)


def test_roofline_by_mouse(alone):
    page, found = alone("Roofline")
    assert is_right(found) == ("forward", "H100", "bfloat16", 8192, 4096, 0)
    box = found.locator("svg").first.bounding_box()
    drag(page, found.locator(".rmsn-marker"), box["x"] + 60, box["y"] + 150)
    assert is_right(found)[0].endswith("unfused")
    for chip in cost.CHIPS.values():
        found.get_by_role("button", name=chip.name, exact=True).click()
        rest(page)
        is_right(found)
    page.mouse.click(box["x"] + 40, found.locator(".rmsn-way .rmsn-part").first.bounding_box()["y"])
    rest(page)
    assert not is_right(found)[0].endswith("unfused"), "a bar chooses its way"
    assert page.problems == []


def test_roofline_by_keyboard(alone):
    page, found = alone("Roofline", width=320)
    found.locator(".rmsn-marker").focus()
    seen = []
    press(page, "Home")
    for _ in cost.OPERATIONS:
        seen.append(is_right(found)[0])
        press(page, "ArrowRight")
    assert sorted(seen) == sorted(cost.OPERATIONS)
    intensities = [cost.intensity(name, 8192, 4096, "bfloat16") for name in seen]
    assert intensities == sorted(intensities)
    for name, key, at, value in (("rows", "Home", 3, 1), ("n", "End", 4, 65536)):
        found.get_by_role("slider", name=name, exact=True).focus()
        press(page, key)
        assert is_right(found)[at] == value
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.problems == []


def test_roofline_does_what_the_buttons_promise(alone):
    page, found = alone("Roofline", width=390, scheme="dark")
    said = found.locator("output.rmsn-finding")
    for button, finding, shown in [
        ("Each operation apart", "10.0 times the bytes", ("forward_unfused", 8192, 0)),
        ("One row", "you wait for the start", ("forward", 1, 0)),
        ("A program for each row", "are 58% of the bytes", ("backward", 512, 528)),
        ("Reset", "waits for memory at least 95%", ("forward", 8192, 0)),
    ]:
        found.get_by_role("group", name="Try this").get_by_role("button", name=button).click()
        rest(page)
        operation, _, _, rows, _, programs = is_right(found)
        assert (operation, rows, programs) == shown
        assert finding in said.inner_text()
    assert page.problems == []


def test_the_other_ways_keep_the_family(alone):
    page, found = alone("Roofline")
    ways = found.get_by_role("group", name="Way", exact=True)
    assert not ways.get_by_role("button", name="addition apart").is_visible()
    for label in ("add + backward", "LayerNorm forward"):
        found.get_by_role("button", name=label, exact=True).click()
        family = {f["label"]: f for f in figure.data()["families"].values()}[label]
        for way, operation in family["ways"]:
            ways.get_by_role("button", name=figure.WAYS[way]).click()
            rest(page)
            assert is_right(found)[0] == operation
    assert page.problems == []


def test_a_move_of_the_roofline_is_quick(alone):
    """At most 8 ms for a move of the rows, with the work that follows it."""
    _, found = alone("Roofline")
    found.get_by_role("button", name="add + backward", exact=True).click()
    found.get_by_role("button", name="each operation apart", exact=True).click()
    assert pace(found, by_slider("(i * 7) % 18")) <= 8
