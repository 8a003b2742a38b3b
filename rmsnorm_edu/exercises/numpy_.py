"""The exercises of the chapter "RMSNorm in NumPy"."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rmsnorm_edu import reference
from rmsnorm_edu.exercises.model import (
    CUBE,
    MATRIX,
    SQUARE,
    Array,
    Conviction,
    Exercise,
    Task,
    Wrong,
    ideal,
    mean_square,
    row,
    unbiased,
)


def _variant(norm: Callable[[Array, float], Array]) -> Callable[..., Any]:
    """A wrong rms_norm(x, weight, eps) that puts the weight on rightly."""
    return lambda x, weight, eps: norm(x, eps) * weight


_RMS_NORM = Task(
    "rms_norm(x, weight, eps)",
    lambda x, weight, eps: reference.rms_norm(x, weight, eps=eps),
    cases=(
        (row(2.0), row(-1.5), 0.5),
        (row(3.0, 4.0), row(2.0, -0.5), 0.5),
        (row(3.0, 4.0), row(2.0, -0.5), 1e-6),
        (row(1e-3, -2e-3, 1e-3), row(2.0, -0.5, 3.0), 1e-5),
        (row(5.0, 5.0, 5.0), row(2.0, -0.5, 3.0), 1e-6),
        (SQUARE, row(2.0, -0.5), 0.1),
        (MATRIX, row(2.0, -0.5, 3.0), 0.1),
        (CUBE, row(2.0, -0.5, 3.0, 0.7), 0.1),
    ),
    example=(row(3.0, 4.0), row(2.0, -0.5), 0.5),
    wrongs=(
        Wrong(lambda x, weight, eps: reference.rms_norm(x, eps=eps), "the weight is missing."),
        Wrong(
            lambda x, weight, eps: reference.rms_norm(x, 1 + weight, eps=eps),
            "you multiplied by 1 + weight. Some libraries store the gain so; here weight is it.",
        ),
        Wrong(
            lambda x, weight, eps: reference.rms_norm(x, weight, eps=eps, eps_outside=True),
            "eps stands outside the root: add it to the mean square, before the root.",
        ),
        Wrong(
            lambda x, weight, eps: reference.rms_norm(x, weight, eps=0.0),
            "eps is not used: add it to the mean square.",
        ),
        Wrong(
            lambda x, weight, eps: reference.rms_norm(x, weight, eps=1e-6),
            "you used an eps of your own, 1e-6: take the argument.",
        ),
        Wrong(
            lambda x, weight, eps: reference.layer_norm(x, weight, eps=eps),
            "you subtracted the mean: that is LayerNorm. A constant row tells: "
            "RMSNorm does not make it zero.",
        ),
        Wrong(
            _variant(lambda x, eps: x / np.sqrt(np.std(x, axis=-1, keepdims=True) ** 2 + eps)),
            "you divided by the standard deviation: its square is the mean square about the "
            "mean. RMSNorm has no mean.",
        ),
        Wrong(
            _variant(lambda x, eps: x / np.sqrt(mean_square(x) * x.shape[-1] + eps)),
            "you divided by the L2 norm: your result is sqrt(n) times too small.",
        ),
        Wrong(
            _variant(lambda x, eps: x / np.sqrt(unbiased(x) + eps)),
            "you divided the sum by n - 1. That is for a variance about an estimated mean; "
            "here it is n.",
        ),
        Wrong(
            _variant(lambda x, eps: x / np.sqrt(np.mean(np.square(x), axis=-1) + eps)),
            "the mean has lost the last axis, so the sizes of the rows are laid along the "
            "columns: keepdims=True.",
        ),
        Wrong(
            _variant(lambda x, eps: x / np.sqrt(np.mean(np.square(x)) + eps)),
            "you averaged over the whole array: every row is divided by its own RMS, axis=-1.",
        ),
        Wrong(
            _variant(lambda x, eps: x / np.sqrt(np.mean(np.square(x), axis=0) + eps)),
            "the mean runs over the wrong axis: axis 0 are the rows, axis -1 the features.",
        ),
        Wrong(
            _variant(lambda x, eps: x / (mean_square(x) + eps)),
            "you divided by the mean square: its root is missing.",
        ),
        Wrong(
            _variant(lambda x, eps: x * np.sqrt(mean_square(x) + eps)),
            "you multiplied by the RMS: divide by it.",
        ),
    ),
)


def _scaled_rms(m: Array, x: Array) -> Array:
    size: Array = m[..., 0] * np.sqrt(np.mean(np.square(x / m), axis=-1))
    return size


_SAFE_RMS = Task(
    "safe_rms(x)",
    reference.rms,
    cases=(
        (row(2.0),),
        (row(3.0, -4.0),),
        (row(0.0, 0.0),),
        (row(3e200, -4e200),),
        (row(3e-200, -4e-200),),
        (np.array([[3.0, 4.0], [0.0, 0.0]]),),
        (np.array([[3e200, -4e200], [3e-200, 4e-200]]),),
        (MATRIX,),
        (CUBE,),
    ),
    example=(row(3e200, -4e200),),
    wrongs=(
        Wrong(
            lambda x: np.sqrt(np.mean(np.square(x), axis=-1)),
            "the square of 1e200 is infinite, and that of 1e-200 is 0: divide by the largest "
            "magnitude before you square.",
        ),
        Wrong(
            lambda x: _scaled_rms(np.max(np.abs(x), axis=-1, keepdims=True), x),
            "a row of zeros has the largest magnitude 0, and 0/0 is nan: divide by 1 there.",
        ),
        Wrong(
            lambda x: _scaled_rms(np.max(x, axis=-1, keepdims=True), x),
            "the largest entry is not the largest magnitude: take np.abs first.",
        ),
        Wrong(
            lambda x: _scaled_rms(np.full((*x.shape[:-1], 1), np.max(np.abs(x)) or 1.0), x),
            "one divisor for the whole array: a small row beside a large one still vanishes. "
            "Each row needs its own, axis=-1.",
        ),
        Wrong(
            lambda x: reference.rms(x)[..., np.newaxis],
            "the numbers are right, the shape is not: take away the last axis.",
        ),
        Wrong(
            lambda x: _safe_unscaled(x),
            "this is the RMS of x/m: multiply it by m.",
        ),
    ),
)


def _safe_unscaled(x: Array) -> Array:
    m = np.max(np.abs(x), axis=-1, keepdims=True)
    return reference.rms(x / np.where(m == 0, 1.0, m))


def forgetful(x: Array) -> Array:
    """Broken: the mean without keepdims. Silently wrong on square inputs, raises elsewhere."""
    y: Array = x / np.sqrt(np.mean(np.square(x), axis=-1))
    return y


_CONVICT_AXIS = Conviction(
    "evidence()",
    forgetful,
    ideal,
    innocent=row(3.0, 4.0),
    hint="on one row, or on rows of the same size, it is right. Take rows of different sizes, "
    "and as many as there are features.",
)

EXERCISES: dict[str, Exercise] = {
    "rms_norm": _RMS_NORM,
    "safe_rms": _SAFE_RMS,
    "convict_axis": _CONVICT_AXIS,
}
