"""What a recorder writes of each instruction of Triton's interpreter: used by `_recorder` only.

A note gets the recorder, the kernel's frame, the result and the operands, as the interpreter's
builder has them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
import triton.language as tl

if TYPE_CHECKING:
    from rmsnorm_edu.kernels._recorder import Known, Recorder

Note = Callable[..., None]

# The builder's methods by what they are in a formula; those that a version lacks are left out.
INFIX = {
    "+": ("create_fadd", "create_add"),
    "−": ("create_fsub", "create_sub"),
    "×": ("create_fmul", "create_mul"),
    "÷": ("create_fdiv", "create_precise_divf", "create_approx_divf"),
    "//": ("create_sdiv", "create_udiv"),
    "%": ("create_frem", "create_srem", "create_urem"),
    "<": ("create_icmpSLT", "create_icmpULT", "create_fcmpOLT"),
    "≤": ("create_icmpSLE", "create_icmpULE", "create_fcmpOLE"),
    ">": ("create_icmpSGT", "create_icmpUGT", "create_fcmpOGT"),
    "≥": ("create_icmpSGE", "create_icmpUGE", "create_fcmpOGE"),
    "=": ("create_icmpEQ", "create_fcmpOEQ"),
    "≠": ("create_icmpNE", "create_fcmpUNE"),
    "and": ("create_and",),
    "or": ("create_or",),
}
PREFIX = {
    "√": ("create_sqrt", "create_precise_sqrt"),
    "1/√": ("create_rsqrt",),
    "abs": ("create_fabs", "create_iabs"),
    "exp": ("create_exp", "create_exp2"),
    "log": ("create_log", "create_log2"),
    "−": ("create_fneg",),
    "where": ("create_select",),
    "fma": ("create_fma",),
    "max": ("create_maxnumf", "create_maximumf", "create_maxsi"),
    "min": ("create_minnumf", "create_minimumf", "create_minsi"),
    "dot": ("create_dot",),
}
# The same numbers in another shape: no instruction of the reader's kernel.
SAME = ("splat", "unsplat", "broadcast", "expand_dims", "reshape", "trans", "bitcast")

_BFLOAT16_SHIFT = 16


def numbers(handle: Any) -> Any:
    """The values of a handle; bfloat16 lies in the interpreter as its upper sixteen bits."""
    data = np.asarray(handle.data)
    if handle.dtype.scalar == tl.bfloat16:
        return (data.astype(np.uint32) << _BFLOAT16_SHIFT).view(np.float32)
    return data


def _infix(sign: str, *texts: str) -> str:
    return f" {sign} ".join(f"({t})" if _is_open(t) else t for t in texts)


def _is_open(text: str) -> bool:
    """Whether a formula has a space outside its brackets."""
    depth = 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == " " and depth == 0:
            return True
    return False


def _prefix(sign: str, *texts: str) -> str:
    return f"{sign}({', '.join(texts)})"


def _compute(sign: str, write: Callable[..., str]) -> Note:
    """Arithmetic: on floats what the kernel is for, on integers an index, on truth a mask."""

    def note(recorder: Recorder, frame: FrameType, result: Any, *operands: Any) -> None:
        handles = [h for h in operands if hasattr(h, "data")]
        text = write(sign, *(recorder.of(h).text for h in handles))
        data = np.asarray(result.data)
        kind = {"f": "compute", "b": "mask"}.get(data.dtype.kind, "index")
        if result.dtype.scalar == tl.bfloat16:
            kind = "compute"
        step = recorder.step(frame, kind, result, text=text)
        recorder.know(result, text, step=step)

    return note


def _same(recorder: Recorder, frame: FrameType, result: Any, *operands: Any) -> None:
    """Another shape of a value: it keeps its name and what it points into.

    A block of one number, such as ``tl.zeros``, is a step where a variable takes it.
    """
    source = next(recorder.of(h) for h in operands if hasattr(h, "data"))
    step = source.step
    if step is None and source.array is None and not source.named:
        step = recorder.step(frame, "fill", result, text=source.text)
    recorder.know(result, source.text, source, step)


def _cast(recorder: Recorder, frame: FrameType, result: Any, source: Any, *to: Any) -> None:
    known = recorder.of(source)
    if result.dtype.scalar.is_int() or source.dtype.scalar.is_int():  # no number is rounded
        recorder.know(result, known.text, known, known.step)
        return
    step = recorder.step(frame, "cast", result, text=known.text, to=str(result.dtype.scalar))
    recorder.know(result, known.text, step=step)


def _pointer(recorder: Recorder, frame: FrameType, result: Any, pointer: Any, offset: Any) -> None:
    known = recorder.of(pointer)
    recorder.know(result, f"{known.text} + {recorder.of(offset).text}", known)


def _load(
    recorder: Recorder, frame: FrameType, result: Any, pointers: Any, mask: Any, *rest: Any
) -> None:
    known, offsets, lanes = recorder.access("loaded", pointers, mask)
    step = recorder.step(frame, "load", result, text=known.text, **_where(known, offsets, lanes))
    recorder.know(result, known.array or "?", step=step)


def _store(
    recorder: Recorder,
    frame: FrameType,
    result: Any,
    pointers: Any,
    value: Any,
    mask: Any,
    *rest: Any,
) -> None:
    known, offsets, lanes = recorder.access("stored", pointers, mask)
    text = recorder.of(value).text
    recorder.step(
        frame, "store", value, text=known.text, value=text, **_where(known, offsets, lanes)
    )


def _where(known: Known, offsets: Any, lanes: Any) -> dict[str, Any]:
    return {
        "array": known.array,
        "offsets": offsets.ravel().tolist(),
        "mask": lanes.ravel().tolist(),
    }


def quiet(recorder: Recorder, frame: FrameType, result: Any, *operands: Any) -> None:
    """The interpreter's own watch for overflow of integers: no instruction of the kernel."""


def _atomic(
    recorder: Recorder, frame: FrameType, result: Any, sign: Any, pointers: Any, *rest: Any
) -> None:
    """An atomic reads and writes each of its places."""
    value, mask = rest[:2]
    recorder.access("loaded", pointers, mask)
    known, offsets, lanes = recorder.access("stored", pointers, mask)
    text = recorder.of(value).text
    recorder.step(
        frame, "atomic", value, text=known.text, value=text, **_where(known, offsets, lanes)
    )


def _combined_by(operation: Any) -> str:
    """ "sum" or "max", of Triton's _sum_combine, _elementwise_max, _argmax_combine_… for a pair."""
    name: str = operation.combine_fn.__name__.strip("_").split("_combine")[0]
    return name.removeprefix("elementwise_").removeprefix("arg")


def scan(
    recorder: Recorder, frame: FrameType, result: Any, operation: Any, given: tuple[Any, ...]
) -> None:
    """The sums, or whatever, of all beginnings of a row: as long as what goes in."""
    found = result[0] if isinstance(result, (list, tuple)) else result
    text = f"cum{_combined_by(operation)}({recorder.of(given[0].handle).text})"
    step = recorder.step(frame, "compute", found.handle, text=text)
    recorder.know(found.handle, text, step=step)


def reduction(
    recorder: Recorder, frame: FrameType, result: Any, operation: Any, given: tuple[Any, ...]
) -> None:
    found = result[0] if isinstance(result, (list, tuple)) else result
    source = given[0].handle
    text = f"{_combined_by(operation)}({recorder.of(source).text})"
    data = numbers(source)
    more = {"axis": operation.axis, "from_shape": list(data.shape)}
    if recorder.keep:
        more["of"] = data.ravel().tolist()
    step = recorder.step(frame, "reduce", found.handle, text=text, **more)
    recorder.know(found.handle, text, step=step)


def _place_of(kind: str, text: Callable[..., str]) -> Note:
    """Where a program is: its number, or the numbers of a block's lanes."""

    def note(recorder: Recorder, frame: FrameType, result: Any, *given: Any) -> None:
        step = recorder.step(frame, kind, result, text=text(*given))
        recorder.know(result, text(*given), step=step)

    return note


def program(recorder: Recorder, frame: FrameType | None, result: Any, *index: int) -> None:
    recorder.program(index)


_OWN: dict[str, Note] = {
    "cast_impl": _cast,
    "create_fp_to_fp": _cast,
    "create_addptr": _pointer,
    "create_masked_load": _load,
    "create_masked_store": _store,
    "create_atomic_rmw": _atomic,
    "create_get_program_id": _place_of("program", lambda axis: f"program_id({axis})"),
    "create_get_num_programs": _place_of("program", lambda axis: f"num_programs({axis})"),
    "create_make_range": _place_of("range", lambda _, start, stop: f"arange({start}, {stop})"),
}


def notes() -> dict[str, Note]:
    """The note of each of the builder's methods."""
    infix = {name: _compute(sign, _infix) for sign, names in INFIX.items() for name in names}
    prefix = {name: _compute(sign, _prefix) for sign, names in PREFIX.items() for name in names}
    return {**infix, **prefix, **{f"create_{name}": _same for name in SAME}, **_OWN}
