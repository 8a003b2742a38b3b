"""Mutants of loads, stores, layouts and the order of work: the formula is right."""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from rmsnorm_edu.mutants.base import Array, Mutant


class Memory(Mutant):
    """A fault of addresses."""

    path = "memory"


class InputMutated(Memory):
    name = "input overwritten"
    what = "float32 input is not copied when it is widened, and x-hat is written into it."
    reported = "GeeeekExplorer/nano-vllm #170"

    def forward(self, x: Array, weight: Array, eps: float) -> Array:
        wide = x.astype(np.float64 if x.dtype == np.float64 else np.float32, copy=False)
        np.divide(wide, self.divisor(wide, eps), out=wide)
        return self.stored(self.product(wide, weight), x.dtype)


class UpstreamMutated(Memory):
    name = "dy overwritten"
    what = "dx is written over dy, and dweight is then made of it."
    reported = "unslothai/unsloth PR#4550"
    wrong = ("vjp",)

    def vjp(self, dy: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array]:
        dx, _ = super().vjp(dy, x, weight, eps)
        dy[...] = dx
        return dy, super().vjp(dy, x, weight, eps)[1]


class StridesIgnored(Memory):
    name = "strides ignored"
    what = "the second pass reads x as if its rows lay one after the other in memory."
    reported = "ggml-org/llama.cpp PR#13031"

    def forward(self, x: Array, weight: Array, eps: float) -> Array:
        divisor = self.divisor(self.widened(np.ascontiguousarray(x)), eps)
        as_it_lies = self.widened(_one_after_the_other(x))
        return self.stored(self.product(as_it_lies / divisor, weight), x.dtype)


def _one_after_the_other(x: Array) -> Array:
    """What lies in memory from x's first number on, as if there were no strides.

    x itself where that would read beyond the array.
    """
    item = x.itemsize
    span = item + sum((size - 1) * step for size, step in zip(x.shape, x.strides, strict=True))
    if min(x.strides) < 0 or span < x.nbytes:
        return x
    return as_strided(x, strides=(x.shape[-1] * item, item), writeable=False)


class PaddingCounted(Memory):
    name = "padding counted"
    what = "the sum is divided by the width of the block, a power of two, and not by n."
    reported = "tenstorrent/tt-metal PR#51159 (group norm)"

    def mean_square(self, x: Array) -> Array:
        n = x.shape[-1]
        block = 1 << (n - 1).bit_length()
        return np.asarray(super().mean_square(x) * x.dtype.type(n / block))


class NextRowRead(Memory):
    name = "padding lanes not masked"
    what = "the lanes behind the row's end read the next row, and its squares are counted."
    reported = "flagos-ai/FlagGems PR#4985 (group norm)"

    def mean_square(self, x: Array) -> Array:
        n = x.shape[-1]
        beyond = (1 << (n - 1).bit_length()) - n
        following = np.zeros((len(x), beyond), x.dtype)
        following[:-1] = x[1:, :beyond]
        extra = np.sum(np.square(following), axis=-1, keepdims=True)
        return np.asarray(super().mean_square(x) + extra / x.dtype.type(n))


class NextRowWritten(Memory):
    name = "next row overwritten"
    what = "with an odd n, pairs are stored: the last store hits the next row's first column."
    reported = "ROCm/aiter #5044"

    def forward(self, x: Array, weight: Array, eps: float) -> Array:
        y = super().forward(x, weight, eps)
        if x.shape[-1] % 2:
            y[1:, 0] = 0
        return y


class TailForgotten(Memory):
    name = "features beyond the block"
    what = "the statistic sees the first 4096 features only."
    reported = "intel/llm-scaler PR#510"

    def mean_square(self, x: Array) -> Array:
        return super().mean_square(x[:, :4096])


class RowsBeyondTheGrid(Memory):
    name = "rows beyond the grid"
    what = "only as many rows as the grid has blocks are computed, here 1024; the others stay 0."
    reported = "NVIDIA/apex #411; ggml-org/llama.cpp #27901 (both 65535)"

    def forward(self, x: Array, weight: Array, eps: float) -> Array:
        y = super().forward(x, weight, eps)
        y[1024:] = 0
        return y


class PerRank(Memory):
    name = "statistics per rank"
    what = "each half of the features is divided by its own RMS: the ranks did not add up."
    reported = "sgl-project/sglang PR#38230; ml-explore/mlx-lm PR#898"

    def xhat(self, x: Array, eps: float) -> Array:
        halves = np.array_split(x, 2, axis=-1) if x.shape[-1] > 1 else [x]
        return np.concatenate([super(PerRank, self).xhat(half, eps) for half in halves], axis=-1)


class BatchDependent(Mutant):
    name = "order depends on the batch"
    what = "the order of the sum, and so its last bits, depend on how many rows there are."
    reported = "vllm-project/vllm PR#48391"
    path = "batch"

    def mean_square(self, x: Array) -> Array:
        block = 1024 if len(x) < 256 else 256
        squares = np.square(x)
        starts = range(0, x.shape[-1], block)
        parts = [np.sum(squares[:, i : i + block], axis=-1, keepdims=True) for i in starts]
        return np.asarray(sum(parts) / x.dtype.type(x.shape[-1]))
