"""What a norm costs: bytes moved, arithmetic done, and the least time both need on a chip.

The time of a norm is the time of moving its arrays between memory and chip. So the model counts
each array once for every time that it must cross, and the arithmetic beside it.
"""

import math
from collections.abc import Mapping
from numbers import Real
from typing import NamedTuple, SupportsIndex

from numpy.typing import DTypeLike

from rmsnorm_edu._cost_passes import BYTES, FLOPS, PARTIALS, PASSES, Pass, size
from rmsnorm_edu._cost_reports import REPORTED, Report
from rmsnorm_edu._inputs import non_negative, positive
from rmsnorm_edu._rounding import dtype_name
from rmsnorm_edu._words import known

__all__ = ["CHIPS", "OPERATIONS", "REPORTED", "Chip", "Report", "bytes_moved", "floor", "flops"]
__all__ += ["intensity", "ridge", "roof", "traffic"]

OPERATIONS = tuple(PASSES)


class Chip(NamedTuple):
    """A processor as its vendor describes it.

    `bandwidth` of its memory in bytes/s; `flops` has the peak rate in flop/s for each type that
    the source gives: for 16-bit types that of the matrix units, without sparsity, else that of
    the ordinary units; `source` is the key of the data sheet in the book's bibliography.
    """

    name: str
    bandwidth: float
    flops: Mapping[str, float]
    source: str


def _chip(name: str, bandwidth: float, source: str, **tera: float) -> Chip:
    """A chip from GB/s and Tflop/s; `half` is the rate of float16 and of bfloat16."""
    half = tera.pop("half", None)
    rates = tera | ({"float16": half, "bfloat16": half} if half else {})
    return Chip(name, bandwidth * 1e9, {key: rate * 1e12 for key, rate in rates.items()}, source)


# H100, H200, L4: the sheets give matrix rates with sparsity, which is twice as much.
# T4's matrix units know float16 alone. B200: sources of the vendor differ, so no rate stands here.
CHIPS: dict[str, Chip] = {
    "T4": _chip("T4", 320, "nvidia2018turing", float32=8.1, float16=65),
    "L4": _chip("L4", 300, "nvidia2023l4", float32=30.3, half=121),
    "A100-40": _chip("A100 40 GB", 1555, "nvidia2020a100", float32=19.5, float64=9.7, half=312),
    "A100-80": _chip("A100 80 GB", 2039, "nvidia2020a100", float32=19.5, float64=9.7, half=312),
    "H100": _chip("H100 SXM", 3350, "nvidia2022h100", float32=67, float64=34, half=989.5),
    "H200": _chip("H200 SXM", 4800, "nvidia2023h200", float32=67, float64=34, half=989.5),
    "B200": _chip("B200", 8000, "nvidia2024blackwell"),
}


def traffic(
    operation: str,
    rows: SupportsIndex,
    n: SupportsIndex,
    dtype: DTypeLike,
    *,
    programs: SupportsIndex = 0,
) -> dict[str, int]:
    """Bytes that `operation` moves between memory and chip, item by item: "read x", "write y", …

    `rows` of `n` features in `dtype`; statistics in float32, in float64 for float64. Each array
    crosses once for each pass that reads or writes it: what is read again meanwhile (the weight,
    by every row) comes from a cache. Where an operation is several passes, as in the `_unfused`
    twins, an item begins with the pass: "square: read x". 16-bit types have passes that convert.

    A backward whose rows are shared by `programs` has that many partial sums of dweight, which
    are written, and read once more to add them up; 0 counts none.

    Raises ValueError for an unknown operation or dtype, a size < 1, and programs for an
    operation without partial sums; TypeError for a size that is no integer.

    >>> traffic("forward", 2, 1024, "float16")
    {'read x': 4096, 'read weight': 2048, 'write y': 4096, 'write rstd': 8}
    """
    shape = positive(rows, "rows"), positive(n, "n")
    own, items = BYTES[dtype_name(dtype)], {}
    passes = _passes(operation, own)
    for step in passes:
        prefix = f"{step.name}: " if len(passes) > 1 else ""
        for verb, arrays in (("read", step.reads), ("write", step.writes)):
            for array in arrays:
                name = array if own < 4 else array.removeprefix("wide ")  # all are as wide
                items[f"{prefix}{verb} {name}"] = size(array, *shape, own)
    return items | _partials(operation, shape[1], own, non_negative(programs, "programs"))


def bytes_moved(
    operation: str,
    rows: SupportsIndex,
    n: SupportsIndex,
    dtype: DTypeLike,
    *,
    programs: SupportsIndex = 0,
) -> int:
    """The sum of `traffic`."""
    return sum(traffic(operation, rows, n, dtype, programs=programs).values())


def flops(
    operation: str, rows: SupportsIndex, n: SupportsIndex, *, programs: SupportsIndex = 0
) -> int:
    """Floating-point operations: each addition, multiplication, division or root counts as one.

    A sum of n numbers is n additions, one over a root is one operation. Converting a type counts
    as none. Raises like `traffic`.

    >>> flops("forward", 1, 1024)
    4099
    """
    element, row = known(operation, FLOPS, "operation")
    partial = _partial_count(operation, non_negative(programs, "programs"))
    height, width = positive(rows, "rows"), positive(n, "n")
    return height * (element * width + row) + partial * width


def intensity(
    operation: str,
    rows: SupportsIndex,
    n: SupportsIndex,
    dtype: DTypeLike,
    *,
    programs: SupportsIndex = 0,
) -> float:
    """Arithmetic intensity: `flops` over `bytes_moved`, in flop/byte."""
    moved = bytes_moved(operation, rows, n, dtype, programs=programs)
    return flops(operation, rows, n, programs=programs) / moved


def roof(chip: str | Chip, dtype: DTypeLike, intensity: float) -> float:
    """The most flop/s that `chip` can do at `intensity`: min(peak, bandwidth · intensity).

    The peak is that of `dtype` in `Chip.flops`; where none is cited, the roof has no flat part.
    """
    if isinstance(intensity, bool) or not isinstance(intensity, Real):
        kind = type(intensity).__name__
        raise TypeError(f"intensity = {intensity!r} is {kind}; give flop/byte, a number >= 0")
    if not intensity >= 0:
        raise ValueError(f"intensity = {intensity}; give flop/byte, a number >= 0")
    found = _known_chip(chip)
    peak = found.flops.get(dtype_name(dtype), math.inf)
    return min(float(peak), found.bandwidth * float(intensity))


def ridge(chip: str | Chip, dtype: DTypeLike) -> float:
    """The intensity at which the roof becomes flat: peak over bandwidth; inf where none is cited.

    >>> round(ridge("H100", "bfloat16"))
    295
    """
    found = _known_chip(chip)
    return float(found.flops.get(dtype_name(dtype), math.inf) / found.bandwidth)


def floor(
    operation: str,
    rows: SupportsIndex,
    n: SupportsIndex,
    dtype: DTypeLike,
    chip: str | Chip,
    *,
    programs: SupportsIndex = 0,
) -> float:
    """The least time in seconds: no implementation that moves these bytes can be faster.

    It is the larger of bytes/bandwidth and flops/rate, with the rate of the type in which a norm
    computes: float32, float64 for float64. Arrays that stay in a cache can beat it; starting a
    kernel is not in it.

    >>> f"{floor('forward', 8192, 4096, 'bfloat16', 'H100') * 1e6:.0f} µs"
    '40 µs'
    """
    found = _known_chip(chip)
    computing = "float64" if dtype_name(dtype) == "float64" else "float32"
    moved = bytes_moved(operation, rows, n, dtype, programs=programs) / found.bandwidth
    rate = found.flops.get(computing, math.inf)
    return max(moved, flops(operation, rows, n, programs=programs) / rate)


def _passes(operation: str, own: int) -> list[Pass]:
    """The passes of `operation`; conversions only where there is something to convert."""
    passes = known(operation, PASSES, "operation")
    return [step for step in passes if own < 4 or not step.name.startswith("cast")]


def _partials(operation: str, n: int, own: int, programs: int) -> dict[str, int]:
    count = _partial_count(operation, programs)
    moved = count * n * max(own, 4)
    return {"write partials": moved, "read partials": moved} if count else {}


def _partial_count(operation: str, programs: int) -> int:
    if programs and operation not in PARTIALS:
        raise ValueError(
            f"programs = {programs}, but {operation} has no partial sums; leave programs out"
        )
    return programs * PARTIALS.get(operation, 0)


def _known_chip(chip: str | Chip) -> Chip:
    found = chip if isinstance(chip, Chip) else known(chip, CHIPS, "chip")
    if not all(0 < rate < math.inf for rate in (found.bandwidth, *found.flops.values())):
        raise ValueError(f"{found}; give positive numbers, in bytes/s and flop/s")
    return found
