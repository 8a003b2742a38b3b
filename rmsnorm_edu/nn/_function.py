"""RMSNorm as one operation of autograd, with its backward in closed form."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rmsnorm_edu.nn import _arithmetic, _blocked
from rmsnorm_edu.nn._arithmetic import Rule

Vector = Tensor | None


def norm(x: Tensor, weight: Vector, bias: Vector, rule: Rule) -> Tensor:
    """y of x (rows, n), weight and bias (n,), under autograd and the transforms of torch.func."""
    apply: Callable[..., Tensor] = Norm.apply
    return apply(x, weight, bias, rule)


class Norm(torch.autograd.Function):
    """y of x (rows, n), weight and bias (n,). It keeps x and weight, no intermediate result.

    A backward that is recorded itself (create_graph, torch.func) takes `_arithmetic.vjp`, made of
    operations that have derivatives, so that there are gradients of any order.
    """

    @staticmethod
    def forward(x: Tensor, weight: Vector, bias: Vector, rule: Rule) -> Tensor:
        """y, of x's shape."""
        way = _blocked.forward if _are_plain(x, weight, bias) else _arithmetic.forward
        return way(rule, x, weight, bias)

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Vector, Vector, Rule], output: Tensor
    ) -> None:
        """Keep what both derivatives need."""
        x, weight, bias, ctx.rule = inputs
        ctx.bias_type = None if bias is None else bias.dtype
        ctx.save_for_backward(x, weight)
        ctx.save_for_forward(x, weight)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Vector, Vector, Vector, None]:
        """dx, dweight, dbias for the upstream gradient dy."""
        x, weight = ctx.saved_tensors
        written_at_once = not torch.is_grad_enabled() and _are_plain(dy, x, weight)
        vjp = _blocked.vjp if written_at_once else _arithmetic.vjp
        wide = torch.promote_types(dy.dtype, torch.float32)
        dbias = None if ctx.bias_type is None else dy.sum(-2, dtype=wide).to(ctx.bias_type)
        return *vjp(ctx.rule, dy, x, weight), dbias, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        """How y moves, in forward mode, when x, weight and bias move by `tangents`."""
        return _arithmetic.jvp(ctx.rule, *ctx.saved_tensors, *tangents[:3])

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        x: Tensor,
        weight: Vector,
        bias: Vector,
        rule: Rule,
    ) -> tuple[Tensor, int]:
        """A batch of x is more rows; with a batch of weights it is the plain operations."""
        x = x.expand(info.batch_size, *x.shape) if in_dims[0] is None else x.movedim(in_dims[0], 0)
        if in_dims[1] is None and in_dims[2] is None:
            return norm(x.reshape(-1, x.shape[-1]), weight, bias, rule).reshape(x.shape), 0
        w, b = (
            vector if vector is None or dim is None else vector.movedim(dim, 0).unsqueeze(1)
            for vector, dim in zip((weight, bias), in_dims[1:3], strict=True)
        )
        return _arithmetic.forward(rule, x, w, b), 0


def _are_plain(*tensors: Vector) -> bool:
    """Whether each has memory of its own: no subclass (but Parameter), no batch of a transform."""
    return all(_is_plain(t) for t in tensors if t is not None)


def _is_plain(t: Tensor) -> bool:
    if type(t) not in (Tensor, torch.nn.Parameter):
        return False
    try:
        t.data_ptr()
    except RuntimeError:
        return False
    return True
