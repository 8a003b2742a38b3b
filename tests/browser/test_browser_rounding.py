"""The rounding cloud, alone in a page: by mouse, keys and touch, its errors those measured."""

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("ml_dtypes")

from browser.figures import BY_KEY, drag, numbers, pace, rest
from rmsnorm_edu import precision
from rmsnorm_edu.explorables import rounding_cloud as cloud


def chosen(found):
    """The type, the convention, eps and the size that the figure shows."""
    names = {label: name for name, label in cloud.LABELS.items()}
    pressed = found.locator("button[aria-pressed=true]").all_inner_texts()
    k = int(found.locator(".rmsn-marker").get_attribute("aria-valuenow"))
    return pressed[0], names[pressed[1]], {"its own": None, "0": 0.0}[pressed[2]], k


def cloud_is_right(found):
    """The error that the marker tells is the largest one measured at its size."""
    dtype, name, eps, k = chosen(found)
    said = found.locator(".rmsn-marker").get_attribute("aria-valuetext").split(": error ")[1]
    exponents = cloud.sizes(dtype)
    if k not in exponents:
        assert said == "–"
        return dtype, name, eps, k
    x = cloud.inputs(dtype, exponents, cloud.DTYPES[dtype])
    error = np.max(cloud.errors(*cloud.outputs(name, x, eps))[exponents.index(k)])
    if not np.isfinite(error):
        assert said == "∞"
    elif said.endswith("%"):
        true = 100 * error * precision.UNIT_ROUNDOFF[dtype]
        np.testing.assert_allclose(numbers(said), true, rtol=0.25)  # steps of a half in the letters
    else:
        np.testing.assert_allclose(numbers(said), error, rtol=0.25 if error > 4 else 0, atol=0.06)
    bound = numbers(found.locator(".rmsn-equation").get_attribute("aria-label").split("bound ")[1])
    np.testing.assert_allclose(bound[0], cloud.bound(name, dtype), rtol=0.006)
    return dtype, name, eps, k


def test_rounding_cloud_by_mouse(alone):
    page, found = alone("RoundingCloud")
    assert cloud_is_right(found) == ("float16", "gemma_flax", None, 0)
    marker = found.locator(".rmsn-marker")
    box = found.locator("svg").first.bounding_box()
    drag(page, marker, box["x"] + box["width"] * 0.9, box["y"] + 200)
    assert cloud_is_right(found)[3] > 20
    assert "no number of this size" in found.locator("output.rmsn-finding").inner_text()
    found.get_by_role("slider", name="Largest |x|", exact=True).press("Home")
    for text in (*cloud.LABELS.values(), *cloud.DTYPES):
        found.get_by_role("button", name=text, exact=True).click()
        rest(page)
        cloud_is_right(found)
    assert page.problems == []


def test_rounding_cloud_by_keyboard(alone):
    page, found = alone("RoundingCloud", width=320)
    found.locator(".rmsn-marker").focus()
    for key, k in (("ArrowRight", 2), ("Shift+ArrowRight", 22), ("Home", -44), ("End", 34)):
        page.keyboard.press(key)
        rest(page)
        assert cloud_is_right(found)[3] == k
    slider = found.get_by_role("slider", name="Largest |x|", exact=True)
    slider.focus()
    page.keyboard.press("ArrowLeft")
    rest(page)
    assert cloud_is_right(found)[3] == 32
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_rounding_cloud_says_what_the_buttons_promise(alone):
    page, found = alone("RoundingCloud", width=390, scheme="dark")
    for button, finding, state in [
        ("float16 at 256", "Every output is 0", ("float16", "gemma_flax", None, 8)),
        ("float32 near", "Every output is 0", ("float32", "torch", None, 66)),
        ("bfloat16: LLaMA", "26% of the outputs are not", ("bfloat16", "llama", None, 0)),
        ("Tiny inputs", "divides by 0", ("float32", "torch", 0.0, -76)),
        ("Reset", "Below the bound", ("float16", "gemma_flax", None, 0)),
    ]:
        found.get_by_role("button", name=button).click()
        rest(page)
        assert cloud_is_right(found) == state
        assert finding in found.locator("output.rmsn-finding").inner_text()
    rest(page, 200)
    assert found.locator(".rmsn-hidden tr").count() == 3


def test_rounding_cloud_answers_quickly(alone):
    page, found = alone("RoundingCloud")
    found.get_by_role("button", name="bfloat16: LLaMA").click()
    rest(page)
    assert pace(found, BY_KEY) <= 8
