"""Triton in the mode of this process: compiled for a GPU, or interpreted on the CPU.

Triton decides when it is imported, once for a process, by the variable TRITON_INTERPRET. This
module imports it for all kernels: as the variable says, else interpreted where there is no GPU.

>>> from rmsnorm_edu.kernels._runtime import INTERPRETED, tl, triton
>>> isinstance(tl.sum, triton.runtime.JITFunction) is not INTERPRETED
True
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

_TRUE = ("1", "true", "yes", "on", "y")  # what Triton takes for yes


def _wanted() -> bool:
    """Whether to interpret."""
    said = os.environ.get("TRITON_INTERPRET")
    if said is None:
        return not torch.cuda.is_available()
    return said.strip().lower() in _TRUE


INTERPRETED = _wanted()
_ONE_AT_A_TIME = threading.RLock()
_LATE = "triton" in sys.modules
if INTERPRETED and not _LATE:
    os.environ["TRITON_INTERPRET"] = "1"
if find_spec("triton") is None:
    raise ImportError('the kernels need Triton, not installed: pip install "rmsnorm_edu[triton]"')

# not above: the variable that decides has to be set first
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

__all__ = [
    "INTERPRETED",
    "checked_device",
    "default_device",
    "launch",
    "processors",
    "tl",
    "triton",
]


def _checked_mode(interpreted: bool) -> None:
    """RuntimeError where Triton was imported before in the other mode."""
    actual = not isinstance(tl.sum, triton.runtime.JITFunction)
    if actual is not interpreted:
        words = {True: "interpreting", False: "compiling"}
        raise RuntimeError(
            f"triton was imported {words[actual]}, and the kernels want it {words[interpreted]}: "
            "a process has one mode. Start a new one (in a notebook: restart the kernel) and "
            "import rmsnorm_edu.kernels.forward before triton and before any torch.compile, or "
            f"start it with TRITON_INTERPRET={int(interpreted)}"
        )


_checked_mode(INTERPRETED)


def default_device() -> str:
    """Where the kernels of this process run: "cuda", or "cpu" in the interpreter."""
    return "cpu" if INTERPRETED else "cuda"


def checked_device(x: Tensor, name: str = "x") -> None:
    """RuntimeError for a tensor on the CPU where Triton compiles."""
    if not INTERPRETED and x.device.type == "cpu":
        raise RuntimeError(
            f"{name} is on the CPU, and Triton compiles for a GPU in this process: give "
            f'{name}.to("cuda"), or start Python with TRITON_INTERPRET=1 to interpret the kernels'
        )


def processors(x: Tensor) -> int:
    """How many multiprocessors the device of x has; the interpreter runs as if it were one."""
    if x.device.type != "cuda":
        return 1
    return int(torch.cuda.get_device_properties(x.device).multi_processor_count)


def launch(
    kernel: Any, grid: tuple[int, ...], x: Tensor, *arguments: Any, **constants: Any
) -> None:
    """Run `kernel` on `grid` programs with x and the other arguments, on the device of x.

    What overflows does so quietly: the interpreter's NumPy does not warn, as no GPU does. An empty
    grid is no launch.
    """
    if 0 not in grid:
        with _on(x):
            kernel[grid](x, *arguments, **constants)


@contextmanager
def _on(x: Tensor) -> Iterator[None]:
    device: Callable[[torch.device], Any] = torch.cuda.device
    if INTERPRETED:  # it swaps triton.language's functions for its own during a launch
        with _ONE_AT_A_TIME, np.errstate(all="ignore"):
            yield
    else:
        with device(x.device), np.errstate(all="ignore"):
            yield
