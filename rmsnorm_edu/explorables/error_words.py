"""The shape of an error in words: which rows and columns, and whether a factor explains it."""

import numpy as np

from rmsnorm_edu.explorables.error_maps import Fault
from rmsnorm_edu.mutants.base import Array

NOTHING = "Right, but for rounding: this input cannot tell it from the right one."


def sentence(faults: list[Fault]) -> str:
    """What is wrong; a result that is right is not named."""
    if not faults:
        return NOTHING
    wrong = [f"{fault.what} is {_lost(fault) or how(fault) + where(fault)}." for fault in faults]
    return " ".join(wrong)


def _lost(fault: Fault) -> str:
    """Where the values are no numbers, and whether there are other errors."""
    lost = ~np.isfinite(fault.got)
    if not lost.any():
        return ""
    rows = _listed("row", [fault.rows[i] for i in np.flatnonzero(lost.any(axis=1))])
    word = "not a number" if np.isnan(fault.got).any() else "infinite"
    return f"{word} in {rows}" + (", and wrong elsewhere" if fault.wrong[~lost].any() else "")


def how(fault: Fault) -> str:
    """What has become of the wrong values: 0, off by a factor, or by a multiple of x."""
    if (fault.got[fault.wrong] == 0).all():
        return "0"
    return _factor(fault) or _along_x(fault) or "wrong, by no common factor"


def where(fault: Fault) -> str:
    """The rows and columns that hold errors, where they are not all that could."""
    could = fault.wrong | (fault.want != 0)
    rows, columns = (np.flatnonzero(np.any(fault.wrong, axis=axis)) for axis in (1, 0))
    said = []
    if fault.what != "dweight" and len(rows) < np.any(could, axis=1).sum():
        said.append(_listed("row", [fault.rows[i] for i in rows]))
    if len(columns) < np.any(could[rows], axis=0).sum():
        said.append(_listed("column", columns.tolist()))
    return f", but only in {' and '.join(said)}" if said else ""


def _listed(name: str, places: list[int]) -> str:
    """Places are counted from 1, as the figure's tables do."""
    numbers = [f"{place + 1}" for place in places]
    if len(numbers) == 1:
        return f"{name} {numbers[0]}"
    return f"{name}s {', '.join(numbers[:-1])} and {numbers[-1]}"


def _factor(fault: Fault) -> str:
    """One factor for all, for each row or for each column, where that explains the error."""
    with np.errstate(all="ignore"):
        ratio = np.where(fault.want == 0, np.nan, fault.got / fault.want)
    if np.any(fault.wrong & (fault.want == 0)):
        return ""
    ratio = np.where(fault.wrong, ratio, np.nan)
    if _is_one(ratio.ravel()):
        return f"{_size(float(np.nanmean(ratio)))}, by the same factor everywhere"
    for axis, name in ((1, "row"), (0, "column")):
        lines = ratio if axis else ratio.T
        if _each_has_one(lines):
            return f"off by a factor of its own in each {name}, the farthest {_farthest(ratio)}"
    is_single = (np.isfinite(ratio).sum(axis=1) <= 1).all()
    return f"off by different factors, the farthest {_farthest(ratio)}" if is_single else ""


def _farthest(ratio: Array) -> str:
    found = ratio[np.isfinite(ratio)]
    return _size(float(max(found, key=lambda factor: abs(np.log(abs(factor))))))


def _each_has_one(lines: Array) -> bool:
    """Each line has one ratio, and one of them has more than one value to show it."""
    filled = [line for line in lines if np.isfinite(line).any()]
    return max(np.isfinite(line).sum() for line in filled) > 1 and all(map(_is_one, filled))


def _is_one(ratio: Array) -> bool:
    """The ratios are equal to a hundredth of their distance from 1."""
    found = ratio[np.isfinite(ratio)]
    return bool(np.ptp(found) <= 0.01 * abs(float(np.mean(found)) - 1))


def _along_x(fault: Fault) -> str:
    """An error of dx that is a multiple of x in each row: a fault of the second term."""
    rows = fault.wrong.any(axis=1)
    error, x = (fault.got - fault.want)[rows], fault.x[rows]
    if fault.what != "dx" or not x.any(axis=1).all():
        return ""
    share = np.sum(error * x, axis=1, keepdims=True) / np.sum(x**2, axis=1, keepdims=True)
    rest = np.abs(error - share * x).max()
    return "off by a multiple of x in each row" if rest <= 1e-4 * np.abs(error).max() else ""


def _size(ratio: float) -> str:
    if ratio <= 0 or ratio >= 2:
        return f"{_number(ratio)} times what it should be"
    percent = 100 * abs(ratio - 1)
    return f"{_number(percent)}% too {'large' if ratio > 1 else 'small'}"


def _number(value: float) -> str:
    return (f"{value:.0f}" if 10 <= abs(value) < 1e6 else f"{value:.2g}").replace("-", "−")
