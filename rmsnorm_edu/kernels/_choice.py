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


def next_power_of_2(d: int) -> int:
    """The block that covers d columns; `tl.arange` takes powers of two only."""
    return 1 << (d - 1).bit_length()


def warps(block: int, dtype: torch.dtype) -> int:
    """How many warps share a block: 16 bytes a lane at least, 8 warps from 4096 columns on."""
    return max(1, min(8, block * dtype.itemsize // (32 * 16)))
