"""The figure of the CPU chapter, alone in a page: by mouse, by keys and by its buttons."""

import re

import pytest

pytest.importorskip("anywidget")

from browser.figures import pace, rest
from rmsnorm_edu.benchmarks.cpu_ladder import traffic
from rmsnorm_edu.explorables import where_bytes_go as figure

SIZES = {"MB": 1e6, "GB": 1e9, "ms": 1.0, "s": 1e3}
SHOWN = """(el) => ({
  choices: ["Rung", "Shape", "Output"].map((name) =>
    el.querySelector(`[aria-label="${name}"] button[aria-pressed=true]`).innerText),
  said: el.querySelector(".rmsn-ladder").getAttribute("aria-label"),
})"""


def is_right(found):
    """Counted bytes are the package's, recorded times the record's; returns rung, shape, output."""
    shown = found.evaluate(SHOWN)
    rung, shape, output = shown["choices"]
    rows, n = map(int, shape.split(" × "))
    times = figure.data()["times"][f"{rows}x{n}"]
    fresh = " (fresh)" if "into fresh" in shown["said"] else ""
    assert bool(fresh) == (output == "fresh memory" and rung in ("copy", "fused"))
    taken, measured, faults = times[rung + fresh]
    said = shown["said"].replace("\xa0", " ")
    amounts = re.findall(r"([\d.]+) (MB|GB|ms|s)\b", said)
    unit, moved, counted, recorded = (float(v) * SIZES[u] for v, u in amounts)
    total = sum(traffic(rung, rows, n).values())
    assert unit == pytest.approx(4 * rows * n, rel=0.006)
    assert moved == pytest.approx(total, rel=0.006)
    assert counted == pytest.approx(total / (12 * rows * n) * times["copy"][0], rel=0.006)
    assert recorded == pytest.approx(taken * rows / measured, rel=0.006)
    assert f"{faults} page faults" in said
    return rung, (rows, n), output


def press(page, key):
    page.keyboard.press(key)
    rest(page)


def test_the_ladder_by_mouse(alone):
    page, found = alone("WhereBytesGo")
    assert is_right(found) == ("numpy", (8192, 4096), "written before")
    rows = found.locator(".rmsn-hit")
    for place, rung in enumerate(figure.RUNGS):
        rows.nth(place).click()
        rest(page)
        assert is_right(found)[0] == rung
        assert found.locator(".rmsn-row.is-own").count() == 1
    assert page.problems == []


def test_the_ladder_by_keyboard(alone):
    page, found = alone("WhereBytesGo", width=320, scheme="dark")
    press(page, "Tab")
    press(page, "Enter")
    assert is_right(found)[0] == "loop"
    found.get_by_role("button", name="512 × 8192", exact=True).focus()
    press(page, "Space")
    assert is_right(found)[1] == (512, 8192)
    found.get_by_role("button", name="fresh memory", exact=True).focus()
    press(page, "Enter")
    assert is_right(found)[2] == "fresh memory"
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.problems == []


def test_the_ladder_does_what_its_buttons_promise(alone):
    page, found = alone("WhereBytesGo", width=390)
    said = found.locator("output.rmsn-finding")
    for button, state, finding in [
        ("Blocks: the cache", ("blocked", "written before"), "as in a copy; 3 more in the cache"),
        ("Streamed", ("streamed", "written before"), "2 passes over the memory, 0.67 times"),
        ("Fresh memory", ("copy", "fresh memory"), "filled it with zeros"),
        ("Reset", ("numpy", "written before"), "10 passes over the memory"),
    ]:
        group = found.get_by_role("group", name="Try this").get_by_role("button", name=button)
        group.click()
        rest(page)
        rung, shape, output = is_right(found)
        assert ((rung, output), shape) == (state, (8192, 4096))
        assert finding in said.inner_text()
    assert page.problems == []


def test_a_choice_of_the_ladder_is_quick(alone):
    """At most 8 ms for a choice, with the work that follows it."""
    _, found = alone("WhereBytesGo")
    start = """(el) => {
      const buttons = [...el.querySelectorAll('[aria-label="Rung"] button')];
      return (i) => buttons[i % buttons.length].click();
    }"""
    assert pace(found, start) <= 8
