"""The figure of why_normalise: the size of a signal by layer, with and without a norm."""

from functools import cache, partial
from typing import Any

import numpy as np
import traitlets

from rmsnorm_edu import reference
from rmsnorm_edu._inputs import Array
from rmsnorm_edu.explorables.figure import Figure

EPS = 1e-6
NORMS = {
    "none": lambda a, eps: a,
    "rms": lambda a, eps: reference.rms_norm(a, eps=eps),
    "layer": lambda a, eps: reference.layer_norm(a, eps=eps),
}


def sizes(
    norm: str,
    gain: float = 1.0,
    *,
    depth: int = 100,
    width: int = 64,
    seed: int = 0,
    eps: float = EPS,
) -> Array:
    r"""RMS of the summed inputs of `depth` random layers, $a_l = \gamma W_l h_{l-1}$.

    $h_0$ is a normal row, $h_l = \max(\mathrm{norm}(a_l), 0)$, and the entries of $W_l$ have
    variance 2 / width (He et al. 2015). `norm` is "none", "rms" or "layer". Without a norm
    $s_l(\gamma) = \gamma^l s_l(1)$; with one $s_l(\gamma) = \gamma s_l(1)$, exactly so where
    eps = 0. Returns float64 of shape (depth,). Raises ValueError for another norm.
    """
    if norm not in NORMS:
        raise ValueError(f"norm = {norm!r}; give one of {list(NORMS)}")
    apply = partial(NORMS[norm], eps=eps)
    rng = np.random.default_rng(seed)
    h = rng.standard_normal(width)
    found = np.empty(depth)
    for layer in range(depth):
        # One matrix at a time draws the same numbers as all at once: a prefix is a prefix.
        a = gain * (np.sqrt(2 / width) * rng.standard_normal((width, width)) @ h)
        found[layer] = reference.rms(a)
        h = np.maximum(apply(a), 0.0)
    return found


@cache
def _curves() -> dict[str, list[float]]:
    """The sizes at gain 1, to nine digits; the figure's law does the other gains."""
    return {norm: [float(f"{size:.8e}") for size in sizes(norm)] for norm in NORMS}


class Depth(Figure):
    """Size by layer on a logarithmic axis: no norm, RMSNorm and LayerNorm, at any gain.

    The curves at gain 1 are those of `sizes`; the others follow by its laws. Traits: `gain` in
    [0.5, 2], the factor in front of every matrix; `layer` from 1 to 100, where sizes are read.
    """

    name = "depth"
    label = "Drag the gain: the size of a signal in a hundred layers, without and with a norm"
    gain = traitlets.Float(0.75, min=0.5, max=2).tag(sync=True)
    layer = traitlets.Int(50, min=1, max=100).tag(sync=True)
    curves = traitlets.Dict().tag(sync=True)

    @traitlets.default("curves")
    def _default_curves(self) -> dict[str, Any]:
        return _curves()
