"""The kernel stepper in the built page: stepped through by mouse, keys and buttons."""

import re

import numpy as np

from browser.figures import by_slider, numbers, pace, rest, same
from rmsnorm_edu import reference


def memory(found):
    """The arrays as rows of numbers by name, nan where a cell is empty."""
    arrays = {}
    for part in found.locator(".rmsn-ks-bank > div").all():
        columns = int(re.search(r"\d+", part.locator(".rmsn-ks-tile").get_attribute("style"))[0])
        texts = part.locator(".rmsn-ks-cell").all_inner_texts()
        values = [numbers(text)[0] if text else np.nan for text in texts]
        arrays[part.locator("b").inner_text()] = np.reshape(values, (-1, columns))
    return arrays


def states(found, state):
    return found.locator(f'.rmsn-ks-bank > div [data-state="{state}"]').count()


def at(found):
    """The program and the step that the controls show, the latter from 1."""
    program = found.locator('[aria-label="Program"] [aria-pressed="true"]').inner_text()
    step = found.get_by_role("slider", name="Step").get_attribute("aria-valuetext")
    return int(program), int(step.split()[0])


def button(found, name):
    found.get_by_role("button", name=name, exact=True).click()
    rest(found.page)


def said(found):
    return found.locator("output.rmsn-finding").inner_text()


def test_the_last_step_has_stored_the_norm(figure):
    page, found = figure("kernel_stepper")
    assert np.isnan(memory(found)["y"]).all()
    button(found, "2")
    found.get_by_role("slider", name="Step").focus()
    page.keyboard.press("End")
    rest(page, 300)
    arrays = memory(found)
    truth = reference.rms_norm(arrays["x"], arrays["w"][0], eps=1e-6)
    assert same(arrays["y"], truth)
    assert "72 B written" in found.locator(".rmsn-ks-bank").inner_text()
    assert "#kernel_stepper-1&" in page.url
    assert page.problems == []


def home(found):
    found.get_by_role("slider", name="Step").focus()
    found.page.keyboard.press("Home")
    rest(found.page)


def test_it_opens_where_lanes_are_masked(figure):
    page, found = figure("kernel_stepper")
    opened = at(found)
    for program, first in ((0, 0), (1, 6)):
        button(found, str(program))
        assert said(found).startswith(f"6 lanes read offsets {first}–{first + 5} of x: 24 bytes. ")
        assert "2 lanes are masked" in said(found)
        assert (states(found, "load"), states(found, "masked")) == (6, 2)
    home(found)
    assert at(found) == (1, 1)
    rest(page, 300)  # the address follows
    assert page.url.endswith("#kernel_stepper-1&moment=0&program=1")
    button(found, "Reset")
    assert at(found) == opened
    rest(page, 300)
    assert "#" not in page.url, "Reset is the state of the page"


def test_by_mouse(figure):
    page, found = figure("kernel_stepper")
    home(found)
    assert at(found) == (0, 1)
    line = found.locator(".rmsn-ks-code .is-now")
    assert "tl.program_id(0)" in line.inner_text()
    seen = []
    for _ in range(4):
        button(found, "Next")
        seen.append(line.inner_text())
    assert "tl.load(" in seen[-1]
    button(found, "Back")
    assert at(found)[1] == 4
    assert line.inner_text() == seen[-2]
    slider = found.get_by_role("slider", name="Step")
    box = slider.bounding_box()
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
    rest(page)
    assert "store" in found.locator(".rmsn-ks-formula").inner_text()
    assert states(found, "store") == 6
    button(found, "Next")
    assert at(found) == (1, 1)
    assert said(found).startswith("Program 1 of 3 begins.")


def test_by_keyboard(figure):
    page, found = figure("kernel_stepper")
    home(found)
    for key, step in (("ArrowRight", 2), ("Shift+ArrowRight", 12), ("ArrowLeft", 11), ("Home", 1)):
        page.keyboard.press(key)
        rest(page)
        assert at(found) == (0, step)
    back = found.get_by_role("button", name="Back", exact=True)
    back.focus()
    page.keyboard.press("Enter")
    rest(page)
    assert at(found) == (0, 1), "there is nothing before the first step"
    assert back.get_attribute("aria-disabled") == "true"


def test_the_buttons_show_what_they_promise(figure):
    _, found = figure("kernel_stepper")
    opened = at(found)
    button(found, "Masked: past the end")
    assert re.search(r"2 lanes are masked and get 0: .* ends at \d+\.", said(found))
    button(found, "Lanes fold into a sum")
    assert said(found).startswith("Fold 1 of 3:")
    rows = found.locator(".rmsn-ks-now .rmsn-ks-row")
    for fold in (1, 2, 3):
        assert rows.last.locator(".rmsn-ks-cell").count() == 8 >> fold
        button(found, "Next")
    button(found, "The same bytes again")
    assert "has read them" in said(found)
    assert at(found)[0] == 1
    button(found, "Reset")
    assert at(found) == opened


def boxes(found, selector):
    """Where the figure's elements lie, all zero where one is not shown."""
    script = "(all) => all.map((el) => el.getBoundingClientRect().toJSON())"
    return found.locator(selector).evaluate_all(script)


def test_it_fits_a_phone(figure):
    page, found = figure("kernel_stepper", width=320)
    for name in ("Lanes fold into a sum", "The same bytes again"):
        button(found, name)
        edge = max(box["right"] for box in boxes(found, ".rmsn-ks-cell"))
        assert edge <= boxes(found, ".rmsn")[0]["right"] + 1
        assert found.locator(".rmsn-ks-bank > div .rmsn-ks-tile:visible").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_the_longest_kernel_fits_one_screen_of_a_phone(visit, site):
    page = visit(f"{site}book/kernels/backward_kernel.html", width=390)
    found = page.locator(".rmsn-figure[data-ready]")
    found.wait_for()
    page.evaluate("() => new Promise(requestAnimationFrame)")  # then the source has scrolled
    picture, tries, line, code = (
        boxes(found, part)[0] for part in (".rmsn-ks", ".rmsn-tries", ".is-now", ".rmsn-ks-code")
    )
    assert tries["bottom"] - picture["top"] <= 844
    assert all(min(box["width"], box["height"]) >= 24 for box in boxes(found, "button, input"))
    assert code["top"] <= line["top"] < line["bottom"] <= code["bottom"]
    assert pace(found, by_slider("i % 30")) <= 8
