"""What Triton's interpreter does, written down while it runs: used in the child of `trace` only.

The interpreter asks one object, its builder, for every instruction. A recorder stands in front of
the builder's methods and of its reductions, lets each work, and keeps what went in and came out.
The names are those of the kernel's own variables, read from the frame that asked.
"""

import inspect
import linecache
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import numpy as np
import triton
import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter

from rmsnorm_edu.kernels._notes import Note, notes, numbers, program, quiet, reduction, scan

_TRITON = str(Path(triton.__file__).parent)
_HELPERS = (__file__, str(Path(__file__).with_name("_arithmetic.py")))


@dataclass
class Known:
    """What the recorder knows of a value: how it is written, and what it points into."""

    handle: Any  # kept, so that its id stays its own
    text: str
    array: str | None = None
    base: int = 0
    step: dict[str, Any] | None = None
    named: bool = False  # by a variable of the kernel


@dataclass
class Count:
    """What a launch asked of one array; `touched` holds the offsets, for counting them once."""

    itemsize: int
    loaded: int = 0
    stored: int = 0
    masked: int = 0
    touched: dict[str, list[Any]] = field(default_factory=lambda: {"loaded": [], "stored": []})

    def add(self, what: str, offsets: Any, mask: Any) -> None:
        setattr(self, what, getattr(self, what) + int(mask.sum()) * self.itemsize)
        self.masked += int((~mask).sum())
        self.touched[what].append(np.unique(offsets[mask]))

    def plain(self) -> dict[str, int]:
        once = {k: np.unique(np.concatenate(v)).size if v else 0 for k, v in self.touched.items()}
        return {
            "loaded": self.loaded,
            "stored": self.stored,
            "masked": self.masked,
            "loaded_once": once["loaded"] * self.itemsize,
            "stored_once": once["stored"] * self.itemsize,
        }


class Recorder:
    """Hooks the interpreter of this process; `launches` has one plain dict for each launch.

    With ``keep=False`` only the counts are kept: for launches whose every step would be too many.
    """

    def __init__(self, keep: bool = True, names: dict[str, str] | None = None) -> None:
        self.launches: list[dict[str, Any]] = []
        self.keep = keep
        self._names = names or {}
        self._known: dict[int, Known] = {}
        self._counts: dict[str, Count] = {}
        self._steps: list[dict[str, Any]] = []
        self._floats: dict[float, str] = {}
        self._busy = False
        self._hooks = ExitStack()

    def __enter__(self) -> "Recorder":
        builder = interpreter.interpreter_builder
        for name, note in notes().items():
            self._hook(builder, name, note)
        self._hook(TritonSemantic, "binary_op_sanitize_overflow_impl", quiet)
        self._hook(interpreter.ReduceOps, "apply_impl", reduction)
        self._hook(interpreter.ScanOps, "apply_impl", scan)
        self._hook(builder, "set_grid_idx", program)
        self._wrap(interpreter.GridExecutor, "__call__", self._launch)
        return self

    def __exit__(self, *error: object) -> None:
        self._hooks.close()

    def _wrap(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        original = getattr(owner, name)
        self._hooks.enter_context(
            patch.object(owner, name, lambda *args, **kwargs: around(original, *args, **kwargs))
        )

    def _hook(self, owner: Any, name: str, note: Note) -> None:
        if hasattr(owner, name):
            self._wrap(owner, name, lambda *a, **k: self._watch(note, *a, **k))

    def _watch(self, note: Note, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Let the interpreter work, and note it; what it asks of itself meanwhile is its own."""
        if self._busy:
            return original(*args, **kwargs)
        self._busy = True
        try:
            frame = _kernel_frame(sys._getframe(1))
            if frame is not None:
                self._learn(frame)
            result = original(*args, **kwargs)
            note(self, frame, result, *args)
        finally:
            self._busy = False
        return result

    def _launch(
        self, original: Callable[..., Any], executor: Any, *args: Any, **kwargs: Any
    ) -> None:
        names = inspect.getfullargspec(executor.fn).args
        known = {k: v for k, v in kwargs.items() if k in names}
        given = inspect.getcallargs(executor.fn, *args, **known)
        tensors = {self._array_of(k): v for k, v in given.items() if hasattr(v, "data_ptr")}
        self._counts = {}
        launch: dict[str, Any] = {
            "kernel": executor.fn.__name__,
            "constants": {k: _plain(given[k]) for k in executor.constexprs},
            "sources": {},
            "programs": [],
        }
        before = {k: _array(v) for k, v in tensors.items()} if self.keep else {}
        self.launches.append(launch)
        original(executor, *args, **kwargs)
        for one in launch["programs"]:
            one["steps"] = [s for s in one["steps"] if s["kind"] != "fill" or "name" in s]
        launch["counts"] = {k: c.plain() for k, c in self._counts.items()}
        launch["arrays"] = {k: before[k] for k in before if k in self._counts}
        for name, array in launch["arrays"].items():
            array["after"] = _values_of(tensors[name])
            if not self._counts[name].loaded:
                array["before"] = None  # whatever lay there

    def _learn(self, frame: FrameType) -> None:
        """The names in the kernel's frame: arguments at first, then what its lines have bound."""
        floats = {np.float32(v).item(): k for k, v in frame.f_locals.items() if _is_fraction(v)}
        self._floats = floats
        for name, value in list(frame.f_locals.items()):
            handle = getattr(value, "handle", None)
            if handle is None or not hasattr(handle, "data"):
                continue
            known = self._known.get(id(handle))
            if known is None:
                pointer = isinstance(handle.dtype, tl.pointer_type)
                base = int(np.asarray(handle.data).flat[0]) if pointer else 0
                array = self._array_of(name) if pointer else None
                self._known[id(handle)] = Known(handle, name, array, base, named=True)
            elif not known.named:
                known.text, known.named = name, True
                if known.step is not None:
                    known.step.setdefault("name", name)

    def _array_of(self, argument: str) -> str:
        """An array's name: the one that was given, else the argument's without its _ptr."""
        bare = argument.removesuffix("_ptr")
        return self._names.get(bare, bare)

    def of(self, handle: Any) -> Known:
        """What is known of a value; a number that the kernel writes down is its own name."""
        found = self._known.get(id(handle))
        if found is None:
            data = np.asarray(handle.data)
            text = f"{data.flat[0]:.6g}" if data.size == 1 else "…"
            text = self._floats.get(data.flat[0].item(), text) if data.size == 1 else text
            found = self._known[id(handle)] = Known(handle, text)
        return found

    def know(self, handle: Any, text: str, like: Known | None = None, step: Any = None) -> None:
        array, base = (like.array, like.base) if like else (None, 0)
        self._known[id(handle)] = Known(handle, text, array, base, step)

    def step(self, frame: FrameType | None, kind: str, handle: Any, **more: Any) -> dict[str, Any]:
        """Keep one step: where in the source, what kind, and the values that came out."""
        step: dict[str, Any] = {"kind": kind, **more}
        if not self.keep:
            return step
        if frame is not None:
            step["function"], step["line"] = self._place(frame)
        if handle is not None:
            data = numbers(handle)
            step["shape"], step["values"] = list(data.shape), data.ravel().tolist()
        self._steps.append(step)
        return step

    def _place(self, frame: FrameType) -> tuple[str, int]:
        """The function and the line in it, from 1 at its def; its source is kept once."""
        code = frame.f_code
        sources = self.launches[-1]["sources"]
        if code.co_name not in sources:
            lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
            sources[code.co_name] = "".join(inspect.getblock(lines))
        return code.co_name, frame.f_lineno - code.co_firstlineno + 1

    def program(self, index: tuple[int, ...]) -> None:
        self._known, self._steps = {}, []
        self.launches[-1]["programs"].append({"id": list(index), "steps": self._steps})

    def access(self, what: str, pointers: Any, mask: Any) -> tuple[Known, Any, Any]:
        """Count a load or a store; the array's offsets in elements, and which lanes took part."""
        known = self.of(pointers)
        itemsize = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        offsets = (pointers.data.astype(np.int64) - known.base) // itemsize
        lanes = np.broadcast_to(np.asarray(mask.data, dtype=bool), offsets.shape)
        count = self._counts.setdefault(known.array or "?", Count(itemsize))
        count.add(what, offsets, lanes)
        return known, offsets, lanes


def _kernel_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that is the reader's: neither Triton's nor this file's nor a helper's."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_TRITON) and name not in _HELPERS:
            return frame
        frame = frame.f_back
    return None


def _is_fraction(value: Any) -> bool:
    """A float argument such as eps is known by its value: the interpreter keeps no handle of it."""
    return isinstance(value, float) and not value.is_integer()


def _plain(value: Any) -> Any:
    return getattr(value, "value", value)


def _values_of(tensor: Any) -> list[Any]:
    values: list[Any] = tensor.detach().cpu().reshape(-1).double().tolist()
    return values


def _array(tensor: Any) -> dict[str, Any]:
    return {
        "shape": list(tensor.shape),
        "strides": list(tensor.stride()),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "itemsize": tensor.element_size(),
        "before": _values_of(tensor),
    }
