"""RMSNorm on the processor beside a plain copy of the same bytes: ``rmsnorm_edu bench cpu``.

It is measured in a process of its own, in which torch's threads sleep between two operations
(OMP_WAIT_POLICY=passive). By default they spin for a while, and on few processors that is time
taken from the next method, which has threads of its own.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from rmsnorm_edu import _team
from rmsnorm_edu._inputs import positive

DIRECTIONS = ("forward", "forward+backward")
FIELDS = ("method", "direction", "shape", "dtype", "ms_min", "ms_median", "ratio_to_copy")
METHODS = {
    "copy": "torch.Tensor.copy_ into a buffer that has been written to before",
    "copy (fresh)": "torch.Tensor.clone: the same into memory asked for anew",
    "loop": "NumPy, number by number; on fewer rows, its ratio is for the same number of them",
    "numpy": "NumPy, whole arrays",
    "einsum": "NumPy, no array of squares",
    "blocked": "NumPy, blocks of rows that fit the cache",
    "fused": "numba, into a buffer that has been written to before",
    "fused (fresh)": "numba, into memory asked for anew",
    "streamed": "numba, into that buffer and past the cache; backward as fused",
    "nn.RMSNorm": "this package's module",
    "torch.nn.RMSNorm": "torch's module",
    "torch.nn.LayerNorm": "torch's module",
    "torch.compile": "torch.nn.RMSNorm, compiled",
}
EPS = 1e-6
LOOP = 2**15  # numbers that `loop` is measured on


def bench(
    shape: Sequence[int] = (8192, 4096),
    dtype: str = "float32",
    repeats: int = 15,
    methods: Sequence[str] = tuple(METHODS),
    threads: int | None = None,
) -> list[dict[str, Any]]:
    """A dictionary with FIELDS for each method and direction, `copy` first; times in milliseconds.

    The methods take turns, so that a slow moment of the machine meets all of them, and
    `ratio_to_copy` is one of medians of the same run: to one copy of x, for both directions.
    ValueError for an unknown method, another dtype than float32 and float64, and numbers below 1;
    MemoryError for a shape that is too large here, RuntimeError for other failures.
    """
    entries = measured(shape, dtype, repeats, methods, threads)
    return [{field: entry[field] for field in FIELDS} for entry in entries]


def measured(
    shape: Sequence[int],
    dtype: str = "float32",
    repeats: int = 15,
    methods: Sequence[str] = tuple(METHODS),
    threads: int | None = None,
) -> list[dict[str, Any]]:
    """`bench`, and for each entry `faults`: how often a call asked the system for a page.

    Up to some size (32 MiB in glibc) the C library hands out again what was freed: new memory is
    then without faults.
    """
    plan = _plan(shape, dtype, repeats, methods, threads)
    command = [sys.executable, "-m", __name__, json.dumps(plan)]
    env = {"OMP_WAIT_POLICY": "passive"} | os.environ
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=env)
    if child.returncode in (-9, 137) or "MemoryError" in child.stdout:
        rows, n = plan["shape"]
        size = 8 * rows * n * (4 if dtype == "float32" else 8) / 2**30
        raise MemoryError(
            f"shape {rows}x{n} in {dtype} needs about {size:.1f} GiB: give a smaller --shape"
        )
    if child.returncode:
        raise RuntimeError(f"the measuring process failed with exit status {child.returncode}")
    answer = child.stdout.rstrip().rpartition("\n")[2]  # what a compiler prints comes before it
    entries: list[dict[str, Any]] = json.loads(answer)
    return entries


def table(entries: list[dict[str, Any]]) -> str:
    """The entries as text, a line each, and what the ratio is to."""
    rows, n = entries[0]["shape"]
    lines = [
        f"x is {rows} x {n} {entries[0]['dtype']}; times in milliseconds",
        f"{'method':19} {'direction':17} {'min':>9} {'median':>9} {'/ copy':>8}",
    ]
    for entry in entries:
        part = "" if entry["shape"] == [rows, n] else f"  ({entry['shape'][0]} rows)"
        lines.append(
            f"{entry['method']:19} {entry['direction']:17} {entry['ms_min']:9.2f} "
            f"{entry['ms_median']:9.2f} {entry['ratio_to_copy']:8.2f}{part}"
        )
    return "\n".join(lines)


def parsed_shape(text: str) -> list[int]:
    """[8192, 4096] of "8192x4096"; ValueError for anything else."""
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"shape {text!r}: give ROWSxFEATURES, like 8192x4096")
    return [int(part) for part in parts]


def _plan(
    shape: Sequence[int], dtype: str, repeats: int, methods: Sequence[str], threads: int | None
) -> dict[str, Any]:
    if len(shape) != 2:
        raise ValueError(f"shape {shape}: give (rows, features), like (8192, 4096)")
    if find_spec("torch") is None:
        raise ImportError('the copy is torch\'s: pip install "rmsnorm_edu[torch]"')
    unknown = [method for method in methods if method not in METHODS]
    if unknown:
        raise ValueError(f"no method {unknown[0]!r}; there are: {', '.join(METHODS)}")
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype {dtype!r}: give float32 or float64")
    return {
        "shape": [positive(size, "rows or features of the shape") for size in shape],
        "dtype": dtype,
        "repeats": positive(repeats, "repeats"),
        "methods": [method for method in METHODS if method in methods or method == "copy"],
        "threads": _team.processors() if threads is None else positive(threads, "threads"),
    }


Call = Callable[[], object]


def _measure(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries, measured in this process."""
    from rmsnorm_edu.benchmarks import cpu_methods

    calls: dict[tuple[str, str], Call] = {}
    shapes, left_out = {}, set()
    for key, shape, call in cpu_methods.calls(plan):
        if key[0] in left_out:  # its other direction: told once
            continue
        if _works(key[0], call):
            calls[key], shapes[key] = call, shape
        else:
            left_out.add(key[0])
    times: dict[tuple[str, str], list[float]] = {key: [] for key in calls}
    faults: dict[tuple[str, str], list[int]] = {key: [] for key in calls}
    for _ in range(plan["repeats"]):
        for key, call in calls.items():
            before, start = _faults(), time.perf_counter()
            call()
            times[key].append(1e3 * (time.perf_counter() - start))
            faults[key].append(_faults() - before)
    copy = statistics.median(times["copy", "forward"]) / plan["shape"][0]
    return [
        {
            "method": key[0],
            "direction": key[1],
            "shape": shapes[key],
            "dtype": plan["dtype"],
            "ms_min": round(min(each), 4),
            "ms_median": round(statistics.median(each), 4),
            "ratio_to_copy": round(statistics.median(each) / shapes[key][0] / copy, 3),
            "faults": int(statistics.median(faults[key])),
        }
        for key, each in times.items()
    ]


def _works(method: str, call: Call) -> bool:
    """Whether the first call, which compiles and touches the memory, went well; or say why not."""
    try:
        call()
    except MemoryError:
        raise
    except (ImportError, OSError, RuntimeError) as error:  # OSError: no folder for what it compiles
        if "allocate memory" in str(error):  # torch's way to say it
            raise MemoryError from error
        reason = str(error).strip().splitlines()[0]
        print(f"{method} is left out: {reason}", file=sys.stderr)
        return False
    call()
    return True


def _faults() -> int:
    """How often this process has been given a page of memory so far; 0 where nobody counts."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


if __name__ == "__main__":
    try:
        print(json.dumps(_measure(json.loads(sys.argv[1]))))
    except MemoryError:
        print("MemoryError")
    except KeyboardInterrupt:  # who has started this process has it, too, and says so
        sys.exit(130)
