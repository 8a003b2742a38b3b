"""The figure of recurrent: a GRU and an LSTM whose norms are switches, as in the 2019 code."""

import base64
from functools import cache
from typing import Any

import numpy as np
import traitlets
from numpy.typing import NDArray

from rmsnorm_edu import recorded
from rmsnorm_edu._inputs import Array
from rmsnorm_edu.explorables.figure import Figure

STEPS, BATCH, INPUT, HIDDEN = 30, 6, 8, 24
SEED = 16  # the numbers of its first unit are neither tiny nor saturated
LOUD = (11, 15)  # in these steps, counted from 1, the input is three times as large
UNITS = {"x": 1 / 32, "W": 1 / 64, "U": 1 / 128}  # a byte counts these


@cache
def draws(seed: int = SEED) -> dict[str, NDArray[np.int8]]:
    """The input and the matrices in steps of `UNITS`: a byte each keeps the page light.

    x (30, 6, 8) is standard normal; W (8, 96) is normal of variance 1/8; U (24, 96) is four
    random orthogonal blocks. Columns: one block of 24 for each gate; the GRU takes the first
    three, r, u and the candidate, the LSTM all, i, f, o and the candidate.
    """
    rng = np.random.default_rng(seed)
    blocks = [_orthogonal(rng) for _ in range(4)]
    exact = {
        "x": rng.standard_normal((STEPS, BATCH, INPUT)),
        "W": rng.standard_normal((INPUT, 4 * HIDDEN)) / np.sqrt(INPUT),
        "U": np.concatenate(blocks, axis=1),
    }
    return {n: np.clip(np.rint(a / UNITS[n]), -127, 127).astype(np.int8) for n, a in exact.items()}


def _orthogonal(rng: np.random.Generator) -> Array:
    q, r = np.linalg.qr(rng.standard_normal((HIDDEN, HIDDEN)))
    signed: Array = q * np.sign(np.diag(r))  # else it is not uniform
    return signed


def arrays(seed: int = SEED) -> dict[str, Array]:
    """What `draws` stands for, the loud steps of x included: float64, as the figure computes."""
    found = {name: UNITS[name] * drawn.astype(float) for name, drawn in draws(seed).items()}
    found["x"][LOUD[0] - 1 : LOUD[1]] *= 3
    return found


@cache
def _data() -> dict[str, Any]:
    text = {n: base64.b64encode(a.tobytes()).decode("ascii") for n, a in draws().items()}
    return {
        "sizes": [STEPS, BATCH, INPUT, HIDDEN],
        "loud": list(LOUD),
        **{n: [UNITS[n], t] for n, t in text.items()},
    }


def recorded_times() -> dict[str, Any]:
    """Of the record "recurrent_steps": eager milliseconds by cell and norm, in "what" of what.

    Of its sizes the smallest, which is nearest to the figure's cell. Empty without the record.
    """
    if "recurrent_steps" not in recorded.names():
        return {}
    data = recorded.load("recurrent_steps").data
    found: dict[str, Any] = {}
    for cell, sizes in data.get("cells", {}).items():
        size = min(sizes, key=int)
        ways = sizes[size].get("eager", {})
        times = {norm: ways[norm]["median_ms"] for norm in ("none", "rms", "layer") if norm in ways}
        found |= {cell.lower(): times, "what": f"{size} units, a step forward and backward"}
    return found


class Cell(Figure):
    """A GRU or an LSTM with its norms as switches, and the spread of its pre-activations.

    The cell is the 2019 code's, 24 hidden units, at its first values: gains 1, biases 0. Traits:
    `cell` "gru" or "lstm"; `norm` "rms", "layer" or "none"; `places`, which of the norms s1, s2,
    s3, s4 are on (1) or off (0), the LSTM has three; `gain` in [0.5, 4], the factor in front of
    the recurrent matrices; `step` from 1 to 30, the one that is read; `times`, recorded
    milliseconds by cell and norm, and in "what" of what.
    """

    name = "cell"
    label = "A recurrent cell: switch its norms and see how many gates are at their ends"
    needs = ("recurrence", "wiring")
    cell = traitlets.Enum(("gru", "lstm"), "gru").tag(sync=True)
    norm = traitlets.Enum(("rms", "layer", "none"), "rms").tag(sync=True)
    places = traitlets.List(traitlets.Int(min=0, max=1), [1, 1, 1, 1], 4, 4).tag(sync=True)
    gain = traitlets.Float(4.0, min=0.5, max=4).tag(sync=True)
    step = traitlets.Int(STEPS, min=1, max=STEPS).tag(sync=True)
    data = traitlets.Dict().tag(sync=True)
    times = traitlets.Dict().tag(sync=True)

    @traitlets.default("data")
    def _default_data(self) -> dict[str, Any]:
        return _data()

    @traitlets.default("times")
    def _default_times(self) -> dict[str, Any]:
        return recorded_times()
