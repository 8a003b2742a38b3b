"""What torch.compile makes of programs around a norm: its own programs, and their passes.

A pass is one loop over all rows, or all numbers, in the C++ that the compiler writes for the
processor. Nothing is timed.
"""

import re
import shutil
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

ROWS, FEATURES = 64, 512
_LOOP = "#pragma omp for"  # inductor begins each pass with it, where it may use two threads
_CALL = re.compile(r"^\s+(?:\w+ = )?(?:torch\.ops\.)?(\w[\w.]*)\(.*$", re.M)


def norm(x: Tensor, weight: Tensor) -> Tensor:
    """RMSNorm in float32, in the operations that a program without a kernel has."""
    wide = x.float()
    rstd = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
    return (wide * rstd * weight).to(x.dtype)


@torch.library.custom_op("rmsnorm_edu_benchmark::opaque_norm", mutates_args=())
def opaque_norm(x: Tensor, weight: Tensor) -> Tensor:
    """`norm` as an operation that the compiler cannot look into."""
    return norm(x, weight)


@opaque_norm.register_fake
def _(x: Tensor, weight: Tensor) -> Tensor:
    return torch.empty_like(x)


def _add_norm(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    h = x + residual
    return norm(h, weight), h


def _gated(x: Tensor, residual: Tensor, weight: Tensor) -> Tensor:
    return torch.nn.functional.silu(norm(x, weight)) * residual


def _gated_opaque(x: Tensor, residual: Tensor, weight: Tensor) -> Tensor:
    return torch.nn.functional.silu(opaque_norm(x, weight)) * residual


def _linear(x: Tensor, weight: Tensor, matrix: Tensor) -> Tensor:
    return norm(x, weight) @ matrix


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "norm": (norm, ("x", "weight")),
    "add, norm": (_add_norm, ("x", "residual", "weight")),
    "norm, gate": (_gated, ("x", "residual", "weight")),
    "opaque norm, gate": (_gated_opaque, ("x", "residual", "weight")),
    "norm, linear": (_linear, ("x", "weight", "matrix")),
}


def possible() -> bool:
    """Whether there is a C++ compiler, which `measure` needs."""
    return any(map(shutil.which, ("g++", "clang++", "c++")))


def measure() -> dict[str, Any]:
    """For each of `PROGRAMS` in bfloat16: the operations one after the other (`eager`), the calls
    of the compiled program (`calls`), the `passes` of those that the compiler wrote, and the share
    of outputs that `differ` between the two.
    """
    inputs = _inputs()
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        return {
            "shape": [ROWS, FEATURES],
            "programs": {
                name: _examined(function, [inputs[each] for each in names])
                for name, (function, names) in PROGRAMS.items()
            },
        }
    finally:
        torch.set_num_threads(threads)


def _inputs() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return (0.3 + torch.randn(*shape, generator=generator)).bfloat16()

    weight = 0.5 + torch.rand(FEATURES, generator=generator)
    arrays = {"x": normal(ROWS, FEATURES), "residual": normal(ROWS, FEATURES)}
    return {**arrays, "matrix": normal(FEATURES, FEATURES), "weight": weight}


class _Calls(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's are untyped
    """Notes the operations that run one after the other."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def _examined(function: Callable[..., Any], arguments: list[Tensor]) -> dict[str, Any]:
    from torch._inductor.utils import run_and_get_code

    with _Calls() as seen:
        eager = _first(function(*arguments))
    torch._dynamo.reset()
    compiled, (code, *_) = run_and_get_code(torch.compile(function, fullgraph=True), *arguments)
    return {
        "eager": seen.names,
        "calls": calls(code),
        "passes": code.count(_LOOP),
        "differ": float((_first(compiled) != eager).float().mean()),
    }


def _first(result: Any) -> Tensor:
    first: Tensor = result[0] if isinstance(result, tuple) else result
    return first


def calls(code: str) -> list[str]:
    """What a compiled program calls to compute: the compiler's functions, and those of others."""
    body = code[code.index("def call(") :]
    wanted = ("cpp_fused", "extern_kernels", "rmsnorm_edu_benchmark")
    return [name for name in _CALL.findall(body) if name.startswith(wanted)]
