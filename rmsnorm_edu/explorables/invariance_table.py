"""Five norms, seven changes of weights or data: which of them move the outputs?"""

from typing import Any

import numpy as np
import traitlets

from rmsnorm_edu import invariance
from rmsnorm_edu.explorables.figure import Figure
from rmsnorm_edu.explorables.html_math import html_math
from rmsnorm_edu.reference import partial_size

# the head of its column, its name, its colour in palette.json
METHODS = {
    "batch_norm": ("Batch", "BatchNorm", "batch"),
    "weight_norm": ("Weight", "WeightNorm", "weight"),
    "layer_norm": ("Layer", "LayerNorm", "layer"),
    "rms_norm": ("RMS", "RMSNorm", "rms"),
    "partial_rms_norm": ("pRMS", "pRMSNorm", "partial"),
}
ABOUT = "pRMSNorm is partial RMSNorm: it takes the RMS of the first 3 features only."
# a row's name, what it does, which slider moves it
CHANGES = {
    "weight_matrix_rescaling": ("Scale W", "all weights times δ", "scale"),
    "weight_matrix_recentering": ("Shift W", "c γ added to every row of W", "shift"),
    "weight_vector_rescaling": ("Scale rows of W", "each row times a power of δ", "scale"),
    "dataset_rescaling": ("Scale the data", "all examples times δ", "scale"),
    "dataset_recentering": ("Shift the data", "c added to all examples", "shift"),
    "single_case_rescaling": ("Scale one example", "example 1 times δ", "scale"),
    "rotation": ("Rotate W", "W turned to QW", "angle"),
}
# `start` changes nothing; `probe` is the amount that a guess is judged by
SLIDERS = {
    "scale": {"symbol": "× δ", "unit": "", "range": [-4, 4], "step": 0.1, "start": 1, "probe": 2.5},
    "shift": {"symbol": "+ c", "unit": "", "range": [-4, 4], "step": 0.1, "start": 0, "probe": 2},
    "angle": {
        "symbol": "angle",
        "unit": "°",
        "range": [-180, 180],
        "step": 5,
        "start": 0,
        "probe": 60,
    },
}
# four examples of five features and six outputs: small enough to see each bar
LAYER = invariance.Layer(
    x=np.array(
        [
            [0.5, 1.3, -0.2, -0.1, -0.7],
            [0.9, -0.7, 1.3, -0.8, 0.3],
            [1.3, 0.4, -0.2, 0.3, 1.0],
            [0.8, 0.2, 1.3, 1.0, 0.8],
        ]
    ),
    weight=np.array(
        [
            [-0.2, 0.7, 0.1, -0.3, -0.4],
            [-0.8, 0.2, 0.3, 0.9, 0.2],
            [0.2, -1.1, -0.1, -0.7, 0.2],
            [-0.9, 0.7, 0.8, -0.3, 0.8],
            [-0.7, -0.5, -0.2, -0.4, 0.1],
            [0.1, -0.2, -0.9, 0.1, 0.6],
        ]
    ),
    gain=np.array([1.2, 0.8, 1.1, -0.9, 0.7, 1.3]),
    gamma=np.array([0.6, 0.4, 0.5, -0.3, 0.4]),
    basis=np.eye(6),  # a rotation turns outputs 1 and 2, 3 and 4, 5 and 6
)


def data() -> dict[str, Any]:
    """What the module draws: methods, changes, laws, the layer with k of the partial norm."""
    return {
        "methods": [
            {
                "key": key,
                "short": short,
                "name": name,
                "colour": colour,
                "about": ABOUT if key == "partial_rms_norm" else "",
            }
            for key, (short, name, colour) in METHODS.items()
        ],
        "changes": [
            {"key": key, "name": name, "does": does, **SLIDERS[kind]}
            for key, (name, does, kind) in CHANGES.items()
        ],
        "laws": {
            method: {change: _law(method, change) for change in CHANGES} for method in METHODS
        },
        "example": {
            "x": LAYER.x.tolist(),
            "w": LAYER.weight.tolist(),
            "gain": LAYER.gain.tolist(),
            "gamma": LAYER.gamma.tolist(),
            "k": partial_size(len(LAYER.gain), 0.5),
        },
    }


def _law(method: str, change: str) -> dict[str, str]:
    law = invariance.LAWS[method, change]
    says = law.sentence.replace("|δ|", "|\u2060δ\u2060|")  # a line does not break in it
    return {"says": says, "html": html_math(law.latex)}


class InvarianceTable(Figure):
    """The paper's Table 1 and a seventh row, each cell tried by the reader's own hand.

    Definitions and laws are those of `rmsnorm_edu.invariance`. Traits: `method` and
    `transformation` (the chosen cell), `amount` (a factor, a shift or degrees), `eps` (the page
    shows 0 or 0.1) and `verified`, what the reader has tried, as ``"rms_norm/rotation"`` and
    ``"rms_norm/dataset_rescaling/negative"``. Source: Zhang & Sennrich 2019, Table 1.
    """

    name = "invariance_table"
    needs = ("grid",)
    label = "Invariance table: five norms and seven changes"
    method = traitlets.Enum(list(METHODS), "rms_norm").tag(sync=True)
    transformation = traitlets.Enum(list(CHANGES), "weight_matrix_rescaling").tag(sync=True)
    amount = traitlets.Float(1.0, min=-180, max=180).tag(sync=True)
    eps = traitlets.Float(0.0, min=0).tag(sync=True)
    verified = traitlets.List(traitlets.Unicode()).tag(sync=True)
    data = traitlets.Dict(data(), read_only=True).tag(sync=True)
