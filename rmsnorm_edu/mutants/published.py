"""Tests of RMSNorm as libraries published them: their inputs and tolerances, as data.

Each compares with a reference by |a − b| ≤ atol + rtol·|b|. `passes` runs one on a mutant with the
right program of this package as the reference. The shapes are a few of the test's, small ones and,
where cheap, one of many features or of many rows, so that all run in seconds; what each draws x,
weight and dy from is the test's own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from rmsnorm_edu._rounding import numpy_type
from rmsnorm_edu.mutants.base import Array, RMSNorm

Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.normal(size=shape)


@dataclass(frozen=True)
class PublishedTest:
    """`source` is the file and commit; `results` of y, dx, dweight are the ones that it compares.

    `x`, `weight` and `dy` draw the inputs. `one_sided`: only where the reference is the larger
    does an error count. `strided`: x is also given as the left half of a wider array. `typed`: a
    result of another type fails, as `torch.allclose` and `torch.testing.assert_close` have it.
    """

    source: str
    dtype: str
    atol: float
    rtol: float
    shapes: tuple[tuple[int, int], ...]
    weight: Draw
    x: Draw = _normal
    dy: Draw = _normal
    eps: float = 1e-6
    results: tuple[str, ...] = ("y", "dx", "dweight")
    one_sided: bool = False
    strided: bool = False
    typed: bool = False

    def inputs(self) -> Iterator[tuple[Array, Array, Array]]:
        """(x, weight, dy) of `dtype` for each shape."""
        rng = np.random.default_rng(0)
        dtype = numpy_type(self.dtype)
        for rows, n in self.shapes:
            x, w, dy = self.x(rng, (rows, n)), self.weight(rng, (n,)), self.dy(rng, (rows, n))
            yield x.astype(dtype), w.astype(dtype), dy.astype(dtype)
            if self.strided:
                wide = np.concatenate((x, self.x(rng, (rows, n))), axis=-1).astype(dtype)
                yield wide[:, :n], w.astype(dtype), dy.astype(dtype)

    def passes(self, norm: RMSNorm) -> bool:
        """Whether no result of `norm` is further off than the test allows."""
        right = RMSNorm()
        for x, weight, dy in self.inputs():
            theirs = _results(right, x, weight, dy, self.eps)
            ours = _results(norm, x, weight, dy, self.eps)
            if not all(self.close(ours[name], theirs[name]) for name in self.results):
                return False
        return True

    def close(self, got: Array, expected: Array) -> bool:
        """|got − expected| ≤ atol + rtol·|expected| everywhere; nan is never close."""
        if self.typed and got.dtype != expected.dtype:
            return False
        got, expected = got.astype(np.float64), expected.astype(np.float64)
        error = expected - got
        if not self.one_sided:
            error = np.abs(error)
        return bool(np.all(error <= self.atol + self.rtol * np.abs(expected)))


def _results(norm: RMSNorm, x: Array, weight: Array, dy: Array, eps: float) -> dict[str, Array]:
    """y, dx and dweight; a mutant may write into x, which keeps its gaps, but not into x's copy."""
    again = x.copy("K")
    with np.errstate(all="ignore"):
        y = norm.forward(x, weight.copy(), eps)
        dx, dweight = norm.vjp(dy.copy(), again, weight.copy(), eps)
    return {"y": y, "dx": dx, "dweight": dweight}


def _ones(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.ones(shape)


def _uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.uniform(size=shape)


TESTS: Mapping[str, PublishedTest] = MappingProxyType(
    {
        "Liger, early": PublishedTest(
            "linkedin/Liger-Kernel at 030cb71, test/transformers/test_rms_norm.py",
            "bfloat16",
            5.0,
            1e-5,
            ((256, 512), (615, 123)),
            _ones,
            typed=True,
        ),
        "Liger": PublishedTest(
            "linkedin/Liger-Kernel at af35a6c, test/transformers/test_rms_norm.py",
            "bfloat16",
            2e-1,
            2e-2,
            ((256, 512), (615, 123)),
            _ones,
        ),
        "Liger, float32": PublishedTest(
            "linkedin/Liger-Kernel at af35a6c, test/transformers/test_rms_norm.py",
            "float32",
            1e-4,
            1e-6,
            ((256, 512), (615, 123)),
            _ones,
        ),
        "Triton tutorial": PublishedTest(
            "triton-lang/triton at 5456992, python/tutorials/05-layer-norm.py (of a layer norm)",
            "float16",
            1e-2,
            0.0,
            ((1151, 256),),
            _uniform,
            x=lambda rng, shape: -2.3 + 0.5 * rng.normal(size=shape),
            dy=lambda rng, shape: 0.1 * rng.normal(size=shape),
            eps=1e-5,
            typed=True,
        ),
        "Unsloth": PublishedTest(
            "unslothai/unsloth at 0050c73, unsloth/kernels/rms_layernorm.py",
            "float16",
            0.05,
            0.0,
            ((349, 512),),
            _uniform,
            eps=1e-5,
            results=("dx",),
            one_sided=True,
        ),
        "vLLM": PublishedTest(
            "vllm-project/vllm at 041b9f5, tests/kernels/core/test_layernorm.py",
            "bfloat16",
            1e-2,
            1e-2,
            ((7, 8), (83, 768), (83, 769), (7, 5125), (4096, 8)),
            lambda rng, shape: rng.normal(1.0, 0.1, shape),
            x=lambda rng, shape: rng.normal(size=shape) / (2 * shape[-1]),
            results=("y",),
            strided=True,
            typed=True,
        ),
        "FlashInfer": PublishedTest(
            "flashinfer-ai/flashinfer at 3613a5b, tests/test_norm.py",
            "float16",
            1e-3,
            1e-3,
            ((1, 111), (19, 500), (99, 1024), (19, 8192)),
            _normal,
            results=("y",),
            typed=True,
        ),
        "QuACK": PublishedTest(
            "Dao-AILab/quack at 05bce72, tests/test_rmsnorm.py (forward and backward: y and dx)",
            "bfloat16",
            1e-1,
            1e-3,
            ((1, 192), (37, 256), (199, 760), (1, 8192)),
            _normal,
            results=("y", "dx"),
            typed=True,
        ),
    }
)
