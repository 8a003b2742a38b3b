"""The exercises of the chapter "Testing"."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rmsnorm_edu import reference
from rmsnorm_edu.exercises.model import Array, Conviction, Exercise, Task, Wrong, ideal, row
from rmsnorm_edu.mutants import MUTANTS, RMSNorm


def _tolerance(n: float, u: float, v: float, halves: float = 0.5) -> float:
    """(1 + u)^(d/2 + 8) (1 + v) − 1 for d = n − 1."""
    return math.expm1(((n - 1) * halves + 8) * math.log1p(u) + math.log1p(v))


_TOLERANCE = Task(
    "tolerance(n, u, v)",
    _tolerance,
    cases=(
        (1, 2.0**-24, 2.0**-24),
        (1024, 2.0**-24, 2.0**-24),
        (1024, 2.0**-24, 2.0**-8),
        (4096, 2.0**-24, 2.0**-11),
    ),
    example=(1024, 2.0**-24, 2.0**-24),
    wrongs=(
        Wrong(
            lambda n, u, v: _tolerance(n + 1, u, v),
            "n summands pass n - 1 additions, not n.",
        ),
        Wrong(
            lambda n, u, v: _tolerance(n, u, v, halves=1.0),
            "the root halves the error of what is under it: d/2, not d.",
        ),
        Wrong(
            lambda n, u, v: _tolerance(n, u, 0.0),
            "the last rounding is missing, the store in the type of the result: 1 + v.",
        ),
    ),
    tolerance=1e-6,
)


def in_pairs(x: Array, weight: Array, eps: float) -> Array:
    """Right: NumPy's own order of the sum."""
    return RMSNorm().forward(x, weight, eps)


def from_the_end(x: Array, weight: Array, eps: float) -> Array:
    """Right: the squares are added from the last to the first."""
    total = np.cumsum(np.square(x)[..., ::-1], axis=-1)[..., -1:]
    y: Array = x / np.sqrt(total / x.dtype.type(x.shape[-1]) + x.dtype.type(eps)) * weight
    return y


def scaled_first(x: Array, weight: Array, eps: float) -> Array:
    """Right: x is divided by its largest entry first, and eps with it."""
    m = np.max(np.abs(x), axis=-1, keepdims=True)
    m = np.where(m == 0, x.dtype.type(1), m)
    mean = np.mean(np.square(x / m), axis=-1, keepdims=True)
    y: Array = x / m / np.sqrt(mean + x.dtype.type(eps) / m / m) * weight
    return y


def _named(name: str, mutant: str) -> Callable[..., Any]:
    def forward(x: Array, weight: Array, eps: float) -> Array:
        return MUTANTS[mutant].forward(x, weight, eps)

    forward.__name__ = name
    return forward


_RIGHT = (in_pairs, from_the_end, scaled_first)
_WRONG = tuple(
    _named(name, mutant)
    for name, mutant in {
        "without_weight_1": "1 + w",
        "n_minus_1": "n − 1",
        "eps_times_1e5": "ε × 10⁵",
        "eps_outside": "ε outside",
        "mean_subtracted": "mean subtracted",
        "padding_counted": "padding counted",
        "one_rms_for_all_rows": "whole array",
        "sums_in_float16": "sums in half precision",
    }.items()
)


def _is_wrong(forward: Callable[..., Any]) -> bool:
    return forward in _WRONG


_EASY = np.random.default_rng(0).normal(size=(1, 64)).astype(np.float32)


def _with_an_easy_input(tolerance: float) -> Callable[..., bool]:
    """One row, a weight of 1, ε = 1e-6."""
    weight = np.ones(64, np.float32)
    right = reference.rms_norm(_EASY, weight)

    def kills(forward: Callable[..., Any]) -> bool:
        y = forward(_EASY, weight, 1e-6)
        return not np.allclose(y, right, rtol=tolerance, atol=tolerance)

    return kills


_KILLS = Task(
    "kills(forward)",
    _is_wrong,
    cases=tuple((f,) for f in (*_RIGHT, *_WRONG)),
    example=(in_pairs,),
    wrongs=(
        Wrong(lambda forward: True, "it kills everything, also what is right."),
        Wrong(lambda forward: False, "it kills nothing."),
        Wrong(
            _with_an_easy_input(1e-2),
            "a weight of 1, one row and a tolerance of 1e-2: most faults do not show there.",
        ),
        Wrong(
            _with_an_easy_input(1e-5),
            "the tolerance is fine. With a weight of 1, one row and a width of 64 some faults "
            "still do not show.",
        ),
    ),
)


def _padding_counted(x: Array) -> Array:
    """A norm that divides the sum by the width of its block, a power of two."""
    n = x.shape[-1]
    block = 1 << (n - 1).bit_length()
    y: Array = x / np.sqrt(np.sum(np.square(x), axis=-1, keepdims=True) / block)
    return y


_CONVICT_PADDING = Conviction(
    "evidence()",
    broken=_padding_counted,
    truth=ideal,
    innocent=row(3.0, -4.0, 0.5, 1.0),
    hint="the numbers do not matter to it. It is a matter of how many there are: for which "
    "widths is the block exactly as wide as the row?",
)

FAULTS = (
    "right",
    "n − 1",
    "mean subtracted",
    "ε outside",
    "padding counted",
    "ε × 10⁵",
    "divided by rstd",
)
PATTERNS = (row(2.0, 2.0, 2.0, 2.0), row(0.0, 0.0, 3.0, 0.0), row(1.0, -2.0, 2.0), row(1e-3, -2e-3))


def size_ratios(fault: str) -> tuple[float, ...]:
    """‖y‖ of the norm `fault` over the right ‖y‖, for each of PATTERNS; ε = 1e-6, weight 1."""
    norm = RMSNorm() if fault == "right" else MUTANTS[fault]
    ratios = []
    for x in PATTERNS:
        y = norm.forward(x[np.newaxis], np.ones(x.size), 1e-6)
        ratios.append(float(np.linalg.norm(y) / np.linalg.norm(reference.rms_norm(x))))
    return tuple(round(ratio, 3) for ratio in ratios)


_INDEX = {size_ratios(fault): i for i, fault in enumerate(FAULTS)}
_DIAGNOSE = Task(
    "diagnose(equal, one_hot, three, tiny)",
    lambda *ratios: _INDEX[ratios],
    cases=tuple(_INDEX),
    example=size_ratios("n − 1"),
    wrongs=(Wrong(lambda *ratios: 0, "not all of them are right norms."),),
)

EXERCISES: dict[str, Exercise] = {
    "tolerance": _TOLERANCE,
    "kills": _KILLS,
    "convict_padding": _CONVICT_PADDING,
    "diagnose": _DIAGNOSE,
}
