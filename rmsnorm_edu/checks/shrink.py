"""From an input that fails to the smallest one that still does."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Arguments = tuple[Any, ...]


def shrink(
    arguments: Arguments,
    fails: Callable[[Arguments], bool],
    *,
    lowest_rank: int = 1,
    tries: int = 300,
) -> Arguments:
    """Drop rows and features and round numbers as long as `fails` stays true, greedily.

    The first array of `arguments` has the rows and features (..., n); arrays of its shape, and
    the features of others that have its n, are cut along with it. Numbers and functions stay.
    """
    search = candidates(arguments, lowest_rank)
    for _ in range(tries):
        smaller = next(search, None)
        if smaller is None:
            break
        if fails(smaller):
            arguments = smaller
            search = candidates(arguments, lowest_rank)
    return arguments


def candidates(arguments: Arguments, lowest_rank: int = 1) -> Iterator[Arguments]:
    """Smaller arguments, the boldest cut first."""
    x = next((a for a in arguments if isinstance(a, np.ndarray)), None)
    if x is None or x.ndim == 0:
        return
    if x.ndim > 1:
        for keep in _cuts(x.shape[0]):
            yield _on_rows(arguments, x, keep)
    if x.ndim > lowest_rank and x.shape[0] == 1:
        yield _on_rows(arguments, x, 0)
    for keep in _cuts(x.shape[-1]):
        yield tuple(a[..., keep] if _has_features(a, x) else a for a in arguments)
    yield from _rounded(arguments)


def _cuts(size: int) -> Iterator[slice | list[int]]:
    """Halves of range(size), then all but one, each smaller than the whole and not empty."""
    if size < 2:
        return
    yield slice(0, size // 2)
    yield slice(size // 2, size)
    if size <= 16:
        for i in range(size):
            yield [j for j in range(size) if j != i]


def _on_rows(arguments: Arguments, x: Any, keep: slice | list[int] | int) -> Arguments:
    return tuple(
        a[keep] if isinstance(a, np.ndarray) and a.shape == x.shape else a for a in arguments
    )


def _has_features(a: Any, x: Any) -> bool:
    return isinstance(a, np.ndarray) and a.ndim > 0 and a.shape[-1] == x.shape[-1]


def _rounded(arguments: Arguments) -> Iterator[Arguments]:
    """One array at a time with its numbers rounded to fewer digits."""
    for place, a in enumerate(arguments):
        if not isinstance(a, np.ndarray):
            continue
        for digits in (0, 1):
            simple = _to_digits(a, digits)
            if not np.array_equal(simple, a, equal_nan=True):
                yield (*arguments[:place], simple, *arguments[place + 1 :])


def _to_digits(a: Any, digits: int) -> Any:
    """a rounded to 1 + digits significant decimal digits of its largest magnitude, none to 0."""
    wide = a.astype(np.float64)
    finite = np.abs(wide[np.isfinite(wide)])
    top = np.max(finite, initial=0.0)
    if top == 0:
        return a
    unit = 10.0 ** (np.floor(np.log10(top)) - digits)
    with np.errstate(all="ignore"):
        simple = np.round(wide / unit) * unit
    return np.where((simple == 0) & (wide != 0), wide, simple).astype(a.dtype)
