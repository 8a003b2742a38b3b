"""`add_rms_norm`, the residual add with its norm, as an operation that torch knows: as `op`."""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from rmsnorm_edu._inputs import checked_eps
from rmsnorm_edu._words import known
from rmsnorm_edu.kernels import _plain, fused_add
from rmsnorm_edu.kernels import forward as _forward
from rmsnorm_edu.kernels._choice import CASTINGS
from rmsnorm_edu.kernels._inputs import checked_offset, checked_rows, checked_twin, checked_vector

__all__ = ["add_rms_norm"]
Vector = Tensor | None


def add_rms_norm(
    x: Tensor,
    residual: Tensor,
    weight: Vector = None,
    eps: float = 1e-6,
    *,
    casting: str = "torch",
    weight_offset: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """(y, h) with h = x + residual, rounded to their type, and y = rms_norm(h, weight), in Triton.

    x and residual are (..., d), of one shape and type; weight, eps, casting and weight_offset are
    `rms_norm`'s. h is the new residual. Both results have x's shape, without gaps in memory; no
    input is written to. y is `rms_norm(x + residual, …)` but for the order of a sum, in one kernel:
    4nds bytes for n rows of d numbers of s bytes, instead of 5nds; so is the backward, instead of
    6nds. Raises as `rms_norm` does.
    """
    checked_rows(x)
    checked_twin(residual, x, "residual")
    checked_vector(weight, x, "weight")
    known(casting, CASTINGS, "casting")
    words = checked_eps(eps), casting, checked_offset(weight_offset)
    if _plain.needed(x, residual, weight):
        h = x + residual
        return _plain.rms_norm(h, weight, None, *words), h
    y, h, _ = forward_op(x, residual, weight, *words)
    return y, h


def _rows(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1])


@custom_op("rmsnorm_edu::add_rms_norm", mutates_args=())
def forward_op(
    x: Tensor, residual: Tensor, weight: Vector, eps: float, casting: str, weight_offset: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(y, h, rstd) of x and residual (..., d), as `fused_add.forward`.

    The axes are folded here and not before: autograd would hand the one gradient of both to each
    as a view of its own, and x.grad and residual.grad would be the same memory.
    """
    rows = _rows(x), _rows(residual)
    y, h, rstd = fused_add.forward(*rows, weight, eps, casting, weight_offset)
    # results that are no views to autograd may be changed in place
    view = torch.ops.aten._unsafe_view
    return view(y, x.shape), view(h, x.shape), view(rstd, x.shape[:-1])


@forward_op.register_fake
def _(
    x: Tensor, residual: Tensor, weight: Vector, eps: float, casting: str, weight_offset: float
) -> tuple[Tensor, Tensor, Tensor]:
    y = x.new_empty(x.shape, dtype=_forward.output_type(x, weight, casting))
    rstd = x.new_empty(x.shape[:-1], dtype=_forward.computing_type(x))
    return y, x.new_empty(x.shape), rstd


@custom_op("rmsnorm_edu::add_rms_norm_backward", mutates_args=())
def backward_op(
    dy: Tensor, dh: Tensor, h: Tensor, weight: Vector, rstd: Tensor, weight_offset: float
) -> tuple[Tensor, Tensor]:
    """(dx, dweight) of dy, dh and h (..., d), as `fused_add.backward`; (0,) without a weight."""
    rows = _rows(dy), _rows(dh), _rows(h)
    flat = rstd.reshape(-1)
    dx, dweight = fused_add.backward(*rows, weight, flat, weight_offset=weight_offset)
    dx = dx.reshape(h.shape)
    return dx, h.new_empty(0) if dweight is None else dweight


@backward_op.register_fake
def _(
    dy: Tensor, dh: Tensor, h: Tensor, weight: Vector, rstd: Tensor, weight_offset: float
) -> tuple[Tensor, Tensor]:
    return h.new_empty(h.shape), h.new_empty(0) if weight is None else weight.new_empty(
        h.shape[-1:]
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    """What the backward needs: h, which the next block keeps too, the weight, one rstd a row."""
    _, _, weight, ctx.eps, _, ctx.weight_offset = inputs
    ctx.save_for_backward(weight, *output[1:])


def _derive(ctx: Any, dy: Tensor, dh: Tensor, _: Tensor) -> tuple[Vector, ...]:
    """The gradient of x, which is residual's too, and dweight; with derivatives where asked."""
    weight, h, rstd = ctx.saved_tensors
    if torch.is_grad_enabled():
        rows = _rows(dy), _rows(h)
        dx, dweight, _ = _plain.vjp(*rows, weight, ctx.eps, ctx.weight_offset)
        dx = dx.reshape(h.shape) + dh
    else:
        dx, dweight = backward_op(dy, dh, h, weight, rstd, ctx.weight_offset)
    return dx, dx, None if weight is None else dweight.to(weight.dtype), None, None, None


forward_op.register_autograd(_derive, setup_context=_keep)


@forward_op.register_vmap
def _(
    info: Any, in_dims: tuple[Any, ...], x: Tensor, residual: Tensor, *others: Any
) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[int, int, int]]:
    """A batch of x or residual is more rows; a batch of weights would be other kernels."""
    if in_dims[2] is not None:
        raise NotImplementedError(
            "kernels.add_rms_norm under vmap takes a batch of x and residual, not of weight: "
            "normalise without it, and multiply in PyTorch"
        )
    both = zip((x, residual), in_dims[:2], strict=True)
    x, residual = (
        t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0) for t, dim in both
    )
    return forward_op(x, residual, *others), (0, 0, 0)
