"""The inputs that `reference` accepts; anything else raises an error that says the fix."""

import math
import operator
from numbers import Real
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def floats(a: ArrayLike, name: str) -> NDArray[np.floating]:
    """`a` as an array of float16, float32 or float64, or TypeError."""
    a = unmasked(a, name)
    if a.dtype.type not in (np.float16, np.float32, np.float64):
        raise TypeError(
            f"{name} has dtype {a.dtype}; give float16, float32 or float64, "
            f"for example np.asarray({name}).astype(np.float64)"
        )
    return a


def unmasked(a: ArrayLike, name: str) -> NDArray[Any]:
    """`a` as an array of whatever type; TypeError for masked values, ValueError for ragged rows."""
    if _masked(a):  # asarray would bring the hidden values back
        raise TypeError(f"{name} has masked values; fill them first, numpy.ma.filled(...)")
    try:
        return np.asarray(a)
    except ValueError as error:
        raise ValueError(f"{name} is inhomogeneous; give rows of the same length") from error


def _masked(a: object) -> bool:
    """Whether a value is masked in `a`, or in an array of a list `a`."""
    if isinstance(a, list | tuple):
        return any(
            _masked(part) for part in a if isinstance(part, list | tuple | np.ma.MaskedArray)
        )
    return bool(np.ma.is_masked(a))


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


def row_vector(a: ArrayLike, v: Array, name: str) -> Array:
    """One number for each row of the matrix v, as a column."""
    a = floats(a, name)
    if a.shape != v.shape[:1]:
        raise ValueError(
            f"{name} has shape {a.shape}; v has shape {v.shape}: "
            f"give {name} one number a row, shape {v.shape[:1]}"
        )
    return a.astype(np.float64)[:, np.newaxis]


def checked_axis(axis: SupportsIndex, x: NDArray[np.floating]) -> int:
    """`axis` of an x with something along it."""
    where = _integer(axis, "axis")
    if x.ndim == 0:
        raise ValueError("x has shape (); give at least one feature, (..., n), n >= 1")
    if not -x.ndim <= where < x.ndim:
        raise ValueError(
            f"axis = {where}, but x has shape {x.shape}: give {-x.ndim} <= axis < {x.ndim}"
        )
    if x.shape[where] == 0:
        along = f" along axis {where}" if x.ndim > 1 else ""
        raise ValueError(f"x has shape {x.shape}; give at least one feature{along}")
    return where


def checked_eps(eps: float) -> float:
    if isinstance(eps, bool) or not isinstance(eps, Real):
        raise TypeError(f"eps = {eps!r} is {type(eps).__name__}; give a number, like 1e-6")
    try:
        value = float(eps)
    except OverflowError:  # an integer or a fraction beyond float64
        value = math.inf
    if not 0 <= value < math.inf:
        raise ValueError(f"eps = {value}; give a finite number >= 0, like 1e-6")
    return value


def checked_flag(value: bool, name: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} = {value!r} is {type(value).__name__}; give True or False")
    return bool(value)


def checked_k(k: SupportsIndex | None, x: Array) -> int:
    n = x.shape[-1]
    size = n if k is None else positive(k, "k")
    if size > n:
        raise ValueError(f"k = {size}, but x has shape {x.shape}: give 1 <= k <= {n}")
    return size


def non_negative(value: SupportsIndex, name: str) -> int:
    return positive(value, name, least=0)


def positive(value: SupportsIndex, name: str, least: int = 1) -> int:
    size = _integer(value, name)
    if size < least:
        raise ValueError(f"{name} = {size}; give an integer >= {least}")
    if size >= 2**63:
        raise ValueError(f"{name} has {size.bit_length()} bits; no array is that large, give less")
    return size


def _integer(value: SupportsIndex, name: str) -> int:
    unfit = isinstance(value, bool | np.bool_ | np.ndarray) or not hasattr(value, "__index__")
    if unfit:
        raise TypeError(f"{name} = {value!r} is {type(value).__name__}; give an integer")
    return operator.index(value)
