"""RMSNorm forward and backward on the CPU: torch's, the closed form, ours, and compiled ones.

The closed form of the backward needs fewer passes over memory than what autograd derives from the
forward; over blocks of rows most of the passes stay in the cache (`nn/_blocked.py`).
"""

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rmsnorm_edu import nn

Norm = Callable[[Tensor], Tensor]


class ClosedForm(torch.autograd.Function):
    """y = x · rstd · weight and its gradients in plain operations, all rows at once, in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """y of x (rows, n); it keeps x, weight and rstd (rows, 1)."""
        y = x * x
        rstd = y.mean(-1, keepdim=True).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight, rstd)
        return torch.mul(x, rstd, out=y).mul_(weight)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, None]:
        """dx = (dy · weight − x · share) · rstd, share = mean(dy · weight · x) · rstd²."""
        x, weight, rstd = ctx.saved_tensors
        product = dy * x
        dweight = product.mT @ rstd[:, 0]
        share = product.mul_(weight).mean(-1, keepdim=True).mul_(rstd.square())
        dx = torch.mul(dy, weight, out=product)
        return dx.addcmul_(x, share, value=-1).mul_(rstd), dweight, None


class PlainNorm(torch.nn.RMSNorm):
    """`torch.nn.RMSNorm` of float32 rows with `ClosedForm` as its backward."""

    def forward(self, x: Tensor) -> Tensor:
        """y of x (rows, n)."""
        apply: Callable[..., Tensor] = ClosedForm.apply
        return apply(x, self.weight, torch.finfo(x.dtype).eps)


EAGER: dict[str, Callable[[int], torch.nn.Module]] = {
    "torch.nn.RMSNorm": torch.nn.RMSNorm,
    "closed form": PlainNorm,
    "nn.RMSNorm": partial(nn.RMSNorm, backend="eager"),  # numba's loops are `cpu_ladder`'s
    "torch.nn.LayerNorm": torch.nn.LayerNorm,
}


def measure(
    rows: int = 8192, n: int = 4096, repeats: int = 9, seed: int = 0, compiled: bool = True
) -> dict[str, Any]:
    """Median milliseconds of forward + backward for float32 x (rows, n), and peak memory in MiB.

    The methods take turns, so that a slow moment of the machine meets all of them. `ratio` is to
    `torch.nn.RMSNorm`; `peak` is of a process of its own, above its inputs.
    """
    x, dy = _rows(rows, n, seed)
    steps = {name: _step(_norm(name, n, seed), x, dy) for name in _names(compiled)}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(repeats + 1):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if turn:  # the first one compiles, and touches the memory
                times[name].append(1e3 * (time.perf_counter() - start))
    median = {name: statistics.median(each) for name, each in times.items()}
    base = median["torch.nn.RMSNorm"]
    return {
        "shape": [rows, n],
        "dtype": "float32",
        "threads": torch.get_num_threads(),
        "repeats": repeats,
        "median_ms": {name: round(value, 3) for name, value in median.items()},
        "spread_ms": {
            name: [round(f(each), 3) for f in (min, max)] for name, each in times.items()
        },
        "ratio": {name: round(value / base, 3) for name, value in median.items()},
        "peak_mb": {name: round(peak(name, rows, n), 1) for name in EAGER},
    }


def peak(name: str, rows: int, n: int) -> float:
    """MiB that forward + backward of `EAGER[name]` need above their inputs, at most."""
    command = [sys.executable, "-m", __name__, name, str(rows), str(n)]
    # glibc gives large blocks back at once then, and its peak is that of the tensors alive
    env = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(2**20)}
    found = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return float(found.stdout)


def _names(compiled: bool) -> list[str]:
    both = ("torch.nn.RMSNorm", "nn.RMSNorm", "torch.nn.LayerNorm")
    return [*EAGER, *(f"compiled {name}" for name in both if compiled)]


def _norm(name: str, n: int, seed: int) -> Norm:
    norm: Any = EAGER[name.removeprefix("compiled ")](n)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        norm.weight.uniform_(-2.0, 2.0, generator=generator)
    compiled: Norm = torch.compile(norm) if name.startswith("compiled") else norm
    return compiled


def _rows(rows: int, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """x, to be differentiated, and dy."""
    generator = torch.Generator().manual_seed(seed + 1)
    x, dy = (torch.randn(rows, n, generator=generator).add_(0.5) for _ in range(2))
    return x.requires_grad_(), dy


def _step(norm: Norm, x: Tensor, dy: Tensor) -> Callable[[], None]:
    def step() -> None:
        x.grad = None
        torch.autograd.backward(norm(x), dy)

    return step


def _resident() -> float:
    """The largest memory of this process so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux, whose ru_maxrss a process inherits from the one that started it
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text("utf-8"))
        if found:
            return int(found[1]) / 2**10
    import resource  # Windows has none

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _peak(name: str, rows: int, n: int) -> float:
    norm = _norm(name, n, 0)
    _step(norm, *_rows(2, n, 0))()  # what is loaded on first use
    step = _step(norm, *_rows(rows, n, 0))
    before = _resident()
    step()
    return _resident() - before


if __name__ == "__main__":
    print(_peak(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
