"""The exercises of the chapter "Fusion"."""

import numpy as np

from rmsnorm_edu import reference
from rmsnorm_edu.exercises.model import (
    CUBE,
    MATRIX,
    Array,
    Conviction,
    Exercise,
    Task,
    Wrong,
    ideal,
    row,
)


def _add_norm_bytes(rows: int, n: int, narrow: int, wide: int) -> int:
    return 2 * rows * n * (narrow + wide)


_ADD_NORM_BYTES = Task(
    "add_norm_bytes(rows, n, narrow, wide)",
    _add_norm_bytes,
    cases=((1, 1, 2, 2), (1, 8, 2, 4), (3, 5, 4, 8), (64, 1024, 2, 4), (8192, 4096, 2, 2)),
    example=(1, 8, 2, 4),
    wrongs=(
        Wrong(
            lambda rows, n, narrow, wide: rows * n * (3 * narrow + wide),
            "the stream is read and written: two of the four arrays are wide.",
        ),
        Wrong(
            lambda rows, n, narrow, wide: rows * n * (narrow + 3 * wide),
            "y has the narrow type, as the block's result has.",
        ),
        Wrong(
            lambda rows, n, narrow, wide: rows * n * (2 * narrow + 3 * wide),
            "this is two kernels: the one kernel does not read the sum again.",
        ),
        Wrong(
            lambda rows, n, narrow, wide: rows * n * (2 * narrow + wide),
            "the next block needs the new stream: it is written, too.",
        ),
        Wrong(
            lambda rows, n, narrow, wide: 4 * rows * n * narrow,
            "the stream has another type than the block's result.",
        ),
    ),
)


def _through(dy: Array, h: Array, weight: Array) -> Array:
    return reference.rms_norm_vjp(dy, h, weight, eps=0.0)[0]


def _add_norm_dx(dy: Array, dh: Array, h: Array, weight: Array) -> Array:
    return dh + _through(dy, h, weight)


_W3, _W4 = row(2.0, -0.5, 3.0), row(1.5, -2.0, 0.5, 3.0)
_ADD_NORM_DX = Task(
    "add_norm_dx(dy, dh, h, weight)",
    _add_norm_dx,
    cases=(
        (row(1.0, 0.5), row(-1.0, 2.0), row(3.0, 4.0), row(2.0, -0.5)),
        (row(1.0, -1.0, 2.0), row(0.5, 1.0, 1.5), row(3.0, -4.0, 12.0), _W3),
        (MATRIX[::-1] + 0.5, 2 * MATRIX, MATRIX, _W3),
        (np.cos(CUBE), np.sin(CUBE), CUBE, _W4),
    ),
    example=(row(1.0, 0.5), row(-1.0, 2.0), row(3.0, 4.0), row(2.0, -0.5)),
    wrongs=(
        Wrong(
            lambda dy, dh, h, weight: _through(dy, h, weight),
            "dh is missing: the stream has a gradient of its own.",
        ),
        Wrong(
            lambda dy, dh, h, weight: _through(dy + dh, h, weight),
            "dh went through the norm and its weight: it passes beside them.",
        ),
        Wrong(
            lambda dy, dh, h, weight: (
                _through(dy, h, weight) + _through(dh, h, np.ones_like(weight))
            ),
            "dh went through the norm: it passes beside it.",
        ),
        Wrong(
            lambda dy, dh, h, weight: dh + _through(dy, h, np.ones_like(weight)),
            "the weight is missing: u is weight times dy.",
        ),
        Wrong(
            lambda dy, dh, h, weight: dh + dy * weight / _rms(h),
            "the correction is missing: take away the part of u along h.",
        ),
    ),
)


def _rms(x: Array) -> Array:
    return reference.rms(x)[..., np.newaxis]


def _deferred(x: Array, weight: Array, bias: Array, matrix: Array) -> Array:
    product: Array = (ideal(x) * weight + bias) @ matrix
    return product


_B3, _B4 = row(0.5, -1.0, 2.0), row(-0.5, 1.0, 0.25, -2.0)
_M32 = np.array([[1.0, -2.0], [0.5, 3.0], [-1.5, 1.0]])
_M44 = np.cos(np.arange(16.0)).reshape(4, 4)
_DEFERRED = Task(
    "deferred(x, weight, bias, matrix)",
    _deferred,
    cases=(
        (row(3.0, 4.0), row(2.0, -0.5), row(1.0, -1.0), np.array([[1.0, 2.0], [-3.0, 0.5]])),
        (row(3.0, -4.0, 12.0), _W3, _B3, _M32),
        (MATRIX, _W3, _B3, _M32),
        (CUBE, _W4, _B4, _M44),
    ),
    example=(row(3.0, 4.0), row(2.0, -0.5), row(1.0, -1.0), np.array([[1.0, 2.0], [-3.0, 0.5]])),
    wrongs=(
        Wrong(
            lambda x, weight, bias, matrix: ideal(x) * weight @ matrix,
            "the bias is missing: behind the matrix it is bias @ matrix.",
        ),
        Wrong(
            lambda x, weight, bias, matrix: (x * weight + bias) @ matrix / _rms(x),
            "the bias was divided by the RMS as well: add it after the factor.",
        ),
        Wrong(
            lambda x, weight, bias, matrix: (x * weight) @ matrix + bias @ matrix,
            "the factor 1/RMS is missing: one for each row, after the product.",
        ),
        Wrong(
            lambda x, weight, bias, matrix: ideal(x) @ matrix + bias @ matrix,
            "the weight is missing: it multiplies the rows of the matrix.",
        ),
        Wrong(
            lambda x, weight, bias, matrix: (x * weight) @ matrix * _rms(x) + bias @ matrix,
            "you multiplied by the RMS: divide.",
        ),
    ),
)


def stream_through_norm(three: Array) -> Array:
    """Broken: the stream's gradient goes through the norm (Dao-AILab/quack, pull request 53).

    `three` are the rows h, dy and dh; ValueError for another number of them.
    """
    h, dy, dh = three
    rstd = 1 / np.sqrt(np.mean(h * h) + 1e-6)
    hhat, u = h * rstd, dy + dh
    wrong: Array = (u - hhat * np.mean(u * hhat)) * rstd
    return wrong


def _beside(three: Array) -> Array:
    h, dy, dh = three
    right: Array = dh + reference.rms_norm_vjp(dy, h, eps=1e-6)[0]
    return right


_CONVICT_STREAM_THROUGH_NORM = Conviction(
    "evidence()",
    stream_through_norm,
    _beside,
    innocent=np.array([[1.0, -1.0], [3.0, 1.0], [2.0, 2.0]]),
    hint="where h has RMS 1 and dh is at right angles to h, the norm leaves dh as it is: make h "
    "larger, or turn dh.",
)

EXERCISES: dict[str, Exercise] = {
    "add_norm_bytes": _ADD_NORM_BYTES,
    "add_norm_dx": _ADD_NORM_DX,
    "deferred": _DEFERRED,
    "convict_stream_through_norm": _CONVICT_STREAM_THROUGH_NORM,
}
