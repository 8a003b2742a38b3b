"""Does a row keep its bits when other rows stand beside it?"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from rmsnorm_edu.checks.inputs import Array, Case

ROWS, FEATURES = 1056, 700
_GROUP = 4  # rows; of fewer, BLAS and NumPy themselves sum in another order
_GROUPS = 66
_SHARE = 1 / 6


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


def small_batches(large: Case) -> Iterator[Case]:
    """Its first rows again, four at a time."""
    for i in range(_GROUPS):
        rows = slice(i * _GROUP, (i + 1) * _GROUP)
        yield replace(large, x=large.x[rows].copy(), dy=large.dy[rows].copy())


def depends(many: Array, few: list[Array]) -> bool:
    """Whether more than a sixth of the rows have other bits in `few`.

    Not one row: a matrix-vector product of BLAS, `np.square(x) @ ones`, sums the last rows of a
    batch in another order, and the last of each thread's share of it.
    """
    again = np.concatenate(few)
    bits = f"u{again.itemsize}"
    other = np.any(again.view(bits) != many[: len(again)].view(bits), axis=-1)
    return bool(np.mean(other) > _SHARE)
