"""The mutant detective in the built page: fed and named by mouse and keys."""

import re

import numpy as np

from browser.figures import number, rest
from rmsnorm_edu.explorables import error_maps, mutant_detective
from rmsnorm_edu.mutants import MUTANTS

NAMES = list(mutant_detective.sentences())


def cells(table):
    rows = table.locator("tbody tr").all()
    return [[td.inner_text() for td in row.locator("td").all()] for row in rows]


def is_right(found, name, given):
    """The tables and the sentence are those of the mutant, computed again."""
    fed = next(one for one in error_maps.inputs() if one.name == given)
    y, dx = (cells(table) for table in found.locator("table").all())
    shown = {"y": y, "dx": dx[:3], "dweight": dx[3:]}
    faults = {fault.what: fault.percent() for fault in error_maps.faults(MUTANTS[name], fed)}
    for what, texts in shown.items():
        true = faults.get(what, np.zeros((len(texts), fed.x.shape[1])))
        for text, percent in zip(
            np.array(texts)[:, : true.shape[1]].ravel(), true.ravel(), strict=True
        ):
            if re.fullmatch(r"−?[\d.]+", text):
                np.testing.assert_allclose(number(text), percent, rtol=0.1)
            else:
                assert {"": percent == 0, ">999": abs(percent) > 999}[text]


def test_the_detective_by_mouse(figure):
    page, found = figure("mutant_detective")
    said = found.locator("output.rmsn-finding")
    first = mutant_detective.CASES[0]
    for given in ("Seven features", "Normal rows", "Tiny rows"):
        found.get_by_role("button", name=given, exact=True).click()
        rest(page)
        is_right(found, first, given)
    wrong = next(name for name in mutant_detective.choices(first) if name != first)
    found.get_by_role("button", name=wrong, exact=True).click()
    rest(page)
    assert said.inner_text().startswith("No.")
    found.get_by_role("button", name=first, exact=True).click()
    rest(page)
    assert "You needed 3 inputs and 2 guesses." in said.inner_text()
    assert "Found: 1. Guesses: 2." in found.inner_text()
    found.get_by_role("button", name="Another mutant").click()
    rest(page)
    is_right(found, mutant_detective.CASES[1], "Normal rows")
    found.get_by_role("button", name="Reset").click()
    rest(page)
    assert "Mutant 1 of" in found.inner_text()
    assert "Found: 0." in found.inner_text()
    assert page.problems == []


def test_the_detective_by_keyboard(figure):
    page, found = figure("mutant_detective")
    found.get_by_role("button", name="Equal numbers", exact=True).focus()
    page.keyboard.press("Enter")
    rest(page)
    is_right(found, mutant_detective.CASES[0], "Equal numbers")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    rest(page, 350)
    is_right(found, mutant_detective.CASES[0], "One number a row")
    assert "fed=2" in page.url
