"""What the rungs of `fused_cpu` move, step by step: the arrays that stream past the processor.

Only arrays of x's size are counted. The weight, and what is one number a row, are a thousandth of
them. A stream reaches the "memory", or it ends in a "cache", where an earlier step of the same
rows has left the array.
"""

from typing import NamedTuple

from numpy.typing import DTypeLike

from rmsnorm_edu._cost_passes import BYTES
from rmsnorm_edu._inputs import positive
from rmsnorm_edu._rounding import dtype_name
from rmsnorm_edu._words import known


class Stream(NamedTuple):
    """One array on its way. `verb` is what happens to it:

    "read" and "write" are asked for by the program. "fetch" is not: before an ordinary store
    changes a part of a cache line, the processor reads the line from memory (write-allocate).
    "zero" is the fetch of fresh memory: the system hands it out page by page, at the first touch,
    and fills each page with zeros (a page fault). They need not reach the memory before y
    overwrites them, so counting an array for them is counting at most.
    """

    verb: str
    array: str
    level: str


class Step(NamedTuple):
    """A line of the rung's code, and its streams in order."""

    code: str
    streams: tuple[Stream, ...]


# Streams as "verb array", of the cache where "cached" stands behind them. {first} is what the
# first touch of y's lines does: "fetch" into an array that was written before, "zero" into fresh.
_INPUT = "read x"
_IN_PLACE = "read y cached, write y"
_TEXT = {
    "copy": [("y[:] = x", f"{_INPUT}, {{first}} y, write y")],
    "loop": [
        ("total += x**2", _INPUT),
        ("y = x / d * w", "read x cached, {first} y, write y"),
    ],
    "numpy": [
        ("s = square(x)", f"{_INPUT}, zero s, write s"),
        ("m = mean(s)", "read s"),
        ("t = x / sqrt(m)", f"{_INPUT}, zero t, write t"),
    ],
    "einsum": [
        ("m = einsum(x, x)", _INPUT),
        ("y = x / sqrt(m)", f"{_INPUT}, {{first}} y, write y"),
        ("y *= w", "read y, write y"),
    ],
    "blocked": [
        ("m = einsum(x, x)", _INPUT),
        ("y = x / sqrt(m)", "read x cached, {first} y, write y cached"),
        ("y *= w", _IN_PLACE),
    ],
    "fused": [
        ("m = dot(x, x)", _INPUT),
        ("y = x * r * w", "read x cached, {first} y, write y"),
    ],
}
# `numpy` makes a new array for its answer, whatever it is given, and copies it to `out`.
_NUMPY_END = {
    "zero": [("y = t * w", "read t, zero y, write y")],
    "fetch": [("u = t * w", "read t, zero u, write u"), ("y[:] = u", "read u, fetch y, write y")],
}
METHODS = tuple(_TEXT)


def steps(method: str, fresh: bool = False) -> list[Step]:
    """The steps of a rung, or of "copy", into an output that was written before, or fresh memory.

    >>> [stream.verb for step in steps("copy") for stream in step.streams]
    ['read', 'fetch', 'write']
    """
    first = "zero" if fresh else "fetch"
    lines = known(method, _TEXT, "method") + (_NUMPY_END[first] if method == "numpy" else [])
    return [Step(code, _parsed(text.format(first=first))) for code, text in lines]


def arrays(method: str, fresh: bool = False) -> int:
    """How many arrays of x's size cross between memory and processor.

    >>> arrays("numpy"), arrays("einsum"), arrays("fused"), arrays("copy")
    (13, 6, 3, 3)
    """
    streams = [stream for step in steps(method, fresh) for stream in step.streams]
    return sum(stream.level == "memory" for stream in streams)


def bytes_moved(method: str, rows: int, n: int, dtype: DTypeLike, fresh: bool = False) -> int:
    """Bytes of `arrays`, for x of (rows, n). ValueError for an unknown method or dtype, a size < 1.

    >>> bytes_moved("fused", 8192, 4096, "float32") / 2**20
    384.0
    """
    numbers = positive(rows, "rows") * positive(n, "n")
    return arrays(method, fresh) * numbers * BYTES[dtype_name(dtype)]


def _parsed(text: str) -> tuple[Stream, ...]:
    return tuple(
        Stream(verb, array, "cache" if cached else "memory")
        for verb, array, *cached in (part.split() for part in text.split(", "))
    )
