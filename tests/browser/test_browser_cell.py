"""The recurrent cell, alone in a page: by mouse, keys and finger, its numbers those of NumPy."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("anywidget")

from browser.figures import drag, numbers, rest
from rmsnorm_edu.explorables import cell as figure


@pytest.fixture
def shares(monkeypatch):
    """shares(cell, kinds, gain) -> the share of saturated gates at every step, by NumPy."""
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2] / "tools")
    vectors = importlib.import_module("cell_vectors")

    def compute(name, kinds, gain):
        found = vectors.RUN[name](figure.arrays()["x"], vectors.own_parameters(name, gain), kinds)
        return np.mean(abs(found["gates"]) > vectors.ENDS["gates"], axis=(1, 2))

    return compute


KINDS = {"RMSNorm": "rms", "LayerNorm": "layer", "no norm": "none"}


def is_right(found, shares):
    """The shares that the figure tells are NumPy's at its switches, gain and step."""
    rest(found.page)
    switches = {s.get_attribute("aria-label"): s for s in found.get_by_role("switch").all()}
    kinds = [
        KINDS[switches[name].locator("text").first.text_content()] for name in sorted(switches)
    ]
    name = "gru" if len(kinds) == 4 else "lstm"
    gain = numbers(found.get_by_role("slider", name="Gain").get_attribute("aria-valuetext"))[0]
    told = numbers(found.locator(".rmsn-marker").get_attribute("aria-valuetext"))
    step = int(told[0])
    true = [shares(name, k, gain)[step - 1] for k in (kinds, ["none"] * len(kinds))]
    np.testing.assert_allclose(told[1:], 100 * np.array(true), atol=0.51)
    return kinds, gain, step


def test_cell_by_mouse(alone, shares):
    page, found = alone("Cell")
    assert is_right(found, shares) == (["rms"] * 4, 4, 30)
    found.get_by_role("switch", name="Norm s3").click()
    assert is_right(found, shares)[0] == ["rms", "rms", "none", "rms"]
    found.get_by_role("button", name="LayerNorm").click()
    assert is_right(found, shares)[0] == ["layer", "layer", "none", "layer"]
    slider = found.get_by_role("slider", name="Gain").bounding_box()
    page.mouse.click(slider["x"] + slider["width"] / 2, slider["y"] + slider["height"] / 2)
    assert 2 < is_right(found, shares)[1] < 2.6
    grip = found.locator(".rmsn-grip").bounding_box()
    drag(page, found.locator(".rmsn-grip"), grip["x"] - 150, grip["y"])
    assert 10 < is_right(found, shares)[2] < 22
    assert page.problems == []
    assert "norm=layer" in page.url
    assert "places=1,1,0,1" in page.url


def test_cell_by_keyboard(alone, shares):
    page, found = alone("Cell", width=320)
    page.keyboard.press("Tab")
    for key in ("Space", "Tab", "Enter"):
        page.keyboard.press(key)
    assert is_right(found, shares)[0] == ["none", "rms", "none", "rms"], "left to right"
    found.locator(".rmsn-marker").focus()
    page.keyboard.press("Home")
    assert is_right(found, shares)[2] == 1
    page.keyboard.press("Shift+ArrowRight")
    assert is_right(found, shares)[2] == 11
    found.get_by_role("slider", name="Gain").focus()
    page.keyboard.press("ArrowLeft")
    assert is_right(found, shares)[1] == 3.9
    assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_cell_does_what_its_buttons_promise(alone, shares):
    _, found = alone("Cell", width=390, has_touch=True)
    said = found.locator("output.rmsn-finding")
    for cell, step in (("GRU", 30), ("LSTM", 13)):
        found.get_by_role("button", name=cell, exact=True).tap()
        for button, finding in {
            "No norm: saturated": rf"Step {step}.*2\d% of the gates are saturated",
            "RMSNorm": r"[34]% of .* Neither the loud input nor the gain",
            "Only the input normed": r"The loud input no longer comes through; .* still does",
            "Only the state normed": r"The gain γ no longer comes through; the loud input still",
        }.items():
            found.get_by_role("button", name=button).tap()
            is_right(found, shares)
            assert re.search(finding, said.inner_text()), said.inner_text()
    found.get_by_role("button", name="no norm", exact=True).tap()
    assert is_right(found, shares)[0] == ["none"] * 3
    found.get_by_role("button", name="Reset").tap()
    assert is_right(found, shares) == (["rms"] * 4, 4, 30)


def test_cell_shows_recorded_times_where_there_are_some(visit, tmp_path):
    times = {"what": "a test", "gru": {"none": 1.25, "rms": 2.5}}
    file = tmp_path / "figure.html"
    shown = figure.Cell(times=times).to_html()
    file.write_text(f"<!doctype html><meta charset=utf-8>{shown}", encoding="utf-8")
    found = visit(file.as_uri()).locator(".rmsn-figure[data-ready]")
    line = found.locator(".rmsn-times")
    assert line.inner_text() == "Recorded, a test: no norm 1.25 ms · RMSNorm 2.50 ms"
    assert line.locator("b").inner_text() == "RMSNorm 2.50 ms"
    found.get_by_role("switch", name="Norm s1").click()
    rest(found.page)
    assert line.locator("b").count() == 0
    found.get_by_role("button", name="LSTM", exact=True).click()
    rest(found.page)
    assert not line.is_visible()
