"""RMSNorm in four hundred digits: a truth that shares no rounding with the package.

Python's `decimal` has no overflow at 1e308, and a difference quotient in it is good to 40 digits,
so gradients are checked without a second derivation of the formula.
"""

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext

import numpy as np

EXACT = Context(prec=400, Emax=10**6, Emin=-(10**6))
STEP = Decimal(10) ** -45  # of the row's size


def divisor(x: Sequence[Decimal], eps: float, k: int, outside: bool) -> Decimal:
    mean_square = sum(v * v for v in x[:k]) / k
    eps = Decimal(eps)
    return mean_square.sqrt() + eps if outside else (mean_square + eps).sqrt()


def decimals(a: np.ndarray) -> list[Decimal]:
    return [Decimal(float(v)) for v in a]


def floats(a: Sequence[Decimal]) -> np.ndarray:
    return np.array([float(v) for v in a])


def rms(x: np.ndarray) -> float:
    with localcontext(EXACT):
        return float(divisor(decimals(x), 0.0, len(x), True))


def rms_norm(x: np.ndarray, weight: np.ndarray, eps: float, k: int, outside: bool) -> np.ndarray:
    with localcontext(EXACT):
        row = decimals(x)
        d = divisor(row, eps, k, outside)
        return floats([v / d * w for v, w in zip(row, decimals(weight), strict=True)])


def dx(
    dy: np.ndarray, x: np.ndarray, weight: np.ndarray, eps: float, k: int, outside: bool
) -> np.ndarray:
    """∂ Σ dy·y / ∂x by central differences."""
    with localcontext(EXACT):
        row = decimals(x)
        u = [a * b for a, b in zip(decimals(dy), decimals(weight), strict=True)]

        def loss(values: Sequence[Decimal]) -> Decimal:
            total = sum(a * v for a, v in zip(u, values, strict=True))
            return total / divisor(values, eps, k, outside)

        step = STEP * max(abs(v) for v in row[:k])
        moved = [
            [v + sign * step * (i == j) for j, v in enumerate(row)]
            for i in range(len(row))
            for sign in (1, -1)
        ]
        return floats(
            [
                (loss(up) - loss(down)) / (2 * step)
                for up, down in zip(moved[::2], moved[1::2], strict=True)
            ]
        )


def size_of_terms(
    dy: np.ndarray, x: np.ndarray, weight: np.ndarray, eps: float, k: int, outside: bool
) -> float:
    """Of one row, the size of the terms whose difference is dx: what rounding is relative to."""
    with localcontext(EXACT):
        row = [abs(v) for v in decimals(x)]
        d = divisor(row, eps, k, outside)
        r = divisor(row, 0.0, k, True)
        u = [abs(a * b) for a, b in zip(decimals(dy), decimals(weight), strict=True)]
        along = sum(a * v for a, v in zip(u, row, strict=True)) / d
        slope = max(row[:k]) / k / (r if outside else d)
        return float((max(u) + slope * along) / d)
