"""Matrices for compiled loops: flat views of the memory, and the distance of the rows."""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from rmsnorm_edu._inputs import unmasked

Floats = NDArray[Any]


def matrix(x: Floats, name: str) -> Floats:
    """x (rows, n) in float32 or float64, n ≥ 1, copied where its rows are not flat; or an error."""
    x = unmasked(x, name)
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} has dtype {x.dtype}; give float32 or float64, {name}.astype(...)")
    if x.ndim != 2 or x.shape[1] == 0:
        raise ValueError(f"{name} has shape {x.shape}; give a matrix, (rows, n) with n >= 1")
    return x if _is_flat(x) else x.copy()


def same_matrix(a: Floats, x: Floats, name: str) -> Floats:
    """`a` of x's shape and dtype, as `matrix`."""
    a = matrix(a, name)
    if a.dtype != x.dtype or a.shape != x.shape:
        raise _unlike(a, x.shape, x, name)
    return a


def vector(a: Floats | None, x: Floats, name: str, default: float = 1.0) -> Floats:
    """`a` (n,), contiguous and read-only; for None what changes no bit, n times `default`."""
    n = x.shape[1]
    if a is None:
        a = np.full(n, default, x.dtype)
    elif (a := unmasked(a, name)).dtype != x.dtype or a.shape != (n,):
        raise _unlike(a, (n,), x, name)
    view = np.require(a, x.dtype, ["C", "A"])[:]
    view.flags.writeable = False
    return view


def output(out: Floats | None, x: Floats, arguments: dict[str, Floats]) -> Floats:
    """`out`, which has x's shape and dtype, flat rows and memory of its own; fresh for None."""
    if out is None:
        return np.empty(x.shape, x.dtype)
    if not isinstance(out, np.ndarray) or np.ma.isMaskedArray(out):
        raise TypeError(f"out is {type(out).__name__}; give a NumPy array")
    if out.dtype != x.dtype or out.shape != x.shape:
        raise _unlike(out, x.shape, x, "out")
    apart = len(out) <= 1 or out.strides[0] >= out.shape[1] * out.itemsize
    if not (out.flags.writeable and apart and _is_flat(out)):
        raise ValueError(f"out has strides {out.strides}; give a writable array with rows in a row")
    for name, argument in arguments.items():
        if np.shares_memory(out, argument):
            raise ValueError(f"out overlaps {name}: give it memory of its own")
    return out


def flat(a: Floats, *, written: bool = False) -> tuple[Floats, int]:
    """The memory of `a` from its first element to its last, (m,), and from row to row, in elements.

    Read-only unless `written`: an array that may be written to is another type to numba.
    """
    rows, n = a.shape
    step = a.strides[0] // a.itemsize if rows > 1 else n
    size = (rows - 1) * step + n if rows else 0
    view = as_strided(a, (size,), (a.itemsize,), writeable=written)
    return view, step


def _is_flat(a: Floats) -> bool:
    """Whether the elements of a row are neighbours, and the rows whole elements apart, in order."""
    if a.size == 0:  # whose strides may be anything
        return True
    neighbours = a.shape[1] == 1 or a.strides[1] == a.itemsize
    step = a.strides[0]
    in_order = len(a) <= 1 or (step >= 0 and step % a.itemsize == 0)
    return neighbours and in_order and a.flags.aligned


def _unlike(a: Floats, shape: tuple[int, ...], x: Floats, name: str) -> Exception:
    text = f"{name} has dtype {a.dtype} and shape {a.shape}; x {x.dtype} and {x.shape}"
    kind = ValueError if a.dtype == x.dtype else TypeError
    return kind(f"{text}: give {name} {x.dtype} and {shape}")
