"""The arithmetic of `conventions` in torch, and its derivatives in closed form.

Everywhere x has shape (..., n), in any float type, weight and bias (n,). The row in the computing
type is a, D its divisor, rstd = 1/D, g the gain: y = a/D · g + bias. All of it is differentiable.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from rmsnorm_edu._dialects import Convention


@dataclass(frozen=True)
class Rule:
    """Which norm: a convention, its ε (None: finfo of the computing type), how many features."""

    convention: Convention
    eps: float | None
    k: int


def computing_type(dtype: torch.dtype) -> torch.dtype:
    """The type that a row of `dtype` is computed in: float64 for float64, otherwise float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def forward(rule: Rule, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """y, with the roundings and of the type that the convention says (`conventions.apply`)."""
    c = rule.convention
    x, weight = _cast_first(c, x, weight)
    a = x.to(computing_type(x.dtype)).contiguous()  # so that a row has one order of summation
    y = _scaled(rule, a, x.dtype, weight, _divisor(rule, a, x.dtype))
    if bias is not None:
        y = y + bias
    return y.to(_output(c, x.dtype, weight))


def _cast_first(c: Convention, x: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
    if weight is None or c.cast_first is None:
        return x, weight
    common = torch.promote_types(x.dtype, weight.dtype)
    to_x, to_weight = {
        "common": (common, common),
        "x": (weight.dtype, weight.dtype),
        "weight": (x.dtype, x.dtype),
    }[c.cast_first]
    return x.to(to_x), weight.to(to_weight)


def _output(c: Convention, narrow: torch.dtype, weight: Tensor | None) -> torch.dtype:
    """The type of the result, for x of the type `narrow`."""
    if weight is None:
        return computing_type(narrow) if c.wide_without_weight else narrow
    if c.output == "product":
        return torch.promote_types(_xhat_type(c, narrow, weight), weight.dtype)
    return narrow if c.output == "x" else torch.promote_types(narrow, weight.dtype)


def _xhat_type(c: Convention, narrow: torch.dtype, weight: Tensor | None) -> torch.dtype:
    """The type that a/D is stored in."""
    wide = computing_type(narrow)
    if weight is None:
        return wide if c.wide_without_weight or "xhat" not in c.rounds else narrow
    if "xhat" not in c.rounds:
        return wide
    if c.xhat_as_weight:
        return weight.dtype if weight.dtype.itemsize == 2 else wide
    if c.keeps_float16 and narrow == torch.float16 and weight.dtype != narrow:
        return wide
    return narrow


def _divisor(rule: Rule, a: Tensor, narrow: torch.dtype) -> Tensor:
    """What a row is divided by, (..., 1): D, with the floor max(‖a‖, ε); else 1/D, a factor."""
    c = rule.convention

    def kept(place: str, value: Tensor) -> Tensor:
        return value.to(narrow).to(a.dtype) if place in c.rounds else value

    eps = _eps(rule, a, narrow)
    first = a[..., : rule.k]
    if c.eps_outside:
        norm = kept("norm", torch.linalg.vector_norm(first, dim=-1, keepdim=True))
        if c.eps_floor:
            return norm.clamp(min=eps)
        return kept("divisor", kept("rms", norm * rule.k**-0.5) + eps)
    squares = kept("square", first * first)
    if "total" in c.rounds:
        mean = kept("total", squares.sum(-1, keepdim=True)) / rule.k
    else:
        wide = torch.float64 if c.sums == "float64" else None
        mean = squares.mean(-1, keepdim=True, dtype=wide).to(a.dtype)
    total = kept("sum", kept("mean", mean) + eps)
    return total.sqrt() if c.divides else kept("rstd", total.rsqrt())


def _eps(rule: Rule, a: Tensor, narrow: torch.dtype) -> float:
    eps = torch.finfo(a.dtype).eps if rule.eps is None else rule.eps
    if "eps" not in rule.convention.rounds:
        return eps
    return torch.tensor(eps, dtype=torch.float64).to(narrow).item()


def _scaled(
    rule: Rule, a: Tensor, narrow: torch.dtype, weight: Tensor | None, divisor: Tensor
) -> Tensor:
    """a/D · g, for x of the type `narrow`."""
    c = rule.convention
    gain = None if weight is None else _gain(c, weight)
    if gain is not None and c.gain_first:
        return _quotient(c, a.to(narrow) * gain, divisor, narrow)
    if gain is not None and c.gain_with_rstd:
        return a * (divisor * gain)
    xhat = _quotient(c, a, divisor, narrow).to(_xhat_type(c, narrow, weight))
    return xhat if gain is None else xhat * gain


def _gain(c: Convention, weight: Tensor) -> Tensor:
    if c.gain_offset == 0:
        return weight
    gain = c.gain_offset + weight.to(computing_type(weight.dtype))
    return gain.to(weight.dtype) if "gain" in c.rounds else gain


def _quotient(c: Convention, a: Tensor, divisor: Tensor, narrow: torch.dtype) -> Tensor:
    """a/D in a's type."""
    if c.eps_floor:
        unit = a / divisor
        if "unit" in c.rounds:
            unit = unit.to(narrow).to(a.dtype)
        return unit * math.sqrt(a.shape[-1])
    return ((a / divisor) if c.divides else (a * divisor)).to(a.dtype)
