"""The figure of the precision chapter: measured errors of a norm by the size of its input."""

from functools import cache
from itertools import takewhile
from typing import Any

import numpy as np
import traitlets

from rmsnorm_edu import conventions, precision
from rmsnorm_edu._inputs import Array
from rmsnorm_edu.conventions import AnyFloat
from rmsnorm_edu.explorables.figure import Figure

N = 512  # features of a row
EXPONENTS = (-100, 100)  # the largest |x| of a row is 2**k, 1e-30 to 1e30
STEP = 2
DTYPES = {"float16": 8, "bfloat16": 2, "float32": 2}  # rows for each k: float16 has few k
LABELS = {
    "torch": "torch",
    "llama": "LLaMA",
    "gemma": "Gemma",
    "gemma_flax": "Gemma in Flax",
    "paper_torch": "2019 PyTorch",
}
# Errors in units of u, as the page draws them: steps of 1/12 to 4, then of a half more.
LEVELS = np.concatenate([np.arange(49) / 12, 4 * 1.5 ** np.arange(1.0, 39.0)])
_LETTERS = [chr(code) for code in range(35, 127) if chr(code) not in "<\\"]  # plain in JSON
LETTERS = "".join(_LETTERS[: len(LEVELS)])
ZERO, INFINITE, NAN = _LETTERS[len(LEVELS) : len(LEVELS) + 3]  # all 0; some infinite; some nan


def sizes(dtype: str) -> list[int]:
    """The k of `EXPONENTS` at which 2**k is a number of `dtype`, neither 0 nor infinite."""
    low, high = EXPONENTS
    powers = np.ldexp(1.0, np.arange(low, high + 1, STEP))
    there = _stored(powers, dtype).astype(np.float64) == powers
    return [low + STEP * int(i) for i in np.flatnonzero(there)]


def inputs(dtype: str, exponents: list[int], rows: int, seed: int = 0) -> AnyFloat:
    """Rows whose largest |x| is 2**k, (exponents, rows, N), in `dtype`."""
    z = np.random.default_rng(seed).normal(0.3, 1.0, (len(exponents), rows, N))
    z /= np.max(np.abs(z), axis=-1, keepdims=True)
    return _stored(np.ldexp(z, np.reshape(exponents, (-1, 1, 1))), dtype)


def gains(dtype: str, offset: float, seed: int = 1) -> AnyFloat:
    """Weights, (N,): offset + weight is of either sign, between 1/2 and 2 in size."""
    rng = np.random.default_rng(seed)
    return _stored(rng.uniform(0.5, 2.0, N) * rng.choice([-1, 1], N) - offset, dtype)


def outputs(name: str, x: AnyFloat, eps: float | None = None) -> tuple[AnyFloat, Array]:
    """What the convention returns, in x's type, and what its formula is in float64.

    `eps` None is the convention's own. x is (..., N).
    """
    weight = gains(x.dtype.name, conventions.get(name).gain_offset)
    return conventions.apply(name, x, weight, eps=eps), conventions.exact(name, x, weight, eps=eps)


def errors(y: AnyFloat, true: Array) -> Array:
    """The largest error of each row by its largest output, in units of u; (...), inf and nan too.

    u is the unit roundoff of y's type.
    """
    with np.errstate(invalid="ignore"):
        off = np.max(np.abs(y.astype(np.float64) - true), axis=-1)
    scale = np.max(np.abs(true), axis=-1)
    found: Array = off / scale / precision.UNIT_ROUNDOFF[y.dtype.name]
    return found


def missed(name: str, dtype: str) -> float:
    """The share of outputs that are not the nearest number of `dtype`, where max|x| = 1."""
    y, true = outputs(name, inputs(dtype, [0], 32, seed=2))
    return float(np.mean(y != true.astype(y.dtype)))


def bound(name: str, dtype: str) -> float:
    """`precision.bound` for a row of this figure, in units of u."""
    found = precision.bound(dtype, N, convention=name, summation="pairwise")
    return found / precision.UNIT_ROUNDOFF[dtype]


def _stored(a: Array, dtype: str) -> AnyFloat:
    """`a` rounded to `dtype`; too large is infinite."""
    with np.errstate(over="ignore"):
        return a.astype(precision.numpy_type(dtype))


def _letters(y: AnyFloat, found: Array) -> str:
    """One letter for each row: its error to the nearest of `LEVELS`, or what became of it."""
    y = y.astype(np.float64)
    middles = (LEVELS[1:] + LEVELS[:-1]) / 2
    letters = np.array(list(LETTERS))[np.searchsorted(middles, np.nan_to_num(found))]
    letters[np.all(y == 0, axis=-1)] = ZERO
    letters[np.any(np.isinf(y), axis=-1)] = INFINITE
    letters[np.any(np.isnan(y), axis=-1)] = NAN
    return "".join(letters.ravel())


def holds(exponents: list[int], found: Array, limit: float) -> list[int] | None:
    """The first and the last k where every error is below the bound; None where there is none."""
    below = np.flatnonzero(np.all(found <= limit, axis=-1))  # nan is not
    return [exponents[below[0]], exponents[below[-1]]] if below.size else None


def cell(name: str, dtype: str) -> dict[str, Any]:
    """What the page draws of one type and convention, with its own eps and with eps = 0."""
    own, zero = drawn(name, dtype, None), drawn(name, dtype, 0.0)
    pairs = zip(reversed(own["rows"]), reversed(zero["rows"]), strict=True)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    zero["rows"] = zero["rows"][: len(zero["rows"]) - same]  # the page takes the others from own
    share = float(f"{missed(name, dtype):.2g}")
    return {"bound": round(bound(name, dtype), 2), "missed": share, "own": own, "zero": zero}


def drawn(name: str, dtype: str, eps: float | None) -> dict[str, Any]:
    """The range in which the bound holds, and a letter for every row."""
    exponents = sizes(dtype)
    y, true = outputs(name, inputs(dtype, exponents, DTYPES[dtype]), eps)
    found = errors(y, true)
    return {"holds": holds(exponents, found, bound(name, dtype)), "rows": _letters(y, found)}


@cache
def data() -> dict[str, Any]:
    """The letters and what they mean, the types, the conventions, and every cell."""
    return {
        "levels": [float(f"{level:.3g}") for level in LEVELS],
        "letters": LETTERS + ZERO + INFINITE + NAN,
        "types": {dtype: _type(dtype) for dtype in DTYPES},
        "conventions": {name: _convention(name) for name in LABELS},
        "cells": {f"{dtype} {name}": cell(name, dtype) for dtype in DTYPES for name in LABELS},
    }


def _type(dtype: str) -> dict[str, Any]:
    """Its k, its rows for each, its u, largest, smallest normal and smallest number."""
    k, u, least = sizes(dtype), precision.UNIT_ROUNDOFF[dtype], precision.subnormal(dtype)
    normal = least / (2 * u)  # below it digits are lost, one for each halving
    largest = (2 - 2 * u) * 2 / normal  # IEEE exponents: the largest power of two is 2 / normal
    return {
        "k": [k[0], k[-1]],
        "rows": DTYPES[dtype],
        "u": u,
        "max": largest,
        "normal": normal,
        "least": least,
    }


def _convention(name: str) -> dict[str, Any]:
    c = conventions.NAMES[name]
    return {
        "label": LABELS[name],
        "narrowSquares": "square" in c.rounds,
        "narrowNorm": "norm" in c.rounds,
    }


class RoundingCloud(Figure):
    r"""Measured errors of five conventions in three types, over the size of the input.

    A dot is one row of 512 features, its height max|y − true| / max|true| in units of the type's
    unit roundoff u; y is `conventions.apply`, true the same formula in float64. The line over
    them is `precision.bound`. `conventions` sums squares in float64: a library that sums in
    float32 overflows at inputs up to √n times smaller. Traits: `dtype`; `convention`; `eps`,
    "own" or "zero"; `exponent`, the even k of the line that reads, where the largest |x| is 2**k.
    """

    name = "rounding_cloud"
    needs = ("rounding",)
    label = "Drag the line: rounding errors of a norm by the size of its input, type and convention"
    dtype = traitlets.Enum(list(DTYPES), "float16").tag(sync=True)
    convention = traitlets.Enum(list(LABELS), "gemma_flax").tag(sync=True)
    eps = traitlets.Enum(["own", "zero"], "own").tag(sync=True)
    exponent = traitlets.Int(0, min=EXPONENTS[0], max=EXPONENTS[1]).tag(sync=True)
    data = traitlets.Dict().tag(sync=True)

    @traitlets.default("data")
    def _default_data(self) -> dict[str, Any]:
        return data()
