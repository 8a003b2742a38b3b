"""Which rung runs: a table by row length, type and flags, never by the number of rows.

So a row has the same bits in whatever batch it comes. `aot` compiles the very same entries.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from rmsnorm_edu._words import known

CASTINGS = {"torch": 0, "llama": 1, "gemma": 2}  # gemma casts as torch; its gain is 1 + weight


@dataclass(frozen=True)
class Flags:
    """What a kernel is compiled for besides types: the constants that a caller's words mean."""

    weight: bool = True
    bias: bool = False
    casting: str = "torch"
    weight_offset: float = 0.0

    def constants(self) -> dict[str, bool | int | float]:
        """The kernel's constexpr arguments; ValueError for another word of `casting`."""
        return {
            "HAS_WEIGHT": self.weight,
            "HAS_BIAS": self.bias,
            "CASTING": known(self.casting, CASTINGS, "casting"),
            "WEIGHT_OFFSET": float(self.weight_offset),
        }


@dataclass(frozen=True)
class Launch:
    """One entry of the table: the kernel's name, its shape's constants, and the launch's."""

    kernel: str
    constants: Mapping[str, int] = field(default_factory=dict)
    num_warps: int = 4
    num_stages: int = 2

    def options(self) -> dict[str, int]:
        """What a launch takes by keyword beside the arguments and the flags."""
        return {**self.constants, "num_warps": self.num_warps, "num_stages": self.num_stages}


TUNED: dict[tuple[int, torch.dtype, Flags], Launch] = {}  # what `tune` found, for this process


def forward_table(d: int, dtype: torch.dtype) -> dict[str, Launch]:
    """The forward rungs that can take rows of d columns of `dtype`; the first is the choice.

    One block holds up to 64 KiB of a row in the computing type: beyond, registers spill. A longer
    row takes as many warps as a program may have: the fewer rows are on their way at once, the
    better the chance that the second read finds its row in the cache. A tile pays where it has
    four rows of 1024 elements in all, and is there for two. The pipelined rung is never the
    first: it was not measured on a GPU, and `tune` measures.
    """
    block, most = next_power_of_2(d), 2**16 // max(4, dtype.itemsize)
    if block > most:
        return {"long_row": Launch("long_row", {"BLOCK": most}, 32)}
    one = Launch("one_row", {"BLOCK": block}, warps(block, dtype))
    part = min(block, 4096)
    loop = Launch("long_row", {"BLOCK": part}, warps(part, dtype))
    stay = Launch("pipelined", {"BLOCK": block, "STAGES": 2}, warps(block, dtype))
    if block > 512:
        return {entry.kernel: entry for entry in (one, loop, stay)}
    tile = Launch("many_rows", {"BLOCK": block, "ROWS": 1024 // block}, 4)
    first = (tile, one) if block <= 256 else (one, tile)
    return {entry.kernel: entry for entry in (*first, loop, stay)}


def next_power_of_2(d: int) -> int:
    """The block that covers d columns; `tl.arange` takes powers of two only."""
    return 1 << (d - 1).bit_length()


def warps(block: int, dtype: torch.dtype) -> int:
    """How many warps share a block: 16 bytes a lane, at most 16 or, up to 8192 columns, 8."""
    return max(1, min(8 if block <= 8192 else 16, block * dtype.itemsize // (32 * 16)))
