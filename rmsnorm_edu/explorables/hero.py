"""The figure of the front page: drag eight bars and watch two norms answer."""

import traitlets

from rmsnorm_edu.explorables.figure import Figure


class Hero(Figure):
    r"""Eight numbers, scaled and shifted, and what RMSNorm and LayerNorm make of them.

    $y_i = x_i / \sqrt{\mathrm{RMS}(x)^2 + 10^{-6}}$, as `reference.rms_norm` with ``eps=1e-6``.
    Traits: `x` (2 to 12 floats in [-6, 6]); `scale`, `shift` in [-3, 3]. The norms see
    scale * x + shift.
    """

    name = "hero"
    label = "Drag the bars: RMSNorm and LayerNorm of eight numbers"
    x = traitlets.List(
        traitlets.Float(min=-6, max=6),
        [1.6, -0.6, 0.9, 2.0, -1.2, 0.4, 1.2, -0.3],
        minlen=2,
        maxlen=12,
    ).tag(sync=True)
    scale = traitlets.Float(1.0, min=-3, max=3).tag(sync=True)
    shift = traitlets.Float(0.0, min=-3, max=3).tag(sync=True)
