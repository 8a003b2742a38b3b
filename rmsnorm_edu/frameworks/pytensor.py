"""RMSNorm for PyTensor, the living successor of the Theano that the 2019 layers were written in.

The functions take and give symbolic variables: they compute nothing, they write a graph, which
`pytensor.function` compiles and `pytensor.grad` differentiates. PyTensor has no bfloat16.
"""

from typing import Any

from rmsnorm_edu._inputs import checked_eps
from rmsnorm_edu.frameworks import _needed
from rmsnorm_edu.reference import partial_size

pytensor = _needed("pytensor", "pytensor")
pt = _needed("pytensor.tensor", "pytensor")


def rms_norm(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-6,
    eps_outside: bool = False,
    p: float | None = None,
    rounding: str = "ceil",
) -> Any:
    """Writes yᵢ = xᵢ / sqrt(RMS(x)² + eps) · weightᵢ + biasᵢ, last axis.

    With `eps_outside` the divisor is RMS(x) + eps; with `p` the RMS is that
    of the first ``partial_size(n, p, rounding)`` features, and x's type must
    know n: ``pt.tensor("x", shape=(None, n))``. x (..., n), weight and bias
    (n,); the statistic is in float32 or wider, y in x's dtype. TypeError for
    integers. Source: Zhang & Sennrich 2019, equation (4), section 5 for p;
    layers.py, rln.
    """
    wide = _widened(x)
    if x.ndim == 0:
        raise ValueError("x is 0-dimensional; give (..., n)")
    some = wide if p is None else wide[..., : _size(x, p, rounding)]
    y = wide * _rstd(some, -1, eps, eps_outside)
    return _finished(y, weight, bias, x.dtype)


def channel_rms_norm(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-6,
) -> Any:
    """The Lasagne layer of 2019: the mean square of a channel's pixels.

    x (N, C, H, W): over H and W for each sample and channel (an instance norm
    that subtracts no mean). x (N, C): over C. weight and bias have shape (C,).
    Other ranks are a ValueError: the original took a 3-D x and laid the
    parameters along another axis than the statistic.
    """
    wide = _widened(x)
    if x.ndim not in (2, 4):
        raise ValueError(f"x is {x.ndim}-dimensional; give (N, C) or (N, C, H, W)")
    if x.ndim == 2:
        return _finished(wide * _rstd(wide, -1, eps), weight, bias, x.dtype)
    xhat = wide * _rstd(wide, (2, 3), eps)
    return _finished(xhat, weight, bias, x.dtype, axis=1)


def _widened(x: Any) -> Any:
    if x.dtype not in ("float16", "float32", "float64"):
        raise TypeError(f"x has dtype {x.dtype}: cast it to a float type first")
    return x if x.dtype == "float64" else x.astype("float32")


def _size(x: Any, p: float, rounding: str) -> int:
    n = x.type.shape[-1]
    if n is None:
        raise ValueError(
            f"p = {p} of how many features: x's type {x.type} does not say; give it a static "
            'last axis, pt.tensor("x", shape=(None, n)) or pt.specify_shape(x, (None, n))'
        )
    return partial_size(n, p, rounding)


def _rstd(x: Any, axes: int | tuple[int, ...], eps: float, eps_outside: bool = False) -> Any:
    """One number a row or map. Where the mean square is 0 the root is taken of 1: its slope at 0
    is infinite, and the gradient would be nan, 0 · ∞."""
    mean_square = pt.mean(pt.square(x), axis=axes, keepdims=True)
    eps = pt.constant(checked_eps(eps), dtype=x.dtype)
    if not eps_outside:
        return 1 / pt.sqrt(mean_square + eps)
    zero = pt.eq(mean_square, 0)
    root = pt.sqrt(pt.switch(zero, pt.ones_like(mean_square), mean_square))
    return 1 / (pt.switch(zero, pt.zeros_like(root), root) + eps)


def _finished(y: Any, weight: Any, bias: Any, dtype: str, axis: int = -1) -> Any:
    """y · weight + bias, both (n,) along `axis`. Sizes that the types know are compared here: a
    static 1 would broadcast. PyTensor compares the others when the graph runs."""
    n = y.type.shape[axis]
    for parameter, combine in ((weight, pt.mul), (bias, pt.add)):
        if parameter is None:
            continue
        sizes = parameter.type.shape
        if len(sizes) != 1 or (None not in (n, *sizes) and sizes != (n,)):
            raise ValueError(f"a parameter of shape {sizes} for {n} features; give ({n},)")
        values = parameter.astype(y.dtype)
        y = combine(y, values if axis == -1 else values[:, None, None])
    return y.astype(dtype)
