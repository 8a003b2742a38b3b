"""RMSNorm as one operation of autograd, with its backward in closed form."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from rmsnorm_edu.nn import _arithmetic, _blocked
from rmsnorm_edu.nn._arithmetic import Rule
from rmsnorm_edu.nn._backends import are_plain

Vector = Tensor | None


def norm(x: Tensor, weight: Vector, bias: Vector, rule: Rule, way: str = "eager") -> Tensor:
    """y of x (rows, n), weight and bias (n,), under autograd and the transforms of torch.func.

    `way` is what computes it where the tensors have memory of their own: `_backends.chosen`.
    """
    apply: Callable[..., tuple[Tensor, Vector]] = Norm.apply
    return apply(x, weight, bias, rule, way)[0]


class Norm(torch.autograd.Function):
    """y of x (rows, n), weight and bias (n,), and rstd (rows,) where the way computes it beside.

    It keeps x, weight and rstd, no large intermediate result. A backward that is recorded itself
    (create_graph, torch.func) takes `_arithmetic.vjp`, made of operations that have derivatives, so
    that there are gradients of any order.
    """

    @staticmethod
    def forward(
        x: Tensor, weight: Vector, bias: Vector, rule: Rule, way: str
    ) -> tuple[Tensor, Vector]:
        """y, of x's shape, and rstd or None."""
        if not are_plain(x, weight, bias):
            return _arithmetic.forward(rule, x, weight, bias), None
        if way == "triton":
            both: tuple[Tensor, Tensor] = _triton().forward(rule, x, weight, bias)
            return both
        return (_numba() if way == "numba" else _blocked).forward(rule, x, weight, bias), None

    @staticmethod
    def setup_context(
        ctx: Any,
        inputs: tuple[Tensor, Vector, Vector, Rule, str],
        output: tuple[Tensor, Vector],
    ) -> None:
        """Keep what both derivatives need."""
        x, weight, bias, ctx.rule, ctx.way = inputs
        ctx.bias_type = None if bias is None else bias.dtype
        rstd = output[1]
        if rstd is not None:
            ctx.mark_non_differentiable(rstd)
        ctx.save_for_backward(x, weight, rstd)
        ctx.save_for_forward(x, weight)

    @staticmethod
    def backward(ctx: Any, dy: Tensor, _: Vector) -> tuple[Vector, Vector, Vector, None, None]:
        """dx, dweight, dbias for the upstream gradient dy."""
        x, weight, rstd = ctx.saved_tensors
        wide = torch.promote_types(dy.dtype, torch.float32)
        dbias = None if ctx.bias_type is None else dy.sum(-2, dtype=wide).to(ctx.bias_type)
        if torch.is_grad_enabled() or not are_plain(dy, x, weight, rstd):
            gradients = _arithmetic.vjp(ctx.rule, dy, x, weight)
        elif rstd is not None:
            gradients = _triton().vjp(ctx.rule, dy, x, weight, rstd)
        else:
            way = _numba() if ctx.way == "numba" else _blocked
            gradients = way.vjp(ctx.rule, dy, x, weight)
        return *gradients, dbias, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Tensor, None]:
        """How y moves, in forward mode, when x, weight and bias move by `tangents`."""
        return _arithmetic.jvp(ctx.rule, *ctx.saved_tensors, *tangents[:3]), None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        x: Tensor,
        weight: Vector,
        bias: Vector,
        rule: Rule,
        way: str,
    ) -> tuple[tuple[Tensor, None], tuple[int, None]]:
        """A batch of x is more rows; with a batch of weights it is the plain operations."""
        x = x.expand(info.batch_size, *x.shape) if in_dims[0] is None else x.movedim(in_dims[0], 0)
        if in_dims[1] is None and in_dims[2] is None:
            y = norm(x.reshape(-1, x.shape[-1]), weight, bias, rule, way).reshape(x.shape)
            return (y, None), (0, None)
        w, b = (
            vector if vector is None or dim is None else vector.movedim(dim, 0).unsqueeze(1)
            for vector, dim in zip((weight, bias), in_dims[1:3], strict=True)
        )
        return (_arithmetic.forward(rule, x, w, b), None), (0, None)


def _numba() -> ModuleType:
    from rmsnorm_edu.nn import _numba

    return _numba


def _triton() -> ModuleType:
    from rmsnorm_edu.nn import _triton

    return _triton
