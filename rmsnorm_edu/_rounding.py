"""The number types of the book: their rounding, their steps, distances counted in steps."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from rmsnorm_edu._inputs import unmasked

UNIT_ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
_SUBNORMAL = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 5e-324}


def dtype_name(dtype: DTypeLike) -> str:
    """The name of one of the four types above, however it is given; ValueError for any other.

    PyTorch's types are known by their names, which NumPy does not know.
    """
    name = str(dtype).removeprefix("torch.")
    try:
        name = name if name in UNIT_ROUNDOFF else np.dtype(dtype).name
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

    inf from the largest finite one. Raises TypeError for what are no
    real numbers, ValueError for numbers that are not finite in `dtype`, or an unknown dtype.

    >>> [float(step) for step in ulp([1.0, 2048.0], "float16")]
    [0.0009765625, 2.0]
    """
    kind = numpy_type(dtype)
    numbers = unmasked(value, "value")
    if numbers.dtype.kind not in "fiu" and numbers.dtype.name not in UNIT_ROUNDOFF:
        raise TypeError(f"value has dtype {numbers.dtype}; give numbers, like [1.0, 2048.0]")
    with np.errstate(over="ignore", invalid="ignore"):
        at = np.abs(numbers.astype(np.float64)).astype(kind)
        step: NDArray[np.float64] = np.spacing(at).astype(np.float64)
    if not np.all(np.isfinite(at.astype(np.float64))):
        raise ValueError(f"value has numbers that are not finite in {kind.name}; give finite ones")
    return step


def ulps_apart(a: ArrayLike, b: ArrayLike) -> NDArray[np.int64]:
    """How many numbers of their common type lie from `a` to `b`; 0 for +0 and −0.

    Finite numbers of one of the types above. Raises TypeError for another type and for two
    types, ValueError for nan and inf, for two shapes, and for float64 numbers that are 2⁶³ or
    more apart, as 4 and −4 are.

    >>> ulps_apart(np.float32([1.0, -1.0]), np.float32([1.0, 1.0])).tolist()
    [0, 2130706432]
    """
    a, b = _finite(a, "a"), _finite(b, "b")
    if a.dtype != b.dtype or a.shape != b.shape:
        error = TypeError if a.dtype != b.dtype else ValueError
        said = f"a has dtype {a.dtype} and shape {a.shape}, b {b.dtype} and {b.shape}"
        raise error(f"{said}; give both the same")
    here, there = _position(a), _position(b)
    if np.any(np.abs(here.astype(np.float64) - there) >= 2.0**63):
        raise ValueError("a and b are 2**63 numbers or more apart; give float64 of one sign")
    distance: NDArray[np.int64] = np.abs(here - there)
    return distance


def _finite(a: ArrayLike, name: str) -> NDArray[Any]:
    """`a` in the machine's byte order, of one of the four types, without nan and inf."""
    numbers = unmasked(a, name)
    if numbers.dtype.name not in UNIT_ROUNDOFF:
        types = ", ".join(UNIT_ROUNDOFF)
        raise TypeError(f"{name} has dtype {numbers.dtype}; give one of {types}")
    if not np.all(np.isfinite(numbers.astype(np.float64))):
        raise ValueError(f"{name} has nan or inf, which no steps lead to; give finite numbers")
    return numbers.astype(numbers.dtype.newbyteorder("="))


def _position(a: NDArray[Any]) -> NDArray[np.int64]:
    """The bits as a whole number that grows by one from each number of the type to the next."""
    bits = np.ascontiguousarray(a).view(f"i{a.dtype.itemsize}").astype(np.int64)
    lowest = -(2 ** (8 * a.dtype.itemsize - 1))
    position: NDArray[np.int64] = np.where(bits < 0, lowest - bits, bits).reshape(a.shape)
    return position
