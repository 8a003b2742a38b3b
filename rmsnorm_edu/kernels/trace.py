"""What a kernel does, step by step: recorded from Triton's interpreter, as plain data.

A recording is made in a child process that has its own TRITON_INTERPRET=1: it works on a machine
with a GPU too, and it leaves this process's mode alone. Addresses are offsets in elements from the
beginning of each array, so that two recordings of one launch are equal.
"""

import inspect
import io
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rmsnorm_edu._inputs import positive
from rmsnorm_edu._rounding import dtype_name
from rmsnorm_edu._words import known

EPS = 1e-6
# The arrays that our kernels' arguments are, where the argument's own name is short.
NAMES = {
    "w": "weight",
    "b": "bias",
    "dw": "partials",
    "db": "bias partials",
    "partial": "partials",
    "sum": "dweight",
    "h": "new_residual",
    "dh": "dresidual",
}


@dataclass(frozen=True)
class Trace:
    """The launches of a recording in their order, each a dict of plain data.

    A launch has ``kernel`` (name), ``constants`` (its constexprs), ``sources`` (text by function),
    ``arrays`` (by name: shape, strides, dtype, itemsize, values ``before`` and ``after``),
    ``counts`` (by array: bytes ``loaded`` and ``stored``, each byte once in ``loaded_once`` and
    ``stored_once``, ``masked`` lanes) and ``programs``: each an ``id`` and its ``steps``.

    A step has a ``kind`` (program, range, fill, index, mask, load, cast, compute, reduce, store,
    atomic),
    ``function`` and ``line`` (from 1 at its def), ``text`` (the formula in the kernel's names),
    ``name`` (the variable that keeps the result), ``shape`` and ``values``; a load or store also
    ``array``, ``offsets`` in elements and ``mask``; a reduction ``axis``, ``of``, ``from_shape``.
    """

    launches: tuple[dict[str, Any], ...]

    def count(self, *, once: bool = False) -> dict[str, int]:
        """Bytes by "read x", "write y" …; ``programs``, and ``masked`` lanes of loads and stores.

        Every request counts, or, with `once`, every byte once in a launch: what is left when a
        cache answers the rest.
        """
        found = {"programs": sum(len(launch["programs"]) for launch in self.launches), "masked": 0}
        for launch in self.launches:
            for array, count in launch["counts"].items():
                found["masked"] += count["masked"]
                for word, what in (("read", "loaded"), ("write", "stored")):
                    if size := count[f"{what}_once" if once else what]:
                        found[f"{word} {array}"] = found.get(f"{word} {array}", 0) + size
        return found


def record(
    operation: str,
    *,
    rows: int,
    d: int,
    dtype: str = "float32",
    rung: str | None = None,
    keep: bool = True,
    constants: Mapping[str, Mapping[str, int]] | None = None,
) -> Trace:
    """Record a kernel of this package on seeded data of shape (rows, d).

    Parameters
    ----------
    operation : "forward", "backward", or with the residual add "add_forward", "add_backward".
    rung : a rung's name, or None for the one that the package chooses.
    keep : False keeps the counts and no step: for more rows than a reader would step through.
    constants : constexprs in place of the package's choice, by the kernel's name:
        ``{"long_row": {"BLOCK": 4}}``.

    Raises ValueError for an unknown operation or dtype and for sizes below 0 rows and 1 feature,
    RuntimeError with the child's words where the launch fails or knows no such constant,
    ImportError without torch or triton.
    """
    wanted = {"rows": rows, "d": d, "dtype": dtype, "rung": rung}
    options = {"operation": operation, "keep": keep, "constants": constants or {}}
    return record_all([{**wanted, **options}])[0]


def record_all(wanted: Sequence[Mapping[str, Any]]) -> list[Trace]:
    """`record` several times in one child: each entry has ``operation`` and the options."""
    _need()
    return [Trace(tuple(answer["launches"])) for answer in _ask([_request(**w) for w in wanted])]


def _request(
    operation: str,
    rows: int,
    d: int,
    dtype: str = "float32",
    rung: str | None = None,
    keep: bool = True,
    constants: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, Any]:
    module, function, example_of = known(operation, OPERATIONS, "operation")
    shape = positive(rows, "rows", least=0), positive(d, "d")
    args, options = example_of(*shape, dtype_name(dtype))
    return {
        "module": module,
        "function": function,
        "args": args,
        "options": {**options, "rung": rung} if rung else options,
        "constants": dict(constants or {}),
        "names": NAMES,
        "keep": keep,
    }


def count(
    operation: str, *, rows: int, d: int, once: bool = False, **options: Any
) -> dict[str, int]:
    """`Trace.count` of a launch whose steps are not kept: ``count("forward", rows=64, d=1024)``."""
    return record(operation, rows=rows, d=d, keep=False, **options).count(once=once)


def run(kernel: Any, grid: tuple[int, ...], *args: Any, **constants: Any) -> Trace:
    """Record ``kernel[grid](*args, **constants)`` for any kernel under ``@triton.jit``.

    The kernel's text goes to the child, with those of the jit functions that it calls; it may use
    `triton` and `tl`. What it stores is stored into the tensors given, as a launch would do.
    Raises RuntimeError with the child's words where the launch fails, TypeError for what is no
    kernel.
    """
    _need()
    import torch

    if not hasattr(getattr(kernel, "fn", None), "__code__"):
        kind = type(kernel).__name__
        raise TypeError(f"kernel is {kind}; give a function under @triton.jit, the innermost .fn")
    sent = io.BytesIO()  # torch's format: tensors that share memory share it in the child, too
    torch.save(([_plain(a) for a in args], {k: _plain(a) for k, a in constants.items()}), sent)
    request = {
        "source": _source(kernel),
        "name": kernel.fn.__name__,
        "grid": tuple(grid),
        "arguments": sent.getvalue(),
        "keep": True,
    }
    (answer,) = _ask([request])
    theirs = torch.load(io.BytesIO(answer["arguments"]), weights_only=False)
    for mine, stored in zip([*args, *constants.values()], theirs, strict=True):
        if hasattr(mine, "data_ptr"):
            mine.untyped_storage().copy_(stored.untyped_storage())  # whatever its strides
    return Trace(tuple(answer["launches"]))


def _plain(argument: Any) -> Any:
    return argument.detach() if hasattr(argument, "data_ptr") else argument


def _need() -> None:
    """The libraries of the extras, before a child is started for nothing."""
    from importlib.util import find_spec

    missing = [name for name in ("torch", "triton") if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"trace needs {' and '.join(missing)}, not installed: "
            'pip install "rmsnorm_edu[torch,triton]"'
        )


def _source(kernel: Any) -> str:
    """The kernel's text after those of its helpers: functions under jit that it names."""
    names = kernel.fn.__code__.co_names
    found = (kernel.fn.__globals__.get(name) for name in names)
    helpers = [f for f in found if hasattr(f, "fn") and not _is_tritons(f.fn)]
    return "".join([*map(_source, helpers), textwrap.dedent(inspect.getsource(kernel.fn)), "\n"])


def _is_tritons(function: Callable[..., Any]) -> bool:
    return function.__module__.split(".")[0] == "triton"


def _ask(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send requests to a child of its own mode, and read its answers."""
    child = subprocess.run(
        [sys.executable, "-m", "rmsnorm_edu.kernels._trace_child"],
        input=pickle.dumps(requests),
        capture_output=True,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        check=False,
    )
    if child.returncode:
        words = child.stderr.decode(errors="replace").strip() or (
            f"none. Exit status {child.returncode}: a kernel that reaches far outside of its "
            "arrays ends so"
        )
        raise RuntimeError(f"the interpreter's child failed; its last words:\n{words[-2000:]}")
    answers: list[dict[str, Any]] = pickle.loads(child.stdout)
    return answers


def example(rows: int, d: int, dtype: str = "float32", seed: int = 0) -> dict[str, Any]:
    """Tensors x, residual, dy of shape (rows, d) and weight of (d,): short decimals, seeded."""
    import torch

    rng = np.random.default_rng(seed)
    shapes = {"x": (rows, d), "dy": (rows, d), "residual": (rows, d), "weight": (d,)}
    values = {k: np.round(rng.normal(0.3, 1.2, shape), 1) for k, shape in shapes.items()}
    return {k: torch.tensor(v, dtype=getattr(torch, dtype)) for k, v in values.items()}


def _rstd(x: Any) -> Any:
    import torch

    wide = x if x.dtype == torch.float64 else x.float()
    return wide.square().mean(-1).add(EPS).rsqrt()


def _forward(rows: int, d: int, dtype: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    data = example(rows, d, dtype)
    return (data["x"], data["weight"], None, EPS, "torch", 0.0), {}


def _backward(rows: int, d: int, dtype: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    data = example(rows, d, dtype)
    options = {"has_bias": False, "weight_offset": 0.0}
    return (data["dy"], data["x"], data["weight"], _rstd(data["x"])), options


def _add_forward(rows: int, d: int, dtype: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    data = example(rows, d, dtype)
    return (data["x"], data["residual"], data["weight"], EPS), {}


def _add_backward(rows: int, d: int, dtype: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    data = example(rows, d, dtype)
    h = data["x"] + data["residual"]
    return (data["dy"], data["residual"], h, data["weight"], _rstd(h)), {}


OPERATIONS: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "forward": ("forward", "forward", _forward),
    "backward": ("backward", "backward", _backward),
    "add_forward": ("fused_add", "forward", _add_forward),
    "add_backward": ("fused_add", "backward", _add_backward),
}
