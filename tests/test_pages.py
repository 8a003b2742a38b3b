"""The chapters' own cells: stubs fail, solutions pass, laboratories answer their controls."""

import functools

import matplotlib.pyplot as plt
import pages
import pytest

run = functools.cache(pages.run)
chapters = pytest.mark.parametrize("path", pages.CHAPTERS, ids=lambda path: path.stem)


def other(control):
    """A value that the control does not have now."""
    if hasattr(control, "options"):
        return next(option for option in control.options if option != control.value)
    if isinstance(control.value, bool):
        return not control.value
    return control.min if control.value != control.min else control.max


@chapters
def test_stubs_fail_and_solutions_pass(path):
    ran = run(path)
    stubs, solutions = ran.of("exercise"), ran.of("solution")
    assert stubs == [[False]] * len(stubs), "each stub is checked once and does not pass"
    assert all(results and all(results) for results in solutions)
    assert len(stubs) == len(solutions) >= 3


@chapters
def test_every_control_of_the_laboratory_draws_again(path, monkeypatch):
    [laboratory] = run(path).laboratories
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    assert len(laboratory.drawn) == 1, "the laboratory draws when it appears"
    for name, control in laboratory.controls.items():
        before = len(laboratory.drawn)
        control.value = value = other(control)
        assert len(laboratory.drawn) == before + 1, f"moving {name} draws nothing, or fails"
        assert laboratory.drawn[-1][name] == value


@pytest.mark.parametrize("path", pages.PAGES, ids=lambda path: path.stem)
def test_every_plot_has_its_own_alternative_text(path):
    for cell in pages.code_cells(path):
        if "plt.show(" in cell.source:
            assert cell.metadata["mystnb"]["image"]["alt"].strip(), cell.source
