"""The formulas in PyTorch's operations, for derivatives that no kernel has.

A custom operation of torch knows the backward of autograd, and no more: torch.func's grad, jvp and
hessian refuse it, and forward-mode derivatives (torch.autograd.forward_ad) are lost without a word.
What is written down in PyTorch's operations has them all. It is slower.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack
from torch.autograd import forward_ad

from rmsnorm_edu.kernels.forward import computing_type, output_type

Vector = Tensor | None


def needed(*tensors: Vector) -> bool:
    """Whether a derivative is being taken that the kernels' operations do not have.

    vmap alone is not one, and what is compiled stays as it is.
    """
    if torch.compiler.is_compiling():
        return False
    if any(level.key() != TransformType.Vmap for level in get_interpreter_stack() or ()):
        return True
    if forward_ad._current_level < 0:
        return False
    unpack: Callable[[Tensor], Any] = forward_ad.unpack_dual
    return any(t is not None and unpack(t).tangent is not None for t in tensors)


def rms_norm(
    x: Tensor, weight: Vector, bias: Vector, eps: float, casting: str, weight_offset: float
) -> Tensor:
    """`forward.forward`'s y, of x (..., d)."""
    wide = computing_type(x)
    a = x.to(wide)
    y = a * (a.square().mean(-1, keepdim=True) + eps).rsqrt()
    if casting == "llama":
        y = y.to(x.dtype).to(wide)
    if weight is not None:
        y = y * (weight.to(wide) + weight_offset)
    if bias is not None:
        y = y + bias.to(wide)
    return y.to(output_type(x, weight, casting))


def vjp(
    dy: Tensor, x: Tensor, weight: Vector, eps: float, weight_offset: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`backward.backward`'s (dx, dweight, dbias), of rows (rows, d)."""
    wide = computing_type(x)
    a, dy = x.to(wide), dy.to(wide)
    rstd = (a.square().mean(-1, keepdim=True) + eps).rsqrt()
    xhat = a * rstd
    u = dy if weight is None else dy * (weight.to(wide) + weight_offset)
    dx = (u - xhat * (u * xhat).mean(-1, keepdim=True)) * rstd
    return dx.to(x.dtype), (dy * xhat).sum(0), dy.sum(0)
