"""Mutants of the partial norm, and of the norm fused with the residual sum before it."""

from typing import ClassVar

import numpy as np

from rmsnorm_edu import reference
from rmsnorm_edu.mutants.base import Array, Mutant


class Partial(Mutant):
    """pRMSNorm: the RMS of the first k = ⌈n·p⌉ features. Of the steps, one or none is wrong."""

    path = "partial"
    p: ClassVar[float | None] = 0.3

    def k(self, n: int) -> int:
        """How many features the RMS is taken of."""
        assert self.p is not None
        return reference.partial_size(n, self.p)

    def mean_square(self, x: Array) -> Array:
        return super().mean_square(x[:, : self.k(x.shape[-1])])

    def projected(self, u: Array, xhat: Array) -> Array:
        k = self.k(xhat.shape[-1])
        first = np.where(np.arange(xhat.shape[-1]) < k, xhat, xhat.dtype.type(0))
        along = np.sum(u * xhat, axis=-1, keepdims=True) / xhat.dtype.type(k)
        return np.asarray(u - first * along)


class KRoundedDown(Partial):
    name = "k rounded down"
    what = "k is int(n * p), the paper's is rounded up."
    reported = "bzhangGo/rmsnorm, its code against its paper"

    def k(self, n: int) -> int:
        assert self.p is not None
        return max(int(n * self.p), 1)


class KOffByOne(Partial):
    name = "k off by one"
    what = "the RMS takes one feature too many."
    reported = "no public report found"

    def k(self, n: int) -> int:
        return min(super().k(n) + 1, n)


class NInTheRoot(Partial):
    name = "n in the root"
    what = "the sum of k squares is divided by n."
    reported = "no public report found"

    def mean_square(self, x: Array) -> Array:
        n = x.shape[-1]
        return np.asarray(super().mean_square(x) * x.dtype.type(self.k(n) / n))


class PartIgnored(Partial):
    name = "p ignored"
    what = "the RMS is that of all features."
    reported = "EleutherAI/gpt-neox, its p option at ea7aefd (read)"

    def k(self, n: int) -> int:
        return n


class SlopeEverywhere(Partial):
    name = "∂D/∂x beyond k"
    what = "dx has the second term in all features: the RMS depends on the first k alone."
    reported = "no public report found"
    wrong = ("vjp",)

    def projected(self, u: Array, xhat: Array) -> Array:
        along = np.sum(u * xhat, axis=-1, keepdims=True) / xhat.dtype.type(self.k(xhat.shape[-1]))
        return np.asarray(u - xhat * along)


class Residual(Mutant):
    """A fault of the norm fused with the sum x + residual."""

    path = "residual"
    wrong = ("add",)


class ResidualThroughTheNorm(Residual):
    name = "residual gradient through the norm"
    what = "the residual's gradient is added to dy before the norm's, not to dx behind it."
    reported = "Dao-AILab/quack PR#53"
    wrong = ("add_vjp",)

    def add_vjp(
        self,
        dy: Array,
        dnew_residual: Array,
        x: Array,
        residual: Array,
        weight: Array,
        eps: float,
    ) -> tuple[Array, Array]:
        zero = np.zeros_like(dnew_residual)
        dx, _ = super().add_vjp(dy + dnew_residual, zero, x, residual, weight, eps)
        _, dweight = super().add_vjp(dy, zero, x, residual, weight, eps)
        return dx, dweight


class CastFlagIgnored(Residual):
    name = "cast order on the residual path"
    what = "with a residual, x-hat is rounded before the weight; without one, it is not."
    reported = "sgl-project/sglang PR#25920"
    dtype = "bfloat16"

    def add(self, x: Array, residual: Array, weight: Array, eps: float) -> tuple[Array, Array]:
        total = self.widened(x) + self.widened(residual)
        xhat = self.xhat(total, eps).astype(x.dtype).astype(total.dtype)
        return self.stored(self.product(xhat, weight), x.dtype), self.stored(total, x.dtype)


class ResidualMutated(Residual):
    name = "residual overwritten"
    what = "float32 sums are written into the residual, though the caller still needs it."
    reported = "GeeeekExplorer/nano-vllm #170"

    def add(self, x: Array, residual: Array, weight: Array, eps: float) -> tuple[Array, Array]:
        residual += x
        y = self.product(self.xhat(self.widened(residual), eps), weight)
        return self.stored(y, x.dtype), residual


class AddedTwice(Residual):
    name = "x added to itself"
    what = "x is added to x in place of the residual."
    reported = "NVIDIA/FasterTransformer PR#466 (layer norm)"

    def add(self, x: Array, residual: Array, weight: Array, eps: float) -> tuple[Array, Array]:
        return super().add(x, x, weight, eps)
