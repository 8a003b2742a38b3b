"""The inputs that `reference` accepts; anything else raises an error that says the fix."""

import math
import operator
from numbers import Real
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def floats(a: ArrayLike, name: str) -> NDArray[np.floating]:
    """`a` as an array of float16, float32 or float64, or TypeError."""
    if np.ma.is_masked(a):  # asarray would bring the hidden values back
        raise TypeError(f"{name} has masked values; fill them first, {name}.filled(...)")
    a = np.asarray(a)
    if a.dtype.type not in (np.float16, np.float32, np.float64):
        raise TypeError(
            f"{name} has dtype {a.dtype}; give float16, float32 or float64, "
            f"for example {name}.astype(np.float64)"
        )
    return a


def rows(x: ArrayLike, name: str = "x") -> Array:
    """`x` in float64, C order (so a row's sum has one order), with at least one feature."""
    x = floats(x, name)
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"{name} has shape {x.shape}; give at least one feature, (..., n), n >= 1")
    return np.ascontiguousarray(x, dtype=np.float64)


def same_shape(a: ArrayLike, x: Array, name: str) -> Array:
    a = floats(a, name)
    if a.shape != x.shape:
        raise ValueError(f"{name} has shape {a.shape}, x {x.shape}; give {name} the shape of x")
    return np.ascontiguousarray(a, dtype=np.float64)


def feature_vector(a: ArrayLike, x: Array, name: str) -> Array:
    a = floats(a, name)
    if a.shape != x.shape[-1:]:
        raise ValueError(
            f"{name} has shape {a.shape}; x has shape {x.shape}: "
            f"give {name} one number a feature, shape {x.shape[-1:]}"
        )
    return a.astype(np.float64)


def checked_eps(eps: float) -> float:
    if isinstance(eps, bool) or not isinstance(eps, Real):
        raise TypeError(f"eps = {eps!r} is {type(eps).__name__}; give a number, like 1e-6")
    if not 0 <= eps < math.inf:
        raise ValueError(f"eps = {eps}; give a finite number >= 0, like 1e-6")
    return float(eps)


def checked_k(k: SupportsIndex | None, x: Array) -> int:
    n = x.shape[-1]
    size = n if k is None else positive(k, "k")
    if size > n:
        raise ValueError(f"k = {size}, but x has shape {x.shape}: give 1 <= k <= {n}")
    return size


def positive(value: SupportsIndex, name: str) -> int:
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} = {value!r} is {type(value).__name__}; give an integer")
    if operator.index(value) < 1:
        raise ValueError(f"{name} = {value}; give an integer >= 1")
    return operator.index(value)
