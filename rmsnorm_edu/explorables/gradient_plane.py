"""The figure of the gradients chapter: x, the gradient that comes in, the one that goes out."""

import traitlets

from rmsnorm_edu.explorables.figure import Figure


def _pair(limit: float, start: list[float]) -> "traitlets.List[float]":
    """Two numbers in [-limit, limit]."""
    entry = traitlets.Float(min=-limit, max=limit)
    return traitlets.List(entry, start, minlen=2, maxlen=2).tag(sync=True)


class GradientPlane(Figure):
    r"""RMSNorm's backward pass for n = 2, as arrows at the tip of x.

    $dx = (u - \hat x \, \mathrm{mean}(u \hat x)) / D$ with $u = w \odot dy$, $\hat x = x / D$,
    $D = \sqrt{\mathrm{RMS}(x)^2 + \varepsilon}$, as `reference.rms_norm_vjp`. Traits: `x` (two
    floats in [-1.6, 1.6]), `dy` (in [-1.2, 1.2]), `weight` (in [-2, 2]); `eps` in [0, 1].
    """

    name = "gradient_plane"
    label = "Drag x and the upstream gradient dy: the gradient dx of RMSNorm in the plane"
    needs = ("plane",)
    x = _pair(1.6, [0.8, 0.6])
    dy = _pair(1.2, [0.3, 1.1])
    weight = _pair(2.0, [1.0, 1.0])
    eps = traitlets.Float(0.0, min=0, max=1).tag(sync=True)
