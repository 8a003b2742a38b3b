"""What an exercise is: the two kinds, as data that `checks.check` judges by."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmsnorm_edu import reference

Array = NDArray[np.float64]
Norm = Callable[[Array], Array]


@dataclass(frozen=True)
class Wrong:
    """A wrong answer that readers give, and the reason that they are told when theirs equals it."""

    answer: Callable[..., Any]
    reason: str


@dataclass(frozen=True)
class Task:
    """Write a function that equals `truth` on all `cases`.

    `signature` is that of the reader's function, as the stub on the page has it. `cases` are
    argument tuples (arrays in float64, numbers, functions) from the smallest to the largest;
    `example` is the one shown to a reader who has not begun. An answer is right when each number
    is within `tolerance` of the truth's, relative to it.
    """

    signature: str
    truth: Callable[..., Any]
    cases: tuple[tuple[Any, ...], ...]
    example: tuple[Any, ...]
    wrongs: tuple[Wrong, ...] = ()
    tolerance: float = 1e-9


@dataclass(frozen=True)
class Conviction:
    """Find a valid input on which the norm `broken` is wrong; the reader's function returns it.

    Wrong: off from `truth` by more than `threshold` of the largest output. `innocent` is an input
    on which it is right; `hint` says to a reader who brought such a one what to vary.
    """

    signature: str
    broken: Norm
    truth: Norm
    innocent: Array
    hint: str
    threshold: float = 0.01


Exercise = Task | Conviction


def row(*values: float) -> Array:
    """A row of float64."""
    return np.array(values, dtype=np.float64)


def mean_square(x: Array) -> Array:
    """The mean square of each row, (..., 1): what most wrong answers are built with."""
    mean: Array = np.mean(np.square(x), axis=-1, keepdims=True)
    return mean


def unbiased(x: Array) -> Array:
    """The sum of squares over n − 1, (..., 1); inf for one feature."""
    n = x.shape[-1]
    return mean_square(x) * (n / (n - 1) if n > 1 else np.inf)


def ideal(x: Array) -> Array:
    """The RMSNorm of a page's simplest line, eps = 0 and no weight."""
    return reference.rms_norm(x, eps=0.0)


MATRIX = np.array([[1.0, 2.0, 2.0], [-4.0, 0.0, 3.0]])
SQUARE = np.array([[3.0, 4.0], [1.0, -7.0]])
CUBE = np.arange(-10.0, 14.0).reshape(2, 3, 4)
