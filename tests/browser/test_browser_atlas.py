"""The conventions atlas, alone in a page: its outputs are those of `conventions.apply`."""

import re

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("ml_dtypes")

from browser.figures import BY_KEY, drag, number, pace, rest
from rmsnorm_edu import precision
from rmsnorm_edu.explorables import conventions_atlas as atlas


def chosen(found):
    """Families, types and size that the figure shows."""
    first, second = (s.evaluate("e => e.value") for s in found.locator("select").all())
    dtype, weight = found.locator("button[aria-pressed=true]").all_inner_texts()
    size = found.get_by_role("slider", name="RMS(x)", exact=True).get_attribute("aria-valuetext")
    scale = number(size.replace("\N{NO-BREAK SPACE}", " "))
    return (first, second), dtype, "same" if "x" in weight else weight, scale


def atlas_is_right(found):
    """Both outputs of the feature that is read, to the last digit, and the share that differs."""
    names, dtype, weight, scale = chosen(found)
    marker = found.locator(".rmsn-marker")
    told = marker.get_attribute("aria-valuetext").replace("\N{NO-BREAK SPACE}", " ")
    i = int(marker.get_attribute("aria-valuenow")) - 1
    outputs = [atlas.outputs(name, dtype, weight, scale) for name in names]
    for name, y in zip(names, outputs, strict=True):
        shown = re.search(rf"{re.escape(atlas.NAMES[name])} ([^,]+),", told)[1]
        if np.isfinite(y[i].astype(float)):
            assert np.array(number(shown)).astype(y.dtype) == y[i], told
        else:
            assert shown in ("nan", "∞", "−∞")
    return names, dtype, weight, scale, outputs


def differing(found):
    """The counts over the bars of the histogram, by their names."""
    texts = found.locator("svg .rmsn-count ~ text").all_text_contents()
    return {name: int(count or 0) for name, count in zip(texts[:7], texts[7:], strict=True)}


def test_atlas_by_mouse(alone):
    page, found = alone("ConventionsAtlas")
    *_, outputs = atlas_is_right(found)
    apart = precision.ulps_apart(*outputs)
    assert differing(found)["0"] == np.sum(apart == 0)
    assert differing(found)["1"] == np.sum(apart == 1)
    box = found.locator("svg").first.bounding_box()
    drag(page, found.locator(".rmsn-marker"), box["x"] + box["width"] * 0.2, box["y"] + 80)
    assert int(found.locator(".rmsn-marker").get_attribute("aria-valuenow")) < 13
    atlas_is_right(found)
    for name in atlas.NAMES:
        found.locator("select").first.select_option(name)
        rest(page)
        assert atlas_is_right(found)[0] == (name, "torch")
    found.get_by_role("button", name="x’s type").locator("xpath=following::button").first.click()
    rest(page)
    assert atlas_is_right(found)[2] == "float32"
    assert page.problems == []


def test_atlas_by_keyboard(alone):
    page, found = alone("ConventionsAtlas", width=320)
    found.locator(".rmsn-marker").focus()
    for key, feature in (("Home", 1), ("ArrowRight", 2), ("Shift+ArrowRight", 12), ("End", 32)):
        page.keyboard.press(key)
        rest(page)
        assert found.locator(".rmsn-marker").get_attribute("aria-valuenow") == str(feature)
        atlas_is_right(found)
    slider = found.get_by_role("slider", name="RMS(x)", exact=True)
    slider.focus()
    for key, scale in (("ArrowLeft", 2), ("Shift+ArrowLeft", 0.05), ("Home", 1e-8), ("End", 1e4)):
        page.keyboard.press(key)
        rest(page)
        assert atlas_is_right(found)[3] == scale
    found.locator("select").nth(1).focus()
    page.keyboard.press("ArrowDown")
    rest(page)
    assert atlas_is_right(found)[0] == ("llama", "olmo2")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (744, "light")])
def test_atlas_says_what_the_buttons_promise(alone, width, scheme):
    page, found = alone("ConventionsAtlas", width=width, scheme=scheme)
    for button, finding, state in [
        ("10⁻⁴: ε", "ε decides", (("paper_torch", "gemma"), "float32", "same", 1e-4)),
        ("float16 at", "overflows", (("paper_tensorflow", "torch"), "float16", "same", 300)),
        ("LLaMA", "ε is 10", (("llama", "torch"), "float32", "same", 3)),
        ("Reset", "24% of the outputs", (("llama", "torch"), "bfloat16", "same", 3)),
    ]:
        found.get_by_role("button", name=button).click()
        rest(page)
        assert atlas_is_right(found)[:4] == state
        assert finding in found.locator("output.rmsn-finding").inner_text()
        marked = found.locator("li.is-differing")
        assert marked.count() >= 2
        assert marked.first.inner_text().startswith("differs")
    rest(page, 200)
    assert found.locator(".rmsn-hidden tr").count() == 4


def test_atlas_answers_quickly(alone):
    page, found = alone("ConventionsAtlas")
    found.get_by_role("button", name="LLaMA").click()
    rest(page)
    assert pace(found, BY_KEY) <= 8
