"""RMSNorm as a layer."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rmsnorm_edu import conventions, reference
from rmsnorm_edu._inputs import checked_eps
from rmsnorm_edu.nn import functional
from rmsnorm_edu.nn._backends import checked_backend
from rmsnorm_edu.nn._inputs import checked_last, checked_shape

__all__ = ["RMSNorm"]


class RMSNorm(nn.Module):
    """RMSNorm of the last axes, a drop-in for `torch.nn.RMSNorm`: y = x / RMS(x) · weight.

    `normalized_shape` is the size of the last axis, or of several, which are then one row of n
    features. eps = None is the convention's own ("torch": finfo of the computing type, 1.19e-7,
    for float64 2.22e-16). `weight`, and `bias` where it is asked for, have that shape; without
    `elementwise_affine` there is none. `p` takes the RMS of the first ⌈n·p⌉ features; of
    int(n·p) for the conventions of 2019. `convention`, a name of `conventions.NAMES`, says where ε
    stands, what is rounded and the type of the result. `backend` is what computes it: "eager",
    torch's operations; "numba", `fused_cpu`'s loops on a CPU; "triton", the GPU `kernels`; or
    "auto", the quickest of them that is there and knows the norm. On a CPU that is "numba" for
    large x where it has the bits of "eager", so that "auto" changes no bit of y and dx.

    The statistic is computed in float32 at least, also under autocast; with "torch" the result
    has x's type whatever the weight's. state_dict: `weight` (and `bias`), as torch's.
    torch.compile takes the layer whole, with "auto" as plain operations, which it fuses itself; in
    half precision it drops a convention's roundings on the way, a last bit, unless its option
    emulate_precision_casts is on. Raises ValueError for sizes and words that do not fit and for a
    norm that the backend does not know, ImportError for a backend that is not installed, and
    TypeError for an x that is not float.
    Source: Zhang & Sennrich 2019, equation (4); torch 2.13, nn.RMSNorm.

    >>> RMSNorm(4, p=0.5)
    RMSNorm((4,), eps=None, elementwise_affine=True, p=0.5)
    """

    weight: Tensor | None
    bias: Tensor | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        *,
        bias: bool = False,
        p: float | None = None,
        convention: str = "torch",
        backend: str = "auto",
    ) -> None:
        super().__init__()
        self.normalized_shape = checked_shape(normalized_shape)
        self.eps = None if eps is None else checked_eps(eps)
        self.elementwise_affine = elementwise_affine
        if bias and not elementwise_affine:
            raise ValueError("bias=True without elementwise_affine; give both or neither")
        rounding = conventions.get(convention).k_rounding or "ceil"
        self.k = None if p is None else reference.partial_size(self.n, p, rounding)
        self.p, self.convention, self.backend = p, convention, checked_backend(backend)
        for name, wanted in (("weight", elementwise_affine), ("bias", bias)):
            vector = torch.empty(self.normalized_shape, device=device, dtype=dtype)
            self.register_parameter(name, nn.Parameter(vector) if wanted else None)
        self.reset_parameters()

    @property
    def n(self) -> int:
        """The number of features of a row, over all its axes."""
        return math.prod(self.normalized_shape)

    def reset_parameters(self) -> None:
        """Start from a gain of 1 (a weight of 0 where the gain is 1 + weight), and no bias."""
        if self.weight is not None:
            nn.init.constant_(self.weight, 1 - conventions.get(self.convention).gain_offset)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x of shape (..., *normalized_shape); the result has the same."""
        checked_last(x, self.normalized_shape)
        return functional.rms_norm(
            x,
            self.weight,
            self.bias,
            eps=self.eps,
            k=self.k,
            ndim=len(self.normalized_shape),
            convention=self.convention,
            backend=self.backend,
        )

    def extra_repr(self) -> str:
        """What `torch.nn.RMSNorm` shows, and what differs from its ways."""
        shown = f"{self.normalized_shape}, eps={self.eps}, "
        shown += f"elementwise_affine={self.elementwise_affine}"
        extra = {"bias": self.bias is not None, "p": self.p}
        shown += "".join(f", {name}={value}" for name, value in extra.items() if value)
        words = {"convention": (self.convention, "torch"), "backend": (self.backend, "auto")}
        return shown + "".join(
            f", {k}={word!r}" for k, (word, usual) in words.items() if word != usual
        )
