"""Mutants of the backward pass: y is right, and dx or dweight is wrong."""

import numpy as np

from rmsnorm_edu.mutants.base import Array, Mutant


class Backward(Mutant):
    """A fault of vjp; dx unless said otherwise."""

    path = "dx"
    wrong = ("vjp",)


class NoSecondTerm(Backward):
    name = "no second term"
    what = "dx lacks its second term: the RMS depends on every x, too."
    reported = "ooples/AiDotNet PR#695"

    def projected(self, u: Array, xhat: Array) -> Array:
        return u


class WrongSign(Backward):
    name = "wrong sign"
    what = "the second term of dx has the wrong sign: it is subtracted."
    reported = "no public report found"

    def projected(self, u: Array, xhat: Array) -> Array:
        along = np.mean(u * xhat, axis=-1, keepdims=True)
        return np.asarray(u + xhat * along)


class SumForMean(Backward):
    name = "sum for mean"
    what = "the second term of dx is a sum over the features: it is a mean, divided by n."
    reported = "no public report found"

    def projected(self, u: Array, xhat: Array) -> Array:
        along = np.sum(u * xhat, axis=-1, keepdims=True)
        return np.asarray(u - xhat * along)


class WeightTwice(Backward):
    name = "w outside the mean, too"
    what = "the second term of dx is multiplied by the weight once more: u is dy * weight, once."
    reported = "NVIDIA/Megatron-LM PR#6859"

    def dx(self, dy: Array, x: Array, weight: Array, eps: float) -> Array:
        gain, xhat = self.gain(weight), self.xhat(x, eps)
        along = np.mean(dy * gain * xhat, axis=-1, keepdims=True)
        return np.asarray((dy * gain - gain * xhat * along) / self.divisor(x, eps))


class WithoutWeight(Backward):
    name = "dx without w"
    what = "dx lacks the weight: its u is dy * weight."
    reported = "karpathy/llm.c PR#763 (a reviewer's own)"

    def dx(self, dy: Array, x: Array, weight: Array, eps: float) -> Array:
        u = dy
        return np.asarray(self.projected(u, self.xhat(x, eps)) / self.divisor(x, eps))


class WeightTwiceEverywhere(Backward):
    name = "w twice in dx"
    what = "dx has the weight twice: u is dy * weight, once."
    reported = "no public report found"

    def dx(self, dy: Array, x: Array, weight: Array, eps: float) -> Array:
        return super().dx(dy * self.gain(weight), x, weight, eps)


class WeightTwiceInTheMean(Backward):
    name = "w twice in the mean"
    what = "the second term of dx has the weight twice: u is dy * weight, once."
    reported = "no public report found"

    def dx(self, dy: Array, x: Array, weight: Array, eps: float) -> Array:
        gain, xhat = self.gain(weight), self.xhat(x, eps)
        along = np.mean(dy * gain * gain * xhat, axis=-1, keepdims=True)
        return np.asarray((dy * gain - xhat * along) / self.divisor(x, eps))


class WithoutWeightInTheMean(Backward):
    name = "second term without w"
    what = "the second term of dx lacks the weight: its u is dy * weight, too."
    reported = "karpathy/llm.c PR#763 (half of it)"

    def dx(self, dy: Array, x: Array, weight: Array, eps: float) -> Array:
        xhat = self.xhat(x, eps)
        along = np.mean(dy * xhat, axis=-1, keepdims=True)
        return np.asarray((dy * self.gain(weight) - xhat * along) / self.divisor(x, eps))


class AcrossColumns(Backward):
    name = "broadcast across columns"
    what = "in a square array each row gets another row's second term."
    reported = "BobMcDear/attorch #17"

    def projected(self, u: Array, xhat: Array) -> Array:
        along = np.mean(u * xhat, axis=-1)
        square = u.shape[0] == u.shape[1]  # other shapes do not broadcast, and it was noticed
        return np.asarray(u - xhat * (along if square else along[:, np.newaxis]))


class SavedMeanSquare(Backward):
    name = "mean square saved as rstd"
    what = "dx is multiplied by the mean square, which the forward pass saved in place of 1/RMS."
    reported = "flagos-ai/FlagGems PR#5771"

    def dx(self, dy: Array, x: Array, weight: Array, eps: float) -> Array:
        u = dy * self.gain(weight)
        return np.asarray(self.projected(u, self.xhat(x, eps)) * self.mean_square(x))


class OtherEps(Backward):
    name = "another ε in the backward pass"
    what = "dx is computed with an eps of 1e-6, whatever the forward pass took."
    reported = "NVIDIA/cutlass PR#1112 (the constant)"

    def dx(self, dy: Array, x: Array, weight: Array, eps: float) -> Array:
        return super().dx(dy, x, weight, 1e-6)


class XhatFromY(Backward):
    name = "x̂ out of y"
    what = "x-hat is recovered as y / weight, with the weight held off 0: it is lost where w = 0."
    reported = "NVIDIA/TransformerEngine PR#404"

    def vjp(self, dy: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array]:
        dy_wide, gain = self.widened(dy), self.gain(weight)
        y = self.product(self.xhat(self.widened(x), eps), weight)
        xhat = y / np.where(gain == 0, gain.dtype.type(1e-5), gain)
        dx = self.projected(dy_wide * gain, xhat) / self.divisor(self.widened(x), eps)
        return self.stored(dx, x.dtype), self.stored(self.dweight(dy_wide, xhat), x.dtype)


class HalfRstdSaved(Backward):
    name = "rstd saved in half precision"
    what = "the backward pass reads a 1/RMS that was rounded to float16."
    reported = "amd/IRON PR#139 (forward)"

    def divisor(self, x: Array, eps: float) -> Array:
        exact = super().divisor(x, eps)
        mantissa, exponent = np.frexp(exact)  # so that it is the rounding alone that counts
        return np.asarray(np.ldexp(mantissa.astype(np.float16).astype(x.dtype), exponent))


class BiasGradient(Backward):
    name = "dweight without x̂"
    what = "dweight lacks x-hat: this is the gradient of a bias."
    reported = "intel/torch-xpu-ops PR#4790"
    path = "dweight"

    def dweight(self, dy: Array, xhat: Array) -> Array:
        total: Array = np.sum(dy, axis=0)
        return total


class XForXhat(Backward):
    name = "dweight with x"
    what = "dweight has x where x-hat, the normalised x, belongs."
    reported = "no public report found"
    path = "dweight"

    def vjp(self, dy: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array]:
        dx, _ = super().vjp(dy, x, weight, eps)
        dweight = self.dweight(self.widened(dy), self.widened(x))
        return dx, self.stored(dweight, weight.dtype)


class YForXhat(Backward):
    name = "dweight with y"
    what = "dweight has the weight in it: take x-hat without the weight."
    reported = "no public report found"
    path = "dweight"

    def vjp(self, dy: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array]:
        dx, _ = super().vjp(dy, x, weight, eps)
        y = self.product(self.xhat(self.widened(x), eps), weight)
        return dx, self.stored(self.dweight(self.widened(dy), y), weight.dtype)


class LastBlockDropped(Backward):
    name = "last rows dropped"
    what = "dweight leaves out the rows behind the last whole block of 64."
    reported = "BobMcDear/attorch #18"
    path = "dweight"

    def dweight(self, dy: Array, xhat: Array) -> Array:
        whole = len(dy) // 64 * 64 or len(dy)
        return super().dweight(dy[:whole], xhat[:whole])


class LastRowDropped(Backward):
    name = "last row dropped"
    what = "dweight leaves out the last row."
    reported = "BobMcDear/attorch #18 (a block of one)"
    path = "dweight"

    def dweight(self, dy: Array, xhat: Array) -> Array:
        return super().dweight(dy[:-1], xhat[:-1])


class WeightGradientPerRank(Backward):
    name = "dweight of one rank"
    what = "dweight is the sum of half of the rows: the other rank's were not added."
    reported = "NVIDIA/Megatron-LM #1446"
    path = "dweight"

    def dweight(self, dy: Array, xhat: Array) -> Array:
        mine = (len(dy) + 1) // 2
        return super().dweight(dy[:mine], xhat[:mine])


class HalfDweight(Backward):
    name = "dweight in half sums"
    what = "the terms of dweight are added up in float16."
    reported = "linkedin/Liger-Kernel PR#950"
    path = "dweight"

    def dweight(self, dy: Array, xhat: Array) -> Array:
        total = np.zeros(dy.shape[-1], np.float16)
        for row in (dy * xhat).astype(np.float16):
            total = total + row
        return total.astype(dy.dtype)


class Frozen(Backward):
    name = "weight frozen"
    what = "dweight is 0: the weight is never learned."
    reported = "unslothai/unsloth PR#4550; fla-org/flame #47"
    path = "dweight"

    def dweight(self, dy: Array, xhat: Array) -> Array:
        return np.zeros_like(dy[0])
