"""The number types of the book: their rounding, their steps, distances counted in steps."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

UNIT_ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
_SUBNORMAL = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 5e-324}


def dtype_name(dtype: DTypeLike) -> str:
    """The name of one of the four types above, however it is given; ValueError for any other."""
    try:
        name = "bfloat16" if str(dtype) == "bfloat16" else np.dtype(dtype).name
    except TypeError:  # NumPy does not know it
        name = ""
    if dtype is None or name not in UNIT_ROUNDOFF:  # None is float64 to NumPy, and an oversight
        raise ValueError(f"dtype = {dtype}; it is one of {', '.join(UNIT_ROUNDOFF)}")
    return name


def numpy_type(dtype: DTypeLike) -> np.dtype[Any]:
    """The NumPy dtype, in the machine's byte order; bfloat16 is that of ml_dtypes.

    Raises ValueError for any other type, ImportError that says how to install ml_dtypes.
    """
    name = dtype_name(dtype)
    if name != "bfloat16":
        return np.dtype(name)
    try:
        from ml_dtypes import bfloat16
    except ImportError as error:
        raise ImportError('bfloat16 needs ml_dtypes: pip install "ml-dtypes"') from error
    found: np.dtype[Any] = np.dtype(bfloat16)
    return found


def subnormal(dtype: DTypeLike) -> float:
    """The smallest positive number of `dtype`: what an error may be where a result underflows."""
    return _SUBNORMAL[dtype_name(dtype)]


def ulp(value: ArrayLike, dtype: DTypeLike) -> NDArray[np.float64]:
    """The step from |value|, rounded to `dtype`, to the next larger number of that type.

    >>> [float(step) for step in ulp([1.0, 2048.0], "float16")]
    [0.0009765625, 2.0]
    """
    at = np.abs(np.asarray(value, dtype=np.float64)).astype(numpy_type(dtype))
    step: NDArray[np.float64] = np.spacing(at).astype(np.float64)
    return step


def ulps_apart(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.int64]:
    """How many numbers of their common type lie from `a` to `b`; 0 for +0 and −0.

    Finite numbers of one type of at most four bytes, or of float64 with equal signs. Raises
    TypeError for arrays of two types.

    >>> ulps_apart(np.float32([1.0, -1.0]), np.float32([1.0, 1.0])).tolist()
    [0, 2130706432]
    """
    if a.dtype != b.dtype:
        raise TypeError(f"a has dtype {a.dtype}, b {b.dtype}; give both the same")
    distance: NDArray[np.int64] = np.abs(_position(a) - _position(b))
    return distance


def _position(a: NDArray[Any]) -> NDArray[np.int64]:
    """The bits as a whole number that grows by one from each number of the type to the next."""
    bits = np.ascontiguousarray(a).view(f"i{a.dtype.itemsize}").astype(np.int64)
    lowest = -(2 ** (8 * a.dtype.itemsize - 1))
    position: NDArray[np.int64] = np.where(bits < 0, lowest - bits, bits)
    return position
