"""What the compiler makes of each kernel, for GPUs that are not here.

Triton compiles for a GPU without one: ptxas, which turns PTX into machine code, comes with it. The
report says what a kernel costs on such a GPU: registers, shared memory, spilled bytes, and how wide
its accesses to memory are. No time: that needs the GPU.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

from rmsnorm_edu._inputs import positive

__all__ = ["ARCHES", "DTYPES", "report", "table"]

ARCHES = {75: "T4", 80: "A100", 90: "H100, H200", 100: "B200"}  # compute capability times ten
DTYPES = ("float32", "float16", "bfloat16")


def report(
    d: int = 4096,
    arches: Sequence[int] = tuple(ARCHES),
    dtypes: Sequence[str] = DTYPES,
    kernels: Sequence[str] | None = None,
    *,
    bias: bool = False,
    cache: str | None = None,
) -> list[dict[str, Any]]:
    """Compile the kernels for rows of d features, and say what each is made of.

    One entry for each kernel (None: all that rows of this length take), arch (75: sm_75) and dtype:
    "kernel", "d", "arch", "dtype", "warps", "registers" of a thread, "shared" bytes of a program,
    "spilled" bytes of a thread (kept in memory for lack of registers), "loads" and "stores":
    how many instructions of each width in bits, as {"128": 4}, move global memory, and
    "arithmetic": how many divide, take a root or approximate, as {"sqrt.rn.f32": 1}.
    It runs in a process of its own, because a process that interprets cannot compile. `cache` is
    the folder of Triton's cache; None is a temporary one. Raises ValueError for d < 1 and for
    arches, dtypes and kernels that are not there, ImportError without Triton, RuntimeError where
    the compiler fails.
    """
    order = {
        "d": positive(d, "d"),
        "arches": [_one_of(arch, ARCHES, "arch") for arch in arches],
        "dtypes": [_one_of(dtype, DTYPES, "dtype") for dtype in dtypes],
        "bias": bool(bias),
        "kernels": None if kernels is None else list(kernels),
    }
    for library in ("torch", "triton"):
        if find_spec(library) is None:
            raise ImportError(
                f'aot needs {library}, which is not installed: pip install "rmsnorm_edu[{library}]"'
            )
    with tempfile.TemporaryDirectory() if cache is None else nullcontext(cache) as folder:
        return compiled([order], folder)


def _one_of(value: Any, known: Any, name: str) -> Any:
    if value not in known:
        raise ValueError(f"{name} = {value!r}; there are {', '.join(map(str, known))}")
    return value


def compiled(orders: list[dict[str, Any]], cache: str) -> list[dict[str, Any]]:
    """What the child process answers to these orders, in their order."""
    child = subprocess.run(
        [sys.executable, "-m", "rmsnorm_edu.kernels._compile"],
        input=json.dumps(orders),
        capture_output=True,
        text=True,
        env={**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": cache},
    )
    answer = child.stdout.rpartition("\n")[2]  # what Triton prints of an error comes before it
    if child.returncode:
        raise RuntimeError(f"the compiler failed: {child.stderr[-2000:] or child.stdout[-2000:]}")
    found: dict[str, Any] = json.loads(answer)
    if "error" in found:
        raise {"ValueError": ValueError, "ImportError": ImportError}[found["type"]](found["error"])
    entries: list[dict[str, Any]] = found["entries"]
    return entries


def table(entries: Sequence[dict[str, Any]]) -> str:
    """The entries of `report`, a line each."""
    width = max(len(e["kernel"]) for e in entries) if entries else 0
    head = f"{'kernel':{width}} {'arch':>6} {'dtype':8} {'warps':>5} {'registers':>9} "
    lines = [head + f"{'shared':>6} {'spilled':>7}  {'loads (bits)':16} stores (bits)"]
    for e in entries:
        lines.append(
            f"{e['kernel']:{width}} {'sm_' + str(e['arch']):>6} {e['dtype']:8} {e['warps']:4} "
            f"{e['registers']:9} {e['shared']:6} {e['spilled']:7}  "
            f"{_widths(e['loads']):16} {_widths(e['stores'])}"
        )
    return "\n".join(lines)


def _widths(counts: dict[str, int]) -> str:
    """As "4 x 128, 1 x 32"."""
    return ", ".join(f"{n} x {bits}" for bits, n in counts.items()) or "none"
