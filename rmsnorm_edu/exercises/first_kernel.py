"""The exercises of the chapter "A first kernel"."""

import numpy as np
from numpy.typing import NDArray

from rmsnorm_edu import reference
from rmsnorm_edu.exercises.model import Array, Conviction, Exercise, Task, Wrong, row

_LIMIT = 2**31  # the first whole number that 32 bits with a sign do not hold


def _block(d: int) -> int:
    return 1 << (d - 1).bit_length()


def _up(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def _masked(offsets: NDArray[np.int_], n: int) -> NDArray[np.int_]:
    return np.where(offsets < n, offsets, -1)


def _lane_offsets(program: int, n: int, block: int) -> NDArray[np.int_]:
    return _masked(program * block + np.arange(block), n)


_LANE_OFFSETS = Task(
    "lane_offsets(program, n, block)",
    _lane_offsets,
    cases=((0, 4, 4), (0, 3, 4), (1, 6, 4), (2, 20, 8), (3, 20, 8), (2, 1000, 256)),
    example=(1, 6, 4),
    wrongs=(
        Wrong(
            lambda program, n, block: program * block + np.arange(block),
            "the mask is missing: a lane whose offset is n or more reads nothing, give -1.",
        ),
        Wrong(
            lambda program, n, block: _masked(program * block + np.arange(block), n + 1),
            "offsets go from 0 to n - 1: n itself lies behind the array.",
        ),
        Wrong(
            lambda program, n, block: _masked(np.arange(block), n),
            "every program would do the first block: begin at program * block.",
        ),
        Wrong(
            lambda program, n, block: _masked(program + np.arange(block), n),
            "the next program begins a whole block later: program * block.",
        ),
        Wrong(
            lambda program, n, block: _lane_offsets(program, n, block)[
                _lane_offsets(program, n, block) >= 0
            ],
            "a vector keeps its length: masked lanes stay in it, as -1.",
        ),
    ),
)


def _load(memory: Array, start: int, d: int, step: int, lanes: int) -> Array:
    """d numbers from `start` on, `step` apart, in so many lanes; IndexError past the memory."""
    loaded = np.zeros(lanes)
    loaded[:d] = memory[start + np.arange(d) * step]
    return loaded


def _row_through_strides(memory: Array, row: int, d: int, x_row: int, x_col: int) -> Array:
    return _load(memory, row * x_row, d, x_col, _block(d))


_MEMORY = np.array([3.0, -4.0, 0.5, 7.0, -1.0, 2.0, 9.0, -6.0, 1.5, 8.0, 0.25, -5.0])
_ROW_THROUGH_STRIDES = Task(
    "row_through_strides(memory, row, d, x_row, x_col)",
    _row_through_strides,
    cases=(
        (_MEMORY, 0, 1, 1, 1),
        (_MEMORY, 1, 4, 4, 1),
        (_MEMORY, 2, 3, 4, 1),
        (_MEMORY, 1, 3, 1, 4),
        (_MEMORY, 3, 3, 1, 4),
        (_MEMORY, 1, 2, 6, 3),
        (_MEMORY, 1, 5, 7, 1),
    ),
    example=(_MEMORY, 2, 3, 4, 1),
    wrongs=(
        Wrong(
            lambda memory, row, d, x_row, x_col: _load(memory, row * d, d, 1, _block(d)),
            "you took the rows for packed: step by x_row and x_col.",
        ),
        Wrong(
            lambda memory, row, d, x_row, x_col: _load(memory, row * d, d, x_col, _block(d)),
            "rows are x_row apart, and not d.",
        ),
        Wrong(
            lambda memory, row, d, x_row, x_col: _load(memory, row * x_row, d, 1, _block(d)),
            "the column stride is missing: this is the fault of the last exercise.",
        ),
        Wrong(
            lambda memory, row, d, x_row, x_col: _load(memory, row * x_row, d, x_col, d),
            "a block has a power of two of lanes: fill up with zeros.",
        ),
        Wrong(
            lambda memory, row, d, x_row, x_col: _load(
                memory, row * x_row, d, x_col, 2 ** d.bit_length()
            ),
            "the block is twice too long: a d that is a power of two fills its own block.",
        ),
        Wrong(
            lambda memory, row, d, x_row, x_col: _load(memory, row * x_col, d, x_row, _block(d)),
            "you exchanged the two strides.",
        ),
    ),
)


def _busy_share(total: int, d: int, rows: int) -> float:
    return total * d / (_up(total, rows) * rows * _block(d))


_BUSY_SHARE = Task(
    "busy_share(total, d, rows)",
    _busy_share,
    cases=((1, 4, 1), (3, 6, 1), (8, 128, 4), (10, 100, 4), (5, 1025, 2), (1000, 96, 16)),
    example=(10, 100, 4),
    wrongs=(
        Wrong(
            lambda total, d, rows: d / _block(d),
            "the last program may have rows to spare: its lanes are launched, too.",
        ),
        Wrong(
            lambda total, d, rows: total / (_up(total, rows) * rows),
            "lanes beyond d are idle as well: the block is the next power of two of d.",
        ),
        Wrong(
            lambda total, d, rows: 1 - _busy_share(total, d, rows),
            "this is the idle share.",
        ),
        Wrong(
            lambda total, d, rows: total * d / (_up(total, rows) * _block(d)),
            "a program has `rows` times the block of lanes.",
        ),
    ),
)


def _first_bad_row(d: int, x_row: int) -> int:
    return _up(_LIMIT - (d - 1), x_row)


_FIRST_BAD_ROW = Task(
    "first_bad_row(d, x_row)",
    _first_bad_row,
    cases=((1, 1), (256, 256), (1000, 1000), (4096, 4096), (1000, 1024), (3000, 70001)),
    example=(256, 256),
    wrongs=(
        Wrong(
            lambda d, x_row: _up(_LIMIT, x_row),
            "the last feature of a row lies d - 1 further: it may be lost a row earlier.",
        ),
        Wrong(
            lambda d, x_row: _LIMIT // x_row,
            "round up, and count to the last feature of the row: it must be 2³¹ or more.",
        ),
        Wrong(
            lambda d, x_row: _up(_LIMIT - (d - 1), d),
            "rows are x_row apart, and not d.",
        ),
        Wrong(
            lambda d, x_row: _up(2 * _LIMIT - (d - 1), x_row),
            "one of the 32 bits is the sign: the limit is 2³¹.",
        ),
        Wrong(
            lambda d, x_row: _up(_LIMIT - (d - 1), x_row) - 1,
            "this is the last row that is right.",
        ),
        Wrong(
            lambda d, x_row: (_LIMIT - (d - 1)) / x_row,
            "a row is a whole number: round up.",
        ),
    ),
)


def forgotten_stride(packed: Array) -> Array:
    """Broken: the second read of a row takes rows for packed (ModelTC/LightLLM, issue 1467).

    Norms the first half of each row of a matrix; ValueError for an odd number of columns.
    """
    rows, width = packed.shape
    query, _ = np.hsplit(packed, 2)
    d, memory = query.shape[1], packed.ravel()
    starts, columns = np.arange(rows)[:, np.newaxis], np.arange(d)
    first, second = memory[starts * width + columns], memory[starts * d + columns]
    wrong: Array = second / np.sqrt(np.mean(first * first, axis=-1, keepdims=True) + 1e-6)
    return wrong


def _query(packed: Array) -> Array:
    return reference.rms_norm(np.hsplit(packed, 2)[0], eps=1e-6)


_CONVICT_FORGOTTEN_STRIDE = Conviction(
    "evidence()",
    forgotten_stride,
    _query,
    innocent=row(3.0, -4.0, 1.0, 2.0)[np.newaxis],
    hint="its rows begin where they would begin without gaps: row 0 always does, so give a "
    "second row that differs from the key of row 0.",
)

EXERCISES: dict[str, Exercise] = {
    "lane_offsets": _LANE_OFFSETS,
    "row_through_strides": _ROW_THROUGH_STRIDES,
    "busy_share": _BUSY_SHARE,
    "first_bad_row": _FIRST_BAD_ROW,
    "convict_forgotten_stride": _CONVICT_FORGOTTEN_STRIDE,
}
