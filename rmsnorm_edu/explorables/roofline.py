"""The figure of the cost chapter: what a norm does for each byte, under the roofs of real chips."""

from typing import Any

import traitlets

from rmsnorm_edu import _cost_passes as passes
from rmsnorm_edu import cost, recorded
from rmsnorm_edu.explorables.figure import Figure

DTYPES = ("float32", "float16", "bfloat16")
ROWS = [2**k for k in range(18)]
WIDTHS = [64 * 2**k for k in range(11)]
PROGRAMS = (0, 4, 16, 40, 58, 108, 132, 148, 264, 528, 1056)
WAYS = {"fused": "one kernel", "apart": "addition apart", "unfused": "each operation apart"}
_PAIR = {"fused": "{}", "unfused": "{}_unfused"}
_TRIPLE = {"fused": "add_{}", "apart": "add_then_{}", "unfused": "add_{}_unfused"}
# Name → what a reader calls it, its norm, its direction, the operation for each way, and the
# other norm's family where that is compared.
FAMILIES = {
    "forward": ("forward", "RMSNorm", "forward", _PAIR, "layer_norm_forward"),
    "backward": ("backward", "RMSNorm", "backward", _PAIR, "layer_norm_backward"),
    "add_forward": ("add + forward", "RMSNorm", "forward", _TRIPLE, ""),
    "add_backward": ("add + backward", "RMSNorm", "backward", _TRIPLE, ""),
    "layer_norm_forward": (
        "LayerNorm forward",
        "LayerNorm",
        "layer_norm_forward",
        _PAIR,
        "forward",
    ),
    "layer_norm_backward": (
        "LayerNorm backward",
        "LayerNorm",
        "layer_norm_backward",
        _PAIR,
        "backward",
    ),
}


def data(ladder: dict[str, Any] | None = None) -> dict[str, Any]:
    """The tables of `cost`: passes, types, arithmetic, chips; and the points that others measured.

    The data of the record `cpu_ladder` adds one chip, "CPU", and the points that are ours.
    """
    own = _processor(ladder) if ladder else {"chips": {}, "points": []}
    return {
        "bytes": {dtype: passes.BYTES[dtype] for dtype in DTYPES},
        "ownType": sorted(passes.OWN_TYPE),
        "perFeature": sorted(passes.PER_FEATURE),
        "perRow": sorted(passes.PER_ROW),
        "passes": {name: [list(step) for step in steps] for name, steps in passes.PASSES.items()},
        "partials": passes.PARTIALS,
        "flops": {name: list(pair) for name, pair in passes.FLOPS.items()},
        "families": {name: _family(*family) for name, family in FAMILIES.items()},
        "ways": WAYS,
        "chips": {key: _chip(chip) for key, chip in cost.CHIPS.items()} | own["chips"],
        "points": [list(report) for report in cost.REPORTED] + own["points"],
    }


def _family(
    label: str, norm: str, direction: str, ways: dict[str, str], beside: str
) -> dict[str, Any]:
    named = [[way, name.format(direction)] for way, name in ways.items()]
    return {"label": label, "norm": norm, "ways": named, "beside": beside}


def _chip(chip: cost.Chip) -> dict[str, Any]:
    rates = {dtype: rate for dtype, rate in chip.flops.items() if dtype in DTYPES}
    return {"name": chip.name, "bandwidth": chip.bandwidth, "flops": rates, "isRecorded": False}


def _processor(ladder: dict[str, Any]) -> dict[str, Any]:
    """The recorded processor: its bandwidth is that of the largest copy, two arrays over time."""
    forward = [e for e in ladder["entries"] if e["direction"] == "forward"]
    whole = [e for e in forward if e["shape"] in ladder["shapes"]]
    copies = [e for e in whole if e["method"] == "copy"]
    largest = max(copies, key=lambda e: e["shape"][0] * e["shape"][1])
    rows, n = largest["shape"]
    size = passes.BYTES[ladder["dtype"]]
    speed = 2 * rows * n * size / (largest["ms_median"] * 1e-3)
    chip = {"name": "recorded CPU", "bandwidth": speed, "flops": {}, "isRecorded": True}
    points = [
        [e["method"], "CPU", "forward", *e["shape"], ladder["dtype"], e["ms_median"] * 1e-3]
        for e in whole
        if "copy" not in e["method"] and "LayerNorm" not in e["method"]
    ]
    return {"chips": {"CPU": chip}, "points": points}


class Roofline(Figure):
    r"""Attainable flop/s against arithmetic intensity, for a norm on a chip.

    The roof is `cost.roof`: $\min(\text{peak}, \text{bandwidth} \cdot I)$; without a cited peak it
    has no flat part. Bars are `cost.traffic`, their length is `cost.floor`. Traits: `operation`,
    one of cost.OPERATIONS; `chip`; `dtype`; `rows` and `n`, powers of two; `programs`, whose
    partial sums of dweight a fused backward moves.
    """

    name = "roofline"
    needs = ("roof", "roof_bars")
    label = "Drag the line along the roof: operations of a norm by the arithmetic for each byte"
    operation = traitlets.Enum(cost.OPERATIONS, "forward").tag(sync=True)
    chip = traitlets.Enum([*cost.CHIPS, "CPU"], "H100").tag(sync=True)
    dtype = traitlets.Enum(DTYPES, "bfloat16").tag(sync=True)
    rows = traitlets.Enum(ROWS, 8192).tag(sync=True)
    n = traitlets.Enum(WIDTHS, 4096).tag(sync=True)
    programs = traitlets.Enum(PROGRAMS, 0).tag(sync=True)
    data = traitlets.Dict().tag(sync=True)

    @traitlets.default("data")
    def _default_data(self) -> dict[str, Any]:
        return data(recorded.load("cpu_ladder").data)
