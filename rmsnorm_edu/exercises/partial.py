"""The exercises of the chapter "Partial RMSNorm"."""

import math

import numpy as np

from rmsnorm_edu import reference
from rmsnorm_edu.exercises.model import (
    CUBE,
    MATRIX,
    Array,
    Conviction,
    Exercise,
    Task,
    Wrong,
    ideal,
    mean_square,
    row,
)


def _size(x: Array, k: int) -> Array:
    """The RMS of the first k features, (..., 1)."""
    return np.sqrt(mean_square(x[..., :k]))


def _partial(x: Array, weight: Array, k: int) -> Array:
    return reference.rms_norm(x, weight, eps=0.0, k=k)


_W3, _W4 = row(2.0, -0.5, 3.0), row(1.5, -2.0, 0.5, 3.0)
_PARTIAL_RMS_NORM = Task(
    "partial_rms_norm(x, weight, k)",
    _partial,
    cases=(
        (row(3.0, 4.0), row(2.0, -0.5), 1),
        (row(3.0, -4.0, 12.0), _W3, 2),
        (row(1.0, 2.0, 2.0, -5.0), _W4, 4),
        (MATRIX, _W3, 2),
        (CUBE, _W4, 3),
    ),
    example=(row(3.0, 4.0), row(2.0, -0.5), 1),
    wrongs=(
        Wrong(
            lambda x, weight, k: x / _size(x, x.shape[-1]) * weight,
            "this is the full norm: square x[..., :k] only.",
        ),
        Wrong(
            lambda x, weight, k: x / _size_of_n(x, k) * weight,
            "you divided the sum of k squares by n: its mean is over k.",
        ),
        Wrong(
            lambda x, weight, k: x / (_size(x, k) * np.sqrt(k)) * weight,
            "you divided by the length of the first k: take the mean of their squares.",
        ),
        Wrong(
            lambda x, weight, k: x[..., :k] / _size(x, k) * weight[:k],
            "only k features came back: all n are divided.",
        ),
        Wrong(
            lambda x, weight, k: x / _size(x[..., ::-1], k) * weight,
            "you took the last k features: the first are asked for.",
        ),
        Wrong(lambda x, weight, k: x / _size(x, k), "the weight is missing."),
    ),
)


def _size_of_n(x: Array, k: int) -> Array:
    return _size(x, k) * math.sqrt(k / x.shape[-1])


def _partial_dx(dy: Array, x: Array, weight: Array, k: int) -> Array:
    return reference.rms_norm_vjp(dy, x, weight, eps=0.0, k=k)[0]


def _dx(dy: Array, x: Array, u: Array, k: int, corrected: int, summed: int, over: int) -> Array:
    """The gradient with its three sizes free: who is corrected, the sum's range, its divisor."""
    d = _size(x, k)
    xhat = x / d
    along = np.sum((u * xhat)[..., :summed], axis=-1, keepdims=True) / over
    dx: Array = (u - (np.arange(x.shape[-1]) < corrected) * xhat * along) / d
    return dx


_PARTIAL_DX = Task(
    "partial_dx(dy, x, weight, k)",
    _partial_dx,
    cases=(
        (row(1.0, 0.5), row(3.0, 4.0), row(2.0, -0.5), 1),
        (row(1.0, -1.0, 2.0), row(3.0, -4.0, 12.0), _W3, 2),
        (row(0.5, 1.0, -2.0, 1.0), row(1.0, 2.0, 2.0, -5.0), _W4, 4),
        (MATRIX[::-1] + 0.5, MATRIX, _W3, 2),
        (np.cos(CUBE), CUBE, _W4, 3),
    ),
    example=(row(1.0, 0.5), row(3.0, 4.0), row(2.0, -0.5), 1),
    wrongs=(
        Wrong(
            lambda dy, x, weight, k: _dx(dy, x, weight * dy, k, k, k, k),
            "the sum over u x̂ runs over all n features: all outputs are divided by D.",
        ),
        Wrong(
            lambda dy, x, weight, k: _dx(dy, x, weight * dy, k, k, x.shape[-1], x.shape[-1]),
            "the sum is divided by k, the number of features in D: you divided by n.",
        ),
        Wrong(
            lambda dy, x, weight, k: _dx(dy, x, weight * dy, k, x.shape[-1], x.shape[-1], k),
            "only the first k features move D: the others get no correction.",
        ),
        Wrong(
            lambda dy, x, weight, k: weight * dy / _size(x, k),
            "the correction is missing: the first k features move D, too.",
        ),
        Wrong(
            lambda dy, x, weight, k: reference.rms_norm_vjp(dy, x, weight, eps=0.0)[0],
            "this is the gradient of the full norm: D is made of the first k.",
        ),
        Wrong(
            lambda dy, x, weight, k: _dx(dy, x, dy, k, k, x.shape[-1], k),
            "the weight is missing: u is weight times dy.",
        ),
    ),
)


def _features_needed(kurtosis: float, sd: float) -> int:
    return max(1, math.ceil((kurtosis - 1) / (4 * sd**2)))


_FEATURES_NEEDED = Task(
    "features_needed(kurtosis, sd)",
    _features_needed,
    cases=((1.0, 0.3), (3.0, 0.3), (3.0, 0.07), (6.0, 0.03), (1.8, 0.11), (90.0, 0.07)),
    example=(3.0, 0.3),
    wrongs=(
        Wrong(
            lambda kurtosis, sd: max(1, math.ceil((kurtosis - 1) / sd**2)),
            "this is for the mean square: its root scatters half as much, a quarter when squared.",
        ),
        Wrong(
            lambda kurtosis, sd: max(1, math.ceil(1 / (2 * sd**2))),
            "this holds for normal features, with a kurtosis of 3: let it be any.",
        ),
        Wrong(
            lambda kurtosis, sd: max(1, math.ceil(kurtosis / (4 * sd**2))),
            "the variance of a square is (kurtosis - 1) q²: you left out the 1.",
        ),
        Wrong(
            lambda kurtosis, sd: max(1, math.floor((kurtosis - 1) / (4 * sd**2))),
            "rounded down there is one too few: round up.",
        ),
        Wrong(
            lambda kurtosis, sd: max(1, math.ceil((kurtosis - 1) / (4 * sd))),
            "sd is to be squared: k goes with 1/sd².",
        ),
        Wrong(
            lambda kurtosis, sd: math.ceil((kurtosis - 1) / (4 * sd**2)),
            "no feature at all divides by zero: give at least 1.",
        ),
        Wrong(
            lambda kurtosis, sd: max(1.0, (kurtosis - 1) / (4 * sd**2)),
            "a number of features is whole: round up.",
        ),
    ),
)


def _grouped(x: Array, weight: Array, groups: int) -> Array:
    parts = x.reshape(*x.shape[:-1], groups, -1)
    return ideal(parts).reshape(x.shape) * weight


def _interleaved(x: Array, weight: Array, groups: int) -> Array:
    parts = np.moveaxis(x.reshape(*x.shape[:-1], -1, groups), -1, -2)
    return np.moveaxis(ideal(parts), -2, -1).reshape(x.shape) * weight


def _groups_of_that_size(x: Array, weight: Array, groups: int) -> Array:
    return _grouped(x, weight, x.shape[-1] // groups)


_WIDE = np.array([[1.0, -2.0, 0.5, 4.0, 0.1, 0.3], [3.0, 0.0, -1.0, 0.2, 5.0, 1.0]])
_W6 = row(2.0, -0.5, 1.5, 3.0, -1.0, 0.25)
_GROUPED_RMS_NORM = Task(
    "grouped_rms_norm(x, weight, groups)",
    _grouped,
    cases=(
        (row(3.0, 4.0, 0.3, 0.5), _W4, 2),
        (row(3.0, 4.0, 0.3, 0.5), _W4, 1),
        (_WIDE, _W6, 3),
        (_WIDE, _W6, 2),
        (CUBE, _W4, 4),
        (CUBE + 0.5, _W4, 2),
    ),
    example=(row(3.0, 4.0, 0.3, 0.5), _W4, 2),
    wrongs=(
        Wrong(
            lambda x, weight, groups: ideal(x) * weight,
            "the whole row shares one RMS here: each group gets its own.",
        ),
        Wrong(
            _interleaved,
            "your groups take every so many-th feature: a group is made of neighbours.",
        ),
        Wrong(
            _groups_of_that_size,
            "you took `groups` for the size of a group: it is their number.",
        ),
        Wrong(
            lambda x, weight, groups: _grouped(x, np.ones_like(weight), groups),
            "the weight is missing.",
        ),
        Wrong(
            lambda x, weight, groups: _partial(x, weight, x.shape[-1] // groups),
            "all groups are divided by the RMS of the first: each by its own.",
        ),
    ),
)


def local_statistics(x: Array) -> Array:
    """Broken: each half of a row with an RMS of its own (sgl-project/sglang, pull request 38230).

    `np.split` raises ValueError for an odd number of features.
    """
    halves = [reference.rms_norm(half, eps=1e-6) for half in np.split(x, 2, axis=-1)]
    return np.concatenate(halves, axis=-1)


def _whole_row(x: Array) -> Array:
    return reference.rms_norm(x, eps=1e-6)


_CONVICT_LOCAL_STATISTICS = Conviction(
    "evidence()",
    local_statistics,
    _whole_row,
    innocent=row(1.0, -2.0, 2.0, 1.0),
    hint="its two halves are of the same size, so each half knows the RMS of the whole: "
    "make one half larger than the other.",
)

EXERCISES: dict[str, Exercise] = {
    "partial_rms_norm": _PARTIAL_RMS_NORM,
    "partial_dx": _PARTIAL_DX,
    "features_needed": _FEATURES_NEEDED,
    "grouped_rms_norm": _GROUPED_RMS_NORM,
    "convict_local_statistics": _CONVICT_LOCAL_STATISTICS,
}
