"""The truth of this book: RMSNorm, its gradients and its relatives, in NumPy and float64.

Arrays have shape (..., n): n features a row, any number of leading axes. Inputs are float16,
float32 or float64 (or lists of floats); results are float64, new, and no input is written to.
`rms`, `rms_norm`, `layer_norm`, `batch_norm` and `weight_norm` are right for finite rows of any
size: they scale before they square. In the derivatives, products of what comes in and x̂ must stay
in float64's range. No unusual value warns. In `rms_norm` and `weight_norm` a row with nan is nan,
±inf gives nan at its place and 0 elsewhere, and a zero row is nan when eps = 0. With k that holds
for the first k features; nan and ±inf behind them stay at their place in y. A row of `layer_norm`
or of a derivative, and a feature of `batch_norm`, with nan or ±inf is nan: it has no mean. No
rows give an empty result. Wrong types raise TypeError, wrong shapes and sizes ValueError.
"""

import math
from fractions import Fraction
from numbers import Real
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from rmsnorm_edu._inputs import (
    Array,
    checked_axis,
    checked_eps,
    checked_flag,
    checked_k,
    feature_vector,
    floats,
    positive,
    row_vector,
    rows,
    same_shape,
)

_values_allowed = np.errstate(all="ignore")  # inf and nan are answers here, stated by the contract


@_values_allowed
def rms(x: ArrayLike, axis: int = -1) -> Array:
    """Root mean square along `axis`: RMS(x) = sqrt(1/n Σ xᵢ²).

    Divides by max|x| first, so 1e200 does not overflow and 1e-200 does not vanish; a zero row
    gives 0. Returns float64 of x's shape without `axis`. Raises ValueError when x has no such
    axis or nothing along it. Source: Zhang & Sennrich 2019, equation (4).

    >>> float(rms([3.0, -4.0, 0.0, 0.0]))
    2.5
    """
    x = floats(x, "x")
    x = rows(np.moveaxis(x, checked_axis(axis, x), -1))
    m = _magnitude(x)
    mean_square: Array = np.mean(np.square(x / m), axis=-1, keepdims=True)
    return (m * np.sqrt(mean_square))[..., 0]


@_values_allowed
def rms_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float = 1e-6,
    k: SupportsIndex | None = None,
    eps_outside: bool = False,
) -> Array:
    """RMSNorm of the last axis: yᵢ = xᵢ / D · weightᵢ + biasᵢ,
    D = sqrt(RMS(x)² + eps), or with `eps_outside` D = RMS(x) + eps.

    With `k` the RMS is that of the first k features (the paper's
    pRMSNorm); all n are divided by it. Returns float64 of x's shape
    (..., n); `weight` and `bias` have shape (n,). Raises TypeError for
    other types than floats; ValueError for n = 0, a vector of another
    length, eps < 0 or not finite, k outside 1 ≤ k ≤ n. Source: Zhang &
    Sennrich 2019, equation (4), section 5 for k.

    >>> rms_norm([1.0, 7.0], [2.0, -1.0], eps=0.0)
    array([ 0.4, -1.4])
    """
    x = rows(x)
    scale, root = _divisor(x, eps, k, eps_outside)
    y = x / scale / root
    if weight is not None:
        y = y * feature_vector(weight, x, "weight")
    if bias is not None:
        y = y + feature_vector(bias, x, "bias")
    return y


@_values_allowed
def rms_norm_vjp(
    dy: ArrayLike,
    x: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    eps: float = 1e-6,
    k: SupportsIndex | None = None,
    eps_outside: bool = False,
) -> tuple[Array, Array | None]:
    """Gradients (dx, dweight) of Σ dy·y, the vector-Jacobian product of `rms_norm`.

    dxᵢ = (uᵢ − ∂D/∂xᵢ Σⱼ uⱼ x̂ⱼ) / D and dweight = Σ_rows dy·x̂, where u = dy·weight, x̂ = x/D.
    `dy` has x's shape (..., n); dweight has shape (n,), None without a weight. (The gradient of
    the bias is dy summed over the rows.) Where RMS(x) has no derivative, at a zero row with
    `eps_outside`, its subgradient is 0. Errors as `rms_norm`, and ValueError for a dy of another
    shape. Source: Zhang & Sennrich 2019, equations (8) and (9).
    """
    x = rows(x)
    dy = same_shape(dy, x, "dy")
    scale, root = _divisor(x, eps, k, eps_outside)
    xhat = x / scale / root
    u = dy if weight is None else dy * feature_vector(weight, x, "weight")
    along = np.sum(u * xhat, axis=-1, keepdims=True)
    dx = (u - _slope(x, xhat, k, eps_outside) * along) / root / scale
    return dx, None if weight is None else _sum_of_rows(dy * xhat)


@_values_allowed
def rms_norm_jvp(
    dx: ArrayLike,
    x: ArrayLike,
    weight: ArrayLike | None = None,
    dweight: ArrayLike | None = None,
    *,
    eps: float = 1e-6,
    k: SupportsIndex | None = None,
    eps_outside: bool = False,
) -> Array:
    """Change of y when x moves by dx and weight by dweight, the Jacobian-vector product.

    dyᵢ = (dxᵢ − x̂ᵢ Σⱼ ∂D/∂xⱼ dxⱼ) / D · weightᵢ + x̂ᵢ dweightᵢ, x̂ = x/D. `dx` has x's shape
    (..., n), `dweight` shape (n,). Errors as `rms_norm`, and ValueError for a dweight without a
    weight. ⟨dy, jvp⟩ = ⟨vjp, (dx, dweight)⟩ whatever the four are.
    """
    x = rows(x)
    dx = same_shape(dx, x, "dx")
    scale, root = _divisor(x, eps, k, eps_outside)
    xhat = x / scale / root
    growth = np.sum(_slope(x, xhat, k, eps_outside) * dx, axis=-1, keepdims=True)
    dy: Array = (dx - xhat * growth) / root / scale
    if weight is not None:
        dy = dy * feature_vector(weight, x, "weight")
    elif dweight is not None:
        raise ValueError("dweight without weight: pass the weight that moves, too")
    if dweight is not None:
        dy = dy + xhat * feature_vector(dweight, x, "dweight")
    return dy


def partial_size(n: SupportsIndex, p: float, rounding: str = "ceil") -> int:
    """Number of features k whose RMS pRMSNorm takes, out of n with the fraction p.

    "ceil" is the paper's ⌈n·p⌉, with p the decimal that it prints as: 7% of 100 is 7, though
    100 * 0.07 > 7. "floor" is the 2019 code's int(n * p), bit for bit. Raises ValueError for
    p outside 0 < p ≤ 1 and for a result of 0.

    >>> partial_size(100, 0.07), partial_size(100, 0.29), partial_size(100, 0.29, "floor")
    (7, 29, 28)
    """
    n = positive(n, "n")
    if isinstance(p, bool) or not isinstance(p, Real):
        raise TypeError(f"p = {p!r} is {type(p).__name__}; give a number, 0 < p <= 1")
    crash = "0 features: the 2019 code then dies of ZeroDivisionError (PyTorch) or gives nan (TF)"
    if not 0 < p <= 1:
        raise ValueError(f"p = {p}; it is a fraction of the features, 0 < p <= 1; p = 0 is {crash}")
    if not isinstance(rounding, str) or rounding not in ("ceil", "floor"):
        raise ValueError(f'rounding = {rounding!r}; it is "ceil" (paper) or "floor" (2019 code)')
    k = math.ceil(n * Fraction(str(p))) if rounding == "ceil" else int(n * float(p))
    if k == 0:
        enough = f"{min(1.0, 1.005 / n):.4g}"  # a little more than 1 / n, which rounds both ways
        raise ValueError(f'int({n} * {p}) = {crash}; take p >= {enough} or rounding="ceil"')
    return k


@_values_allowed
def layer_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float = 1e-5,
) -> Array:
    """LayerNorm of the last axis: yᵢ = (xᵢ − mean) / sqrt(variance + eps) · weightᵢ + biasᵢ.

    It is RMSNorm of the centred row, variance = RMS(x − mean)². Shapes and errors as `rms_norm`.
    Source: Ba, Kiros & Hinton 2016, equation (4); the 2019 code's `ln`.

    >>> layer_norm([1.0, 7.0], [2.0, -1.0], eps=0.0)
    array([-2., -1.])
    """
    return rms_norm(_centred(rows(x))[0], weight, bias, eps=eps)


@_values_allowed
def layer_norm_vjp(
    dy: ArrayLike, x: ArrayLike, weight: ArrayLike | None = None, *, eps: float = 1e-5
) -> tuple[Array, Array | None]:
    """Gradients (dx, dweight) of Σ dy·y for `layer_norm`: those of `rms_norm`, dx centred."""
    centred, unit = _centred(rows(x))
    dx, dweight = rms_norm_vjp(dy, centred, weight, eps=eps)
    return _without_mean(dx) / unit, dweight


@_values_allowed
def batch_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float = 1e-5,
) -> Array:
    """BatchNorm in training: each of the n features is centred and scaled over all rows.

    Shapes as `rms_norm`; ValueError without a row. Source: Ioffe & Szegedy 2015, algorithm 1.
    """
    x = rows(x)
    if x.size == 0:
        raise ValueError(f"x has shape {x.shape}; batch_norm needs rows: give at least one")
    features = x.reshape(-1, x.shape[-1]).T
    y = np.ascontiguousarray(layer_norm(features, eps=eps).T).reshape(x.shape)
    if weight is not None:
        y = y * feature_vector(weight, x, "weight")
    if bias is not None:
        y = y + feature_vector(bias, x, "bias")
    return y


@_values_allowed
def weight_norm(v: ArrayLike, gain: ArrayLike | None = None) -> Array:
    """Weight normalisation: each row of v (outputs, inputs) becomes gainᵢ · vᵢ / ‖vᵢ‖.

    `gain` has shape (outputs,), 1 without it. A zero row is nan. ValueError for another number
    of axes than two. Source: Salimans & Kingma 2016, equation (2).

    >>> weight_norm([[3.0, 4.0]], [10.0])
    array([[6., 8.]])
    """
    v = rows(v, "v")
    if v.ndim != 2:
        raise ValueError(f"v has shape {v.shape}; give a weight matrix, (outputs, inputs)")
    unit = rms_norm(v, eps=0.0) / math.sqrt(v.shape[-1])
    return unit if gain is None else unit * row_vector(gain, v, "gain")


def _divisor(
    x: Array, eps: float, k: SupportsIndex | None, eps_outside: bool
) -> tuple[Array, Array]:
    """D of each row as a product scale · root, so that neither factor
    leaves float64's range.

    scale = max|x|, or what eps alone makes of D where that is larger;
    then x / scale is at most 1, and eps / scale² too.
    """
    eps = checked_eps(eps)
    outside = checked_flag(eps_outside, "eps_outside")
    first = x[..., : checked_k(k, x)]
    scale = _magnitude(first, floor=eps if outside else math.sqrt(eps))
    mean_square = np.mean(np.square(first / scale), axis=-1, keepdims=True)
    if outside:
        return scale, np.sqrt(mean_square) + eps / scale
    return scale, np.sqrt(mean_square + eps / scale / scale)


def _slope(x: Array, xhat: Array, k: SupportsIndex | None, eps_outside: bool) -> Array:
    """∂D/∂xᵢ: with eps inside x̂ᵢ/k, outside xᵢ/(k·RMS), 0 at a zero row; 0 beyond the first k."""
    size = checked_k(k, x)
    first = xhat[..., :size]
    if eps_outside:
        first = np.where(first == 0, 0.0, rms_norm(x[..., :size], eps=0.0))
    slope = np.zeros_like(x)
    slope[..., :size] = first / size
    return slope


def _magnitude(x: Array, floor: float = 0.0) -> Array:
    """max|x| of each row, at least `floor`; 1 where that is 0 or inf and cannot be divided by."""
    m = np.maximum(np.max(np.abs(x), axis=-1, keepdims=True), floor)
    return np.where((m == 0) | np.isinf(m), 1.0, m)


def _centred(x: Array) -> tuple[Array, Array]:
    """(x − mean) / unit, and each row's unit: 1, or what keeps the sum of huge entries finite."""
    huge = _magnitude(x) > 2.0**960
    unit = np.where(huge, 2.0 ** (2 + x.shape[-1].bit_length()), 1.0)
    centred = _without_mean(x / unit)
    return centred, np.where(np.any(centred, axis=-1, keepdims=True), unit, 1.0)


def _without_mean(x: Array) -> Array:
    """x − mean; the second pass takes away what rounding the first mean left behind."""
    for _ in range(2):
        x = x - np.mean(x, axis=-1, keepdims=True)
    return x


def _sum_of_rows(a: Array) -> Array:
    """Sum over all axes but the last, pairwise: a contiguous axis is what NumPy sums so."""
    total: Array = np.sum(np.ascontiguousarray(a.reshape(-1, a.shape[-1]).T), axis=-1)
    return total
