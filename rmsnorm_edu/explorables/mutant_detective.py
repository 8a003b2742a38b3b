"""The figure of testing: name the fault of an unknown RMSNorm from the shape of its errors."""

import re
from functools import cache
from typing import Any

import numpy as np
import traitlets

from rmsnorm_edu.explorables import error_maps
from rmsnorm_edu.explorables.error_words import sentence
from rmsnorm_edu.explorables.figure import Figure
from rmsnorm_edu.mutants import MUTANTS

# The unknown ones in the order of the figure, then others that they may be taken for.
CASES = (
    "n − 1",
    "mean subtracted",
    "padding counted",
    "ε × 10⁵",
    "w outside the mean, too",
    "whole array",
    "rows beyond the grid",
    "no second term",
    "statistics per rank",
    "last row dropped",
)
OTHERS = (
    "no ε",
    "next row overwritten",
    "wrong axis",
    "standard deviation",
    "1 + w",
    "wrong sign",
    "dx without w",
    "dweight without x̂",
)
CHOICES = 6


@cache
def sentences() -> dict[str, list[str]]:
    """What each suspect does to each input, in words."""
    given = error_maps.inputs()
    return {
        name: [sentence(error_maps.faults(MUTANTS[name], one)) for one in given]
        for name in (*CASES, *OTHERS)
    }


def choices(name: str) -> list[str]:
    """The suspect itself and the five that are like it on most inputs, in alphabetical order."""

    def likeness(other: str) -> int:
        pairs = zip(sentences()[name], sentences()[other], strict=True)
        alike = sum(_shape(a) == _shape(b) for a, b in pairs)
        return alike + 2 * (MUTANTS[name].wrong == MUTANTS[other].wrong)

    others = sorted((n for n in sentences() if n != name), key=likeness, reverse=True)
    return sorted([name, *others[: CHOICES - 1]])


def _shape(text: str) -> str:
    """A sentence without its numbers."""
    return re.sub(r"[−\d.]+", "", text)


def error_map(name: str, given: error_maps.Input) -> dict[str, Any]:
    """What the figure draws: errors in % of the truth, null for what is no number; the largest.

    ``{"y": rows, "dx": rows, "dweight": [row], "worst": [result, row, column, got, want]}``; a
    result that is right has no entry, a suspect that is right nothing.
    """
    faults = error_maps.faults(MUTANTS[name], given)
    found: dict[str, Any] = {
        fault.what: [[_short(v, 2) for v in row] for row in fault.percent()] for fault in faults
    }
    for fault in faults[:1]:
        size = np.nan_to_num(np.abs(fault.percent()), nan=np.inf)
        row, column = (int(i) for i in np.unravel_index(np.argmax(size), size.shape))
        values = (_short(a[row, column], 3) for a in (fault.got, fault.want))
        found["worst"] = [fault.what, fault.rows[row], column, *values]
    return found


def _short(value: float, digits: int) -> float | int | None:
    """The value to so many digits, whole numbers as int; None where it is none."""
    if not np.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short


@cache
def data() -> dict[str, Any]:
    """What the module draws and says, all of it computed by `mutants` and `error_maps`."""
    given = error_maps.inputs()
    said = sorted({text for texts in sentences().values() for text in texts})
    names = list(sentences())
    return {
        "inputs": [
            {"name": g.name, "about": g.about, "rows": list(g.rows), "width": g.x.shape[1]}
            for g in given
        ],
        "sentences": said,
        "suspects": [
            {
                "name": name,
                "what": MUTANTS[name].what.replace(" - ", "\u00a0−\u00a0"),
                "reported": MUTANTS[name].reported,
                "says": [said.index(text) for text in texts],
            }
            for name, texts in sentences().items()
        ],
        "cases": [
            {
                "choices": [names.index(choice) for choice in choices(name)],
                "maps": [error_map(name, one) for one in given],
            }
            for name in CASES
        ],
    }


class MutantDetective(Figure):
    """An unknown wrong RMSNorm: feed it inputs, look where it is wrong, name its fault.

    Mutants, their words and reports are those of `rmsnorm_edu.mutants`; an error counts where it
    is more than `precision.allowed`. Traits: `case` (which unknown one), `fed` (which input), and
    what the reader did: `seen`, as ``"case/input"``, and `guesses`, as ``"case/suspect"``.
    """

    name = "mutant_detective"
    label = "Mutant detective: name the fault from the error that it makes"
    case = traitlets.Int(0, min=0, max=len(CASES) - 1).tag(sync=True)
    fed = traitlets.Int(0, min=0).tag(sync=True)
    seen = traitlets.List(traitlets.Unicode()).tag(sync=True)
    guesses = traitlets.List(traitlets.Unicode()).tag(sync=True)
    data = traitlets.Dict(read_only=True).tag(sync=True)

    @traitlets.default("data")
    def _default_data(self) -> dict[str, Any]:
        return data()
