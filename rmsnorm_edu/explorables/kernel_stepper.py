"""The figure of the kernels' chapters: a recorded kernel, one instruction after the other."""

from __future__ import annotations

import ast
import itertools
import math
import re
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import traitlets

from rmsnorm_edu._words import known
from rmsnorm_edu.explorables.figure import Figure

if TYPE_CHECKING:
    from rmsnorm_edu.kernels.trace import Trace

# What the book steps through: small enough to be read, with lanes that a mask switches off.
PRESETS: dict[str, dict[str, Any]] = {
    "one_row": {"operation": "forward", "rows": 3, "d": 6, "rung": "one_row"},
    "long_row": {
        "operation": "forward",
        "rows": 2,
        "d": 6,
        "rung": "long_row",
        "constants": {"long_row": {"BLOCK": 4}},
    },
    "many_rows": {
        "operation": "forward",
        "rows": 3,
        "d": 6,
        "rung": "many_rows",
        "constants": {"many_rows": {"ROWS": 2, "BLOCK": 8}},
    },
    "backward": {
        "operation": "backward",
        "rows": 5,
        "d": 6,
        "rung": "partials",
        "constants": {"reduce": {"BLOCK": 8, "ROWS": 4}},
    },
}
_QUIET = ("index", "range", "mask")  # steps that count where a variable keeps them


_recorded: dict[str, Trace] = {}


def presets(*names: str) -> dict[str, Trace]:
    """The recordings of `PRESETS` by name: made once in a process, those of a call in one child.

    ImportError, with the remedy, without torch or triton.
    """
    from rmsnorm_edu.kernels import trace  # only who records needs torch and triton

    new = [name for name in names if known(name, PRESETS, "preset") and name not in _recorded]
    if new:
        _recorded.update(zip(new, trace.record_all([PRESETS[n] for n in new]), strict=True))
    return {name: _recorded[name] for name in names}


def data(traces: Mapping[str, Trace]) -> list[dict[str, Any]]:
    """What the module steps through: a scene for each recording, its numbers to four digits.

    A scene: ``name``, ``arrays``, ``kernels`` (name and lines of source), ``notes`` (what is the
    same in many steps: line, kind, text, name, array) and ``programs`` (kernel, id and steps); a
    step is [note, shape, values] and, of a load or store, offsets and the mask as "110"; contiguous
    offsets are their first; of a reduction, axis, shape and values of what is reduced.

    Raises ValueError for a recording without steps, and for an array with gaps in its memory.
    """
    return [_scene(name, found) for name, found in traces.items()]


def _scene(name: str, found: Trace) -> dict[str, Any]:
    notes: dict[tuple[Any, ...], int] = {}
    arrays = _arrays(found)
    kernels, programs = [], []
    for number, launch in enumerate(found.launches):
        lines, places = _lines(launch)
        kernels.append({"name": launch["kernel"], "lines": lines})
        for program in launch["programs"]:
            kept = [_step(s, places, list(arrays), notes) for s in _shown(program["steps"])]
            programs.append({"kernel": number, "id": _id(launch, program), "steps": kept})
    if not any(program["steps"] for program in programs):
        raise ValueError(f"{name} has no steps to show: record them, with keep=True, for rows >= 1")
    return {
        "name": name,
        "arrays": list(arrays.values()),
        "kernels": kernels,
        "notes": [list(note) for note in notes],
        "programs": programs,
    }


def _id(launch: dict[str, Any], program: dict[str, Any]) -> int | str:
    """A program's number; on a grid of several axes one for each, "0, 2"."""
    axes = [k for p in launch["programs"] for k, number in enumerate(p["id"]) if number]
    numbers = program["id"][: max(axes, default=0) + 1]
    return ", ".join(map(str, numbers)) if len(numbers) > 1 else int(numbers[0])


def _arrays(found: Trace) -> dict[str, dict[str, Any]]:
    """Every array of the launches, as rows of numbers; null where nobody has written yet."""
    arrays: dict[str, dict[str, Any]] = {}
    for launch in found.launches:
        for name, array in launch["arrays"].items():
            before = array["before"]
            shape = _matrix(name, array["shape"], array["strides"])
            arrays.setdefault(
                name,
                {
                    "name": name,
                    "shape": shape,
                    "itemsize": array["itemsize"],
                    "dtype": array["dtype"],
                    "values": before and [_short(v) for v in before],
                },
            )
    return arrays


def _matrix(name: str, shape: list[int], strides: list[int]) -> list[int]:
    """[rows, columns] of an array without gaps: there an offset is a place in its values."""
    dense = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    if any(n > 1 and a != b for n, a, b in zip(shape, strides, dense, strict=True)):
        raise ValueError(f"{name} has shape {shape} and strides {strides}; record .contiguous()")
    return [math.prod(shape[:-1]), *shape[-1:]] if shape else [1, 1]


def _lines(launch: dict[str, Any]) -> tuple[list[str], dict[tuple[str, int], int]]:
    """The kernel's lines without signature and docstring, and where a (function, line) is there."""
    lines: list[str] = []
    places: dict[tuple[str, int], int] = {}
    for function, source in sorted(
        launch["sources"].items(), key=lambda item: item[0] != launch["kernel"]
    ):
        text = textwrap.dedent(source)
        body = ast.parse(text).body[0].body  # type: ignore[attr-defined]
        docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        first = body[1 if docstring else 0].lineno
        if function != launch["kernel"]:
            lines.append(f"# {function}:")
        kept = textwrap.dedent("\n".join(text.splitlines()[first - 1 :])).splitlines()
        for number, line in enumerate(kept):
            places[function, first + number] = len(lines)
            lines.append(line.split("  #")[0].rstrip())
    return lines, places


def _shown(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps that a reader steps through: no bare addresses, and nothing plus zero."""
    return [
        s
        for s in steps
        if not (s["kind"] in _QUIET and "name" not in s) and not s["text"].endswith(" + 0")
    ]


def _step(
    step: dict[str, Any],
    places: dict[tuple[str, int], int],
    arrays: list[str],
    notes: dict[tuple[Any, ...], int],
) -> list[Any]:
    array = arrays.index(step["array"]) if "array" in step else None
    text = re.sub(r"\((\w+) \+ 0\)", r"\1", step.get("value", step["text"]))
    place = places[step["function"], step["line"]]
    adds = step["text"].startswith("sum(") and len(step.get("from_shape", ())) <= 2
    kind = "compute" if step["kind"] == "reduce" and not adds else step["kind"]  # see `folded`
    note = (place, kind, text, step.get("name"), array)
    short: list[Any] = [notes.setdefault(note, len(notes)), step["shape"]]
    short.append([_short(v) for v in step["values"]])
    if array is not None:
        short += [_run(step["offsets"]), "".join("01"[on] for on in step["mask"])]
    if kind == "reduce":
        short += [step["axis"], step["from_shape"], [_short(v) for v in step["of"]]]
    return short


def _run(offsets: list[int]) -> int | list[int]:
    """Offsets that follow each other as the first of them."""
    follows = all(b - a == 1 for a, b in itertools.pairwise(offsets))
    return offsets[0] if follows else offsets


def _short(value: float) -> float | int | str:
    """Four significant digits, whole numbers as int; what JSON cannot hold as a word."""
    if not math.isfinite(value):
        return str(value).replace("-", "−")
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() else short


class KernelStepper(Figure):
    """A kernel that was recorded by `kernels.trace`, instruction by instruction.

    ``KernelStepper(trace.record("forward", rows=3, d=6))`` shows a recording, a mapping of names to
    recordings a choice between them, ``KernelStepper.of("backward")`` those of `PRESETS`, and
    ``KernelStepper()`` the first. Traits: `scene` (which recording), `program`, `moment` (which
    instruction of it, or fold of a sum; -1 where the program's number tells it what to load).
    """

    name = "kernel_stepper"
    label = "Kernel stepper: what a kernel loads, computes and stores, one step at a time"
    needs = ("kernel_steps",)
    scene = traitlets.Int(0, min=0).tag(sync=True)
    program = traitlets.Int(0, min=0).tag(sync=True)
    moment = traitlets.Int(-1, min=-1).tag(sync=True)
    scenes = traitlets.List(traitlets.Dict()).tag(sync=True)

    def __init__(self, recorded: Trace | Mapping[str, Trace] | None = None, **kwargs: Any) -> None:
        if recorded is not None:
            if not isinstance(recorded, Mapping):
                kernels = (launch["kernel"] for launch in recorded.launches)
                recorded = {next(kernels, "the recording"): recorded}
            kwargs["scenes"] = data(recorded)
        super().__init__(**kwargs)

    @classmethod
    def of(cls, *names: str, **kwargs: Any) -> KernelStepper:
        """Some of the presets: "one_row", "long_row", "many_rows", "backward"."""
        return cls(presets(*names), **kwargs)

    @traitlets.default("scenes")
    def _default_scenes(self) -> list[dict[str, Any]]:
        return data(presets("one_row"))
