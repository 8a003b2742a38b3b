"""What a function has to give: the results in float64, and how far rounding may take it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmsnorm_edu import conventions, precision, reference
from rmsnorm_edu.checks.shrink import Arguments

Array = NDArray[Any]
RESULTS = {
    "forward": ("y",),
    "vjp": ("dx", "dweight"),
    "add": ("y", "new_residual"),
    "add_vjp": ("dx", "dweight"),
}


@dataclass(frozen=True)
class Right:
    """A right result in float64, and the largest error that rounding explains."""

    truth: Array
    allowed: Array


@dataclass(frozen=True)
class Rules:
    """Whose RMSNorm, in which type, of which part of the features (None: of all)."""

    convention: str
    dtype: np.dtype[Any]
    p: float | None = None

    def right(self, function: str, arguments: Arguments) -> Iterator[tuple[Right, ...]]:
        """The right results of `function`, in the order of RESULTS; any set of them will do."""
        *first, weight, eps = arguments
        if function == "forward":
            yield (self._y(first[0], weight, eps),)
        elif function == "vjp":
            yield self._gradients(first[0], first[1], weight, eps)
        elif function == "add":
            for total in self._sums(*first):
                yield self._y(total, weight, eps), self._sum(*first)
        else:
            dy, dnew, *summands = first
            for total in self._sums(*summands):
                dx, dweight = self._gradients(dy, total, weight, eps)
                yield self._past_the_norm(dx, dnew), dweight

    def k(self, n: int) -> int | None:
        """How many of n features the RMS is taken of; None where p leaves none."""
        if self.p is None:
            return n
        try:
            return reference.partial_size(n, self.p, self._rounding_of_k())
        except ValueError:  # rounded down, to 0
            return None

    def miscounted(self) -> int | None:
        """The least n < 1000 of which n · p in floating point, rounded, is not what it is exactly.

        0.07 · 100 = 7.000000000000001 is 8 features rounded up, and 7% of 100 are 7.
        """
        if self.p is None:
            return None
        whole = math.ceil if self._rounding_of_k() == "ceil" else math.floor
        p, share = float(self.p), Fraction(str(self.p))
        return next(
            (n for n in range(2, 1000) if self.k(n) and whole(n * p) != whole(n * share)), None
        )

    def _rounding_of_k(self) -> str:
        return conventions.get(self.convention).k_rounding or "ceil"

    def _y(self, x: Array, weight: Array, eps: float) -> Right:
        if self.p is None:
            truth = conventions.exact(self.convention, x, weight, eps=eps)
        else:
            truth = reference.rms_norm(_wide(x), self._gain(weight), **self._part(x, eps))
        return Right(truth, self._allowed("y", x, weight, eps=eps))

    def _gradients(self, dy: Array, x: Array, weight: Array, eps: float) -> tuple[Right, Right]:
        if self.p is None:
            truths = conventions.exact_vjp(self.convention, dy, x, weight, eps=eps)
        else:
            wide = (_wide(dy), _wide(x), self._gain(weight))
            truths = _both(reference.rms_norm_vjp(*wide, **self._part(x, eps)))
        dx, dweight = (
            Right(truth, self._allowed(what, x, weight, dy, eps=eps))
            for what, truth in zip(RESULTS["vjp"], truths, strict=True)
        )
        return dx, dweight

    def _sums(self, x: Array, residual: Array) -> list[Array]:
        """x + residual, as it is and as it is stored: a function may normalise either."""
        exact = _wide(x) + _wide(residual)
        return [exact, _wide(exact.astype(self.dtype))]

    def _sum(self, x: Array, residual: Array) -> Right:
        exact = _wide(x) + _wide(residual)
        return Right(exact, self._rounding() * np.abs(exact) + self._slack())

    def _past_the_norm(self, dx: Right, dnew: Array) -> Right:
        """dx + dnew_residual; the norm's part may have been stored before they were added."""
        stored = self._rounding() * (np.abs(dx.truth) + np.abs(_wide(dnew)))
        return Right(dx.truth + _wide(dnew), dx.allowed + stored + self._slack())

    def _allowed(self, what: str, x: Array, weight: Array, *dy: Array, eps: float) -> Array:
        """The largest error; float64 twice, since the truth is of that type, too."""
        if conventions.get(self.convention).eps_floor:
            allowed = self._under_a_floor(what, x, weight, *dy, eps=eps)
        else:
            rules: dict[str, Any] = {"convention": self.convention, "dtype": self.dtype}
            part = None if self.p is None else self.k(x.shape[-1])
            allowed = precision.allowed(what, x, weight, *dy, eps=eps, k=part, **rules)
        return self._twice() * allowed

    def _under_a_floor(self, what: str, x: Array, weight: Array, *dy: Array, eps: float) -> Array:
        rows, n = x.shape
        bound = precision.bound(self.dtype, n, rows, what=what, convention=self.convention)
        scale = _floored_scale(what, _wide(x), self._gain(weight), *dy, eps=eps)
        return np.asarray(bound * scale + self._slack())

    def _gain(self, weight: Array) -> Array:
        return _wide(weight) + conventions.get(self.convention).gain_offset

    def _part(self, x: Array, eps: float) -> dict[str, Any]:
        """Keywords of the partial norm."""
        outside = conventions.get(self.convention).eps_outside
        return {"eps": float(eps), "k": self.k(x.shape[-1]), "eps_outside": outside}

    def _rounding(self) -> float:
        """Two operations in the computing type and one store."""
        computing = "float64" if self.dtype == np.float64 else "float32"
        units = precision.UNIT_ROUNDOFF
        return self._twice() * (2 * units[computing] + units[self.dtype.name])

    def _twice(self) -> float:
        return 2.0 if self.dtype == np.float64 else 1.0

    def _slack(self) -> float:
        return precision.subnormal(self.dtype)


def _wide(a: Array) -> Array:
    return np.asarray(a, dtype=np.float64)


def _both(gradients: tuple[Array, Array | None]) -> tuple[Array, Array]:
    dx, dweight = gradients
    assert dweight is not None  # a weight was given
    return dx, dweight


def _floored_scale(
    what: str, x: Array, gain: Array, dy: Array | None = None, *, eps: float
) -> Array:
    """`precision.scale` where ε is a floor under ‖x‖: D = max(‖x‖, ε)/√n."""
    divisor = np.maximum(reference.rms(x), eps / x.shape[-1] ** 0.5)[..., np.newaxis]
    xhat = np.abs(x / divisor)
    if dy is None:
        return np.asarray(np.max(xhat * np.abs(gain), axis=-1, keepdims=True))
    dy = np.abs(_wide(dy))
    if what == "dweight":
        return np.asarray(np.sum(dy * xhat, axis=0))
    u = dy * np.abs(gain)
    along = np.mean(u * xhat, axis=-1, keepdims=True)
    top, largest = (np.max(a, axis=-1, keepdims=True) for a in (u, xhat))
    return np.asarray((top + largest * along) / divisor)
