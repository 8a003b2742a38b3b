"""The figure of layernorm_to_rmsnorm: what two norms make of points in three dimensions."""

from functools import cache

import numpy as np
import traitlets

from rmsnorm_edu.explorables.figure import Figure

HANDLES = [1.9, -0.4, 0.9, 0.2, 1.6, 0.7, -1.7, 0.4, -0.2, 0.5, -1.2, -0.8]  # A, B, C, D


@cache
def cloud(count: int = 300, seed: int = 3) -> list[list[float]]:
    """Normal points of mean 0.3 in each coordinate, to two decimals: `count` lists of three."""
    x = np.random.default_rng(seed).normal(0.3, 1.0, (count, 3)).round(2)
    return [list(map(float, point)) for point in x]


class Sphere(Figure):
    r"""Points of R^3, RMSNorm's on the sphere of radius sqrt(3), LayerNorm's on its equator.

    The norms see scale * x + shift, with eps = 0; the axis of the sphere is (1, 1, 1). Traits: `x`
    (four points to drag, 12 floats in [-4, 4]); `scale`, `shift` in [-3, 3]; `norm` ("rms",
    "layer" or "both"); `morph` from 0 (the input) to 1 (the output); `turn` and `tilt`, the view
    in degrees.
    """

    name = "sphere"
    needs = ("space",)
    label = "Points in three dimensions: RMSNorm's sphere and LayerNorm's equator"
    x = traitlets.List(traitlets.Float(min=-4, max=4), HANDLES, minlen=12, maxlen=12).tag(sync=True)
    scale = traitlets.Float(1.0, min=-3, max=3).tag(sync=True)
    shift = traitlets.Float(0.0, min=-3, max=3).tag(sync=True)
    norm = traitlets.Enum(["rms", "layer", "both"], "both").tag(sync=True)
    morph = traitlets.Float(1.0, min=0, max=1).tag(sync=True)
    turn = traitlets.Float(20.0, min=-180, max=180).tag(sync=True)
    tilt = traitlets.Float(20.0, min=-90, max=90).tag(sync=True)
    cloud = traitlets.List(cloud(), read_only=True).tag(sync=True)
