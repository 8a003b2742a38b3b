"""The norms inside a recurrent cell, over the last axis, in plain torch operations.

Plain, and not `nn.functional`: so RMSNorm and LayerNorm cost what their own operations cost, and a
compiler fuses them with the step around them.
"""

import torch
from torch import Tensor

from rmsnorm_edu.nn._arithmetic import computing_type
from rmsnorm_edu.reference import partial_size

KINDS = ("rms", "layer", None)


def rms(x: Tensor, weight: Tensor, eps: float, k: int) -> Tensor:
    """``x / √(mean(x[..., :k]²) + eps) · weight`` in float32 or wider, in x's type."""
    wide = _wide(x)
    rstd = torch.rsqrt(wide[..., :k].square().mean(-1, keepdim=True) + eps)
    return (wide * rstd * weight).to(x.dtype)


def layer(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """``(x − mean) / √(variance + eps) · weight + bias`` in float32 or wider, in x's type.

    The variance divides by n, not by n − 1.
    """
    wide = _wide(x)
    centred = wide - wide.mean(-1, keepdim=True)
    rstd = torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
    return (centred * rstd * weight + bias).to(x.dtype)


def _wide(x: Tensor) -> Tensor:
    return x.to(computing_type(x.dtype))


class CellNorm(torch.nn.Module):
    """One of a cell's norms: kind "rms" (weight) or "layer" (weight, bias), over `features`.

    `p`: "rms" takes its mean square from the first int(features · p) features, as in 2019.
    """

    def __init__(self, features: int, kind: str, p: float | None, eps: float) -> None:
        super().__init__()
        self.features, self.kind, self.eps = features, kind, eps
        self.k = features if p is None else partial_size(features, p, "floor")
        self.weight = torch.nn.Parameter(torch.ones(features))
        self.bias = torch.nn.Parameter(torch.zeros(features)) if kind == "layer" else None

    def forward(self, x: Tensor) -> Tensor:
        """The normalised x, of x's shape and type."""
        if self.bias is not None:
            return layer(x, self.weight, self.bias, self.eps)
        return rms(x, self.weight, self.eps, self.k)

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        torch.nn.init.ones_(self.weight)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def extra_repr(self) -> str:
        """For print: features, kind, k where it is not all of them, eps."""
        k = "" if self.k == self.features else f", k={self.k}"
        return f"{self.features}, {self.kind!r}{k}, eps={self.eps}"


def check_norm(kind: str | None, p: float | None) -> None:
    """ValueError for a norm that a cell cannot have."""
    if kind not in KINDS:
        raise ValueError(f'norm is {kind!r}; give "rms", "layer" or None')
    if p is not None and kind != "rms":
        raise ValueError(f'p={p} is a share for norm="rms"; with norm={kind!r} leave p out')
