"""The figure of the CPU chapter: the arrays that each rung moves, beside recorded times."""

from itertools import groupby
from typing import Any

import numpy as np
import traitlets

from rmsnorm_edu import recorded
from rmsnorm_edu._words import known
from rmsnorm_edu.benchmarks.cpu_ladder import STREAMS
from rmsnorm_edu.explorables.figure import Figure

RUNGS = ("loop", "numpy", "einsum", "blocked", "fused", "streamed", "copy")
OUTPUTS = ("touched", "fresh")


def data(record: recorded.Record | None = None) -> dict[str, Any]:
    """The streams of each rung, step by step, and the forward times of a record of the ladder.

    Of a method at a shape: median milliseconds, the rows that it was measured on, page faults.
    """
    record = record or recorded.load("cpu_ladder")
    found = record.data
    return {
        "rungs": {rung: _steps(rung) for rung in RUNGS},
        "shapes": found["shapes"],
        "size": np.dtype(found["dtype"]).itemsize,
        "times": {_name(shape): _times(found["entries"], shape) for shape in found["shapes"]},
        "caption": record.caption,
    }


def _steps(rung: str) -> list[list[Any]]:
    """[name, [[array, way, place], …]] for each step of a rung."""
    steps = groupby(STREAMS[rung], key=lambda stream: stream.step)
    return [[step, [[s.array, s.way, s.place] for s in streams]] for step, streams in steps]


def _times(entries: list[dict[str, Any]], shape: list[int]) -> dict[str, list[float]]:
    methods = {method for rung in RUNGS for method in (rung, f"{rung} (fresh)")}
    return {
        e["method"]: [e["ms_median"], e["shape"][0], e["faults"]]
        for e in _of_shape(entries, shape)
        if e["method"] in methods and e["direction"] == "forward"
    }


def _of_shape(entries: list[dict[str, Any]], shape: list[int]) -> list[dict[str, Any]]:
    """The entries of one run, which begins with its copy: a loop has fewer rows than the shape."""
    starts = [i for i, entry in enumerate(entries) if entry["method"] == "copy"]
    ends = [*starts[1:], len(entries)]
    runs = {_name(entries[a]["shape"]): entries[a:b] for a, b in zip(starts, ends, strict=True)}
    return runs[_name(shape)]


def _name(shape: list[int]) -> str:
    return "x".join(map(str, shape))


class WhereBytesGo(Figure):
    """What streams between memory, cache and registers in each rung of `fused_cpu`, and its time.

    An arrow is one pass over an array of x's size, as `benchmarks.cpu_ladder.STREAMS` counts
    them; a bar is what they would take at the speed of the recorded copy. Traits: `rung`, one of
    RUNGS; `shape`, a recorded one, "8192x4096"; `output`, "touched" or "fresh".
    """

    name = "where_bytes_go"
    needs = ("streams",)
    label = "Choose a rung: the arrays that it moves, and the time that was recorded"
    rung = traitlets.Enum(RUNGS, "numpy").tag(sync=True)
    shape = traitlets.Unicode().tag(sync=True)
    output = traitlets.Enum(OUTPUTS, "touched").tag(sync=True)
    data = traitlets.Dict().tag(sync=True)

    @traitlets.default("data")
    def _default_data(self) -> dict[str, Any]:
        return data()

    @traitlets.default("shape")
    def _default_shape(self) -> str:
        return _name(max(self.data["shapes"], key=lambda shape: shape[0] * shape[1]))

    @traitlets.validate("shape")
    def _recorded(self, proposal: Any) -> Any:
        known(proposal["value"], self.data["times"], "shape")
        return proposal["value"]
