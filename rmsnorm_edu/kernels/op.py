"""The kernels as operations that torch knows: `rms_norm`, with autograd, torch.compile and vmap.

To torch.compile each is one opaque call whose shapes and types it knows (register_fake), so that
it breaks no graph; autograd gets the backward kernel (register_autograd).
"""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from rmsnorm_edu._inputs import checked_eps
from rmsnorm_edu._words import known
from rmsnorm_edu.kernels import _plain
from rmsnorm_edu.kernels import backward as _backward
from rmsnorm_edu.kernels import forward as _forward
from rmsnorm_edu.kernels._choice import CASTINGS
from rmsnorm_edu.kernels._inputs import checked_offset, checked_rows, checked_vector

__all__ = ["rms_norm"]
Vector = Tensor | None


def rms_norm(
    x: Tensor,
    weight: Vector = None,
    eps: float = 1e-6,
    *,
    bias: Vector = None,
    casting: str = "torch",
    weight_offset: float = 0.0,
) -> Tensor:
    """y = x / √(mean(x²) + eps) · (weight_offset + weight) + bias, over the last axis, in Triton.

    x (..., d) in float16, bfloat16, float32 or float64 and in any strides; weight and bias (d,),
    of a float type of their own. It is computed in float32, float64 rows in float64. `casting`
    says where it is rounded: "torch" and "gemma" once, to x's type, which is the result's;
    "llama" rounds x / √(…) to x's type first, and the result has the common type of x and weight.
    Gemma's gain 1 + weight is weight_offset = 1.0, with any casting; without a weight there is no
    offset.

    Returns x's shape, without gaps in memory. A row has the same bits in any batch of the same
    strides. Gradients are those of the formula without its roundings, of any order; under
    torch.func's grad or jvp and in forward mode all runs in PyTorch's operations instead. Raises
    TypeError and ValueError for what does not fit, restating it, RuntimeError for a tensor on
    the CPU where Triton compiles for a GPU.
    """
    checked_rows(x)
    checked_vector(weight, x, "weight")
    checked_vector(bias, x, "bias")
    known(casting, CASTINGS, "casting")
    words = checked_eps(eps), casting, checked_offset(weight_offset)
    if _plain.needed(x, weight, bias):
        return _plain.rms_norm(x, weight, bias, *words)
    y, _ = forward_op(x.reshape(-1, x.shape[-1]), weight, bias, *words)
    # a result that is no view to autograd may be changed in place
    result: Tensor = torch.ops.aten._unsafe_view(y, x.shape)
    return result


@custom_op("rmsnorm_edu::rms_norm", mutates_args=())
def forward_op(
    x: Tensor,
    weight: Vector,
    bias: Vector,
    eps: float,
    casting: str,
    weight_offset: float,
) -> tuple[Tensor, Tensor]:
    """(y, rstd) of x (rows, d), as `forward.forward`."""
    return _forward.forward(x, weight, bias, eps, casting, weight_offset)


@forward_op.register_fake
def _(
    x: Tensor, weight: Vector, bias: Vector, eps: float, casting: str, weight_offset: float
) -> tuple[Tensor, Tensor]:
    y = x.new_empty(x.shape, dtype=_forward.output_type(x, weight, casting))
    return y, x.new_empty(x.shape[:1], dtype=_forward.computing_type(x))


@custom_op("rmsnorm_edu::rms_norm_backward", mutates_args=())
def backward_op(
    dy: Tensor,
    x: Tensor,
    weight: Vector,
    rstd: Tensor,
    has_bias: bool,
    weight_offset: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """(dx, dweight, dbias); a tensor of shape (0,) for what is missing."""
    dx, dweight, dbias = _backward.backward(
        dy, x, weight, rstd, has_bias=has_bias, weight_offset=weight_offset
    )
    dweight, dbias = (x.new_empty(0) if part is None else part for part in (dweight, dbias))
    return dx, dweight, dbias


@backward_op.register_fake
def _(
    dy: Tensor, x: Tensor, weight: Vector, rstd: Tensor, has_bias: bool, weight_offset: float
) -> tuple[Tensor, Tensor, Tensor]:
    d = x.shape[1:]
    dweight = x.new_empty(0) if weight is None else weight.new_empty(d)
    return x.new_empty(x.shape), dweight, rstd.new_empty(d) if has_bias else x.new_empty(0)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    """What the backward needs: x, the weight, and one rstd a row."""
    x, weight, bias, ctx.eps, _, ctx.weight_offset = inputs
    ctx.bias_type = None if bias is None else bias.dtype
    ctx.save_for_backward(x, weight, output[1])


def _derive(ctx: Any, dy: Tensor, _: Tensor) -> tuple[Vector, ...]:
    """dx, dweight, dbias; differentiable where that is asked for."""
    x, weight, rstd = ctx.saved_tensors
    if torch.is_grad_enabled():
        dx, dweight, dbias = _plain.vjp(dy, x, weight, ctx.eps, ctx.weight_offset)
    else:
        has_bias = ctx.bias_type is not None
        dx, dweight, dbias = backward_op(dy, x, weight, rstd, has_bias, ctx.weight_offset)
    return (
        dx,
        None if weight is None else dweight.to(weight.dtype),
        None if ctx.bias_type is None else dbias.to(ctx.bias_type),
        None,
        None,
        None,
    )


forward_op.register_autograd(_derive, setup_context=_keep)


@forward_op.register_vmap
def _(
    info: Any, in_dims: tuple[Any, ...], x: Tensor, *others: Any
) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    """A batch of x is more rows; a batch of weights would be other kernels."""
    if any(dim is not None for dim in in_dims[1:3]):
        raise NotImplementedError(
            "kernels.rms_norm under vmap takes a batch of x, not of weight or bias: normalise "
            "without them, and multiply and add in PyTorch"
        )
    x = x.movedim(in_dims[0], 0)
    y, rstd = forward_op(x.reshape(-1, x.shape[-1]), *others)
    return (y.reshape(x.shape), rstd.reshape(x.shape[:-1])), (0, 0)
