"""Forward and backward over blocks of rows that stay in the cache, outside of autograd.

Each step of the formula is then a pass over the cache; the memory is read and written once.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from rmsnorm_edu._dialects import Convention
from rmsnorm_edu.nn import _arithmetic
from rmsnorm_edu.nn._arithmetic import Gradients, Rule

# Bytes of x for each thread. x, dy, dx and one product fit a shared cache; smaller ones would fit a
# core's own, but threads meet after every step, and wait long where other programs run.
BLOCK = 2**21
# addmv_ adds up the rows one after the other, and errs by as many roundings; sum adds in pairs.
TALL = 2**10


def forward(rule: Rule, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """`_arithmetic.forward` of x (rows, n), bit for bit."""
    in_place = rounds_nothing(rule, x, weight, bias)
    dtype = x.dtype if in_place else _arithmetic.forward(rule, x[:0], weight, bias).dtype
    y = torch.empty(x.shape, dtype=dtype, device=x.device)
    for rows in _blocks(x):
        if in_place:
            _forward_of_block(rule, x[rows], weight, bias, y[rows])
        else:
            y[rows] = _arithmetic.forward(rule, x[rows], weight, bias)
    return y


def rounds_nothing(rule: Rule, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> bool:
    """Whether it is x · rsqrt(mean(x²) + ε) · gain + bias, all in one type, as most often."""
    given = {t.dtype for t in (x, weight, bias) if t is not None}
    one_type = given == {_arithmetic.computing_type(x.dtype)}
    return one_type and rule.k == x.shape[1] and not another_order(rule.convention)


def another_order(c: Convention) -> bool:
    """Whether it is not x · rsqrt(mean(x²) + ε) · gain, whatever is rounded on the way."""
    other = c.eps_outside or c.divides or c.gain_first or c.gain_with_rstd
    return other or c.sums == "float64"


def _forward_of_block(
    rule: Rule, x: Tensor, weight: Tensor | None, bias: Tensor | None, y: Tensor
) -> None:
    """Write y, which holds the squares first: there is no other large intermediate result."""
    torch.mul(x, x, out=y)
    rstd = _arithmetic.mean_of_rows(y, y.dtype).add_(_arithmetic.eps(rule, y.dtype)).rsqrt_()
    torch.mul(x, rstd, out=y)
    gain = _arithmetic.gain(rule.convention, x, weight)
    if gain is not None:
        y.mul_(gain)
    if bias is not None:
        y.add_(bias)


def vjp(rule: Rule, dy: Tensor, x: Tensor, weight: Tensor | None) -> Gradients:
    """`_arithmetic.vjp`: dx bit for bit, dweight up to the order of its sum."""
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    wide = _arithmetic.widest(dy, x, weight)
    dweight = torch.zeros(x.shape[1], dtype=wide, device=x.device)
    for rows in _blocks(x):
        _vjp_of_block(rule, dy[rows].to(wide), x[rows], weight, dx[rows], dweight)
    return dx, None if weight is None else dweight.to(weight.dtype)


def _vjp_of_block(
    rule: Rule,
    dy: Tensor,
    x: Tensor,
    weight: Tensor | None,
    dx: Tensor,
    dweight: Tensor,
) -> None:
    """Write dx, and add the block's part to dweight; the steps of `_arithmetic.vjp`."""
    a, rstd, slope = _arithmetic.root(rule, x, weight)
    gain = _arithmetic.gain(rule.convention, x, weight)
    product = dy * a
    if len(product) > TALL:
        dweight.add_((product * rstd).sum(0))
    else:
        dweight.addmv_(product.mT, rstd[:, 0].to(dy.dtype))
    if gain is not None:
        product.mul_(gain)
    share = _arithmetic.sum_of_rows(product) * rstd * (rstd * slope)
    u = dx if dx.dtype == dy.dtype else product  # which is not needed any more
    u.copy_(dy) if gain is None else torch.mul(dy, gain, out=u)
    u.mul_(rstd)
    u[:, : rule.k].addcmul_(a[:, : rule.k], share, value=-1)
    if u is not dx:
        dx.copy_(u)


def _blocks(x: Tensor) -> Iterator[slice]:
    """Slices of the rows of x: a block for all threads on a CPU, elsewhere all rows at once."""
    rows, n = x.shape
    size = rows
    if x.device.type == "cpu":
        size = BLOCK * torch.get_num_threads() // (4 * n)
    for start in range(0, rows, max(1, size)):
        yield slice(start, min(rows, start + max(1, size)))
