"""How good the RMS of the first k features is: exact for independent normal features of mean 0.

r stands for RMS_k / RMS. Without `n` the RMS below the line is the true one, the root of E[xᵢ²];
with `n` it is that of the same row's n features, of which the k are a part. The two have the same
laws, because in a normal row the length tells nothing about the direction: the moments with n are
those without it, divided by their value for n. Sizes are integers with 1 ≤ k ≤ n; ValueError
otherwise, TypeError for other types. Moments that do not exist are inf.
"""

import math
from numbers import Real
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from rmsnorm_edu._inputs import Array, floats, positive

_FEW = 200  # above, the series is right to the last bits; below, math.gamma does not overflow
_SERIES = (1.0, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144)


def mean(k: SupportsIndex, n: SupportsIndex | None = None) -> float:
    """E[r] = sqrt(2/k) Γ((k+1)/2) / Γ(k/2), a little below 1: about 1 − 1/(4k).

    >>> round(mean(64), 4), mean(7, n=7)
    (0.9961, 1.0)
    """
    k, n = _sizes(k, n)
    return _chi_mean(k) / (1.0 if n is None else _chi_mean(n))


def sd(k: SupportsIndex, n: SupportsIndex | None = None) -> float:
    """Standard deviation of r, sqrt(1 − E[r]²): about 1/sqrt(2k), times sqrt(1 − k/n).

    E[r²] is 1, because the mean square has no bias. Right to some 10⁻¹⁵·k of its value.

    >>> round(sd(64), 4), round(sd(64, n=1024), 4)
    (0.0882, 0.0854)
    """
    return math.sqrt(max(0.0, 1.0 - mean(k, n) ** 2))


def inverse_mean(k: SupportsIndex, n: SupportsIndex | None = None) -> float:
    """E[1/r] = sqrt(k/2) Γ((k−1)/2) / Γ(k/2), about 1 + 3/(4k); inf for k = 1 of more than one.

    The partial norm's output is the full one's times 1/r.

    >>> round(inverse_mean(64), 4), inverse_mean(1)
    (1.0119, inf)
    """
    k, n = _sizes(k, n)
    return 1.0 if k == n else _chi_inverse_mean(k) / (1.0 if n is None else _chi_inverse_mean(n))


def inverse_sd(k: SupportsIndex, n: SupportsIndex | None = None) -> float:
    """Standard deviation of 1/r, from E[1/r²] = k/(k−2); inf for k ≤ 2, unless k = n.

    >>> round(inverse_sd(64), 4), inverse_sd(2)
    (0.0911, inf)
    """
    k, n = _sizes(k, n)
    if k == n or k <= 2:
        return 0.0 if k == n else math.inf
    square = k / (k - 2) * (1.0 if n is None else (n - 2) / n)
    return math.sqrt(max(0.0, square - inverse_mean(k, n) ** 2))


def density(r: ArrayLike, k: SupportsIndex, n: SupportsIndex | None = None) -> Array:
    """Probability density of r, at points of any shape; 0 where r cannot be.

    Without n: 2 (k/2)^(k/2) / Γ(k/2) · r^(k−1) exp(−k r²/2). With n: k r²/n has the Beta law of
    k/2 and (n−k)/2, so r ends at sqrt(n/k). ValueError for k = n: then r is 1, and has no density.
    """
    k, n = _sizes(k, n)
    if k == n:
        raise ValueError(f"k = n = {n}: r is always 1 and has no density; give k < n, or no n")
    r = floats(r, "r").astype(np.float64)
    inside = (r > 0) & (r < (math.inf if n is None else math.sqrt(n / k)))
    where = np.where(inside, r, 0.5)
    log = _log_chi(where, k) if n is None else _log_beta(where, k, n)
    return np.where(inside, np.exp(log), 0.0)


def enough(wanted: float, n: SupportsIndex | None = None) -> int:
    """The fewest features k for which `sd(k, n)` is at most `wanted`; about 1/(2 wanted²).

    Raises ValueError for wanted ≤ 0 (nan too), TypeError for no number.

    >>> enough(0.1), enough(0.01), enough(0.1, n=64)
    (50, 5000, 28)
    """
    if isinstance(wanted, bool) or not isinstance(wanted, Real):
        raise TypeError(f"wanted = {wanted!r} is {type(wanted).__name__}; give a number, like 0.1")
    if not 1e-6 <= wanted < math.inf:
        raise ValueError(f"wanted = {wanted}; give a standard deviation of at least 1e-6, like 0.1")
    low, high = 0, math.ceil((1 / wanted) ** 2) + 1 if n is None else positive(n, "n")
    while high - low > 1:  # sd falls with k, and sd(high) is small enough
        middle = (low + high) // 2
        low, high = (low, middle) if sd(middle, n) <= wanted else (middle, high)
    return high


def spread(
    k: SupportsIndex,
    kurtosis: float = 3.0,
    *,
    n: SupportsIndex | None = None,
    correlation: float = 0.0,
) -> float:
    """Standard deviation of RMS_k² over its mean, for features of any law.

    sqrt((kurtosis − 1)/k · (1 + (k−1) correlation)), where kurtosis = E[x⁴]/E[x²]² is 3 for normal
    features of mean 0, and correlation is that of two squares. With `n` the k are drawn from n
    given numbers, and kurtosis is their own, n Σx⁴/(Σx²)²: then correlation is −1/(n−1). Half of
    it is, to first order, that of RMS_k. Raises ValueError for kurtosis < 1, or for a correlation
    outside −1/(k−1) … 1 or given beside n.

    >>> spread(8), spread(2, 5.0, correlation=1.0)
    (0.5, 2.0)
    """
    k, n = _sizes(k, n)
    if n is not None and correlation:
        raise ValueError(f"correlation = {correlation} beside n = {n}: give one of the two")
    if n is not None:
        correlation = -1 / (n - 1) if n > 1 else 0.0
    share = (1 + (k - 1) * correlation) / k
    if not (1 <= kurtosis < math.inf and -1e-12 <= share <= 1):
        raise ValueError(
            f"kurtosis = {kurtosis}, correlation = {correlation}, k = {k}: "
            "give kurtosis >= 1 and -1/(k - 1) <= correlation <= 1"
        )
    return math.sqrt(max(0.0, (kurtosis - 1) * share))


def _sizes(k: SupportsIndex, n: SupportsIndex | None) -> tuple[int, int | None]:
    size, of = positive(k, "k"), None if n is None else positive(n, "n")
    if of is not None and size > of:
        raise ValueError(f"k = {size} of n = {of} features: give 1 <= k <= n")
    return size, of


def _chi_mean(k: int) -> float:
    """Γ((k+1)/2) / Γ(k/2) · sqrt(2/k), by a series in 2/k where Γ itself would overflow."""
    if k <= _FEW:
        return math.gamma((k + 1) / 2) / math.gamma(k / 2) * math.sqrt(2 / k)
    return sum(c * (2 / k) ** i for i, c in enumerate(_SERIES))


def _chi_inverse_mean(k: int) -> float:
    """sqrt(k/2) Γ((k−1)/2) / Γ(k/2) = sqrt(k/(k−1)) / E[r] of k − 1."""
    return math.inf if k == 1 else math.sqrt(k / (k - 1)) / _chi_mean(k - 1)


def _log_chi(r: Array, k: int) -> Array:
    half = k / 2
    factor = math.log(2) + half * math.log(half) - math.lgamma(half)
    return np.asarray(factor + (k - 1) * np.log(r) - half * r * r)


def _log_beta(r: Array, k: int, n: int) -> Array:
    a, b = k / 2, (n - k) / 2
    factor = math.log(2 * k / n) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    part = k / n * r * r
    return np.asarray(factor + np.log(r) + (a - 1) * np.log(part) + (b - 1) * np.log1p(-part))
