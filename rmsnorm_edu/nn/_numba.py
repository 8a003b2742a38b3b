"""The loops of `fused_cpu` for tensors: on their own, and as operations that torch.compile keeps.

They have the bits of `_blocked`, on processors where torch adds and rounds as they do.
"""

import functools
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.library import custom_op

from rmsnorm_edu import conventions, fused_cpu
from rmsnorm_edu.nn import _arithmetic, _blocked
from rmsnorm_edu.nn._arithmetic import Gradients, Rule

Vector = Tensor | None
Floats = NDArray[Any]


def forward(rule: Rule, x: Tensor, weight: Vector, bias: Vector) -> Tensor:
    """`_blocked.forward` of x (rows, n), float32 or float64 as weight and bias are."""
    gain = _arithmetic.gain(rule.convention, x, weight)
    return _forward(x, gain, bias, _arithmetic.eps(rule, x.dtype))


def vjp(rule: Rule, dy: Tensor, x: Tensor, weight: Vector) -> Gradients:
    """`_blocked.vjp`: dx bit for bit, dweight up to the order of its sum."""
    gain = _arithmetic.gain(rule.convention, x, weight)
    dx, dweight = _backward(dy, x, gain, _arithmetic.eps(rule, x.dtype))
    return dx, None if weight is None else dweight


def traced(rule: Rule, x: Tensor, weight: Vector, bias: Vector) -> Tensor:
    """`forward` as one operation, for torch.compile."""
    gain = _arithmetic.gain(rule.convention, x, weight)
    y: Tensor = _operation(x, gain, bias, _arithmetic.eps(rule, x.dtype))
    return y


@functools.cache
def has_torchs_bits(dtype: torch.dtype) -> bool:
    """Whether this is so for `dtype` on this processor; it is tried once."""
    for n in (5, 37, 4500):
        rule = Rule(conventions.get("torch"), 1e-6, n)
        numbers = torch.arange(7 * n, dtype=dtype, device="cpu").sin() + 0.3
        x, dy, weight = numbers[: 3 * n].view(3, n), numbers[3 * n : 6 * n].view(3, n), numbers[-n:]
        y, dx = forward(rule, x, weight, None), vjp(rule, dy, x, weight)[0]
        same = torch.equal(y, _blocked.forward(rule, x, weight, None))
        if not (same and torch.equal(dx, _blocked.vjp(rule, dy, x, weight)[0])):
            return False
    return True


def _forward(x: Tensor, gain: Vector, bias: Vector, eps: float) -> Tensor:
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    threads = torch.get_num_threads()
    fused_cpu.rms_norm(
        _array(x), _or_none(gain), _or_none(bias), eps=eps, out=y.numpy(), threads=threads
    )
    return y


def _backward(dy: Tensor, x: Tensor, gain: Vector, eps: float) -> tuple[Tensor, Tensor]:
    """dx, dgain; without a gain (0,)."""
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    threads = torch.get_num_threads()
    _, dgain = fused_cpu.rms_norm_vjp(
        _array(dy), _array(x), _or_none(gain), eps=eps, out=dx.numpy(), threads=threads
    )
    return dx, x.new_empty(0) if dgain is None else torch.from_numpy(dgain)


def _array(t: Tensor) -> Floats:
    array: Floats = t.detach().numpy()
    return array


def _or_none(t: Vector) -> Floats | None:
    return None if t is None else _array(t)


_operation = custom_op("rmsnorm_edu::rms_norm_numba", _forward, mutates_args=())
_backward_operation = custom_op("rmsnorm_edu::rms_norm_numba_backward", _backward, mutates_args=())


@_operation.register_fake
def _(x: Tensor, gain: Vector, bias: Vector, eps: float) -> Tensor:
    return x.new_empty(x.shape)


@_backward_operation.register_fake
def _(dy: Tensor, x: Tensor, gain: Vector, eps: float) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(0) if gain is None else gain.new_empty(gain.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, gain, ctx.has_bias, ctx.eps = inputs[0], inputs[1], inputs[2] is not None, inputs[3]
    ctx.save_for_backward(x, gain)


def _derive(ctx: Any, dy: Tensor) -> tuple[Vector, Vector, Vector, None]:
    x, gain = ctx.saved_tensors
    dx, dgain = _backward_operation(dy, x, gain, ctx.eps)
    return dx, None if gain is None else dgain, dy.sum(0) if ctx.has_bias else None, None


_operation.register_autograd(_derive, setup_context=_keep)
