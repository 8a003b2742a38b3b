"""The equations of the chapter "Fusion", and the benchmark that its table comes from."""

import numpy as np
import pytest
import torch

from rmsnorm_edu import cost, precision, recorded, reference
from rmsnorm_edu.benchmarks import compiled_norms


@pytest.fixture
def rng() -> np.random.Generator:
    """The same numbers for a test, whichever ran before it."""
    return np.random.default_rng(5)


@pytest.mark.equation("add-bytes", "add-backward-bytes")
@pytest.mark.parametrize(("rows", "n", "dtype"), [(64, 512, "float32"), (4096, 1000, "float16")])
@pytest.mark.parametrize(("way", "two", "one"), [("forward", 5, 4), ("backward", 6, 4)])
def test_two_kernels_and_one_move_so_many_arrays(way, two, one, rows, n, dtype) -> None:
    own = 4 if dtype == "float32" else 2
    vectors = (1 if way == "forward" else 2) * n * own + 4 * rows
    for operation, arrays in ((f"add_then_{way}", two), (f"add_{way}", one)):
        assert cost.bytes_moved(operation, rows, n, dtype) == arrays * rows * n * own + vectors


@pytest.mark.equation("add-norm-gradient")
def test_the_stream_s_gradient_passes_beside_the_norm(rng) -> None:
    x, r, dy, dh = rng.normal(0.4, 1.5, (4, 3, 7))
    weight = rng.uniform(0.5, 2.0, 7) * np.array([1, -1, 1, 1, -1, 1, 1])
    step = 1e-6 * rng.normal(size=(3, 7))

    def loss(x: np.ndarray, r: np.ndarray) -> float:
        h = x + r
        return float(np.sum(dy * reference.rms_norm(h, weight)) + np.sum(dh * h))

    dx = dh + reference.rms_norm_vjp(dy, x + r, weight)[0]
    for moved in (loss(x + step, r) - loss(x - step, r), loss(x, r + step) - loss(x, r - step)):
        assert moved == pytest.approx(2 * np.sum(dx * step), rel=1e-7)


@pytest.mark.equation("deferred-scale")
def test_the_factor_may_wait_until_after_the_product(rng) -> None:
    x = rng.normal(0.3, 4.0, (5, 33))
    weight, matrix = rng.uniform(-2.0, 2.0, 33), rng.normal(size=(33, 6))
    rho = 1 / np.hypot(reference.rms(x), 1e-3)
    deferred = rho[:, np.newaxis] * (x @ (weight[:, np.newaxis] * matrix))
    y = reference.rms_norm(x, weight, eps=1e-6)
    size = np.abs(y) @ np.abs(matrix)  # of which each of 33 products and sums may lose its share
    assert np.all(np.abs(deferred - y @ matrix) <= 80 * 2.0**-53 * size)


def test_the_programs_hold_the_norm(rng) -> None:
    x = torch.tensor(rng.normal(0.3, 2.0, (3, 64)), dtype=torch.float32)
    weight = torch.tensor(rng.uniform(0.5, 1.5, 64), dtype=torch.float32)
    exact = reference.rms_norm(x.numpy(), weight.numpy())
    off = np.abs(compiled_norms.norm(x, weight).numpy() - exact)
    assert np.all(off <= precision.bound("float32", 64) * np.abs(exact))


CODE = """
cpp_fused_add_0 = async_compile.cpp_pybinding(r'''
    #pragma omp for
    #pragma omp for
''')
def call(args):
    cpp_fused_add_0(arg0_1, buf0)
    buf1 = torch.ops.rmsnorm_edu_benchmark.opaque_norm.default(buf0, arg1_1)
    extern_kernels.mm(buf1, arg2_1, out=buf2)
    del buf1
"""


def test_calls_are_those_that_compute() -> None:
    assert compiled_norms.calls(CODE) == [
        "cpp_fused_add_0",
        "rmsnorm_edu_benchmark.opaque_norm.default",
        "extern_kernels.mm",
    ]


def test_the_record_has_every_program() -> None:
    found = recorded.load("compiled_norms").data["programs"]
    assert found.keys() == compiled_norms.PROGRAMS.keys()
    assert found["norm"]["passes"] == 1
    assert found["add, norm"]["passes"] == 2
