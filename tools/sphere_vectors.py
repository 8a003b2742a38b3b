"""What the pure functions of the figure Sphere must return; explorable_vectors writes it."""

from typing import Any

import numpy as np

from rmsnorm_edu import reference
from rmsnorm_edu.explorables import sphere as figure


def sphere() -> dict[str, Any]:
    """The cloud under scales and shifts, both norms of it, its mean angle; views of space."""
    cloud = np.array(figure.cloud(40))
    moves = [(1.0, 0.0), (-1.0, 0.0), (0.3, 0.0), (1.0, 3.0), (-2.5, 1.3), (1.0, -3.0)]
    cases = [sphere_case(cloud, scale, shift) for scale, shift in moves]
    views = [sphere_view(*angles) for angles in ((0, 0), (20, 20), (-135, 65), (90, 90), (45, -90))]
    return {"cloud": cloud.tolist(), "cases": cases, "views": views}


def sphere_case(cloud: np.ndarray, scale: float, shift: float) -> dict[str, Any]:
    moved = scale * cloud + shift
    rms = reference.rms_norm(moved, eps=0.0)
    cosine = rms @ np.ones(3) / (np.linalg.norm(rms, axis=-1) * np.sqrt(3))
    return {
        "scale": scale,
        "shift": shift,
        "rms": rms.tolist(),
        "layer": reference.layer_norm(moved, eps=0.0).tolist(),
        "degrees": float(np.degrees(np.arccos(cosine)).mean()),
    }


def sphere_view(turn: float, tilt: float) -> dict[str, Any]:
    """The view by turning space, where the figure turns the eye: Rodrigues' formula."""
    up, right = np.ones(3) / np.sqrt(3), np.array([1.0, -1.0, 0.0]) / np.sqrt(2)
    near = np.cross(right, up)
    turned = [rotated(axis, up, turn) for axis in (right, up, near)]
    axes = [rotated(axis, turned[0], -tilt) for axis in turned]
    return {"turn": turn, "tilt": tilt, "axes": [axis.tolist() for axis in axes]}


def rotated(v: np.ndarray, axis: np.ndarray, degrees: float) -> np.ndarray:
    """`v` turned about the unit vector `axis`, counterclockwise for who looks against it."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    turned: np.ndarray = c * v + s * np.cross(axis, v) + (1 - c) * (axis @ v) * axis
    return turned
