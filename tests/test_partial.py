"""The laws of the partial RMS: against exact integrals, all subsets, and seeded samples."""

import itertools
import math

import numpy as np
import pytest

from rmsnorm_edu import conventions, partial, reference

U = 2.0**-53
SIZES = (1, 2, 3, 7, 16, 64, 199, 200, 201, 4096)
PAIRS = ((1, 2), (1, 8), (2, 5), (3, 4), (7, 8), (16, 256), (64, 1024), (100, 1600))


def moment(k: int, n: int | None, power: int) -> float:
    """E[rᵖᵒʷᵉʳ] by the midpoint rule in a variable in which the density is smooth at its ends."""
    edge = 1 + 12 / math.sqrt(k) if n is None else math.sqrt(n / k)
    angle = (np.arange(20_000) + 0.5) * (math.pi / 2 / 20_000)
    r = edge * np.sin(angle) ** 2 if n is None else edge * np.sin(angle)
    slope = 2 * edge * np.sin(angle) * np.cos(angle) if n is None else edge * np.cos(angle)
    return float(np.mean(partial.density(r, k, n) * slope * r**power) * math.pi / 2)


@pytest.mark.equation("chi-density", "chi-mean", "chi-inverse-mean")
@pytest.mark.parametrize("k", SIZES)
def test_moments_of_a_normal_row_are_the_integrals_of_its_density(k: int) -> None:
    assert moment(k, None, 0) == pytest.approx(1, rel=1e-8)
    assert moment(k, None, 2) == pytest.approx(1, rel=1e-9)
    assert partial.mean(k) == pytest.approx(moment(k, None, 1), rel=1e-9)
    assert partial.sd(k) ** 2 == pytest.approx(1 - partial.mean(k) ** 2, rel=1e-9)
    if k >= 3:
        assert partial.inverse_mean(k) == pytest.approx(moment(k, None, -1), rel=1e-6)
        square = partial.inverse_mean(k) ** 2 + partial.inverse_sd(k) ** 2
        assert square == pytest.approx(k / (k - 2), rel=1e-12)


@pytest.mark.equation("chi-inverse-mean")
def test_one_feature_has_no_mean_and_two_no_variance() -> None:
    assert partial.inverse_mean(1) == partial.inverse_sd(1) == partial.inverse_sd(2) == math.inf
    assert partial.inverse_mean(2) == pytest.approx(math.sqrt(math.pi), rel=1e-15)
    assert partial.inverse_mean(1, n=8) == partial.inverse_sd(2, n=8) == math.inf
    assert partial.inverse_mean(1, n=1) == partial.inverse_mean(2, n=2) == 1
    assert partial.inverse_sd(1, n=1) == partial.inverse_sd(2, n=2) == partial.sd(1, n=1) == 0


@pytest.mark.equation("same-row")
@pytest.mark.parametrize(("k", "n"), PAIRS)
def test_within_a_row_the_law_is_beta(k: int, n: int) -> None:
    assert moment(k, n, 0) == pytest.approx(1, rel=1e-7)
    assert moment(k, n, 2) == pytest.approx(1, rel=1e-7)
    assert partial.mean(k, n) == pytest.approx(moment(k, n, 1), rel=1e-7)
    assert partial.mean(k, n) == partial.mean(k) / partial.mean(n)
    if k >= 3:
        assert partial.inverse_mean(k, n) == pytest.approx(moment(k, n, -1), rel=1e-7)
        square = moment(k, n, -2) - partial.inverse_mean(k, n) ** 2
        assert partial.inverse_sd(k, n) ** 2 == pytest.approx(square, rel=1e-5)


def test_a_long_row_is_the_whole_world() -> None:
    n = 10**9
    for law in (partial.mean, partial.sd, partial.inverse_mean, partial.inverse_sd):
        assert law(16, n) == pytest.approx(law(16), rel=1e-7)
    r = np.linspace(0.4, 1.8, 29)
    # the density's logarithm holds a difference of numbers near n/2 · log(n/2): 10¹⁰ of U each
    np.testing.assert_allclose(partial.density(r, 16, n), partial.density(r, 16), rtol=1e-4)


@pytest.mark.equation("chi-mean", "rms-spread")
@pytest.mark.parametrize("k", [50, 200, 201, 10_000, 10**8])
def test_large_k_has_the_short_form(k: int) -> None:
    """The next terms are 1/(32k²) in the mean, a share 1/(8k) in the spread."""
    assert abs(partial.mean(k) - (1 - 1 / (4 * k))) <= 1 / (31 * k * k) + 2 * U
    assert abs(partial.inverse_mean(k) - (1 + 3 / (4 * k))) <= 1 / (k * k) + 2 * U
    short = partial.spread(k) / 2
    assert short == pytest.approx(1 / math.sqrt(2 * k), rel=4 * U)
    assert abs(partial.sd(k) / short - 1) <= 1 / (7 * k) + 2 * U * k


def test_the_two_ways_to_the_mean_meet() -> None:
    for k in range(180, 201):
        series = sum(c * (2 / k) ** i for i, c in enumerate(partial._SERIES))
        assert partial.mean(k) == pytest.approx(series, rel=16 * U)  # next term: 2e-3 (2/k)⁶


def _samples(kind: str, rng: np.random.Generator, shape: tuple[int, int]):
    """Features with mean square 2.25, and their kurtosis about 0; none of them has weight 1."""
    if kind == "shifted":  # N(1.2, 0.9²): E[x⁴] = 0.9⁴·3 + 6·0.9²·1.2² + 1.2⁴
        return rng.normal(1.2, 0.9, shape), (3 * 0.9**4 + 6 * 0.9**2 * 1.2**2 + 1.2**4) / 2.25**2
    if kind == "laplace":
        return rng.laplace(0, math.sqrt(2.25 / 2), shape), 6.0
    return rng.uniform(-1, 1, shape) * math.sqrt(3 * 2.25), 1.8


@pytest.mark.equation("mean-square-unbiased", "mean-square-variance", "rms-spread")
@pytest.mark.parametrize("kind", ["shifted", "laplace", "uniform"])
def test_variance_of_the_mean_square_by_kurtosis(kind: str) -> None:
    k, rows = 32, 20_000
    x, kurtosis = _samples(kind, np.random.default_rng(1), (rows, k))
    size = reference.rms(x)
    square = size**2 / 2.25
    spread = partial.spread(k, kurtosis)
    assert abs(np.mean(square) - 1) <= 5 * spread / math.sqrt(rows)
    # an sd of N rows is known to 1/√(2N) for a normal law; the tails of these ask for twice that
    known = 5 * 2 / math.sqrt(2 * rows)
    assert np.std(square) == pytest.approx(spread, rel=known)
    # first order: the next term of the root is a share of the order spread²
    assert np.std(size) / 1.5 == pytest.approx(spread / 2, rel=known + spread**2)
    lost = 1 - np.mean(size) / 1.5
    assert lost == pytest.approx(spread**2 / 8, abs=5 * spread / 2 / rows**0.5 + spread**3 / 4)


@pytest.mark.equation("correlated-squares")
@pytest.mark.parametrize("rho", [0.3, 0.7])
def test_correlated_features_leave_a_floor(rho: float) -> None:
    """Normal features with correlation ρ have squares with correlation ρ²."""
    rng, rows, k = np.random.default_rng(2), 20_000, 40
    common, own = rng.normal(size=(rows, 1)), rng.normal(size=(rows, k))
    x = 1.5 * (math.sqrt(rho) * common + math.sqrt(1 - rho) * own)
    spread = partial.spread(k, correlation=rho**2)
    measured = np.std(np.mean(x**2, axis=-1)) / 2.25
    # the law is near a chi-square with one degree of freedom, of kurtosis 15
    assert measured == pytest.approx(spread, rel=5 * math.sqrt(14 / (4 * rows)))
    assert spread > math.sqrt(2) * rho


@pytest.mark.equation("any-row")
@pytest.mark.parametrize("k", [1, 2, 3, 5, 6])
def test_every_subset_of_any_row(k: int) -> None:
    x = np.array([0.3, -2.0, 1.1, 4.0, 0.05, -0.7])
    squares = np.array([np.mean(x[list(s)] ** 2) for s in itertools.combinations(range(6), k)])
    full = np.mean(x**2)
    assert np.mean(squares) == pytest.approx(full, rel=16 * U)
    kurtosis = np.mean(x**4) / full**2
    spread = partial.spread(k, kurtosis, n=6)
    assert np.std(squares) / full == pytest.approx(spread, rel=64 * U, abs=16 * U)
    assert spread == pytest.approx(
        math.sqrt((kurtosis - 1) / k * (6 - k) / 5), rel=16 * U, abs=1e-7 * (k == 6)
    )


@pytest.mark.equation("partial-factor", "first-are-one")
@pytest.mark.parametrize("k", [1, 3, 8])
def test_the_output_is_the_full_one_times_a_number(k: int) -> None:
    rng = np.random.default_rng(3)
    x, weight = rng.normal(0.7, 2.0, (5, 8)), rng.choice([-1.5, 0.5, 2.0], 8)
    y = reference.rms_norm(x, weight, eps=0.0, k=k)
    factor = reference.rms(x) / reference.rms(x[:, :k])
    full = reference.rms_norm(x, weight, eps=0.0)
    np.testing.assert_allclose(y, full * factor[:, np.newaxis], rtol=16 * U)
    np.testing.assert_allclose(reference.rms(y[:, :k] / weight[:k]), 1, rtol=16 * U)


@pytest.mark.equation("partial-orthogonal")
@pytest.mark.parametrize("k", [1, 3, 8])
def test_the_gradient_is_at_a_right_angle_to_the_input(k: int) -> None:
    rng = np.random.default_rng(4)
    x, dy, weight = rng.normal(0.7, 2.0, 8), rng.normal(0.3, 1.0, 8), rng.uniform(0.5, 2.0, 8)
    dx, _ = reference.rms_norm_vjp(dy, x, weight, eps=0.0, k=k)
    terms = np.sum(np.abs(dy * weight * x)) / reference.rms(x[:k]) * math.sqrt(8 / k) * 8
    assert abs(dx @ x) <= 16 * U * terms
    if k < 8:
        off = np.sum(dx[:k] * x[:k])
        assert abs(off) > 1e-3, "the first k alone are at no right angle"


@pytest.mark.equation("correction-size")
@pytest.mark.parametrize(("k", "n"), [(4, 64), (64, 64), (1, 16)])
def test_the_correction_is_as_large_as_the_sum_over_n_divided_by_k(k: int, n: int) -> None:
    rng, rows = np.random.default_rng(5), 20_000
    xhat = reference.rms_norm(rng.normal(0.5, 1.0, n), eps=0.0)
    u = 1.5 * rng.normal(size=(rows, n))
    measured = np.sqrt(np.mean((u @ xhat / k) ** 2))
    assert measured == pytest.approx(1.5 * math.sqrt(n) / k, rel=5 / math.sqrt(2 * rows))


@pytest.mark.equation("first-zero")
def test_first_features_zero_and_the_others_not() -> None:
    x, weight = np.array([0.0, 0.0, 3.0, -0.5]), np.array([2.0, 0.5, -1.5, 4.0])
    outside = reference.rms_norm(x, weight, eps=1e-8, k=2, eps_outside=True)
    np.testing.assert_allclose(outside, x * weight * 1e8, rtol=4 * U)
    inside = reference.rms_norm(x, weight, eps=1e-8, k=2)
    np.testing.assert_allclose(inside, x * weight * 1e4, rtol=4 * U)


@pytest.mark.equation("group-rms")
def test_a_grouped_norm_is_the_norm_of_each_group() -> None:
    rng = np.random.default_rng(6)
    x, weight = rng.normal(0.5, 1.0, (3, 12)), rng.choice([-1.5, 0.5, 2.0], 12)
    for size in (1, 3, 4, 12):
        by_hand = reference.rms_norm(x.reshape(3, -1, size), eps=1e-3).reshape(3, 12) * weight
        got = conventions.apply("torch", x, weight, eps=1e-3, group_size=size)
        np.testing.assert_allclose(got, by_hand, rtol=32 * U)


@pytest.mark.parametrize("n", [None, 64, 5000])
@pytest.mark.parametrize("wanted", [0.5, 0.1, 0.0125])
def test_enough_is_the_fewest(wanted: float, n: int | None) -> None:
    k = partial.enough(wanted, n)
    assert partial.sd(k, n) <= wanted
    assert k == 1 or partial.sd(k - 1, n) > wanted


def test_one_feature_is_enough_for_any_large_deviation() -> None:
    assert partial.enough(1e300) == 1


def test_the_density_is_zero_where_r_cannot_be() -> None:
    r = np.array([[-1.0, 0.0], [2.0, 5.0], [np.inf, -np.inf]])
    assert partial.density(r, 4, 8).tolist() == [[0, 0], [0, 0], [0, 0]]
    assert partial.density(r, 3)[1, 0] > 0
    assert partial.density(r, 3)[2].tolist() == [0, 0]
    assert partial.density(np.float32(1.0), 3).dtype == np.float64


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: partial.mean(0), ValueError, "k = 0; give an integer >= 1"),
        (lambda: partial.sd(9, 8), ValueError, "k = 9 of n = 8 features"),
        (lambda: partial.sd(2.0), TypeError, "give an integer"),
        (lambda: partial.density(0.5, 4, 4), ValueError, "r is always 1"),
        (lambda: partial.density([1], 4), TypeError, "dtype int64"),
        (lambda: partial.enough(0.0), ValueError, "at least 1e-6"),
        (lambda: partial.enough(math.nan), ValueError, "at least 1e-6"),
        (lambda: partial.enough("0.1"), TypeError, "give a number"),
        (lambda: partial.spread(4, 0.5), ValueError, "give kurtosis >= 1"),
        (lambda: partial.spread(4, correlation=-0.5), ValueError, "correlation = -0.5"),
        (lambda: partial.spread(4, correlation=0.5, n=8), ValueError, "give one of the two"),
    ],
)
def test_errors_restate_and_say_the_fix(call, error, words: str) -> None:
    with pytest.raises(error, match=words.replace("(", r"\(")):
        call()
