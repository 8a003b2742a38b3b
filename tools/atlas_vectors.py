"""What the conventions atlas must compute: the families' outputs by `conventions.apply`."""

from typing import Any

import numpy as np

from rmsnorm_edu import precision
from rmsnorm_edu.explorables import conventions_atlas as atlas

SCALES = (1e-8, 1e-4, 0.03, 1.0, 3.0, 300.0, 1e4)
KEPT = 8  # outputs of each row of 256


def conventions_atlas() -> dict[str, Any]:
    """The figure's data; outputs of every family in all types; roundings to each type."""
    types = [(d, w) for d in atlas.DTYPES for w in atlas.WEIGHTS if d != w]
    cases = [case(n, d, w, scale) for n in atlas.NAMES for d, w in types for scale in SCALES]
    return {"data": atlas.data(), "cases": cases, "rounded": roundings(), "kept": KEPT}


def case(name: str, dtype: str, weight: str, scale: float) -> dict[str, Any]:
    y = atlas.outputs(name, dtype, weight, scale)[:KEPT]
    state = {"name": name, "dtype": dtype, "weight": weight, "scale": scale}
    return {**state, "type": y.dtype.name, "y": [short(v) for v in y.astype(np.float64)]}


def short(value: float) -> float | str:
    """Nine digits, which name a float32 number and every half one; else "inf", "-inf", "nan"."""
    return float(f"{value:.9g}") if np.isfinite(value) else str(float(value))


def roundings() -> dict[str, Any]:
    """float64 numbers of many sizes, ties among them: what they become in each type."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=60) * 10.0 ** rng.uniform(-9, 5, 60)
    ties = [(1 + k * 2.0**-bits) * 2.0**e for bits in (9, 12, 25) for k in (1, 3) for e in (-20, 3)]
    found = np.array([0.0, 1.0, 65519.0, 65520.0, 3e-8, 1e-46, 3.5e38, *ties, *values])
    with np.errstate(over="ignore"):
        cast = {d: found.astype(precision.numpy_type(d)) for d in atlas.DTYPES}
    return {
        "values": found.tolist(),
        **{d: [short(v) for v in a.astype(np.float64)] for d, a in cast.items()},
    }
