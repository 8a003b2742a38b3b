"""`reference` against its equations as they are written, and against exact arithmetic."""

import itertools
import math
from fractions import Fraction

import exact
import numpy as np
import pytest

from rmsnorm_edu import precision, reference

U = 2.0**-53  # unit roundoff of float64
SMALLEST = 2.0**-1074  # the spacing of subnormal numbers

X = np.array([[1.5, -0.5, 2.0, 0.25], [3.0, 3.5, -1.0, 0.0]])
WEIGHT = np.array([0.5, -2.0, 1.5, 3.0])
BIAS = np.array([0.25, 1.0, -1.0, 0.0])
MEAN_SQUARE = np.mean(X**2, axis=-1, keepdims=True)
APART = 2 * precision.bound("float64", 4)  # two results, each with roundings of its own


# ---- the equations, as they are written


@pytest.mark.equation("rms")
def test_rms_is_the_root_of_the_mean_square() -> None:
    assert reference.rms([3.0, -4.0, 0.0, 0.0]) == 2.5
    np.testing.assert_allclose(reference.rms(X), np.sqrt(MEAN_SQUARE[:, 0]), rtol=4 * U)
    np.testing.assert_allclose(reference.rms(X, axis=0), np.sqrt((X**2).mean(0)), rtol=4 * U)
    assert reference.rms(np.ones((2, 3, 4)), axis=-2).shape == (2, 4)


@pytest.mark.equation("rms-norm", "eps-inside")
def test_rms_norm_divides_by_the_rms_with_eps_inside() -> None:
    expected = X / np.sqrt(MEAN_SQUARE + 0.1) * WEIGHT + BIAS
    got = reference.rms_norm(X, WEIGHT, BIAS, eps=0.1)
    np.testing.assert_allclose(got, expected, rtol=2 * U, atol=APART * np.max(np.abs(expected)))


@pytest.mark.equation("eps-outside")
def test_rms_norm_with_eps_outside() -> None:
    expected = X / (np.sqrt(MEAN_SQUARE) + 0.1) * WEIGHT
    got = reference.rms_norm(X, WEIGHT, eps=0.1, eps_outside=True)
    bounds = precision.bound("float64", 4) + precision.bound("float64", 4, convention="paper_torch")
    np.testing.assert_allclose(got, expected, rtol=bounds)


@pytest.mark.equation("layer-norm")
def test_layer_norm_is_rms_norm_of_the_centred_row() -> None:
    mean, variance = X.mean(-1, keepdims=True), X.var(-1, keepdims=True)
    expected = (X - mean) / np.sqrt(variance + 0.1) * WEIGHT + BIAS
    got = reference.layer_norm(X, WEIGHT, BIAS, eps=0.1)
    np.testing.assert_allclose(got, expected, rtol=16 * U, atol=16 * U)
    assert not np.allclose(got, reference.rms_norm(X, WEIGHT, BIAS, eps=0.1))


@pytest.mark.equation("mean-and-spread")
def test_mean_square_is_squared_mean_plus_variance() -> None:
    x = np.random.default_rng(1).normal(3.0, 2.0, (5, 100))
    expected = x.mean(-1) ** 2 + x.var(-1)
    np.testing.assert_allclose(reference.rms(x) ** 2, expected, rtol=100 * U)


@pytest.mark.equation("shift-rms")
@pytest.mark.parametrize("c", [-2.5, 0.3, 40.0])
def test_rms_after_a_shift(c: float) -> None:
    expected = reference.rms(X) ** 2 + 2 * c * X.mean(-1) + c**2
    np.testing.assert_allclose(reference.rms(X + c) ** 2, expected, rtol=64 * U, atol=64 * U * c**2)


@pytest.mark.equation("rms-homogeneous")
@pytest.mark.parametrize("alpha", [-3.0, 0.1, 1e-200, 1e200])
def test_rms_is_homogeneous(alpha: float) -> None:
    np.testing.assert_allclose(reference.rms(alpha * X), abs(alpha) * reference.rms(X), rtol=8 * U)


@pytest.mark.equation("scale-invariance")
@pytest.mark.parametrize("alpha", [-3.0, -1e-150, 0.1, 7e200])
@pytest.mark.parametrize("k", [None, 2])
def test_the_output_keeps_under_scaling_and_takes_the_sign(alpha: float, k: int | None) -> None:
    before = reference.rms_norm(X, WEIGHT, eps=0.0, k=k)
    after = reference.rms_norm(alpha * X, WEIGHT, eps=0.0, k=k)
    np.testing.assert_allclose(after, math.copysign(1, alpha) * before, rtol=APART)


@pytest.mark.equation("eps-shrink")
@pytest.mark.parametrize("eps", [1e-12, 1e-6, 0.5, 1e3])
def test_eps_shrinks_the_output(eps: float) -> None:
    share = 1 / np.sqrt(1 + eps / MEAN_SQUARE)
    ideal = reference.rms_norm(X, WEIGHT, eps=0.0)
    np.testing.assert_allclose(
        reference.rms_norm(X, WEIGHT, eps=eps), share * ideal, rtol=APART + 4 * U
    )


@pytest.mark.equation("eps-scaling")
@pytest.mark.parametrize("alpha", [-3.0, 0.01, 1e6])
@pytest.mark.parametrize("eps", [1e-12, 1e-3, 1e3])
def test_a_factor_on_the_input_is_one_on_eps(alpha: float, eps: float) -> None:
    scaled = reference.rms_norm(alpha * X, WEIGHT, eps=eps)
    expected = math.copysign(1, alpha) * reference.rms_norm(X, WEIGHT, eps=eps / alpha**2)
    np.testing.assert_allclose(scaled, expected, rtol=APART + 4 * U)


@pytest.mark.equation("safe-scaling")
@pytest.mark.parametrize("eps", [0.0, 1e-6])
def test_dividing_by_the_largest_first_changes_nothing(eps: float) -> None:
    m = np.max(np.abs(X), axis=-1, keepdims=True)
    rows = zip(X / m, m[:, 0], strict=True)
    scaled = [reference.rms_norm(row, WEIGHT, eps=eps / largest**2) for row, largest in rows]
    np.testing.assert_allclose(scaled, reference.rms_norm(X, WEIGHT, eps=eps), rtol=APART)


# ---- exact arithmetic, from the smallest number to nearly the largest

SIZES = (1e-320, 1e-200, 1e-162, 1e-9, 1.0, 1e3, 1e155, 1e300)
OPTIONS = list(itertools.product((1, 2, 5), SIZES, (0.0, 1e-12, 1e-6, 1e4), (False, True)))


def a_row(n: int, size: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = size * rng.uniform(0.2, 1.0, n) * rng.choice([-1.0, 1.0, 1.0], n)
    return rng.normal(0.5, 1.0, n), x, rng.uniform(0.3, 2.0, n) * rng.choice([-1.0, 1.0], n)


def assert_close(got: np.ndarray, expected: np.ndarray, atol: float) -> None:
    same = got == expected  # inf where the exact value is beyond float64
    with np.errstate(invalid="ignore"):  # inf − inf, where they are the same
        assert np.all(same | (np.abs(got - expected) <= atol)), (got, expected)


@pytest.mark.equation("rms-norm", "safe-scaling", "eps-inside", "eps-outside")
@pytest.mark.parametrize(("n", "size", "eps", "outside"), OPTIONS)
def test_output_is_exact_for_every_size(n: int, size: float, eps: float, outside: bool) -> None:
    rule = "paper_torch" if outside else "torch"
    for k in {1, (n + 1) // 2, n}:
        _, x, weight = a_row(n, size, seed=n)
        got = reference.rms_norm(x, weight, eps=eps, k=k, eps_outside=outside)
        expected = exact.rms_norm(x, weight, eps, k, outside)
        worst = np.max(np.abs(expected))
        assert_close(
            got, expected, precision.bound("float64", n, convention=rule) * worst + 4 * SMALLEST
        )


@pytest.mark.parametrize(("n", "size", "eps", "outside"), OPTIONS)
def test_gradients_are_exact_for_every_size(n: int, size: float, eps: float, outside: bool) -> None:
    for k in {1, (n + 1) // 2, n}:
        dy, x, weight = a_row(n, size, seed=n)
        dx, dweight = reference.rms_norm_vjp(dy, x, weight, eps=eps, k=k, eps_outside=outside)
        terms = exact.size_of_terms(dy, x, weight, eps, k, outside)
        atol = precision.bound("float64", n, what="dx") * terms + 4 * SMALLEST
        assert_close(dx, exact.dx(dy, x, weight, eps, k, outside), atol)
        expected = exact.rms_norm(x, dy, eps, k, outside)  # of one row: dy · x̂
        part = precision.bound("float64", n, what="dweight")
        atol = part * np.max(np.abs(expected)) + 4 * SMALLEST
        assert_close(dweight, expected, atol)


@pytest.mark.parametrize("outside", [False, True])
def test_a_tiny_head_before_a_large_tail(outside: bool) -> None:
    """k < n: the head alone makes D, and how D moves must not vanish when its squares do."""
    x = np.array([3e-200, -1e-200, 0.5, 2.0])
    dy, weight = np.array([1.0, -2.0, 0.5, 3.0]), WEIGHT
    for eps in (1e-8, 1e-300):
        options = {"eps": eps, "k": 2, "eps_outside": outside}
        dx, _ = reference.rms_norm_vjp(dy, x, weight, **options)
        expected = exact.dx(dy, x, weight, eps, 2, outside)
        terms = exact.size_of_terms(dy, x, weight, eps, 2, outside)
        assert_close(dx, expected, precision.bound("float64", 4, what="dx") * terms)


@pytest.mark.parametrize("size", SIZES)
def test_rms_is_exact_for_every_size(size: float) -> None:
    _, x, _ = a_row(5, size, seed=2)
    expected = exact.rms(x)
    assert abs(reference.rms(x) - expected) <= 8 * U * expected + SMALLEST


@pytest.mark.equation("layer-norm")
def test_layer_norm_does_not_lose_a_large_mean() -> None:
    """Rounding the mean shifts all x − mean alike; the second pass takes that shift away."""
    x = 1e8 + np.random.default_rng(8).normal(0.0, 1e-3, (20, 7))
    exact_rows = [[Fraction(v) - sum(map(Fraction, row)) / 7 for v in row] for row in x]
    centred = np.array([[float(v) for v in row] for row in exact_rows])
    got = reference.layer_norm(x, eps=0.0)
    np.testing.assert_allclose(got, reference.rms_norm(centred, eps=0.0), rtol=16 * U, atol=16 * U)


def test_dweight_of_many_rows_is_summed_pairwise() -> None:
    """Pairwise: log₂(rows) + 16 roundings of the terms at worst; one after another: rows."""
    dy = np.random.default_rng(9).uniform(0.0, 1.0, (100_000, 2))
    x = np.full_like(dy, 3.0)  # so that x̂ = 1 to the bit
    _, dweight = reference.rms_norm_vjp(dy, x, [-2.0, 5.0], eps=0.0)
    exact_sums = [math.fsum(column) for column in dy.T]
    np.testing.assert_allclose(dweight, exact_sums, rtol=4 * U)


# ---- the twins


def test_batch_norm_centres_and_scales_each_feature() -> None:
    x = np.random.default_rng(4).normal(2.0, 3.0, (5, 6, 4))
    mean, variance = x.mean((0, 1)), x.var((0, 1))
    expected = (x - mean) / np.sqrt(variance + 0.1) * WEIGHT + BIAS
    got = reference.batch_norm(x, WEIGHT, BIAS, eps=0.1)
    np.testing.assert_allclose(got, expected, rtol=64 * U, atol=64 * U)


def test_weight_norm_gives_each_row_the_length_gain() -> None:
    w = reference.weight_norm(X, [2.0, -3.0])
    np.testing.assert_allclose(np.linalg.norm(w, axis=-1), [2.0, 3.0], rtol=8 * U)
    np.testing.assert_allclose(w[1] / X[1, 0] * w[1, 0] > 0, X[1] > 0)
    assert np.isnan(reference.weight_norm(np.zeros((1, 2)))).all()
    np.testing.assert_allclose(reference.weight_norm([[3e300, 4e300]]), [[0.6, 0.8]], rtol=8 * U)


@pytest.mark.equation("layer-norm")
def test_layer_norm_gradient_is_that_of_its_output() -> None:
    """Complex step: the imaginary part of f(x + ih)/h has no cancellation."""
    rng = np.random.default_rng(6)
    x, dy = rng.normal(2.0, 1.0, (3, 4)), rng.normal(0.5, 1.0, (3, 4))
    dx, dweight = reference.layer_norm_vjp(dy, x, WEIGHT, eps=0.1)
    for i in range(4):
        moved = x + 1e-30j * (np.arange(4) == i)
        centred = moved - moved.mean(-1, keepdims=True)
        y = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 0.1) * WEIGHT
        np.testing.assert_allclose(dx[:, i], (dy * y).sum(-1).imag / 1e-30, rtol=0, atol=64 * U)
    expected = (dy * reference.layer_norm(x, eps=0.1)).sum(0)
    np.testing.assert_allclose(dweight, expected, rtol=0, atol=16 * U)
    assert reference.layer_norm_vjp(dy, x)[1] is None
