"""RMSNorm as a function of torch tensors."""

import torch
from torch import Tensor

from rmsnorm_edu import conventions
from rmsnorm_edu._inputs import checked_eps
from rmsnorm_edu.nn import _arithmetic, _backends
from rmsnorm_edu.nn._function import norm
from rmsnorm_edu.nn._inputs import checked_size, checked_tensors

__all__ = ["rms_norm"]


def rms_norm(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    eps: float | None = None,
    k: int | None = None,
    ndim: int = 1,
    convention: str = "torch",
    backend: str = "auto",
) -> Tensor:
    """Normalise the last `ndim` axes of x, together, as the implementation `convention` does.

    yᵢ = xᵢ / D · gainᵢ + biasᵢ with D = sqrt(mean of xⱼ² over the first k + eps), or with ε where
    the convention has it; gain = weight, for some conventions 1 + weight. x is a float tensor of
    n features in its last `ndim` axes, weight and bias have the shape of these axes. Half types
    are computed in float32. eps = None is the convention's own; k = None counts all n features.
    Returns x's shape, in the type that the convention says ("torch": x's). `backend` as in
    `RMSNorm`. Raises TypeError for other types, ValueError for shapes, sizes and words that do not
    fit and for a norm that the backend does not know, ImportError for one that is not installed.
    """
    checked_tensors(x, weight, bias, ndim)
    _backends.checked_backend(backend)
    c = conventions.get(convention)
    n = x.shape[-ndim:].numel()
    rule = _arithmetic.Rule(c, c.eps if eps is None else checked_eps(eps), checked_size(k, n))
    w, b = (None if t is None else t.reshape(n) for t in (weight, bias))
    rows = x.reshape(-1, n)
    if torch.compiler.is_compiling():
        return _backends.traced(backend, rule, rows, w, b).reshape(x.shape)
    way = _backends.chosen(backend, rule, rows, w, b)
    # a result that is no view to autograd may be changed in place, as torch's may
    y: Tensor = torch.ops.aten._unsafe_view(norm(rows, w, b, rule, way), x.shape)
    return y
