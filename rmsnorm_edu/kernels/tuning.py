"""The fastest rung for rows of one kind, measured on the GPU that is there."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from rmsnorm_edu._inputs import checked_eps
from rmsnorm_edu._words import known
from rmsnorm_edu.kernels import _choice, forward
from rmsnorm_edu.kernels._choice import CASTINGS, Flags, Launch
from rmsnorm_edu.kernels._inputs import checked_offset, checked_rows, checked_vector
from rmsnorm_edu.kernels._runtime import INTERPRETED, triton

OutOfResources = triton.runtime.errors.OutOfResources

Timer = Callable[[Callable[[], object]], float]


def tune(
    x: Tensor,
    weight: Tensor | None = None,
    eps: float = 1e-6,
    *,
    bias: Tensor | None = None,
    casting: str = "torch",
    weight_offset: float = 0.0,
    seconds: Timer | None = None,
) -> Launch:
    """Time every forward rung on x, and keep the fastest for all rows of its length and type.

    Opt-in, for this process: from then on every `rms_norm` with x's d, type and flags takes it,
    however many rows it has, so that a row still has the same bits in any batch; before and after,
    and in another process, they may differ in the last place. `seconds` times a call; None is
    `triton.testing.do_bench`, and where there is no GPU nothing is timed and the table's choice
    is returned. The backward keeps its table. Raises as `rms_norm` does.
    """
    checked_rows(x)
    checked_vector(weight, x, "weight")
    checked_vector(bias, x, "bias")
    known(casting, CASTINGS, "casting")
    eps, offset = checked_eps(eps), checked_offset(weight_offset)
    flags = Flags(weight is not None, bias is not None, casting, offset)
    rows, kind = x.reshape(-1, x.shape[-1]), (x.shape[-1], x.dtype)
    if not rows.shape[0] or (INTERPRETED and seconds is None):
        return forward.chosen(*kind, flags)
    timer = _on_the_gpu if seconds is None else seconds
    plans = [*candidates(*kind)]
    times = [timer(partial(forward.run, p, flags, rows, weight, bias, eps)) for p in plans]
    _choice.TUNED[*kind, flags] = plans[times.index(min(times))]
    return _choice.TUNED[*kind, flags]


def candidates(d: int, dtype: torch.dtype) -> Iterator[Launch]:
    """The table's entries with fewer and more warps, the pipelined with up to four stages.

    A program has at most 1024 threads, 32 warps.
    """
    for entry in _choice.forward_table(d, dtype).values():
        own = entry.num_warps
        for warps in sorted({max(1, own // 2), own, min(32, 2 * own)}):
            for stages in (2, 3, 4) if "STAGES" in entry.constants else (0,):
                constants = dict(entry.constants) | ({"STAGES": stages} if stages else {})
                yield replace(entry, constants=constants, num_warps=warps)


def _on_the_gpu(call: Callable[[], object]) -> float:
    """The median time of a call in ms, with a cold cache; inf for what the GPU has no room for."""
    try:
        return float(triton.testing.do_bench(call, return_mode="median"))
    except OutOfResources:
        return math.inf
