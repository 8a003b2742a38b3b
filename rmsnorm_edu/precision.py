"""How large rounding errors of RMSNorm can get: the tolerance that tests and text share."""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from rmsnorm_edu import conventions, reference
from rmsnorm_edu._inputs import Array, checked_eps, feature_vector, positive, rows, same_shape
from rmsnorm_edu._rounding import UNIT_ROUNDOFF, dtype_name, numpy_type, subnormal, ulp, ulps_apart
from rmsnorm_edu._words import known
from rmsnorm_edu.conventions import Convention

__all__ = ["UNIT_ROUNDOFF", "allowed", "bound", "depth", "dtype_name", "numpy_type", "scale"]
__all__ += ["subnormal", "ulp", "ulps_apart"]

_WHAT = {what: what for what in ("y", "dx", "dweight")}
_STORE = {"round": 1, "truncate": 2}  # units of roundoff that one store may err by
_BLOCK, _LANES = 128, 8  # of NumPy's pairwise sum; "blocked" has the same block
_UNDER_THE_ROOT = ("square", "total", "mean", "sum", "eps")
_VALUES = np.errstate(all="ignore")  # inf and nan come out without a warning
_IN_RSTD = ("norm", "rms", "divisor", "rstd")


def bound(
    dtype: DTypeLike,
    n: int,
    rows: int = 1,
    *,
    what: str = "y",
    convention: str = "torch",
    summation: str = "any",
    store: str = "round",
) -> float:
    """Bound on the rounding error of RMSNorm, relative to `scale(what, …)`, where nothing
    overflows or underflows.

    `dtype` is the type of x, weight and the result; rows of n features; `what` is "y", "dx" or
    "dweight" (a sum over `rows`). Statistics are computed in float32, in float64 for float64.
    `summation` is the order of the sums: "pairwise" (NumPy's, or a tree), "blocked" (blocks of
    128, then their sums), "any". `store="truncate"`: whatever is stored in `dtype` is cut off
    instead of rounded. For y, |error| ≤ bound·|y| holds for every element by itself.

    Derivation. u is the unit roundoff of the computing type, v that of `dtype`. Rounding to
    nearest multiplies by 1 + δ, |δ| ≤ u/(1 + u), so it moves the logarithm by at most
    ℓ = ln(1 + u); cutting off by at most ln(1 + 2v). Logarithms of factors add; a sum of terms of
    one sign is off by at most as much as its worst term, and each term passes at most `depth(n)`
    additions; a root halves. Counted in ℓ, for every way to write it down:

    - mean(x²) + eps: prescaling x by its largest value 2, square 1, sum depth(n), mean 2 (n may
      enter as 1/n), the addition 1; eps and its own scaling take a shorter way: depth(n) + 6;
    - D: half of that, and 1 for the root. With eps outside: the root and n^-½ 3, the addition 1;
    - rstd = 1/D: 1, and 1 for undoing the prescaling. x̂ = x · rstd: 1; y = x̂ · weight: 1;
      where the gain is offset + weight, that addition: 1.

    To these come ln(1 + v) for each intermediate result that the convention stores in `dtype`,
    and for the result itself. For the sum L of all, |error| ≤ (e^L − 1)·|y|. For "torch":
    (1 + u)^(depth(n)/2 + 8)·(1 + v) − 1.

    dx = rstd · (u − x̂ · mean(u · x̂)), u = dy · weight, subtracts, so its error is compared with
    the size of the two terms. The longer path takes rstd 3 times (or rstd³) and depth(n) + 9
    more operations: x̂ 2, u 1, u · x̂ 1, mean 2, the outer products 2, the difference 1.
    dweight = Σ_rows dy · x̂ is compared with the sum of magnitudes: x̂, the product 1, depth(rows).

    How tight: tests/test_precision.py measures it. For y in float32 and NumPy's order the 99th
    percentile of the errors is an eighth to a quarter of the bound. A long sum one after another,
    dx and dweight stay far below theirs, because errors of both signs cancel.

    For absurdly many features the bound is inf: it promises nothing. Raises ValueError for an
    unknown dtype or word and for n or rows < 1 or beyond any array, TypeError for an n or rows
    that is no integer.

    >>> f"{bound('float32', 1024, summation='pairwise') / 2**-24:.1f}"
    '19.5'
    >>> f"{bound('bfloat16', 1024) / 2**-8:.3f}"
    '1.008'
    """
    sums = depth(n, summation), depth(positive(rows, "rows"), summation)
    logs = _logs(conventions.get(convention), dtype_name(dtype), sums[0], store)
    return _expm1(_before_the_store(logs, known(what, _WHAT, "what"), *sums) + logs.narrow)


def depth(n: int, summation: str = "any") -> int:
    """The most additions that one of n summands passes through.

    "any": n − 1. "blocked": those of a block of 128, then one for each further block.
    "pairwise": NumPy's `np.sum` along a contiguous axis. Up to 128 summands go round 8 lanes, the
    lanes are added as a tree, what is left over one by one: (⌊n/8⌋ − 1) + 3 + n mod 8. More are
    split in two halves, the first rounded down to a multiple of 8, and so on. A plain tree is
    never deeper. Raises ValueError for an unknown word or n < 1, TypeError for an n that is no
    integer.

    >>> depth(4096), depth(4096, "blocked"), depth(4096, "pairwise")
    (4095, 158, 23)
    """
    n = positive(n, "n")
    blocked = min(n, _BLOCK) - 1 + -(-n // _BLOCK) - 1
    depths = {"any": n - 1, "blocked": blocked, "pairwise": _pairwise(n)}
    return known(summation, depths, "summation")


@cache
def _pairwise(n: int) -> int:
    if n < _LANES:
        return n - 1
    if n <= _BLOCK:
        return n // _LANES - 1 + 3 + n % _LANES
    half = n // 2 // _LANES * _LANES
    return 1 + max(_pairwise(half), _pairwise(n - half))


@_VALUES
def scale(
    what: str,
    x: ArrayLike,
    weight: ArrayLike | None = None,
    dy: ArrayLike | None = None,
    *,
    eps: float = 1e-6,
    eps_outside: bool = False,
    k: int | None = None,
) -> Array:
    """What `bound` is relative to, in float64: an error is allowed bound · scale.

    x and dy are (..., n), weight (n,), each of a type that `bound` knows. "y": max|y| of each
    row, (..., 1). "dx": rstd · (max|u| + max|x̂| · mean|u · x̂|) of each row, u = dy · weight; inf
    where rstd is beyond float64. "dweight": Σ_rows |dy · x̂| of each feature, (n,). The last two
    need dy. With `k` the RMS and max|x̂| are the first k features', and the mean is Σ|u · x̂|/k. A
    row of zeros with eps = 0 has no scale: nan or inf. Raises ValueError for an unknown word,
    other shapes, or an eps that is negative or not finite, TypeError for other types.
    """
    known(what, _WHAT, "what")
    x, w, eps = _row(x, weight, eps)
    xhat = np.abs(reference.rms_norm(x, eps=eps, eps_outside=eps_outside, k=k))
    if what == "y":
        return _largest(xhat * w)
    dy = _upstream(what, x, dy)
    if what == "dweight":
        return np.asarray(np.sum((np.abs(dy) * xhat).reshape(-1, x.shape[-1]), axis=0))
    return _over_rms(_terms(x, w, dy, eps, eps_outside, k)[:2], x[..., :k], eps, eps_outside)


@_VALUES
def allowed(
    what: str,
    x: ArrayLike,
    weight: ArrayLike,
    dy: ArrayLike | None = None,
    *,
    eps: float,
    convention: str = "torch",
    summation: str = "any",
    store: str = "round",
    dtype: DTypeLike | None = None,
    k: int | None = None,
) -> Array:
    """The largest error that rounding explains, in float64: sharper than bound · scale.

    x (rows, n); the result is stored in `dtype`, x's type if none is given; weight (n,) as the
    convention stores it; `k` as in `scale`. The type's smallest number is added, for underflow.

    - "y", of x's shape: bound · |y|, element by element; bound · max|y| for conventions that store
      more than x̂ on the way, which may underflow there.
    - "dweight", (n,): bound · scale.
    - "dx", (rows, 1): its two terms are counted apart. The first takes rstd once. In the second
      the factors that a whole row shares, rstd three times, stand outside the mean, so that they
      err with |mean(u · x̂)|; what differs from term to term, depth(n) + 5, errs with mean|u · x̂|.
      The final store errs with max|dx|.

    Raises what `bound` and `scale` raise.
    """
    name = dtype_name(np.asarray(x).dtype if dtype is None else dtype)
    c = conventions.get(convention)
    x, w, eps = _row(x, weight, eps)
    n, gain = x.shape[-1], c.gain_offset + w
    logs = _logs(c, name, depth(n, summation), store)
    if known(what, _WHAT, "what") == "dx":
        return _allowed_dx(logs, x, gain, _upstream(what, x, dy), eps, c, k) + subnormal(name)
    column = depth(max(x.size // n, 1), summation)
    part = _expm1(_before_the_store(logs, what, logs.row, column) + logs.narrow)
    if what == "y":
        y = np.abs(conventions.exact(convention, x, w, eps=eps))
        if k is not None:
            y = np.abs(reference.rms_norm(x, gain, eps=eps, eps_outside=c.eps_outside, k=k))
        alone = not c.gain_first and set(c.rounds) <= {"xhat"}
        return part * (y if alone else _largest(y)) + subnormal(name) * (2 + np.abs(gain))
    size = scale(what, x, gain, dy, eps=eps, eps_outside=c.eps_outside, k=k)
    return part * size + subnormal(name)


class _Logs(NamedTuple):
    """Logarithmic errors: of one operation, one store, rstd, and the gain; `row` a sum's depth."""

    one: float
    narrow: float
    rstd: float
    gain: float  # the addition of its offset, and what is stored on the way from rstd to y
    row: int


def _logs(c: Convention, name: str, row: int, store: str) -> _Logs:
    one = math.log1p(UNIT_ROUNDOFF["float64" if name == "float64" else "float32"])
    narrow = math.log1p(known(store, _STORE, "store") * UNIT_ROUNDOFF[name])
    late = sum(place not in _UNDER_THE_ROOT + _IN_RSTD for place in c.rounds) + c.gain_first
    gain = late * narrow + (c.gain_offset != 0) * one
    return _Logs(one, narrow, _rstd(c, row, one, narrow), gain, row)


def _rstd(c: Convention, row: int, one: float, narrow: float) -> float:
    """The logarithmic error of 1/D."""
    square = (row + 3) * one + _kept(c, "square", "total") * narrow
    if c.eps_outside:
        divisor = square / 2 + 4 * one
    else:
        mean = max(square + _kept(c, "mean") * narrow, _kept(c, "eps") * narrow)
        divisor = (mean + 3 * one + _kept(c, "sum") * narrow) / 2 + one
    return divisor + 2 * one + _kept(c, *_IN_RSTD) * narrow


def _kept(c: Convention, *places: str) -> int:
    """How many of these intermediate results the convention stores in x's type."""
    return sum(place in c.rounds for place in places)


def _before_the_store(logs: _Logs, what: str, row: int, column: int) -> float:
    """The logarithmic error of a result without its own rounding."""
    if what == "y":
        return logs.rstd + 2 * logs.one + logs.gain
    if what == "dx":
        return 3 * logs.rstd + (row + 9) * logs.one + 2 * logs.gain
    return logs.rstd + (2 + column) * logs.one + logs.gain


def _allowed_dx(
    logs: _Logs, x: Array, gain: Array, dy: Array, eps: float, c: Convention, k: int | None
) -> Array:
    u, second, along = _terms(x, gain, dy, eps, c.eps_outside, k)
    first = _expm1(logs.rstd + 3 * logs.one + logs.gain)
    shared = _expm1(3 * logs.rstd + 7 * logs.one + 2 * logs.gain)
    own = (1 + shared) * _expm1((logs.row + 5) * logs.one + 2 * logs.gain)
    parts = (first * u, own * second, shared * along)
    before = _over_rms(parts, x[..., :k], eps, c.eps_outside)
    dx, _ = reference.rms_norm_vjp(dy, x, gain, eps=eps, eps_outside=c.eps_outside, k=k)
    stored = _expm1(logs.narrow)
    result: Array = (1 + stored) * before + stored * _largest(dx)
    return result


def _terms(
    x: Array, gain: Array, dy: Array, eps: float, eps_outside: bool, k: int | None
) -> tuple[Array, Array, Array]:
    """max|u|, max|x̂| · mean|u · x̂| and max|x̂| · |mean(u · x̂)| of each row, (..., 1)."""
    u, xhat = dy * gain, reference.rms_norm(x, eps=eps, eps_outside=eps_outside, k=k)
    k = k or x.shape[-1]  # 0 has raised
    slope = reference.rms_norm(x[..., :k], eps=0.0) if eps_outside else xhat[..., :k]
    products = u * np.nan_to_num(xhat)
    sizes = np.sum(np.abs(products), axis=-1, keepdims=True) / k
    along = np.abs(np.sum(products, axis=-1, keepdims=True)) / k
    steep = _largest(np.nan_to_num(slope))
    return _largest(u), steep * sizes, steep * along


def _over_rms(terms: tuple[Array, ...], x: Array, eps: float, eps_outside: bool) -> Array:
    """Σ terms / D of each row, (..., 1); inf where 1/D is beyond float64."""
    rms = reference.rms(x)[..., np.newaxis]
    divisor = rms + eps if eps_outside else np.hypot(rms, math.sqrt(eps))
    total = np.asarray(sum(terms))
    return np.where(total == 0, 0.0, total / divisor)


def _row(x: ArrayLike, weight: ArrayLike | None, eps: float) -> tuple[Array, Array, float]:
    x = rows(_wide(x, "x"))
    if weight is None:
        return x, np.ones(x.shape[-1]), checked_eps(eps)
    return x, feature_vector(_wide(weight, "weight"), x, "weight"), checked_eps(eps)


def _upstream(what: str, x: Array, dy: ArrayLike | None) -> Array:
    if dy is None:
        raise ValueError(f"what = {what!r} needs dy, of x's shape {x.shape}")
    return same_shape(_wide(dy, "dy"), x, "dy")


def _largest(a: Array) -> Array:
    largest: Array = np.max(np.abs(a), axis=-1, keepdims=True)
    return largest


def _expm1(log: float) -> float:
    try:
        return math.expm1(log)
    except OverflowError:
        return math.inf


def _wide(a: ArrayLike, name: str) -> Array:
    wide: Array = conventions.floats(a, name).astype(np.float64)
    return wide
