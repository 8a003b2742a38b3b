"""The exercises of the chapter "Why normalise"."""

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

_RMS = Task(
    "rms(x)",
    reference.rms,
    cases=(
        (row(2.0),),
        (row(-3.0),),
        (row(3.0, 4.0),),
        (row(1.0, -2.0, 0.5, 3.0),),
        (SQUARE,),
        (MATRIX,),
        (CUBE,),
    ),
    example=(row(3.0, 4.0),),
    wrongs=(
        Wrong(
            lambda x: np.sqrt(np.mean(np.square(x))),
            "you averaged over the whole array. Each row has a size of its own: axis=-1.",
        ),
        Wrong(
            lambda x: np.sqrt(np.mean(np.square(x), axis=0)),
            "the mean runs over the wrong axis: axis 0 are the rows, axis -1 the features.",
        ),
        Wrong(
            lambda x: np.linalg.norm(x, axis=-1),
            "you took the sum of the squares. That is the length, the L2 norm, and it is "
            "sqrt(n) times the RMS: take the mean.",
        ),
        Wrong(
            lambda x: np.mean(np.square(x), axis=-1),
            "this is the mean square: the root is missing.",
        ),
        Wrong(
            lambda x: np.sqrt(mean_square(x)),
            "the numbers are right, the shape is not: leave keepdims out.",
        ),
        Wrong(
            lambda x: np.std(x, axis=-1),
            "you subtracted the mean: that is the standard deviation. A constant row tells: "
            "its RMS is the constant.",
        ),
        Wrong(
            lambda x: np.sqrt(unbiased(x)[..., 0]),
            "you divided the sum by n - 1. That is for a variance about an estimated mean; "
            "here it is n.",
        ),
        Wrong(
            lambda x: np.mean(np.abs(x), axis=-1),
            "this is the mean of the magnitudes: square first, and take the root at the end.",
        ),
    ),
)

_CRITICAL_GAIN = Task(
    "critical_gain(size, depth)",
    lambda size, depth: size ** (-1 / depth),
    cases=((8.0, 1), (0.25, 2), (8.0, 3), (1.0, 7), (1e-10, 50), (3e4, 64)),
    example=(0.25, 2),
    wrongs=(
        Wrong(
            lambda size, depth: size ** (1 / depth),
            "this is the factor that one layer has now. You look for the one that undoes it: 1/it.",
        ),
        Wrong(
            lambda size, depth: 1 / size,
            "the gain acts in every layer, so its power of depth has to be 1/size.",
        ),
        Wrong(
            lambda size, depth: 1 / (size * depth),
            "the gains of the layers multiply, they do not add: gain ** depth, not gain * depth.",
        ),
        Wrong(
            lambda size, depth: -np.log(size) / depth,
            "this is the logarithm of the gain: take exp of it.",
        ),
    ),
)


def l2_norm(x: Array) -> Array:
    """Broken: divides by the length instead of the RMS. Right for one feature."""
    y: Array = x / np.sqrt(np.sum(np.square(x), axis=-1, keepdims=True))
    return y


_CONVICT_L2 = Conviction(
    "evidence()",
    l2_norm,
    ideal,
    innocent=row(7.0),
    hint="one entry is not enough: there the sum of the squares is their mean.",
)

EXERCISES: dict[str, Exercise] = {
    "rms": _RMS,
    "critical_gain": _CRITICAL_GAIN,
    "convict_l2": _CONVICT_L2,
}
