"""The methods that `cpu` measures, as functions of nothing on arrays that are there already."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmsnorm_edu import fused_cpu
from rmsnorm_edu.benchmarks.cpu import EPS, LOOP

Key = tuple[str, str]
Call = Callable[[], object]
COMPILED = ("fused", "streamed")


class Arrays:
    """x, dy, weight, and two outputs that have been written to; `rows` of each where fewer do."""

    def __init__(self, shape: list[int], dtype: str, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        kind: Any = np.dtype(dtype).type
        self.x, self.dy = (rng.standard_normal(shape, kind) + kind(0.5) for _ in range(2))
        self.weight = rng.uniform(-2.0, 2.0, shape[1]).astype(kind)
        self.y, self.dx = (np.full(shape, 7, kind) for _ in range(2))


def calls(plan: dict[str, Any]) -> Iterator[tuple[Key, list[int], Call]]:
    """(method, direction), the shape and the call of each method of the plan."""
    arrays = Arrays(plan["shape"], plan["dtype"])
    rows, n = plan["shape"]
    for method in plan["methods"]:
        if method == "loop":
            some = min(rows, max(1, LOOP // n))
            yield (method, "forward"), [some, n], _rung(method, arrays, some)
        elif method in fused_cpu.RUNGS and method not in COMPILED:
            yield (method, "forward"), [rows, n], _rung(method, arrays, rows)
        else:
            found = _fused if method.split()[0] in COMPILED else _torch
            for direction, call in found(method, arrays, plan["threads"]).items():
                yield (method, direction), [rows, n], call


def _rung(method: str, arrays: Arrays, rows: int) -> Call:
    x, y, rung = arrays.x[:rows], arrays.y[:rows], fused_cpu.RUNGS[method]
    return lambda: rung(x, arrays.weight, EPS, out=y)


def _fused(method: str, arrays: Arrays, threads: int) -> dict[str, Call]:
    x, dy, weight = arrays.x, arrays.dy, arrays.weight
    y, dx = (None, None) if method.endswith("(fresh)") else (arrays.y, arrays.dx)

    def forward() -> NDArray[Any]:
        past = method == "streamed"
        return fused_cpu._forward(x, weight, None, EPS, y, threads, past=past)

    def both() -> object:
        forward_result = forward()
        gradients = fused_cpu.rms_norm_vjp(dy, x, weight, eps=EPS, out=dx, threads=threads)
        return forward_result, gradients

    return {"forward": forward, "forward+backward": both}


def _torch(method: str, arrays: Arrays, threads: int) -> dict[str, Call]:
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ImportError('the copy is torch\'s: pip install "rmsnorm_edu[torch]"') from error
    torch.set_num_threads(threads)
    x, dy = torch.from_numpy(arrays.x), torch.from_numpy(arrays.dy)
    if method == "copy":
        y = torch.from_numpy(arrays.y)
        return {"forward": lambda: y.copy_(x)}
    if method == "copy (fresh)":
        return {"forward": x.clone}
    module = _norm(method, x.shape[1]).to(x.dtype)
    module.weight.data.copy_(torch.from_numpy(arrays.weight))
    norm: Any = torch.compile(module, dynamic=False) if method == "torch.compile" else module
    leaf = x.detach().requires_grad_()

    def forward() -> object:
        with torch.no_grad():
            return norm(x)

    def both() -> None:
        leaf.grad = module.weight.grad = None
        torch.autograd.backward(norm(leaf), dy)

    return {"forward": forward, "forward+backward": both}


def _norm(method: str, n: int) -> Any:
    import torch

    from rmsnorm_edu import nn

    kinds: dict[str, Any] = {"nn.RMSNorm": nn.RMSNorm, "torch.nn.LayerNorm": torch.nn.LayerNorm}
    return kinds.get(method, torch.nn.RMSNorm)(n, eps=EPS)
