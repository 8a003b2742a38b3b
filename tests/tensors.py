"""What the tests of `nn` share: NumPy arrays as tensors and back, bfloat16 too."""

import numpy as np
import torch
from dialects import of

from rmsnorm_edu import conventions, reference
from rmsnorm_edu.nn.functional import rms_norm

TYPES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}


def tensor(array: np.ndarray) -> torch.Tensor:
    """The array's values as a tensor of its type, in the same memory where torch has the type."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(array)


def uneven(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    """Normal numbers with a mean of their own, in rows of different size."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator, dtype=torch.float64) + 0.5
    return (
        x * torch.logspace(-1, 1, shape[0], dtype=torch.float64).view(-1, *[1] * (x.ndim - 1))
    ).to(dtype)


def gains(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Weights of both signs, none of them 1."""
    count = int(np.prod(shape))
    return (torch.linspace(-1.3, 2.1, count, dtype=torch.float64) + 0.01).view(shape).to(dtype)


def in_numpy(convention: str, p: float | None = None):
    """`nn.functional.rms_norm` as the functions that `checks.verify` judges."""
    rounding = conventions.get(convention).k_rounding or "ceil"

    def norm(x, weight, eps):
        k = None if p is None else reference.partial_size(x.shape[-1], p, rounding)
        return rms_norm(x, weight, eps=eps, k=k, convention=convention)

    def forward(x, weight, eps):
        return of(norm(tensor(x), tensor(weight), eps))

    def vjp(dy, x, weight, eps):
        x, weight = tensor(x).requires_grad_(), tensor(weight).requires_grad_()
        return tuple(map(of, torch.autograd.grad(norm(x, weight, eps), (x, weight), tensor(dy))))

    return {"forward": forward, "vjp": vjp}
