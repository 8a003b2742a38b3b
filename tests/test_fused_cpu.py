"""The ladder of the processor: every rung is RMSNorm, the top one bit for bit what torch gives."""

import numpy as np
import pytest

from rmsnorm_edu import checks, fused_cpu, precision, reference

LENGTHS = [*range(1, 10), 31, 32, 33, 100, 127, 128, 129, 1000, 4096, 8193, 70001]
pytest.importorskip("numba")


def matrix(rows: int, n: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Normal numbers with a mean of their own, in rows of different size."""
    x = np.random.default_rng(seed).normal(0.5, 1.0, (rows, n))
    return (x * np.logspace(-1, 1, rows)[:, np.newaxis]).astype(dtype)


def vector(n: int, dtype: str = "float32", seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2.0, 2.0, n).astype(dtype)


@pytest.mark.parametrize("name", fused_cpu.RUNGS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_rung_is_rms_norm(name: str, dtype: str) -> None:
    x, weight = matrix(5, 129, dtype), vector(129, dtype)
    truth = reference.rms_norm(x, weight)
    out = np.full_like(x, np.nan)
    for y in (fused_cpu.RUNGS[name](x, weight), fused_cpu.RUNGS[name](x, weight, out=out)):
        assert y.dtype == dtype
        assert np.all(np.abs(y - truth) <= precision.bound(dtype, 129) * np.abs(truth))
    assert y is out


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bits_of_torch(n: int, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("torch adds up in another order on this processor")
    x, weight = matrix(5, n, dtype), vector(n, dtype)
    norm = torch.nn.functional.rms_norm
    theirs = norm(torch.from_numpy(x), (n,), torch.from_numpy(weight), 1e-6)
    np.testing.assert_array_equal(fused_cpu.rms_norm(x, weight), theirs.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_verify_finds_nothing(dtype: str) -> None:
    def forward(x, weight, eps):
        return fused_cpu.rms_norm(x, weight, eps=eps)

    def vjp(dy, x, weight, eps):
        return fused_cpu.rms_norm_vjp(dy, x, weight, eps=eps)

    report = checks.verify(forward, vjp, dtype=dtype, seeds=1)
    assert report.ok, report
