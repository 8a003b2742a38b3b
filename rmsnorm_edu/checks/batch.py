"""Does a row keep its bits when other rows stand beside it? And its result, among very many?"""

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from rmsnorm_edu.checks.inputs import Array, Case

ROWS, FEATURES = 1056, 700
GROUPS = (4, 9)  # rows, even and odd; of fewer, BLAS and NumPy themselves sum in another order
_GROUPED = 264  # rows of the batch that are also tried in groups
_SHARE = 2 / 7  # between BLAS (up to 0.26, Sandybridge's with 48 threads) and mutants (from 0.34)
_GRID = 65_535  # programs that a GPU's grid has along its second and third axis


def large_batch(dtype: np.dtype[Any]) -> Case:
    """Many rows, each such that another order of its sum shows in the last bits.

    A row has one number near 1 and small ones, whose squares are less than half a unit in the
    last place of the sum: those that are added to it singly are lost, in sums of their own not.
    """
    rng = np.random.default_rng(0)
    unit = float(np.finfo(dtype).eps) * rng.uniform(0.04, 0.4, (ROWS, 1))
    x = rng.normal(0.0, 1.0, (ROWS, FEATURES)) * np.sqrt(unit)
    x[np.arange(ROWS), rng.integers(0, 2, ROWS) * rng.integers(0, FEATURES, ROWS)] = rng.uniform(
        1.0, 1.4, ROWS
    )
    weight, dy = rng.uniform(1.2, 2.5, FEATURES), rng.normal(0.3, 1.0, x.shape)
    return Case("a batch", x.astype(dtype), weight.astype(dtype), dy.astype(dtype), 1e-6)


def small_batches(large: Case, size: int) -> Iterator[Case]:
    """Its first rows again, `size` at a time."""
    for i in range(_GROUPED // size):
        rows = slice(i * size, (i + 1) * size)
        yield replace(large, x=large.x[rows].copy(), dy=large.dy[rows].copy())


def tall(dtype: np.dtype[Any], rows: int = _GRID + 65) -> Case:
    """More rows than a grid holds, of two features; the dy of those beyond it are the largest."""
    rng = np.random.default_rng(0)
    x, dy = rng.normal(0.5, 1.0, (rows, 2)), rng.normal(0.3, 1.0, (rows, 2))
    dy[:_GRID] *= 1e-3
    weight = np.array([1.5, -0.7])
    return Case("65,600 rows", x.astype(dtype), weight.astype(dtype), dy.astype(dtype), 0.125)


def takes_the_square(call: Callable[[Case], Any], dtype: np.dtype[Any]) -> bool:
    """Whether the memory of `call` grows like rows², as that of ``diag(x @ x.T)`` does.

    Right as it may be, with `tall` it would take the machine's.
    """
    few = tall(dtype, 2_048)
    tracemalloc.start()
    call(few)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak > len(few.x) ** 2


def depends(many: Array, few: list[Array]) -> bool:
    """Whether more than two sevenths of the rows have other bits in `few`.

    Not one row: a matrix-vector product of BLAS, `np.square(x) @ ones`, sums the last rows of a
    batch in another order, and the last of each thread's share of it.
    """
    again = np.concatenate(few)
    bits = f"u{again.itemsize}"
    other = np.any(again.view(bits) != many[: len(again)].view(bits), axis=-1)
    return bool(np.mean(other) > _SHARE)
