"""The arithmetic of `conventions`: a record's formula, rounded where the record says."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rmsnorm_edu._dialects import Convention

AnyFloat = NDArray[Any]  # float16, float32, float64, or bfloat16 of ml_dtypes


def computing_type(dtype: DTypeLike) -> np.dtype[np.floating]:
    """The type that a row of `dtype` is computed in: float64 for float64, otherwise float32."""
    return np.dtype(np.float64 if np.dtype(dtype) == np.float64 else np.float32)


def common_type(a: DTypeLike, b: DTypeLike) -> np.dtype[Any]:
    """The type that two float types promote to, the wider; float32 for float16 and bfloat16."""
    a, b = np.dtype(a), np.dtype(b)
    if a == b or a.itemsize > b.itemsize:
        return a
    return b if a.itemsize < b.itemsize else np.dtype(np.float32)


def own_eps(c: Convention, dtype: DTypeLike) -> float:
    return float(np.finfo(computing_type(dtype)).eps) if c.eps is None else c.eps


def applied(
    c: Convention,
    x: AnyFloat,
    w: AnyFloat | None,
    eps: float | None,
    gate: AnyFloat | None,
    size: int,
) -> AnyFloat:
    x, w = cast_first(c, x, w)
    wide = computing_type(x.dtype)
    opening = None if gate is None else _activation(c, gate.astype(wide))
    a = x.astype(wide)
    if opening is not None and c.gate_before:
        a *= opening
    groups = a.reshape(*a.shape[:-1], a.shape[-1] // size, size)
    divisor = _divisor(c, groups, x.dtype, wide.type(own_eps(c, wide) if eps is None else eps))
    divisor = np.repeat(divisor, size, axis=-1)
    y = _scaled(c, a, x.dtype, w, divisor)
    if opening is not None and not c.gate_before:
        y = y.astype(wide) * opening
    return y.astype(output_type(c, x.dtype, w))


def cast_first(c: Convention, x: AnyFloat, w: AnyFloat | None) -> tuple[AnyFloat, AnyFloat | None]:
    if w is None or c.cast_first is None:
        return x, w
    common = common_type(x.dtype, w.dtype)
    types = {"common": (common, common), "x": (w.dtype, w.dtype), "weight": (x.dtype, x.dtype)}
    to_x, to_w = types[c.cast_first]
    return x.astype(to_x), w.astype(to_w)


def output_type(c: Convention, narrow: np.dtype[Any], w: AnyFloat | None) -> np.dtype[Any]:
    """The type of the result, for x of the type `narrow`."""
    if w is None:
        return computing_type(narrow) if c.wide_without_weight else narrow
    if c.output == "product":
        return common_type(xhat_type(c, narrow, w), w.dtype)
    return narrow if c.output == "x" else common_type(narrow, w.dtype)


def xhat_type(c: Convention, narrow: np.dtype[Any], w: AnyFloat | None) -> np.dtype[Any]:
    """The type that x / D is stored in."""
    wide = computing_type(narrow)
    if "xhat" not in c.rounds:
        return wide
    if c.xhat_as_weight:
        return w.dtype if w is not None and w.itemsize == 2 else wide
    if c.keeps_float16 and narrow == np.float16 and w is not None and w.dtype != narrow:
        return wide
    return narrow


def _activation(c: Convention, gate: AnyFloat) -> AnyFloat:
    sigmoid = 1 / (1 + np.exp(-gate))
    return np.asarray(gate * sigmoid if c.gate == "silu" else sigmoid)


def _divisor(c: Convention, a: AnyFloat, narrow: np.dtype[Any], eps: np.floating) -> AnyFloat:
    """D of each row of a, (...) without the last axis, in a's type; ‖x‖ or eps with the floor."""

    def kept(place: str, value: AnyFloat | np.floating) -> AnyFloat:
        value = np.asarray(value)
        return value.astype(narrow if place in c.rounds else a.dtype).astype(a.dtype)

    n = a.shape[-1]
    if c.about_mean:
        a = a - np.mean(a, axis=-1, keepdims=True, dtype=np.float64).astype(a.dtype)
    total = _sum(c, kept("square", np.square(a)))
    if "total" in c.rounds:
        total = kept("total", total)
    if c.eps_floor:
        return np.asarray(np.maximum(kept("norm", np.sqrt(total)), kept("eps", eps)))
    if c.eps_outside:
        rms = kept("rms", kept("norm", np.sqrt(total)) * a.dtype.type(n**-0.5))
        return kept("divisor", rms + eps)
    return np.sqrt(kept("sum", kept("mean", total / n) + kept("eps", eps)))


def _sum(c: Convention, squares: AnyFloat) -> AnyFloat:
    """Σ of the last axis. In no known order it is taken in float64, and overflows as float32."""
    if c.sums == "float32 in sequence":
        return np.asarray(np.cumsum(squares, axis=-1)[..., -1])
    total = np.sum(squares, axis=-1, dtype=np.float64)
    if c.sums == "float64":
        return np.asarray(total)
    return np.where(total > np.finfo(squares.dtype).max, np.inf, total)


def _scaled(
    c: Convention, a: AnyFloat, narrow: np.dtype[Any], w: AnyFloat | None, divisor: AnyFloat
) -> AnyFloat:
    """a / D · gain, for x of the type `narrow`."""
    gain = None if w is None else gain_of(c, w)
    if gain is not None and c.gain_first:
        return _quotient(c, _product(a.astype(narrow), gain), divisor, narrow)
    if gain is not None and c.gain_with_rstd:
        return a * _product(1 / divisor, gain)
    stored = narrow if w is None and not c.wide_without_weight else xhat_type(c, narrow, w)
    xhat = _quotient(c, a, divisor, narrow).astype(stored)
    return xhat if gain is None else _product(xhat, gain)


def gain_of(c: Convention, w: AnyFloat) -> AnyFloat:
    if c.gain_offset == 0:
        return w
    gain = c.gain_offset + w.astype(computing_type(w.dtype))
    return gain.astype(w.dtype) if "gain" in c.rounds else gain


def _quotient(c: Convention, a: AnyFloat, divisor: AnyFloat, narrow: np.dtype[Any]) -> AnyFloat:
    """a / D in a's type."""
    if c.eps_floor:
        unit = a / divisor
        if "unit" in c.rounds:
            unit = unit.astype(narrow).astype(a.dtype)
        return np.asarray(unit * a.dtype.type(a.shape[-1] ** 0.5))
    if c.divides:
        return (a / divisor).astype(a.dtype)
    rstd = np.asarray(1 / divisor)
    kept = rstd.astype(narrow).astype(rstd.dtype) if "rstd" in c.rounds else rstd
    return (a * kept).astype(a.dtype)


def _product(a: AnyFloat, gain: AnyFloat) -> AnyFloat:
    """a · gain in their common type, rounded once."""
    common = common_type(a.dtype, gain.dtype)
    wide = computing_type(common)
    return (a.astype(wide) * gain.astype(wide)).astype(common)
