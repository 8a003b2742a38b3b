"""The exercises of the chapter "A module for PyTorch"; NumPy stands for torch in them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmsnorm_edu import conventions, reference
from rmsnorm_edu.exercises.model import Array, Exercise, Task, Wrong, row

_Half = NDArray[np.float16]
_Narrow = NDArray[Any]  # float16 or float32


def _memory_saved(n: int, x_bytes: int) -> int:
    """x̂, and the widened input where there is one."""
    return 8 * n if x_bytes == 2 else x_bytes * n


_MEMORY_SAVED = Task(
    "memory_saved(n, x_bytes)",
    _memory_saved,
    cases=((1, 2), (1, 4), (1024, 2), (1024, 4), (4096, 8)),
    example=(1024, 2),
    wrongs=(
        Wrong(
            lambda n, x_bytes: 8 * n,
            "a float32 or float64 input is not widened: there autograd keeps the input itself, "
            "which was in memory anyway.",
        ),
        Wrong(
            lambda n, x_bytes: (8 - x_bytes) * n,
            "the input is in memory anyway, whoever keeps it: do not count it for either.",
        ),
        Wrong(
            lambda n, x_bytes: x_bytes * n,
            "a half input is widened to four bytes, and both the copy and x̂ are kept.",
        ),
        Wrong(
            lambda n, x_bytes: 4 * n,
            "a half input has a widened copy beside x̂, and a float64 input an x̂ of eight bytes.",
        ),
    ),
)


def _llama(x: _Half, weight: _Half, eps: float) -> _Half:
    return conventions.apply("llama", x, weight, eps=eps)


def _all_in_half(x: _Half, weight: _Half, eps: float) -> _Half:
    mean_square = np.mean(np.square(x), axis=-1, keepdims=True, dtype=np.float16)
    root = np.sqrt(mean_square + np.float16(eps))
    return (x / root * weight).astype(np.float16)


def _not_rounded(x: _Half, weight: _Half, eps: float) -> NDArray[np.float32]:
    return conventions.apply("olmo2", x.astype(np.float32), weight.astype(np.float32), eps=eps)


def _half(*values: float) -> _Half:
    return np.array(values, dtype=np.float16)


_ROWS = np.array([[1.0, 2.0, 2.0, 4.0], [-3.0, 0.5, 7.0, 1.0]], dtype=np.float16)
_LLAMA_ORDER = Task(
    "llama(x, weight, eps)",
    _llama,
    cases=(
        (_half(3.0, 4.0), _half(2.0, -0.7), 1e-6),
        (_half(300.0, 400.0), _half(1.1, -0.7), 1e-6),
        (_half(1.0, 2.0, 2.0, 4.0), _half(1.1, -0.7, 1.3, 0.6), 1e-6),
        (_ROWS, _half(1.1, -0.7, 1.3, 0.6), 1e-2),
    ),
    example=(_half(3.0, 4.0), _half(2.0, -0.7), 1e-6),
    wrongs=(
        Wrong(
            lambda x, weight, eps: conventions.apply("olmo2", x, weight, eps=eps),
            "you multiply first and round once, at the end. That is PyTorch's order: round x̂ to "
            "float16 before you multiply.",
        ),
        Wrong(
            _all_in_half,
            "the squares are taken in float16, which ends at 65504: widen x to float32 first.",
        ),
        Wrong(
            _not_rounded,
            "nothing is rounded to float16: x̂ has to be, and so has the product.",
        ),
        Wrong(
            lambda x, weight, eps: conventions.apply("llama", x, weight, eps=0.0),
            "eps is not used: add it to the mean square.",
        ),
    ),
)


def _xhat(x: Array) -> Array:
    return reference.rms_norm(x, eps=1e-6)


def _ones_added(x: Array, stored: Array, y: Array) -> int:
    return round(float(np.median(y / _xhat(x) - stored)))


def _loaded(ones: int, x: Array, stored: Array) -> tuple[Array, Array, Array]:
    """What a reader of the file gets who adds so many ones."""
    return x, stored, _xhat(x) * (ones + stored)


_X = np.array([[1.0, 2.0, -2.0, 4.0], [-3.0, 0.5, 7.0, 1.0]])
_STORED = row(0.25, -0.4, 7.7, 0.02)
_ONES_ADDED = Task(
    "ones_added(x, stored, y)",
    _ones_added,
    cases=(
        _loaded(0, row(3.0, 4.0), row(1.25, 0.5)),
        _loaded(1, row(3.0, 4.0), row(0.25, -0.5)),
        _loaded(2, row(3.0, -4.0), row(0.25, -0.5)),
        *(_loaded(ones, _X, _STORED) for ones in (0, 1, 2)),
    ),
    example=_loaded(1, row(3.0, 4.0), row(0.25, -0.5)),
    wrongs=(
        Wrong(
            lambda x, stored, y: round(float(np.median(y / x - stored))),
            "the output is x̂ times the gain, not x times the gain: divide by x̂.",
        ),
        Wrong(
            lambda x, stored, y: round(float(np.median(y / _xhat(x)))),
            "y / x̂ is the gain. How many ones are in it, you see when you take away what the "
            "file stores.",
        ),
        Wrong(
            lambda x, stored, y: 1,
            "it finds one 1 everywhere, also where none or two were added.",
        ),
    ),
)


def _block(x: _Narrow, weight: _Narrow, eps: float) -> _Narrow:
    y: _Narrow = (x.astype(np.float64) + reference.rms_norm(x, weight, eps=eps)).astype(x.dtype)
    return y


def overwriting_block(x: _Narrow, weight: _Narrow, eps: float) -> _Narrow:
    """Broken: a float32 x is not copied by the cast, and is written over."""
    wide = x.astype(np.float32, copy=False)
    wide *= 1 / np.sqrt(np.mean(np.square(wide), axis=-1, keepdims=True) + np.float32(eps))
    y: _Narrow = x + (wide * weight).astype(x.dtype)
    return y


def _single(*values: float) -> NDArray[np.float32]:
    return np.array(values, dtype=np.float32)


_BLOCK = Task(
    "block(x, weight, eps)",
    _block,
    cases=(
        (_half(3.0, 4.0), _half(2.0, -0.5), 1e-6),
        (_single(3.0, 4.0), _single(2.0, -0.5), 1e-6),
        (_ROWS.astype(np.float32), _single(1.1, -0.7, 1.3, 0.6), 1e-2),
        (_ROWS, _half(1.1, -0.7, 1.3, 0.6), 1e-2),
    ),
    example=(_single(3.0, 4.0), _single(2.0, -0.5), 1e-6),
    tolerance=4e-3,  # float16 outputs, of terms that cancel by half
    wrongs=(
        Wrong(
            overwriting_block,
            "it still overwrites a float32 x: the cast makes no copy there, so the product must "
            "go into a new array.",
        ),
        Wrong(
            lambda x, weight, eps: reference.rms_norm(x, weight, eps=eps),
            "the residual is missing: add x to the norm of x.",
        ),
        Wrong(
            lambda x, weight, eps: x + reference.rms_norm(x, eps=eps),
            "the weight is missing.",
        ),
    ),
)

EXERCISES: dict[str, Exercise] = {
    "memory_saved": _MEMORY_SAVED,
    "llama": _LLAMA_ORDER,
    "ones_added": _ONES_ADDED,
    "block": _BLOCK,
}
