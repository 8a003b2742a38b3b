"""Mutants of the statistic, of ε and of the gain: y is wrong."""

import numpy as np

from rmsnorm_edu.mutants.base import Array, Mutant


class Unbiased(Mutant):
    name = "n − 1"
    what = "the sum of squares is divided by n - 1, as an unbiased variance is."
    reported = "LBANN/lbann PR#2024 (layer norm)"

    def mean_square(self, x: Array) -> Array:
        n = x.shape[-1]
        return np.asarray(super().mean_square(x) * x.dtype.type(n / (n - 1) if n > 1 else np.inf))


class WrongAxis(Mutant):
    name = "wrong axis"
    what = "the mean is taken along the wrong axis, over the rows."
    reported = "kyegomez/zeta #180"

    def mean_square(self, x: Array) -> Array:
        mean: Array = np.mean(np.square(x), axis=0, keepdims=True)
        return mean


class WholeArray(Mutant):
    name = "whole array"
    what = "one RMS is taken over the whole array: each row needs its own."
    reported = "bkitano/llama-from-scratch #4"

    def mean_square(self, x: Array) -> Array:
        mean: Array = np.mean(np.square(x), keepdims=True)
        return mean


class MeanSubtracted(Mutant):
    name = "mean subtracted"
    what = "the mean is subtracted: that is LayerNorm."
    reported = "sonos/tract #2646"

    def xhat(self, x: Array, eps: float) -> Array:
        return super().xhat(x - np.mean(x, axis=-1, keepdims=True), eps)


class StandardDeviation(Mutant):
    name = "standard deviation"
    what = "x is divided by its standard deviation, about the mean: the RMS is about 0."
    reported = "keras-team/keras #21234"

    def mean_square(self, x: Array) -> Array:
        variance: Array = np.var(x, axis=-1, keepdims=True)
        return variance


class EpsOutside(Mutant):
    name = "ε outside"
    what = "eps stands outside the root: add it to the mean square, before the root."
    reported = "NVIDIA/TransformerEngine PR#364; tile-ai/tilelang PR#1243"

    def divisor(self, x: Array, eps: float) -> Array:
        return np.asarray(np.sqrt(self.mean_square(x)) + x.dtype.type(eps))


class EpsTooLarge(Mutant):
    name = "ε × 10⁵"
    what = "eps is a hundred thousand times too large."
    reported = "paiml/aprender PR#1606 (there ten times)"

    def divisor(self, x: Array, eps: float) -> Array:
        return super().divisor(x, eps * 1e5)


class OwnEps(Mutant):
    name = "its own ε"
    what = "it uses an eps of your own, 1e-6, and not the argument."
    reported = "NVIDIA/cutlass PR#1112; apache/tvm PR#15856"

    def divisor(self, x: Array, eps: float) -> Array:
        return super().divisor(x, 1e-6)


class WithoutEps(Mutant):
    name = "no ε"
    what = "eps is not used: add it to the mean square."
    reported = "local-inference-lab/b12x #121"

    def divisor(self, x: Array, eps: float) -> Array:
        return super().divisor(x, 0.0)


class EpsOnTheSum(Mutant):
    name = "ε on the sum"
    what = "eps is added to the sum of squares and divided by n with it: add it to the mean."
    reported = "ml-explore/mlx-lm PR#1624"

    def divisor(self, x: Array, eps: float) -> Array:
        return super().divisor(x, eps / x.shape[-1])


class EpsNotRescaled(Mutant):
    name = "ε not rescaled"
    what = "x is divided by its largest value m first, but eps not by m²."
    reported = "apple/coremltools #2821"

    def xhat(self, x: Array, eps: float) -> Array:
        m = np.max(np.abs(x), axis=-1, keepdims=True)
        return super().xhat(x / m, eps)


class DividedByRstd(Mutant):
    name = "divided by rstd"
    what = "x is divided by 1/RMS, where it is to be multiplied."
    reported = "mosaicml/llm-foundry #371"

    def xhat(self, x: Array, eps: float) -> Array:
        rstd = 1 / self.divisor(x, eps)
        return np.asarray(x / rstd)


class RootOfTheRms(Mutant):
    name = "two roots"
    what = "a second root is taken, of the RMS."
    reported = "pytorch/pytorch #139274 (in the documentation)"

    def divisor(self, x: Array, eps: float) -> Array:
        return np.asarray(np.sqrt(super().divisor(x, eps)))


class OverRootN(Mutant):
    name = "length 1 over √n"
    what = "the row of length 1 is divided by the root of n, where it is to be multiplied."
    reported = "kyegomez/zeta #180"

    def xhat(self, x: Array, eps: float) -> Array:
        return np.asarray(super().xhat(x, eps) / x.dtype.type(x.shape[-1]))


class OnePlusWeight(Mutant):
    name = "1 + w"
    what = "the gain is 1 + weight: the weight holds the 1 already."
    reported = "utensils/mold #1074"

    def gain(self, weight: Array) -> Array:
        return np.asarray(1 + self.widened(weight))


class HalfTheWeight(Mutant):
    name = "half of the gain"
    what = "only the first half of the features is multiplied by the weight."
    reported = "tenstorrent/tt-metal #49902"

    def gain(self, weight: Array) -> Array:
        gain = self.widened(weight)
        gain[(len(gain) + 1) // 2 :] = 1
        return gain


class ApproximateRsqrt(Mutant):
    name = "approximate rsqrt"
    what = "1/RMS is a guess from the bits of the number and two Newton steps, 5e-6 off."
    reported = "tenstorrent/tt-metal #51420"

    def xhat(self, x: Array, eps: float) -> Array:
        square = np.square(self.divisor(x, eps)).astype(np.float32)
        rstd = (0x5F3759DF - (square.view(np.int32) >> 1)).view(np.float32)
        for _ in range(2):
            rstd = rstd * (np.float32(1.5) - np.float32(0.5) * square * rstd * rstd)
        return np.asarray(x * rstd)
