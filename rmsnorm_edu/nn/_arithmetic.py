"""The arithmetic of `conventions` in torch, and its derivatives in closed form.

Everywhere x has shape (..., n), in any float type, weight and bias (n,). The row in the computing
type is a, D its divisor, rstd = 1/D, g the gain: y = a/D · g + bias. All of it is differentiable.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from rmsnorm_edu._dialects import Convention

Gradients = tuple[Tensor, Tensor | None]  # dx, dweight


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
    return y.to(output_type(c, x.dtype, weight))


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


def output_type(c: Convention, narrow: torch.dtype, weight: Tensor | None) -> torch.dtype:
    """The type of the result, for x of the type `narrow`."""
    if weight is None:
        return computing_type(narrow) if c.wide_without_weight else narrow
    if c.output == "product":
        return torch.promote_types(xhat_type(c, narrow, weight), weight.dtype)
    return narrow if c.output == "x" else torch.promote_types(narrow, weight.dtype)


def xhat_type(c: Convention, narrow: torch.dtype, weight: Tensor | None) -> torch.dtype:
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

    added = _rounded(eps(rule, a.dtype), narrow) if "eps" in c.rounds else eps(rule, a.dtype)
    first = a[..., : rule.k]
    if c.eps_outside:
        norm = kept("norm", norm_of_rows(first))
        if c.eps_floor:
            return norm.clamp(min=added)
        return kept("divisor", kept("rms", norm * rule.k**-0.5) + added)
    squares = kept("square", first * first)
    if "total" in c.rounds:
        mean = kept("total", sum_of_rows(squares)) / rule.k
    else:
        mean = mean_of_rows(squares, torch.float64 if c.sums == "float64" else a.dtype)
    total = kept("sum", kept("mean", mean) + added)
    return total.sqrt() if c.divides else kept("rstd", total.rsqrt())


def norm_of_rows(a: Tensor) -> Tensor:
    """‖a‖ of each row, (..., 1)."""
    return _of_rows(lambda rows: torch.linalg.vector_norm(rows, dim=-1, keepdim=True), a)


def sum_of_rows(a: Tensor) -> Tensor:
    """Σ of each row, (..., 1)."""
    return _of_rows(lambda rows: rows.sum(-1, keepdim=True), a)


def mean_of_rows(a: Tensor, dtype: torch.dtype) -> Tensor:
    """The mean of each row, (..., 1), summed in `dtype`, in a's type."""
    return _of_rows(lambda rows: rows.mean(-1, keepdim=True, dtype=dtype), a).to(a.dtype)


def _of_rows(reduced: Callable[[Tensor], Tensor], a: Tensor) -> Tensor:
    """`reduced(a)`. Alone, torch sums a long row in parts, in an order that no batch has."""
    if a.shape[-1] > 2**15 and a.shape[:-1] == (1,):
        return reduced(a.expand(2, -1))[:1]
    return reduced(a)


def eps(rule: Rule, wide: torch.dtype) -> float:
    """The rule's ε for rows computed in the type `wide`."""
    return torch.finfo(wide).eps if rule.eps is None else rule.eps


def _rounded(value: float, dtype: torch.dtype) -> float:
    rounded: float = torch.tensor(value, dtype=torch.float64, device="cpu").to(dtype).item()
    return rounded


def _scaled(
    rule: Rule, a: Tensor, narrow: torch.dtype, weight: Tensor | None, divisor: Tensor
) -> Tensor:
    """a/D · g, for x of the type `narrow`."""
    c = rule.convention
    gain = None if weight is None else _gain(c, weight)
    if gain is not None and c.gain_first:
        return _quotient(rule, a.to(narrow) * gain, divisor, narrow)
    if gain is not None and c.gain_with_rstd:
        return a * (divisor * gain)
    xhat = _quotient(rule, a, divisor, narrow).to(xhat_type(c, narrow, weight))
    return xhat if gain is None else xhat * gain


def _gain(c: Convention, weight: Tensor) -> Tensor:
    if c.gain_offset == 0:
        return weight
    gain = c.gain_offset + weight.to(computing_type(weight.dtype))
    return gain.to(weight.dtype) if "gain" in c.rounds else gain


def _quotient(rule: Rule, a: Tensor, divisor: Tensor, narrow: torch.dtype) -> Tensor:
    """a/D in a's type."""
    c = rule.convention
    if c.eps_floor:
        unit = a / divisor
        if "unit" in c.rounds:
            unit = unit.to(narrow).to(a.dtype)
        return unit * math.sqrt(rule.k)
    return ((a / divisor) if c.divides else (a * divisor)).to(a.dtype)


def root(rule: Rule, x: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The row a in the computing type, rstd = 1/D and slope, where ∂D/∂aᵢ = slope · aᵢ.

    With ε inside slope = 1/(kD). Outside it is 1/(k·RMS), 0 for a zero row, and 0 on the floor.
    """
    c = rule.convention
    x, _ = _cast_first(c, x, weight)
    a = x.to(computing_type(x.dtype)).contiguous()
    divisor = _divisor(rule, a, x.dtype)
    rstd = 1 / divisor if c.divides else divisor
    if not c.eps_outside:
        return a, rstd, rstd / rule.k
    norm = norm_of_rows(a[..., : rule.k])
    if c.eps_floor:  # the floor is where the unrounded norm is below it
        rstd = rstd * math.sqrt(rule.k)
        return a, rstd, torch.where(norm > eps(rule, a.dtype), rstd / rule.k, 0.0)
    slope = rule.k**-0.5 / torch.where(norm == 0, 1.0, norm)
    return a, rstd, torch.where(norm == 0, 0.0, slope)


def gain(c: Convention, x: Tensor, weight: Tensor | None) -> Tensor | None:
    """The factor of a/D, (n,), in the computing type of the weight or in one as wide as a's."""
    _, weight = _cast_first(c, x, weight)
    return None if weight is None else _gain(c, weight)


def vjp(rule: Rule, dy: Tensor, x: Tensor, weight: Tensor | None) -> Gradients:
    """Gradients (dx, dweight) of Σ dy·y, dweight summed over the rows.

    With u = dy·g: dxᵢ = uᵢ/D − slope · aᵢ Σⱼ uⱼaⱼ / D² for the first k,
    uᵢ/D beyond; dweight = Σ dy·a/D.
    """
    a, rstd, slope = root(rule, x, weight)
    g = gain(rule.convention, x, weight)
    dy = dy.to(widest(dy, x, weight))
    u, along = (dy, dy * a) if g is None else (dy * g, dy * a * g)
    share = sum_of_rows(along) * rstd * (rstd * slope)  # rstd cubed overflows early
    dx = torch.addcmul(u * rstd, first(rule, a), share, value=-1).to(x.dtype)
    return dx, None if weight is None else (dy * a * rstd).sum(-2).to(weight.dtype)


def widest(dy: Tensor, x: Tensor, weight: Tensor | None) -> torch.dtype:
    """The type of a backward pass: float64 if one of them is, otherwise float32."""
    given = [t.dtype for t in (dy, x, weight) if t is not None]
    return torch.float64 if torch.float64 in given else torch.float32


def first(rule: Rule, a: Tensor) -> Tensor:
    """a with 0 behind its first k features."""
    n = a.shape[-1]
    return a if rule.k == n else pad(a[..., : rule.k], (0, n - rule.k))


def jvp(
    rule: Rule,
    x: Tensor,
    weight: Tensor | None,
    dx: Tensor | None,
    dweight: Tensor | None,
    dbias: Tensor | None,
) -> Tensor:
    """How y moves with x, weight and bias: (dx − x̂ · slope Σⱼ aⱼ dxⱼ)/D · g + x̂ dweight + dbias.

    x̂ = a/D, the sum is over the first k. The result is of y's type.
    """
    a, rstd, slope = root(rule, x, weight)
    g = gain(rule.convention, x, weight)
    dy = torch.zeros_like(a)
    if dx is not None:
        growth = slope * sum_of_rows(first(rule, a) * dx)
        dy = (dx - a * rstd * growth) * rstd
        dy = dy if g is None else dy * g
    if dweight is not None:
        dy = dy + a * rstd * dweight
    if dbias is not None:
        dy = dy + dbias
    narrow, weight = _cast_first(rule.convention, x, weight)
    return dy.to(output_type(rule.convention, narrow.dtype, weight))
