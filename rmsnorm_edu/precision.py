"""How large rounding errors of RMSNorm can get: the tolerance that tests and text share."""

import math

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from rmsnorm_edu import conventions, reference
from rmsnorm_edu._inputs import Array, checked_eps, feature_vector, positive, rows, same_shape
from rmsnorm_edu._words import known
from rmsnorm_edu.conventions import Convention

UNIT_ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
_SUBNORMAL = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 5e-324}
_WHAT = {what: what for what in ("y", "dx", "dweight")}
_BLOCK = 128  # summands in a block of "blocked" and of NumPy's pairwise sum
_NUMPY_BLOCK = 25  # additions on the longest path inside a block: 8 lanes, their tree, a tail


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
    `summation` is the order of the sums: "pairwise" (a tree, or NumPy's), "blocked" (blocks of
    128, then their sums), "any". `store="truncate"`: the result is cut off instead of rounded.

    Derivation. u is the unit roundoff of the computing type, v that of `dtype`. One operation
    makes its result wrong by a factor 1 + δ, |δ| ≤ u, so by at most ℓ(u) = −ln(1 − u) in the
    logarithm. Logarithms of factors add; a sum of terms of one sign is off by at most as much as
    its worst term, and each term passes at most `depth(n)` additions; a root halves. So, in ℓ(u):

    - mean(x²) + eps: prescaling x by its largest value 2, square 1, sum depth(n), mean 2 (n may
      enter as 1/n), eps and its own scaling 2 in place of these, the addition 1: depth(n) + 6;
    - D: half of that, and 1 for the root. With eps outside: the root and n^-½ 3, the addition 1;
    - rstd = 1/D: 1, and 1 for undoing the prescaling. x̂ = x · rstd: 1;
    - y = x̂ · (offset + weight): the addition 1, the product 1.

    To these come ℓ(v) for each intermediate result that the convention stores in x's type, and
    for the result itself; twice that if it is truncated. For the sum L of all, |error| ≤
    (e^L − 1)·|y|, element by element.

    dx = rstd · (u − x̂ · mean(u · x̂)), u = dy · weight, subtracts, so its error is compared with
    the size of the two terms. The longer path takes rstd 3 times (or rstd³) and depth(n) + 10
    more operations: x̂ 2, u 2, u · x̂ 1, mean 2, the outer products 2, the difference 1.
    dweight = Σ_rows dy · x̂ is compared with the sum of magnitudes: x̂, the product 1, depth(rows).

    How tight: the largest of the errors that tests/test_precision.py measures are 0.5 to 0.9 of
    the bound in half precision; in float32 and float64, where rounding errors mostly cancel, 0.1
    to 0.2 of it for y, 0.02 to 0.06 for dx and dweight.

    For absurdly many features the bound is inf: it promises nothing. Raises ValueError for an
    unknown dtype or word and for n or rows < 1 or beyond any array, TypeError for an n or rows
    that is no integer.

    >>> f"{bound('float32', 1024, summation='pairwise'):.1e}"
    '1.5e-06'
    >>> f"{bound('bfloat16', 1024) / 2**-8:.3f}"
    '1.012'
    """
    c = conventions.get(convention)
    name = dtype_name(dtype)
    sums = depth(n, summation), depth(positive(rows, "rows"), summation)
    stores = known(store, {"round": 1, "truncate": 2}, "store")
    known(what, _WHAT, "what")
    try:
        return math.expm1(_before_the_store(c, name, what, *sums) + stores * _stored(name))
    except OverflowError:
        return math.inf


def _before_the_store(c: Convention, name: str, what: str, row: int, column: int) -> float:
    """The logarithmic error of a result, `row` and `column` deep sums, without its own rounding."""
    stored = _stored(name)
    one = _log(UNIT_ROUNDOFF["float64" if name == "float64" else "float32"])
    rstd, xhat = _rstd(c, row, one, stored), _kept(c, "xhat") * stored
    if what == "y":
        return rstd + 3 * one + xhat + c.gain_first * stored
    if what == "dx":
        return 3 * rstd + (row + 10) * one + 2 * xhat
    return rstd + (2 + column) * one + xhat


def depth(n: int, summation: str = "any") -> int:
    """The most additions that one of n summands passes through.

    "any": n − 1. "blocked": those of a block of 128, then one for each further block.
    "pairwise": NumPy's `np.sum` along a contiguous axis, at most 25 in a block of 128, then one
    for each halving (its halves are rounded to multiples of 8, so down to 113 features are
    counted); a plain tree has fewer. Raises ValueError for an unknown word or n < 1, TypeError
    for an n that is no integer.

    >>> depth(4096), depth(4096, "blocked"), depth(4096, "pairwise")
    (4095, 158, 31)
    """
    n = positive(n, "n")
    blocked = min(n, _BLOCK) - 1 + _ceil(n, _BLOCK) - 1
    halvings = (_ceil(n, _BLOCK - 15) - 1).bit_length() if n > _BLOCK else 0
    depths = {"any": n - 1, "blocked": blocked, "pairwise": min(n - 1, _NUMPY_BLOCK + halvings)}
    return known(summation, depths, "summation")


def _ceil(n: int, size: int) -> int:
    return -(-n // size)


def scale(
    what: str,
    x: ArrayLike,
    weight: ArrayLike | None = None,
    dy: ArrayLike | None = None,
    *,
    eps: float = 1e-6,
    eps_outside: bool = False,
) -> Array:
    """What `bound` is relative to, in float64: an error is allowed bound · scale.

    x and dy are (..., n), weight (n,), each of a type that `bound` knows. "y": max|y| of each
    row, (..., 1). "dx": rstd · (max|u| + max|x̂| · mean|u · x̂|) of each row, u = dy · weight; inf
    where rstd is beyond float64. "dweight": Σ_rows |dy · x̂| of each feature, (n,). The last two
    need dy. A row of zeros with eps = 0 has no scale: nan or inf. Raises ValueError for an
    unknown word, other shapes, or an eps that is negative or not finite, TypeError for other
    types.
    """
    known(what, _WHAT, "what")
    x = rows(_wide(x, "x"))
    w = (
        np.ones(x.shape[-1])
        if weight is None
        else feature_vector(_wide(weight, "weight"), x, "weight")
    )
    eps = checked_eps(eps)
    xhat = np.abs(reference.rms_norm(x, eps=eps, eps_outside=eps_outside))
    if what == "y":
        return _largest(xhat * w)
    if dy is None:
        raise ValueError(f"what = {what!r} needs dy, of x's shape {x.shape}")
    dy = np.abs(same_shape(_wide(dy, "dy"), x, "dy"))
    if what == "dweight":
        total: Array = np.sum((dy * xhat).reshape(-1, x.shape[-1]), axis=0)
        return total
    slope = np.abs(reference.rms_norm(x, eps=0.0)) if eps_outside else xhat
    return _dx_scale(dy * np.abs(w), xhat, np.nan_to_num(slope), _rms_and_eps(x, eps, eps_outside))


def dtype_name(dtype: DTypeLike) -> str:
    """The name of one of the four types above, however it is given; ValueError for any other."""
    try:
        name = "bfloat16" if str(dtype) == "bfloat16" else np.dtype(dtype).name
    except TypeError:  # NumPy does not know it
        name = ""
    if dtype is None or name not in UNIT_ROUNDOFF:  # None is float64 to NumPy, and an oversight
        raise ValueError(f"dtype = {dtype}; it is one of {', '.join(UNIT_ROUNDOFF)}")
    return name


def subnormal(dtype: DTypeLike) -> float:
    """The smallest positive number of `dtype`: what an error may be where a result underflows."""
    return _SUBNORMAL[dtype_name(dtype)]


def _dx_scale(u: Array, xhat: Array, slope: Array, divisor: Array) -> Array:
    terms = _largest(u) + _largest(slope) * np.mean(u * xhat, axis=-1, keepdims=True)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # 1/D may be beyond float64
        scale: Array = np.where(terms == 0, 0.0, terms / divisor)
    return scale


def _rms_and_eps(x: Array, eps: float, eps_outside: bool) -> Array:
    """D of each row, (..., 1)."""
    rms = reference.rms(x)[..., np.newaxis]
    return np.asarray(rms + eps if eps_outside else np.hypot(rms, math.sqrt(eps)))


def _largest(a: Array) -> Array:
    largest: Array = np.max(np.abs(a), axis=-1, keepdims=True)
    return largest


def _rstd(c: Convention, steps: int, one: float, stored: float) -> float:
    """The logarithmic error of 1/D."""
    mean_square = (steps + 3) * one + _kept(c, "square") * stored
    if c.eps_outside:
        divisor = mean_square / 2 + 4 * one + _kept(c, "norm", "rms", "divisor") * stored
    else:
        radicand = mean_square + 3 * one + _kept(c, "mean", "sum") * stored
        divisor = radicand / 2 + one
    return divisor + 2 * one + _kept(c, "rstd") * stored


def _kept(c: Convention, *places: str) -> int:
    """How many of these intermediate results the convention stores in x's type."""
    return sum(place in c.rounds for place in places)


def _log(unit_roundoff: float) -> float:
    return -math.log1p(-unit_roundoff)


def _stored(name: str) -> float:
    """The logarithmic error of one store in the type `name`."""
    return _log(UNIT_ROUNDOFF[name])


def _wide(a: ArrayLike, name: str) -> Array:
    wide: Array = conventions.floats(a, name).astype(np.float64)
    return wide
