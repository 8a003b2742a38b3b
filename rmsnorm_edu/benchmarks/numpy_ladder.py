"""Three ways to write RMSNorm in NumPy, from the loop to one pass over the row, timed.

Each takes x of shape (rows, n), a weight of shape (n,) and eps, and returns y of x's dtype.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


def loop(x: Floats, weight: Floats, eps: float = 1e-6) -> Floats:
    """The equation, element by element: every step is a Python operation."""
    y = np.empty_like(x)
    for i, row in enumerate(x):
        total = 0.0
        for value in row:
            total += float(value) ** 2
        divisor = (total / len(row) + eps) ** 0.5
        for j, value in enumerate(row):
            y[i, j] = value / divisor * weight[j]
    return y


def vectorised(x: Floats, weight: Floats, eps: float = 1e-6) -> Floats:
    """The same for all rows at once; the squares are written to memory and read again."""
    mean_square = np.mean(np.square(x), axis=-1, keepdims=True)
    y: Floats = x / np.sqrt(mean_square + eps) * weight
    return y


def einsum(x: Floats, weight: Floats, eps: float = 1e-6) -> Floats:
    """Each row's product with itself is summed on the way: no array of squares."""
    mean_square = np.einsum("...i,...i->...", x, x)[..., np.newaxis] / x.shape[-1]
    y: Floats = x / np.sqrt(mean_square + eps) * weight
    return y


RUNGS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "loop": loop,
    "vectorised": vectorised,
    "einsum": einsum,
}


def measure(rows: int = 256, n: int = 1024, repeats: int = 15, seed: int = 0) -> dict[str, Any]:
    """Median time of each rung in milliseconds for float32 x of shape (rows, n).

    The rungs take turns, so that a slow moment of the machine meets all of them.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(0.5, 1.0, (rows, n)).astype(np.float32)
    weight = rng.uniform(-2.0, 2.0, n).astype(np.float32)
    times: dict[str, list[float]] = {name: [] for name in RUNGS}
    for _ in range(repeats):
        for name, norm in RUNGS.items():
            start = time.perf_counter()
            norm(x, weight)
            times[name].append(1e3 * (time.perf_counter() - start))
    median = {name: round(statistics.median(each), 4) for name, each in times.items()}
    return {"shape": [rows, n], "dtype": "float32", "repeats": repeats, "median_ms": median}
