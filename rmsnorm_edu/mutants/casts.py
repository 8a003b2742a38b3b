"""Mutants of the roundings: a step is stored in too few bits, too early, or in another type."""

import numpy as np
from numpy.typing import DTypeLike

from rmsnorm_edu.mutants.base import Array, Mutant


def through(a: Array, dtype: DTypeLike) -> Array:
    """`a` stored in `dtype` and read back."""
    return a.astype(dtype).astype(a.dtype)


class Cast(Mutant):
    """A fault that shows where x has half precision."""

    path = "cast"
    dtype = "bfloat16"


class SquaresOverflow(Cast):
    name = "squares overflow"
    what = "x is squared in float16, where from 256 on the square is infinite."
    reported = "pytorch/pytorch PR#133085"
    dtype = "float16"

    def forward(self, x: Array, weight: Array, eps: float) -> Array:
        mean = np.mean(self.widened(np.square(x)), axis=-1, keepdims=True)
        xhat = self.widened(x) / np.sqrt(mean + np.float32(eps))
        return self.stored(self.product(xhat, weight), x.dtype)


class WidenedLate(Cast):
    name = "widened after squaring"
    what = "x is squared in half precision, and only the squares are widened."
    reported = "young-geng/EasyLM PR#50"

    def forward(self, x: Array, weight: Array, eps: float) -> Array:
        mean = np.mean(self.widened(np.square(x)), axis=-1, keepdims=True)
        xhat = self.widened(x) / np.sqrt(mean + np.float32(eps))
        return self.stored(self.product(xhat, weight), x.dtype)


class HalfSums(Mutant):
    name = "sums in half precision"
    what = "the squares are added up in float16: 11 bits, and small ones get lost."
    reported = "young-geng/EasyLM PR#50"
    path = "cast"

    def mean_square(self, x: Array) -> Array:
        largest = np.max(np.abs(x), axis=-1, keepdims=True)
        unit = np.where(largest == 0, x.dtype.type(1), largest)  # so that no square overflows
        total = np.zeros((len(x), 1), np.float16)
        for column in np.square(x / unit).astype(np.float16).T:
            total = total + column[:, np.newaxis]
        return np.asarray(total.astype(x.dtype) / x.dtype.type(x.shape[-1]) * unit * unit)


class CastTwice(Cast):
    name = "x̂ rounded before the weight"
    what = "x-hat is rounded to x's type before the weight, and the product once more."
    reported = "huggingface/transformers #33133; NVIDIA/TransformerEngine #1132"

    def product(self, xhat: Array, weight: Array) -> Array:
        return super().product(through(xhat, weight.dtype), weight)


class HalfRstd(Cast):
    name = "rstd in half precision"
    what = "1/RMS is rounded to x's type, so that the whole row is off by one factor."
    reported = "amd/IRON PR#139"

    def forward(self, x: Array, weight: Array, eps: float) -> Array:
        wide = self.widened(x)
        rstd = through(1 / self.divisor(wide, eps), x.dtype)
        return self.stored(self.product(wide * rstd, weight), x.dtype)


class Truncated(Cast):
    name = "cut off"
    what = "the result is cut off, not rounded to the nearest number."
    reported = "amd/IRON PR#139"

    def stored(self, a: Array, dtype: DTypeLike) -> Array:
        nearest = a.astype(dtype)
        away = np.abs(nearest.astype(a.dtype)) > np.abs(a)
        bits = nearest.view(f"i{nearest.itemsize}")  # one less are those of the next towards 0
        return np.asarray((bits - away.astype(bits.dtype)).view(dtype))


class PromotedOutput(Cast):
    name = "float32 comes out"
    what = "the result is float32 where the input has half precision."
    reported = "linkedin/Liger-Kernel #89"

    def forward(self, x: Array, weight: Array, eps: float) -> Array:
        return super().forward(self.widened(x), self.widened(weight), eps)


class Offset(Cast):
    """A norm whose gain is 1 + weight, right but for that gain."""

    convention = "gemma"

    def gain(self, weight: Array) -> Array:
        return np.asarray(1 + self.widened(weight))


class OffsetInHalf(Offset):
    name = "1 + w in half precision"
    what = "1 + weight is added up in the weight's own type, which cannot hold the sum."
    reported = "MuseSparkTextCenteredRMSNorm of transformers at 5.24.0 (executed)"

    def gain(self, weight: Array) -> Array:
        return through(super().gain(weight), weight.dtype)


class OffsetForgotten(Offset):
    name = "1 + w forgotten"
    what = "the gain is the weight alone: this convention stores it without its 1."
    reported = "NVIDIA/Megatron-LM PR#6859; linkedin/Liger-Kernel #74"
    dtype = "float32"

    def gain(self, weight: Array) -> Array:
        return self.widened(weight)
