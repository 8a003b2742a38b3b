"""The exercises of the chapter "On your own processor"."""

from collections.abc import Callable

import numpy as np

from rmsnorm_edu import reference
from rmsnorm_edu.exercises.model import Array, Conviction, Exercise, Task, Wrong, ideal, row

BLOCK = 4  # rows of the suspect's block


def _arrays(reads: int, writes: int, both: int) -> int:
    return reads + writes + (writes - both)


def _counted(arrays: Callable[..., int]) -> Callable[..., int]:
    """rung_bytes(…) that counts `arrays(reads, writes, both)` passes."""
    return lambda reads, writes, both, rows, n, size: arrays(reads, writes, both) * rows * n * size


_RUNG_BYTES = Task(
    "rung_bytes(reads, writes, both, rows, n, size)",
    _counted(_arrays),
    cases=(
        (1, 1, 0, 1, 1, 1),
        (1, 1, 0, 2, 3, 4),
        (3, 2, 1, 2, 3, 4),
        (4, 3, 0, 2, 3, 8),
        (1, 1, 1, 5, 7, 4),
        (0, 1, 0, 5, 7, 4),
    ),
    example=(3, 2, 1, 2, 3, 4),
    wrongs=(
        Wrong(
            _counted(lambda reads, writes, both: reads + writes),
            "write-allocate is missing: a line that is written and not read is read all the same.",
        ),
        Wrong(
            _counted(lambda reads, writes, both: reads + 2 * writes),
            "a step that reads what it writes has the lines already: those writes cost one pass.",
        ),
        Wrong(
            _counted(lambda reads, writes, both: reads + 2 * writes - 2 * both),
            "in place, the read and the write are still two passes; only the extra read is saved.",
        ),
        Wrong(
            lambda reads, writes, both, rows, n, size: _arrays(reads, writes, both) * rows * n,
            "you counted numbers: each has `size` bytes.",
        ),
    ),
)


def _lane_sums(terms: Array, lanes: int) -> Array:
    return np.array([terms[lane::lanes].sum() for lane in range(lanes)])


def _neighbours(terms: Array, lanes: int) -> Array:
    return np.array([part.sum() for part in np.array_split(terms, lanes)])


_LANE_SUMS = Task(
    "lane_sums(terms, lanes)",
    _lane_sums,
    cases=(
        (row(3.0), 3),
        (row(1.0, 2.0), 2),
        (row(1.0, 2.0, 4.0, 8.0), 2),
        (row(1.0, 2.0, 4.0, 8.0, 16.0), 2),
        (np.arange(1.0, 9.0) ** 2, 4),
        (np.arange(1.0, 12.0) ** 2, 4),
    ),
    example=(row(1.0, 2.0, 4.0, 8.0, 16.0), 2),
    wrongs=(
        Wrong(
            _neighbours,
            "a lane does not take neighbours: term j belongs to lane j % lanes, so that one load "
            "of neighbouring terms feeds every lane.",
        ),
        Wrong(
            lambda terms, lanes: terms[: len(terms) // lanes * lanes].reshape(-1, lanes).sum(0),
            "the terms behind the last whole vector are missing: they go to the first lanes.",
        ),
        Wrong(
            lambda terms, lanes: np.array([terms.sum()]),
            "return the lanes, one number each; their sum is the next step.",
        ),
    ),
)


def _chunks(a: Array, size: int) -> list[Array]:
    return [a[start : start + size] for start in range(0, len(a), size)]


def _partials(dy: Array, xhat: Array, chunk: int) -> Array:
    return np.array([part.sum(axis=0) for part in _chunks(dy * xhat, chunk)])


_DY = np.array([[1.0, -2.0], [0.5, 3.0], [-1.0, 1.0], [2.0, 0.25], [4.0, -3.0]])
_XHAT = np.array([[0.6, 1.3], [1.0, -1.0], [-0.5, 1.4], [1.2, 0.8], [0.1, 1.5]])

_DWEIGHT_PARTS = Task(
    "dweight_parts(dy, xhat, chunk)",
    _partials,
    cases=(
        (_DY[:1], _XHAT[:1], 1),
        (_DY[:2], _XHAT[:2], 2),
        (_DY[:4], _XHAT[:4], 2),
        (_DY, _XHAT, 2),
        (_DY, _XHAT, 7),
    ),
    example=(_DY, _XHAT, 2),
    wrongs=(
        Wrong(
            lambda dy, xhat, chunk: np.sum(dy * xhat, axis=0)[np.newaxis],
            "you added up all rows: one sum for each chunk, (chunks, n).",
        ),
        Wrong(
            lambda dy, xhat, chunk: _partials(dy, xhat, chunk)[: max(1, len(dy) // chunk)],
            "the last chunk has fewer rows, and they count, too.",
        ),
        Wrong(
            lambda dy, xhat, chunk: _partials(dy, np.ones_like(xhat), chunk),
            "that is the gradient of a bias: multiply dy by xhat first.",
        ),
        Wrong(
            lambda dy, xhat, chunk: np.cumsum(_partials(dy, xhat, chunk), axis=0),
            "a chunk's sum begins at 0, or the rows before are counted again.",
        ),
    ),
)


def whole_blocks(x: Array) -> Array:
    """Broken: blocks of BLOCK rows, and what is left over stays as the memory was, here 0."""
    y: Array = np.zeros_like(x)
    for start in range(0, len(x) - BLOCK + 1, BLOCK):
        y[start : start + BLOCK] = reference.rms_norm(x[start : start + BLOCK], eps=0.0)
    return y


_CONVICT_LAST_ROWS = Conviction(
    "evidence()",
    whole_blocks,
    ideal,
    innocent=np.outer([1.0, 2.0, -3.0, 4.0], [3.0, 4.0]),
    hint="four rows are one whole block, and eight are two. What happens to a fifth?",
)

EXERCISES: dict[str, Exercise] = {
    "rung_bytes": _RUNG_BYTES,
    "lane_sums": _LANE_SUMS,
    "dweight_parts": _DWEIGHT_PARTS,
    "convict_last_rows": _CONVICT_LAST_ROWS,
}
