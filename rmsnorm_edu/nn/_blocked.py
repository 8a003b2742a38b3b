"""Forward and backward over blocks of rows that stay in the cache, outside of autograd.

Each step of the formula is then a pass over the cache; the memory is read and written once.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from rmsnorm_edu.nn import _arithmetic
from rmsnorm_edu.nn._arithmetic import Gradients, Rule

BLOCK = 2**19  # bytes of x for each thread: the size of a core's own cache


def forward(rule: Rule, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """`_arithmetic.forward` of x (rows, n), bit for bit."""
    blocks = list(_blocks(x))
    if len(blocks) <= 1:
        return _arithmetic.forward(rule, x, weight, bias)
    dtype = _arithmetic.forward(rule, x[:0], weight, bias).dtype
    y = torch.empty(x.shape, dtype=dtype, device=x.device)
    for rows in blocks:
        y[rows] = _arithmetic.forward(rule, x[rows], weight, bias)
    return y


def vjp(rule: Rule, dy: Tensor, x: Tensor, weight: Tensor | None) -> Gradients:
    """`_arithmetic.vjp`: dx bit for bit, dweight and dbias up to the order of their sums."""
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    wide = _arithmetic.widest(dy, x, weight)
    dweight, dbias = torch.zeros((2, x.shape[1]), dtype=wide, device=x.device)
    for rows in _blocks(x):
        _vjp_of_block(rule, dy[rows].to(wide), x[rows], weight, (dx[rows], dweight, dbias))
    return dx, None if weight is None else dweight.to(weight.dtype), dbias


def _vjp_of_block(
    rule: Rule,
    dy: Tensor,
    x: Tensor,
    weight: Tensor | None,
    out: tuple[Tensor, Tensor, Tensor],
) -> None:
    """Write dx, and add the block's part to dweight and dbias; the steps of `_arithmetic.vjp`."""
    dx, dweight, dbias = out
    a, rstd, slope = _arithmetic.root(rule, x, weight)
    gain = _arithmetic.gain(rule.convention, x, weight)
    product = dy * a
    dweight.addmv_(product.mT, rstd[:, 0].to(dy.dtype))
    dbias.add_(dy.sum(0))
    if gain is not None:
        product.mul_(gain)
    share = _arithmetic.sum_of_rows(product) * (rstd * rstd * slope)
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
