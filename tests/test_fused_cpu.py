"""The ladder of the processor: every rung is RMSNorm, the top one bit for bit what torch gives."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from rmsnorm_edu import _team, checks, fused_cpu, precision, reference

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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 17, 300])
def test_the_gradients(rows: int, dtype: str) -> None:
    x, dy, weight = matrix(rows, 130, dtype), matrix(rows, 130, dtype, 2), vector(130, dtype)
    dx, dweight = fused_cpu.rms_norm_vjp(dy, x, weight, eps=1e-3)
    truth = reference.rms_norm_vjp(dy, x, weight, eps=1e-3)
    for what, found, true in (("dx", dx, truth[0]), ("dweight", dweight, truth[1])):
        assert found.dtype == dtype
        assert np.all(np.abs(found - true) <= precision.allowed(what, x, weight, dy, eps=1e-3))
    plain, none = fused_cpu.rms_norm_vjp(dy, x, eps=1e-3)
    assert none is None
    true, _ = reference.rms_norm_vjp(dy, x, eps=1e-3)
    ones = np.ones(130, dtype)
    assert np.all(np.abs(plain - true) <= precision.allowed("dx", x, ones, dy, eps=1e-3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 7, 100, 255, 256, 1000, 1041, 4096])
def test_past_the_cache_the_bits_are_the_same(n: int, dtype: str, monkeypatch) -> None:
    x, weight, bias = matrix(5, n, dtype), vector(n, dtype), vector(n, dtype, seed=5)
    y = fused_cpu.rms_norm(x, weight, bias)
    monkeypatch.setattr(fused_cpu, "PAST", 0)
    for start in range(0, 20, 3):  # wherever the lines of the memory begin
        wide = np.full((7, n + 20), 7, dtype)
        out = wide[1:6, start : start + n]
        fused_cpu.rms_norm(x, weight, bias, out=out, threads=2)
        np.testing.assert_array_equal(out, y)
        out[...] = 7
        assert np.all(wide == 7)


def test_a_bias_is_added_last() -> None:
    x, weight, bias = matrix(4, 33), vector(33), vector(33, seed=5)
    y = fused_cpu.rms_norm(x, weight, bias)
    np.testing.assert_array_equal(y, fused_cpu.rms_norm(x, weight) + bias)


@pytest.mark.parametrize("threads", [2, 5])
def test_bits_know_neither_the_batch_nor_the_threads(threads: int, monkeypatch) -> None:
    monkeypatch.setattr(fused_cpu, "PIECE", 2**12)  # many pieces of few rows
    x, dy, weight = matrix(400, 65), matrix(400, 65, seed=2), vector(65)
    y = fused_cpu.rms_norm(x, weight, threads=1)
    dx, dweight = fused_cpu.rms_norm_vjp(dy, x, weight, threads=1)
    np.testing.assert_array_equal(fused_cpu.rms_norm(x, weight, threads=threads), y)
    np.testing.assert_array_equal(fused_cpu.rms_norm(x[7:8], weight), y[7:8])
    again = fused_cpu.rms_norm_vjp(dy, x, weight, threads=threads)
    np.testing.assert_array_equal(again[0], dx)
    np.testing.assert_array_equal(again[1], dweight)
    np.testing.assert_array_equal(fused_cpu.rms_norm_vjp(dy[7:8], x[7:8], weight)[0], dx[7:8])


def views() -> dict[str, np.ndarray]:
    """One matrix (6, 40), laid out in memory in many ways."""
    x = matrix(6, 40)
    wide, tall, apart = np.zeros((6, 100), "f4"), np.zeros((12, 40), "f4"), np.zeros((6, 80), "f4")
    wide[:, 30:70], tall[::2], apart[:, ::2] = x, x, x
    shifted = np.zeros(6 * 40 * 4 + 1, np.uint8)[1:].view("f4").reshape(6, 40)
    shifted[...] = x
    constant = x.copy()
    constant.flags.writeable = False
    return {
        "contiguous": x,
        "columns of a wider one": wide[:, 30:70],
        "every other row": tall[::2],
        "every other column": apart[:, ::2],
        "Fortran": np.asfortranarray(x),
        "upside down": x[::-1].copy()[::-1],
        "not aligned": shifted,
        "read-only": constant,
    }


@pytest.mark.parametrize("layout", views())
def test_strides_are_honoured_and_inputs_left_alone(layout: str) -> None:
    given, plain = views()[layout], views()["contiguous"]
    dy, weight = matrix(6, 40, seed=3), vector(40)
    for x, up, w in ((given, dy, weight), (plain, given, weight), (plain, dy, vector(120)[::3])):
        expected = reference.rms_norm_vjp(up, x, w)
        dx, dweight = fused_cpu.rms_norm_vjp(up, x, w)
        np.testing.assert_allclose(dx, expected[0], atol=1e-5 * np.abs(expected[0]).max())
        np.testing.assert_allclose(dweight, expected[1], atol=1e-5 * np.abs(expected[1]).max())
        np.testing.assert_array_equal(fused_cpu.rms_norm(x, w), fused_cpu.rms_norm(x.copy(), w))
    np.testing.assert_array_equal(given, plain)


def test_rows_of_a_broadcast_and_no_rows() -> None:
    row, weight = matrix(1, 9), vector(9)
    y = fused_cpu.rms_norm(np.broadcast_to(row, (5, 9)), weight)
    np.testing.assert_array_equal(y, np.repeat(fused_cpu.rms_norm(row, weight), 5, axis=0))
    empty = np.empty((0, 9), "f4")
    assert fused_cpu.rms_norm(empty, weight).shape == (0, 9)
    dx, dweight = fused_cpu.rms_norm_vjp(empty, empty, weight)
    assert dx.shape == (0, 9)
    np.testing.assert_array_equal(dweight, np.zeros(9, "f4"))


def test_out_takes_the_result_and_no_more() -> None:
    x, weight = matrix(3, 10), vector(10)
    wide = np.full((3, 16), 7, "f4")
    assert fused_cpu.rms_norm(x, weight, out=wide[:, 2:12]).base is wide
    np.testing.assert_array_equal(wide[:, 2:12], fused_cpu.rms_norm(x, weight))
    assert np.all(np.delete(wide, range(2, 12), axis=1) == 7)
    dx = np.empty_like(x)
    assert fused_cpu.rms_norm_vjp(x, x, weight, out=dx)[0] is dx


def test_nan_inf_and_zero_rows() -> None:
    x, weight = matrix(5, 100), vector(100)
    x[0, 3], x[1, 70], x[2], x[3] = np.nan, -np.inf, 0.0, 3e19
    y = fused_cpu.rms_norm(x, weight, eps=0.0)
    assert np.isnan(y[[0, 2]]).all()  # a zero row with eps = 0 is 0/0
    assert np.isnan(y[1, 70])
    assert np.all(np.delete(y[1], 70) == 0)
    assert np.all(y[3] == 0)  # its squares overflow float32, as torch's do
    assert np.isfinite(y[4]).all()
    assert np.all(fused_cpu.rms_norm(x[2:3], weight) == 0)
    assert np.all(fused_cpu.rms_norm(x[4:], weight, eps=1e39) == 0)  # eps is inf in float32


X, OUT = matrix(4, 8), np.empty((4, 8), "f4")
ERRORS = [
    ({"x": X.astype("f2")}, TypeError, "x has dtype float16; give float32 or float64"),
    ({"x": X.astype(">f4")}, TypeError, "x has dtype >f4; give float32 or float64"),
    ({"x": X[0]}, ValueError, r"x has shape \(8,\); give a matrix"),
    ({"x": X[:, :0]}, ValueError, r"x has shape \(4, 0\); give a matrix"),
    ({"weight": vector(7)}, ValueError, r"weight has dtype float32 and shape \(7,\); x float32"),
    ({"weight": vector(8, "float64")}, TypeError, "weight has dtype float64"),
    ({"bias": vector(9)}, ValueError, r"bias has dtype float32 and shape \(9,\)"),
    ({"eps": -1.0}, ValueError, "eps = -1.0"),
    ({"threads": 0}, ValueError, "threads = 0; give an integer >= 1"),
    ({"out": X}, ValueError, "out overlaps x"),
    ({"out": np.empty((4, 9), "f4")}, ValueError, r"out has dtype float32 and shape \(4, 9\)"),
    ({"out": np.empty((4, 8))}, TypeError, "out has dtype float64"),
    ({"out": [[0.0] * 8] * 4}, TypeError, "out is list; give a NumPy array"),
    ({"out": np.empty((8, 4), "f4").T}, ValueError, r"out has strides \(4, 16\)"),
    ({"out": np.broadcast_to(OUT[:1], (4, 8))}, ValueError, "out has strides"),
]


@pytest.mark.parametrize(("wrong", "error", "text"), ERRORS)
def test_errors_restate_what_came(wrong: dict, error: type, text: str) -> None:
    arguments = {"x": X, "weight": vector(8)} | wrong
    with pytest.raises(error, match=text):
        fused_cpu.rms_norm(**arguments)


def test_errors_of_the_gradients() -> None:
    with pytest.raises(ValueError, match=r"dy has dtype float32 and shape \(3, 8\)"):
        fused_cpu.rms_norm_vjp(X[:3], X)
    dy = X.copy()
    with pytest.raises(ValueError, match="out overlaps dy"):
        fused_cpu.rms_norm_vjp(dy, X, out=dy)


@pytest.mark.parametrize("library", ["numba", "llvmlite"])  # the second comes with the first
def test_without_numba_the_error_says_what_to_install(library, monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "rmsnorm_edu._fused_kernels", raising=False)
    monkeypatch.delattr("rmsnorm_edu._fused_kernels", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=r'pip install "rmsnorm_edu\[cpu\]"'):
        fused_cpu.rms_norm(X)
    assert fused_cpu.blocked(X, vector(8)).shape == X.shape  # needs none


def test_without_a_compiler_there_are_no_loops(monkeypatch) -> None:
    """They would run in Python for hours."""
    monkeypatch.delitem(sys.modules, "rmsnorm_edu._fused_kernels", raising=False)
    monkeypatch.delattr("rmsnorm_edu._fused_kernels", raising=False)
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    with pytest.raises(ImportError, match=r"NUMBA_DISABLE_JIT is set.*start without it"):
        fused_cpu.rms_norm(X)


def test_many_threads_of_python_at_once() -> None:
    x, weight = matrix(700, 33), vector(33)
    expected = fused_cpu.rms_norm(x, weight)
    found: list[bool] = []

    def work() -> None:
        for _ in range(20):
            found.append(np.array_equal(fused_cpu.rms_norm(x, weight, threads=3), expected))

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 120
    assert all(found)


FORK = """
import os, threading
import numpy as np
from rmsnorm_edu import fused_cpu

fused_cpu.PIECE = 2**10
x = np.linspace(-1, 3, 64 * 100, dtype="f4").reshape(64, 100)
y = fused_cpu.rms_norm(x, threads=3)
assert threading.active_count() > 1  # one or two: a helper that is free takes the next task
child = os.fork()
if child == 0:
    alone = threading.active_count() == 1
    os._exit(not (alone and np.array_equal(fused_cpu.rms_norm(x, threads=3), y)))
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_makes_threads_of_its_own() -> None:
    subprocess.run([sys.executable, "-c", FORK], check=True)


def test_an_error_in_a_thread_reaches_the_caller() -> None:
    def work(start: int, stop: int) -> None:
        if start == 6:
            raise KeyError(start)

    with pytest.raises(KeyError):
        _team.run(work, 10, 2, 3)


def test_there_is_one_pool_and_the_caller_can_do_without(monkeypatch) -> None:
    """Python starts no thread when it is about to end, the system none beyond a limit."""
    pool = _team._pool_of(9)
    assert pool is _team._pool_of(9) is _team._pool_of(2)

    def refuse(*_: object) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(_team.ThreadPoolExecutor, "submit", refuse)
    done: list[int] = []
    _team.run(lambda start, stop: done.extend(range(start, stop)), 10, 3, 4)
    assert done == list(range(10))
