"""What the figure of the partial chapter must compute: vectors for `node --test`."""

import math
from typing import Any

import numpy as np

from rmsnorm_edu import partial, reference
from rmsnorm_edu.explorables import partial_estimate as figure

# The slider's shares: from 1% to 10% by 0.25, to 30% by 0.5, to 100% by 1.
TENTHS = [*range(100, 1000, 25), *range(1000, 3000, 50), *range(3000, 10001, 100)]
SHARES = [hundredth / 10000 for hundredth in TENTHS]
LAWS = [(4, 1), (4, 3), (8, 1), (8, 7), (50, 3), (100, 29), (1024, 64), (1024, 1023), (4096, 41)]


def partial_estimate() -> dict[str, Any]:
    """k by both rules, the derived law, and the seeded rows by `reference.rms`."""
    xs = [0.5, 1.0, 1.5, 2.0, 3.25, 7.5, 9.99, 10.0, 32.0, 512.5, 2048.0]
    choices = [(f, n) for f in figure.FEATURES for n in (8, 1024)]
    choices += [("normal", 100), ("normal", 4096), ("outlier", 50)]
    return {
        "sizes": list(figure.SIZES),
        "shares": SHARES,
        "counts": [{"n": n, **counts(n)} for n in (*figure.SIZES, 49)],
        "lgamma": [[x, math.lgamma(x)] for x in xs],
        "laws": [law(n, k) for n, k in LAWS],
        "rows": [case for features, n in choices for case in rows(features, n)],
    }


def counts(n: int) -> dict[str, list[int]]:
    """k at every share: the ceiling, and the floor, 0 where `partial_size` refuses it."""
    return {rule: [count(n, p, rule) for p in SHARES] for rule in ("ceil", "floor")}


def count(n: int, p: float, rule: str) -> int:
    try:
        return reference.partial_size(n, p, rule)
    except ValueError as error:
        if not str(error).startswith("int("):
            raise
        return 0


def law(n: int, k: int) -> dict[str, Any]:
    """Mean, spread and density of RMS_k / RMS for independent normal features."""
    points = [r for r in (0.05, 0.4, 0.9, 1.0, 1.1, 1.7) if r * r * k < n]
    density = partial.density(points, k, n).tolist()
    found = {"mean": partial.mean(k, n), "sd": partial.sd(k, n)}
    return {
        "n": n,
        "k": k,
        **found,
        "density": [list(p) for p in zip(points, density, strict=True)],
    }


def rows(features: str, n: int) -> list[dict[str, Any]]:
    x = figure.rows(features, n)
    size = reference.rms(x)
    return [row(features, n, p, x, size) for p in (0.02, 0.0625, 0.29, 0.5, 1.0)]


def row(features: str, n: int, p: float, x: np.ndarray, size: np.ndarray) -> dict[str, Any]:
    r = reference.rms(x[:, : reference.partial_size(n, p)]) / size
    return {
        **{"features": features, "n": n, "p": p, "count": len(r)},
        "first": r[:3].tolist(),
        "mean": float(r.mean()),
        "sd": float(r.std()),
    }
