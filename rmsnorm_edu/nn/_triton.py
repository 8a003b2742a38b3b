"""The Triton kernels under a rule: on their own, and as an operation that torch.compile keeps."""

from torch import Tensor

from rmsnorm_edu import kernels
from rmsnorm_edu.kernels import backward as _backward
from rmsnorm_edu.kernels import forward as _forward
from rmsnorm_edu.nn import _arithmetic, _backends
from rmsnorm_edu.nn._arithmetic import Gradients, Rule

Vector = Tensor | None


def forward(rule: Rule, x: Tensor, weight: Vector, bias: Vector) -> tuple[Tensor, Tensor]:
    """y of x (rows, n), and rstd (rows,) for the backward."""
    eps, word = _words(rule, x, weight, bias)
    return _forward.forward(x, weight, bias, eps, word, rule.convention.gain_offset)


def vjp(rule: Rule, dy: Tensor, x: Tensor, weight: Vector, rstd: Tensor) -> Gradients:
    """dx and dweight; the gradients of the formula, not of its roundings."""
    offset = rule.convention.gain_offset
    dx, dweight, _ = _backward.backward(dy, x, weight, rstd, weight_offset=offset)
    return dx, dweight


def traced(rule: Rule, x: Tensor, weight: Vector, bias: Vector) -> Tensor:
    """`forward` as one operation, for torch.compile."""
    eps, word = _words(rule, x, weight, bias)
    offset = rule.convention.gain_offset
    y: Tensor = kernels.rms_norm(x, weight, eps, bias=bias, casting=word, weight_offset=offset)
    return y


def _words(rule: Rule, x: Tensor, weight: Vector, bias: Vector) -> tuple[float, str]:
    """ε, and how the kernels call what `rule` rounds; "torch" of a norm they were not asked for."""
    wide = _arithmetic.computing_type(x.dtype)
    return _arithmetic.eps(rule, wide), _backends.casting(rule, x, weight, bias) or "torch"
