"""How large rounding errors of RMSNorm can get: the tolerance that tests and text share."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from rmsnorm_edu import conventions, reference
from rmsnorm_edu._inputs import Array, positive
from rmsnorm_edu.conventions import Convention

UNIT_ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
_SUBNORMAL = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 5e-324}
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

    Raises ValueError for an unknown dtype or word, TypeError for an n that is no integer.

    >>> f"{bound('float32', 1024, summation='pairwise'):.1e}"
    '1.5e-06'
    >>> f"{bound('bfloat16', 1024) / 2**-8:.3f}"
    '1.012'
    """
    c = conventions.get(convention)
    name = _name(dtype)
    stored = _log(UNIT_ROUNDOFF[name])
    one = _log(UNIT_ROUNDOFF["float64" if name == "float64" else "float32"])
    steps = depth(positive(n, "n"), summation)
    if what == "y":
        size = _rstd(c, steps, one, stored) + 3 * one + _kept(c, "xhat") * stored
        size += c.gain_first * stored
    elif what == "dx":
        size = 3 * _rstd(c, steps, one, stored) + (steps + 10) * one
        size += 2 * _kept(c, "xhat") * stored
    elif what == "dweight":
        size = _rstd(c, steps, one, stored) + (2 + depth(positive(rows, "rows"), summation)) * one
        size += _kept(c, "xhat") * stored
    else:
        raise ValueError(f'what = {what!r}; it is "y", "dx" or "dweight"')
    return math.expm1(size + _chosen(store, {"round": 1, "truncate": 2}, "store") * stored)


def depth(n: int, summation: str = "any") -> int:
    """The most additions that one of n summands passes through.

    "any": n − 1. "blocked": those of a block of 128, then one for each further block.
    "pairwise": NumPy's `np.sum` along a contiguous axis, at most 25 in a block of 128, then one
    for each halving (its halves are rounded to multiples of 8, so down to 113 features are
    counted); a plain tree has fewer.

    >>> depth(4096), depth(4096, "blocked"), depth(4096, "pairwise")
    (4095, 158, 31)
    """
    blocked = min(n, _BLOCK) - 1 + math.ceil(n / _BLOCK) - 1
    halvings = max(0, math.ceil(math.log2(n / (_BLOCK - 15)))) if n > _BLOCK else 0
    known = {"any": n - 1, "blocked": blocked, "pairwise": min(n - 1, _NUMPY_BLOCK + halvings)}
    return _chosen(summation, known, "summation")


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

    "y": max|y| of each row, (..., 1). "dx": rstd · (max|u| + max|x̂| · mean|u · x̂|) of each row,
    u = dy · weight. "dweight": Σ_rows |dy · x̂| of each feature, (n,). The last two need dy.
    """
    x = np.asarray(x, dtype=np.float64)
    w = np.ones(x.shape[-1]) if weight is None else np.asarray(weight, dtype=np.float64)
    xhat = np.abs(reference.rms_norm(x, eps=eps, eps_outside=eps_outside))
    if what == "y":
        return _largest(xhat * w)
    if dy is None:
        raise ValueError(f"what = {what!r} needs dy, of x's shape {x.shape}")
    dy = np.abs(np.asarray(dy, dtype=np.float64))
    if what == "dweight":
        total: Array = np.sum((dy * xhat).reshape(-1, x.shape[-1]), axis=0)
        return total
    u = dy * np.abs(w)
    slope = reference.rms_norm(x, eps=0.0) if eps_outside else xhat
    along = np.mean(u * xhat, axis=-1, keepdims=True)
    terms: Array = _largest(u) + _largest(np.nan_to_num(slope)) * along
    return _rstd_of(x, eps, eps_outside) * terms


def subnormal(dtype: DTypeLike) -> float:
    """The smallest positive number of `dtype`: what an error may be where a result underflows."""
    return _SUBNORMAL[_name(dtype)]


def _rstd_of(x: Array, eps: float, eps_outside: bool) -> Array:
    rms = reference.rms(x)[..., np.newaxis]
    with np.errstate(divide="ignore"):  # a zero row with eps = 0 has no rstd: inf
        rstd: Array = 1 / (rms + eps if eps_outside else np.hypot(rms, math.sqrt(eps)))
    return rstd


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


def _name(dtype: DTypeLike) -> str:
    name = np.dtype(dtype).name if str(dtype) != "bfloat16" else "bfloat16"  # NumPy may lack it
    if name not in UNIT_ROUNDOFF:
        raise ValueError(f"dtype = {name}; give one of {', '.join(UNIT_ROUNDOFF)}")
    return name


def _chosen(word: str, known: dict[str, Any], what: str) -> int:
    if word not in known:
        raise ValueError(f"{what} = {word!r}; it is one of {', '.join(known)}")
    return int(known[word])
