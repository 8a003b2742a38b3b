"""RMSNorm, from the equation to the kernel: the companion package of the book.

- `reference`: the truth in float64, forward, VJP and JVP; `geometry`: the projector, the angle
- `conventions`: what real libraries compute; `precision`: how far rounding can go
- `checks`: `verify` judges any RMSNorm, `check` an exercise; `mutants`: wrong norms, as data
- `cost`: bytes, arithmetic and the least time of each operation, on seven chips
- `fused_cpu`: RMSNorm of NumPy arrays at the speed of a copy, and the steps that lead there
- `partial`: how good the RMS of the first k features is
- `invariance`: the paper's Table 1, measured; `recorded`: results with their provenance,
  `benchmarks`: what measures them
- `experiments`: small trainings on real data, and the data
- `nn`: PyTorch layers, a drop-in for `torch.nn.RMSNorm` among them
- `kernels`: the layer in Triton, forward and backward, on a GPU or interpreted
- `frameworks`: the same layer in Keras, Flax and PyTensor
- `exercises`, `explorables`, `page`: what the book's pages are made of

``import rmsnorm_edu`` loads NumPy alone; everything else loads on first use.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = [
    "benchmarks",
    "checks",
    "conventions",
    "cost",
    "exercises",
    "experiments",
    "explorables",
    "frameworks",
    "fused_cpu",
    "geometry",
    "invariance",
    "kernels",
    "mutants",
    "nn",
    "page",
    "partial",
    "precision",
    "recorded",
    "reference",
]


def __getattr__(name: str) -> Any:
    """Load a submodule on first use, so that importing the package costs only NumPy."""
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {__all__}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
