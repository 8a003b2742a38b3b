"""Where the two norms send a vector: the projector that parts them, and the angle between them."""

from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from rmsnorm_edu import reference
from rmsnorm_edu._inputs import Array, positive


def centring(n: SupportsIndex) -> Array:
    """The centring projector C = I − 11ᵀ/n, (n, n) in float64: Cx is x without its mean.

    Symmetric, C² = C, C1 = 0, trace n − 1. It is for looking at: subtracting the mean does the
    same in n steps, this matrix in n². Raises ValueError for n < 1, TypeError for no integer.

    >>> centring(2)
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    n = positive(n, "n")
    projector: Array = np.eye(n) - np.full((n, n), 1 / n)
    return projector


def angle(x: ArrayLike) -> Array:
    """Angle in radians between RMSNorm(x) and LayerNorm(x), eps = 0: sin θ = |mean| / RMS(x).

    It is how far x stands above the plane of the vectors with mean 0. x has shape (..., n), the
    result x's shape without the last axis, float64. A row of equal entries gives π/2 (LayerNorm
    itself has no answer there), a zero row nan. Errors as `reference.rms_norm`.

    >>> float(np.sin(angle([7.0, -1.0])))
    0.6
    """
    y = reference.rms_norm(x, eps=0.0)
    mean = np.mean(y, axis=-1, keepdims=True)
    theta: Array = np.arctan2(np.abs(mean[..., 0]), reference.rms(y - mean))
    return theta
