"""Numbers beyond float64's range, for what overflows or vanishes only on the way to a result."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rmsnorm_edu._inputs import Array

_LOWEST = np.int32(-(2**20))  # the exponent of what needs none: 0, inf and nan


class Wide:
    """An array of mantissa · 2^exponent, 0.5 ≤ |mantissa| < 1, rounded as float64 rounds.

    Each element has an exponent of its own: 1e308 · 1e308 / 1e308 is 1e308, and of 1e-200 · 1e-200
    no bit is lost. 0, inf and nan are mantissas and follow float64's rules.
    """

    def __init__(self, value: Array | float, exponent: NDArray[np.int32] | int = 0) -> None:
        mantissa, shift = np.frexp(value)
        plain = np.isfinite(mantissa) & (mantissa != 0)
        self.mantissa: Array = mantissa
        self.exponent: NDArray[np.int32] = np.where(plain, shift + exponent, _LOWEST)

    def __mul__(self, other: Wide | Array | float) -> Wide:
        b = _wide(other)
        return Wide(self.mantissa * b.mantissa, self.exponent + b.exponent)

    def __truediv__(self, other: Wide | Array | float) -> Wide:
        b = _wide(other)
        return Wide(self.mantissa / b.mantissa, self.exponent - b.exponent)

    def __add__(self, other: Wide | Array | float) -> Wide:
        b = _wide(other)
        top = np.maximum(self.exponent, b.exponent)
        return Wide(self._over(top) + b._over(top), top)

    def __sub__(self, other: Wide) -> Wide:
        return self + Wide(-other.mantissa, other.exponent)

    def absorbing(self, other: Wide) -> Wide:
        """self · other where 0 in self absorbs everything, inf and nan too: a slope of 0."""
        b = Wide(np.where(self.mantissa == 0, 0.0, other.mantissa), other.exponent)
        return self * b

    def sum(self) -> Wide:
        """Sum along the last axis, kept with length 1; pairwise, as NumPy sums."""
        top = np.max(self.exponent, axis=-1, keepdims=True, initial=_LOWEST)
        return Wide(np.sum(self._over(top), axis=-1, keepdims=True), top)

    def without_mean(self) -> Wide:
        """Minus the mean of the last axis; the second pass takes away what rounding it left."""
        n: int = self.mantissa.shape[-1]
        first = self - self.sum() / n
        return first - first.sum() / n

    def sum_of_rows(self) -> Wide:
        """Sum over all axes but the last, pairwise: a contiguous axis is what NumPy sums so."""
        m, e = (a.reshape(-1, a.shape[-1]).T for a in (self.mantissa, self.exponent))
        total = Wide(np.ascontiguousarray(m), np.ascontiguousarray(e)).sum()
        return Wide(total.mantissa[:, 0], total.exponent[:, 0])

    def floats(self) -> Array:
        """In float64, new: inf and 0 where the number itself is beyond the range."""
        return self._over(np.int32(0))

    def _over(self, top: NDArray[np.int32] | np.int32) -> Array:
        """self / 2^top in float64."""
        scaled: Array = np.ldexp(self.mantissa, self.exponent - top)
        return scaled


def _wide(a: Wide | Array | float) -> Wide:
    return a if isinstance(a, Wide) else Wide(a)
