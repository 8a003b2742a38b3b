"""The exercises of the chapter on precision."""

from typing import Any

import numpy as np

from rmsnorm_edu import reference
from rmsnorm_edu.exercises.model import (
    Array,
    Conviction,
    Exercise,
    Task,
    Wrong,
    ideal,
    mean_square,
    row,
)


def _largest_safe(dtype: Any) -> Any:
    return np.sqrt(np.finfo(dtype).max)


_LARGEST_SAFE = Task(
    "largest_safe(dtype)",
    _largest_safe,
    cases=((np.float16,), (np.float32,)),
    example=(np.float16,),
    wrongs=(
        Wrong(
            lambda dtype: float(np.finfo(dtype).max) ** 0.5,
            "this root is no number of the type: it has more digits. Round it to the type.",
        ),
        Wrong(
            lambda dtype: np.finfo(dtype).max,
            "that is the largest number, and its square is far beyond: take the root.",
        ),
        Wrong(
            lambda dtype: 2.0 ** (np.finfo(dtype).maxexp / 2),
            "the square of this number is the first power of two beyond the type: it is inf.",
        ),
    ),
)


def _stalls_at(fraction_bits: int, term: float) -> float:
    return float(2 ** (fraction_bits + 1) * term)


_STALLS_AT = Task(
    "stalls_at(fraction_bits, term)",
    _stalls_at,
    cases=((2, 1.0), (7, 1.0), (10, 0.25), (10, 64.0), (23, 1.0)),
    example=(10, 1.0),
    wrongs=(
        Wrong(
            lambda fraction_bits, term: 2**fraction_bits * term,
            "there the step is as large as the term, which still fits. Go on until the term "
            "is half a step.",
        ),
        Wrong(
            lambda fraction_bits, term: 2 ** (fraction_bits + 1),
            "this holds for a term of 1. Larger terms go on for longer.",
        ),
        Wrong(
            lambda fraction_bits, term: 2 ** (fraction_bits + 2) * term,
            "too late: at half of this the term is half a step already, and a tie goes to the "
            "even neighbour, which is the sum itself.",
        ),
    ),
)


def _scaled(x: Array, weight: Array, eps: float, power: int) -> Array:
    """Divided by m first, and eps by m to the power."""
    m = np.max(np.abs(x), axis=-1, keepdims=True)
    m = np.where(m == 0, 1.0, m)
    small = x / m
    y: Array = small / np.sqrt(mean_square(small) + eps / m**power) * weight
    return y


def _plain(x: Array, weight: Array, eps: float) -> Array:
    y: Array = x / np.sqrt(mean_square(x) + eps) * weight
    return y


_WEIGHT = row(1.5, -0.5)
_SAFE_RMS_NORM = Task(
    "safe_rms_norm(x, weight, eps)",
    lambda x, weight, eps: reference.rms_norm(x, weight, eps=eps),
    cases=(
        (row(3.0, -4.0), _WEIGHT, 0.0),
        (row(3e-3, -4e-3), _WEIGHT, 1e-5),
        (row(0.0, 0.0), _WEIGHT, 1e-6),
        (row(3e-200, -4e-200), _WEIGHT, 0.0),
        (row(3e-200, -4e-200), _WEIGHT, 1e-6),
        (row(3e200, -4e200), _WEIGHT, 1e-6),
        (np.array([[3.0, 4.0], [0.0, 0.0], [1e200, -2e200]]), _WEIGHT, 1e-6),
    ),
    example=(row(3e200, -4e200), _WEIGHT, 1e-6),
    wrongs=(
        Wrong(_plain, "it squares x itself, and the square of 1e200 is inf: divide x first."),
        Wrong(
            lambda x, weight, eps: _scaled(x, weight, eps, 0),
            "x was divided by m, and eps was not: under the root, eps becomes eps/m².",
        ),
        Wrong(
            lambda x, weight, eps: _scaled(x, weight, eps, 2),
            "for a tiny row m² underflows, and eps/m² is inf. Divide by the larger of m and "
            "the root of eps.",
        ),
    ),
)


def half_sum(x: Array) -> Array:
    """Broken: the running sum of the squares is kept in float16, and stands still at 2048."""
    m = np.max(np.abs(x), axis=-1, keepdims=True)
    small = (x / m).astype(np.float16)
    total = np.zeros(x.shape[:-1], np.float16)
    for i in range(x.shape[-1]):
        total = total + small[..., i] ** 2
    mean = total[..., np.newaxis].astype(np.float64) / x.shape[-1]
    y: Array = x / (m * np.sqrt(mean))
    return y


_CONVICT_HALF_SUM = Conviction(
    "evidence()",
    half_sum,
    ideal,
    innocent=row(0.5, 1.0, -0.8),
    hint="the size of the entries does not matter to it, since it divides by the largest. The sum "
    "is kept in float16: what does a float16 sum do when it has become large?",
)

EXERCISES: dict[str, Exercise] = {
    "largest_safe": _LARGEST_SAFE,
    "stalls_at": _STALLS_AT,
    "safe_rms_norm": _SAFE_RMS_NORM,
    "convict_half_sum": _CONVICT_HALF_SUM,
}
