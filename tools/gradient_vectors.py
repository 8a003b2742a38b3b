"""What the two figures of the gradients chapter must compute: vectors for `node --test`."""

from typing import Any

import numpy as np

from rmsnorm_edu import reference
from rmsnorm_edu.explorables import growing_weights as descent


def gradient_plane() -> list[dict[str, Any]]:
    """States of the plane, x = 0 too, and the backward pass; null where eps = 0 leaves none."""
    rng = np.random.default_rng(3)
    states = [np.round(rng.uniform(-1.2, 1.2, (3, 2)), 2) for _ in range(8)]
    states += [np.array([[0, 0], [0.3, 1.1], [1.5, -0.5]]), np.array([[0.8, 0.6]] * 3)]
    return [gradient_case(*state, eps) for state in states for eps in (0.0, 1e-3, 0.25, 1.0)]


def gradient_case(x: np.ndarray, dy: np.ndarray, weight: np.ndarray, eps: float) -> dict[str, Any]:
    dx, _ = reference.rms_norm_vjp(dy, x, weight, eps=eps)
    unit = reference.rms_norm(x, eps=eps)
    has = bool(np.isfinite(dx).all())
    return {
        **{"x": x.tolist(), "dy": dy.tolist(), "weight": weight.tolist(), "eps": eps},
        "unit": unit.tolist() if has else None,
        "dx": dx.tolist() if has else None,
        "inner": float(dx @ x) if has else None,
    }


def growing_weights() -> dict[str, Any]:
    """Where the weights are after some steps of SGD, at small and large rates, with decay too."""
    steps = [0, 1, 2, 20, 200]
    states = [(0.01, 0.0), (0.3, 0.0), (3.0, 0.0), (0.3, 0.1), (1.0, 0.03), (3.16, 0.1)]
    cases = [{"rate": r, "decay": d, "w": descent.walk(r, d)[steps].tolist()} for r, d in states]
    return {"angles": list(descent.targets()), "steps": steps, "cases": cases}
