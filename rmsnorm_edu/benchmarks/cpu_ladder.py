"""The ladder of `fused_cpu`: what each rung moves, counted, and what it takes, measured.

Counted are passes over arrays of x's size, rows · n numbers each; the weight and what there is one
number a row of are left out. An array that a step reads is in memory, unless the step before has
just brought it into the cache, a block or a row at a time.
"""

import mmap
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from rmsnorm_edu import _team
from rmsnorm_edu.benchmarks import cpu

SHAPES = ((4096, 1024), (512, 8192), (8192, 4096))


class Stream(NamedTuple):
    """One pass over an array: in `step`, `array` is read or written, in "memory" or "cache"."""

    step: str
    array: str
    way: str
    place: str


def _step(name: str, reads: str, writes: str = "", place: str = "memory") -> list[Stream]:
    """Its streams. Before a line of memory is written, the processor reads it ("allocate"): to
    change some bytes of it, as far as it knows. A line that the step reads anyway is there.
    """
    found = [Stream(name, array, "read", place) for array in reads.split()]
    for array in writes.split():
        if array not in reads.split() and place == "memory":
            found.append(Stream(name, array, "allocate", place))
        found.append(Stream(name, array, "write", place))
    return found


STREAMS = {
    "copy": _step("copy", "x", "y"),
    "loop": [*_step("sum the squares", "x"), *_step("divide and scale", "x", "y")],
    "numpy": [
        *_step("square", "x", "squares"),
        *_step("sum", "squares"),
        *_step("divide", "x", "xhat"),
        *_step("scale", "xhat", "y"),
    ],
    "einsum": [
        *_step("sum the squares", "x"),
        *_step("divide", "x", "y"),
        *_step("scale", "y", "y"),
    ],
    "blocked": [
        *_step("sum the squares", "x"),
        Stream("divide", "x", "read", "cache"),
        *_step("divide", "", "y"),
        *_step("scale", "y", "y", "cache"),
    ],
    "fused": [
        *_step("sum the squares", "x"),
        Stream("divide and scale", "x", "read", "cache"),
        *_step("divide and scale", "", "y"),
    ],
}
STREAMS["streamed"] = [stream for stream in STREAMS["fused"] if stream.way != "allocate"]
STREAMS["loop"][1] = STREAMS["loop"][1]._replace(place="cache")  # the row is there since the sum


def traffic(rung: str, rows: int, n: int, dtype: str = "float32") -> dict[str, int]:
    """Bytes that a rung, or "copy", moves through the memory: "read", "allocate" and "write".

    >>> traffic("fused", 8192, 4096)
    {'read': 134217728, 'allocate': 134217728, 'write': 134217728}
    """
    if rung not in STREAMS:
        raise ValueError(f"no rung {rung!r}; there are: {', '.join(STREAMS)}")
    size = rows * n * np.dtype(dtype).itemsize
    ways = [stream.way for stream in STREAMS[rung] if stream.place == "memory"]
    return {way: ways.count(way) * size for way in ("read", "allocate", "write")}


def measure(
    shapes: Sequence[Sequence[int]] = SHAPES,
    dtype: str = "float32",
    repeats: int = 15,
    threads: int | None = None,
    methods: Sequence[str] = tuple(cpu.METHODS),
) -> dict[str, Any]:
    """`cpu.measured` for some shapes: entries with their page faults; a page has `page` bytes."""
    count = _team.processors() if threads is None else threads
    entries = [
        entry for shape in shapes for entry in cpu.measured(shape, dtype, repeats, methods, count)
    ]
    for name in ("numba", "torch"):  # a record names the versions of what is loaded
        import_module(name)
    return {
        "shapes": [list(shape) for shape in shapes],
        "dtype": dtype,
        "repeats": repeats,
        "threads": count,
        "page": mmap.PAGESIZE,
        "entries": entries,
    }
