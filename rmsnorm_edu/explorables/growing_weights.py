"""The figure of SGD on a scale-invariant loss: every step is a tangent, so the weights grow."""

from functools import cache

import numpy as np
import traitlets

from rmsnorm_edu import reference
from rmsnorm_edu._inputs import Array
from rmsnorm_edu.explorables.figure import Figure

START = (1.0, 0.0)
STEPS = 200


@cache
def targets() -> tuple[float, ...]:
    """The direction that each step's example asks for, in radians: 55° ± 70°, seeded."""
    rng = np.random.default_rng(0)
    drawn = np.radians(55) + rng.uniform(-1, 1, STEPS) * np.radians(70)
    return tuple(float(f"{angle:.4f}") for angle in drawn)


def walk(rate: float, decay: float = 0.0, *, angles: tuple[float, ...] | None = None) -> Array:
    r"""The weights w of a layer with two outputs and RMSNorm behind it, step by step.

    The layer's one input is 1, so it gives w itself. Example k wants the output
    $t_k = \sqrt 2 (\cos \varphi_k, \sin \varphi_k)$; the loss is $\tfrac12 \|y - t_k\|^2$ with
    $y = w / \mathrm{RMS}(w)$, and $w \leftarrow (1 - \eta\lambda) w - \eta\, dw$ with the learning
    rate η and the weight decay λ. Returns float64 of shape (steps + 1, 2), START first. Raises
    ValueError for a rate that is not positive, or a decay outside 0 ≤ ηλ < 1.
    """
    if not rate > 0 or not 0 <= rate * decay < 1:
        raise ValueError(f"rate = {rate}, decay = {decay}; give rate > 0 and 0 <= rate * decay < 1")
    found = [np.array(START)]
    for angle in targets() if angles is None else angles:
        w = found[-1]
        wanted = np.sqrt(2) * np.array([np.cos(angle), np.sin(angle)])
        y = reference.rms_norm(w, eps=0.0)
        dw, _ = reference.rms_norm_vjp(y - wanted, w, eps=0.0)
        found.append((1 - rate * decay) * w - rate * dw)
    return np.array(found)


class GrowingWeights(Figure):
    """Weights under SGD: their path, their squared norm and the angle of each step.

    The path is that of `walk`. Traits: `rate` in [0.01, 3.2], the learning rate η; `decay` in
    [0, 0.1], the weight decay λ; `step` from 1 to 200, the one that is shown; `angles`, the
    direction that each step's example asks for.
    """

    name = "growing_weights"
    label = "Weights under SGD: their path, their norm and the angle of each step"
    needs = ("plane",)
    rate = traitlets.Float(0.3, min=0.01, max=3.2).tag(sync=True)
    decay = traitlets.Float(0.0, min=0, max=0.1).tag(sync=True)
    step = traitlets.Int(1, min=1, max=STEPS).tag(sync=True)
    angles = traitlets.List(traitlets.Float()).tag(sync=True)

    @traitlets.default("angles")
    def _default_angles(self) -> list[float]:
        return list(targets())
