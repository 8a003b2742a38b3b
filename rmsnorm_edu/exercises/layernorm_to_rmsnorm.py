"""The exercises of the chapter "From LayerNorm to RMSNorm"."""

import numpy as np

from rmsnorm_edu import geometry, reference
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
    row,
)

_CENTRING_MATRIX = Task(
    "centring_matrix(n)",
    geometry.centring,
    cases=((1,), (2,), (3,), (4,), (7,)),
    example=(2,),
    tolerance=1e-12,
    wrongs=(
        Wrong(
            lambda n: np.ones((n, n)) / n,
            "this matrix puts the mean in every place: it is what C takes away. C is I minus it.",
        ),
        Wrong(
            lambda n: np.eye(n) - np.ones((n, n)),
            "this takes away the sum of the entries: their mean is the sum divided by n.",
        ),
        Wrong(
            lambda n: np.eye(n) - np.eye(n) / n,
            "this only makes every entry smaller: to know the mean, a row needs all entries, "
            "np.ones((n, n)) / n.",
        ),
        Wrong(
            lambda n: np.eye(n) - 1 / np.sqrt(n),
            "1 has the length sqrt(n). The unit vector u = 1/sqrt(n) comes in twice, u uᵀ: "
            "that makes 1/n in every place.",
        ),
        Wrong(
            lambda n: np.ones((n, n)) / n - np.eye(n),
            "the sign is turned: x minus its mean, so I comes first.",
        ),
    ),
)


def _mean(x: Array) -> Array:
    mean: Array = np.mean(x, axis=-1)
    return mean


def _between_all(x: Array) -> Array:
    theta: Array = np.arcsin(np.abs(np.mean(x)) / reference.rms(x))
    return theta


_ANGLE_BETWEEN = Task(
    "angle_between(x)",
    geometry.angle,
    cases=(
        (row(7.0, -1.0),),
        (row(1.0, -7.0),),
        (row(10.0, 11.0, 12.0),),
        (SQUARE,),
        (MATRIX,),
        (CUBE + 0.25,),
    ),
    example=(row(7.0, -1.0),),
    wrongs=(
        Wrong(
            lambda x: np.arccos(np.abs(_mean(x)) / reference.rms(x)),
            "this is the angle to the axis, the vector of ones. You look for the angle to the "
            "plane: arcsin.",
        ),
        Wrong(
            lambda x: np.degrees(geometry.angle(x)),
            "the angle is right, in degrees: give it in radians.",
        ),
        Wrong(
            lambda x: np.arcsin(_mean(x) / reference.rms(x)),
            "below the plane the mean is negative, and an angle between two vectors is not: "
            "take np.abs of the mean.",
        ),
        Wrong(
            lambda x: np.abs(_mean(x)) / reference.rms(x),
            "this is the sine of the angle: take np.arcsin of it.",
        ),
        Wrong(
            lambda x: np.std(x, axis=-1) / reference.rms(x),
            "this is the cosine of the angle: take np.arccos of it.",
        ),
        Wrong(
            lambda x: np.arcsin(np.abs(_mean(x)) / np.linalg.norm(x, axis=-1)),
            "you divided by the length, which is sqrt(n) times the RMS.",
        ),
        Wrong(
            _between_all,
            "you took the mean of the whole array: each row has its own, axis=-1.",
        ),
    ),
)


def _centred_weights(weights: Array) -> Array:
    centred: Array = weights - np.mean(weights, axis=0)
    return centred


_CENTRED_WEIGHTS = Task(
    "centred_weights(W)",
    _centred_weights,
    # no answer holds a 0: there C @ W differs from it by rounding, and by any share of it
    cases=((row(3.0, -1.0)[:, np.newaxis],), (SQUARE,), (MATRIX,), (np.square(CUBE[0]),)),
    example=(SQUARE,),
    wrongs=(
        Wrong(
            lambda w: w - np.mean(w, axis=1, keepdims=True),
            "you took the mean of each row. The entries of Wx are made by the rows, so their "
            "mean is made by the mean of the rows: that of each column, axis=0.",
        ),
        Wrong(
            lambda w: w - np.mean(w),
            "one mean for the whole matrix: each column has its own, axis=0.",
        ),
        Wrong(
            lambda w: np.broadcast_to(np.mean(w, axis=0), w.shape),
            "this is what has to go: subtract it from W.",
        ),
        Wrong(
            lambda w: (w - np.mean(w, axis=0)) / np.std(w, axis=0),
            "only the means have to go: RMSNorm does the dividing, once it knows x.",
        ),
        Wrong(
            lambda w: w - np.sum(w, axis=0),
            "you subtracted the sums of the columns: take their means.",
        ),
    ),
)


def over_spread(x: Array) -> Array:
    """Broken: x over its standard deviation (keras-team/keras, issue 21234, eps left out)."""
    y: Array = x / np.std(x, axis=-1, keepdims=True)
    return y


_CONVICT_STD = Conviction(
    "evidence()",
    over_spread,
    ideal,
    innocent=row(1.0, -1.0, 2.0, -2.0),
    hint="it divides by the standard deviation, so its output is RMS/σ times too long. That "
    "is more than twice when the angle to the plane of mean 0 is above 60 degrees.",
    threshold=1.0,
)

EXERCISES: dict[str, Exercise] = {
    "centring_matrix": _CENTRING_MATRIX,
    "angle_between": _ANGLE_BETWEEN,
    "centred_weights": _CENTRED_WEIGHTS,
    "convict_std": _CONVICT_STD,
}
