"""The projector, the sphere and its equator, and the angle between the two norms."""

import itertools

import numpy as np
import pytest

from rmsnorm_edu import geometry, reference

U = 2.0**-53
RNG = np.random.default_rng(0)
X = RNG.normal(0.7, 1.3, (40, 6)) * 10.0 ** RNG.integers(-3, 4, (40, 1))
WEIGHT = RNG.choice([-1.0, 1.0], 6) * RNG.uniform(0.5, 2.0, 6)
BIAS = RNG.normal(size=6)
MEAN, SPREAD, RMS = X.mean(-1), X.std(-1), np.sqrt(np.mean(X**2, -1))


def between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Angle of two vectors by Kahan's formula: right to the last bits at any angle."""
    a = a / np.linalg.norm(a, axis=-1, keepdims=True)
    b = b / np.linalg.norm(b, axis=-1, keepdims=True)
    return 2 * np.arctan2(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))


@pytest.mark.equation("centring")
@pytest.mark.parametrize("n", [1, 2, 3, 10, 257])
def test_the_projector_takes_the_mean_away(n: int) -> None:
    x = np.random.default_rng(n).normal(3.0, 1.0, n)
    rounded = (n + 3) * U * np.sum(np.abs(x)) / n + 2 * U * np.max(np.abs(x))
    error = np.abs(geometry.centring(n) @ x - (x - np.mean(x)))
    assert np.max(error) <= 2 * rounded


@pytest.mark.equation("projector")
@pytest.mark.parametrize("n", [1, 2, 3, 10, 257])
def test_what_makes_it_a_projector(n: int) -> None:
    projector = geometry.centring(n)
    assert projector.shape == (n, n)
    np.testing.assert_array_equal(projector, projector.T)
    np.testing.assert_allclose(projector @ projector, projector, rtol=0, atol=(n + 4) * U)
    np.testing.assert_allclose(projector @ np.ones(n), 0, rtol=0, atol=(n + 4) * U)
    np.testing.assert_allclose(np.trace(projector), n - 1, rtol=0, atol=n * n * U)
    eigenvalues = np.linalg.eigvalsh(projector)
    np.testing.assert_allclose(eigenvalues, [0.0] + [1.0] * (n - 1), rtol=0, atol=64 * n * U)


@pytest.mark.equation("layer-norm-is-rms-norm")
@pytest.mark.parametrize("eps", [0.0, 1e-5, 0.1])
def test_one_projector_apart(eps: float) -> None:
    centred = X @ geometry.centring(6)
    expected = reference.rms_norm(centred, WEIGHT, BIAS, eps=eps)
    got = reference.layer_norm(X, WEIGHT, BIAS, eps=eps)
    # (6 + 2) roundings of |x|, grown by 1/σ where the entries nearly cancel
    grown = 32 * U * (1 + np.max(np.abs(X), -1, keepdims=True) / SPREAD[:, None]) * 2
    assert np.all(np.abs(got - expected) <= grown * (1 + np.abs(got)))
    apart = np.max(np.abs(got - reference.rms_norm(X, WEIGHT, BIAS, eps=eps)))
    assert apart > 0.5


@pytest.mark.equation("sphere")
@pytest.mark.parametrize("eps", [0.0, 1e-6, 0.5])
def test_the_sphere_and_how_far_inside_eps_keeps(eps: float) -> None:
    y = reference.rms_norm(X, eps=eps)
    expected = 6 * RMS**2 / (RMS**2 + eps)
    np.testing.assert_allclose(np.sum(y**2, -1), expected, rtol=32 * U)
    ellipsoid = (reference.rms_norm(X, WEIGHT, BIAS, eps=eps) - BIAS) / WEIGHT
    np.testing.assert_allclose(np.sum(ellipsoid**2, -1), expected, rtol=1e-12)


@pytest.mark.equation("equator")
def test_layer_norm_lies_on_the_equator() -> None:
    y = reference.layer_norm(X, eps=0.0)
    np.testing.assert_allclose(np.sum(y**2, -1), 6, rtol=32 * U)
    np.testing.assert_allclose(np.sum(y, -1), 0, rtol=0, atol=64 * U)
    off = np.abs(np.sum(reference.rms_norm(X, eps=0.0), -1))
    np.testing.assert_allclose(off, 6 * np.abs(MEAN) / RMS, rtol=0, atol=64 * U)


@pytest.mark.equation("two-features")
def test_of_two_features_layer_norm_keeps_the_order_alone() -> None:
    pairs = X[:, :2]
    sign = np.sign(pairs[:, :1] - pairs[:, 1:])
    y = reference.layer_norm(pairs, eps=0.0)
    np.testing.assert_allclose(y, sign * [1.0, -1.0], rtol=4 * U)
    half = np.abs(pairs[:, :1] - pairs[:, 1:]) / 2
    shorter = half / np.sqrt(half**2 + 1e-3)
    np.testing.assert_allclose(
        reference.layer_norm(pairs, eps=1e-3), sign * shorter * [1, -1], rtol=1e-12
    )


def test_of_one_feature() -> None:
    np.testing.assert_array_equal(reference.layer_norm([[-5.0], [3.0]]), [[0.0], [0.0]])
    np.testing.assert_array_equal(reference.rms_norm([[-5.0], [3.0]], eps=0.0), [[-1.0], [1.0]])
    assert np.isnan(reference.layer_norm([3.0], eps=0.0)[0])


@pytest.mark.equation("angle")
def test_the_angle_is_that_of_the_two_outputs() -> None:
    y, z = reference.rms_norm(X, eps=0.0), reference.layer_norm(X, eps=0.0)
    theta = geometry.angle(X)
    np.testing.assert_allclose(theta, between(y, z), rtol=0, atol=32 * U)
    np.testing.assert_allclose(np.sin(theta), np.abs(MEAN) / RMS, rtol=0, atol=32 * U)
    np.testing.assert_allclose(np.cos(theta), SPREAD / RMS, rtol=0, atol=32 * U)
    assert np.ptp(theta) > 1, "near the equator and near the pole"


@pytest.mark.equation("chord")
def test_the_distance_follows_from_the_angle() -> None:
    apart = reference.rms(reference.rms_norm(X, eps=0.0) - reference.layer_norm(X, eps=0.0))
    np.testing.assert_allclose(apart, 2 * np.sin(geometry.angle(X) / 2), rtol=0, atol=32 * U)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_the_angle_of_rows_of_any_size(size: float) -> None:
    row = np.array([[7.0, -1.0], [-3.0, -3.0], [4.0, -4.0]]) * size
    expected = [np.arcsin(0.6), np.pi / 2, 0.0]
    np.testing.assert_allclose(geometry.angle(row), expected, rtol=8 * U, atol=8 * U)
    assert np.isnan(geometry.angle([0.0, 0.0]))


@pytest.mark.equation("random-angle")
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_the_mean_over_all_signs_is_one_over_n(n: int) -> None:
    size = np.random.default_rng(n).lognormal(size=n)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
    squares = np.sin(geometry.angle(signs * size)) ** 2
    np.testing.assert_allclose(np.mean(squares), 1 / n, rtol=64 * U)


@pytest.mark.equation("pole")
@pytest.mark.parametrize("c", [-2e3, -1.0, 0.4, 1e6])
def test_a_shift_walks_towards_the_pole(c: float) -> None:
    y = reference.rms_norm(X + c, eps=0.0)
    size = np.sqrt((MEAN + c) ** 2 + SPREAD**2)[:, None]
    centred = X - MEAN[:, None]
    lost = U * (np.max(np.abs(X), -1, keepdims=True) + np.abs(c)) / size  # by adding c
    expected = (MEAN[:, None] + c + centred) / size
    assert np.all(np.abs(y - expected) <= 32 * (U + lost))
    to_pole = np.pi / 2 - geometry.angle(X + c)
    tangent = SPREAD / np.abs(MEAN + c)
    np.testing.assert_allclose(to_pole, np.arctan(tangent), rtol=0, atol=1e-9)


@pytest.mark.equation("centred-weights")
@pytest.mark.parametrize("eps", [0.0, 1e-5])
def test_the_projector_moves_into_the_weights(eps: float) -> None:
    weights = np.random.default_rng(3).normal(0.5, 1.0, (6, 4))
    inputs = np.random.default_rng(4).normal(0.3, 1.0, (30, 4))
    centred = geometry.centring(6) @ weights
    np.testing.assert_allclose(centred, weights - weights.mean(0), rtol=0, atol=16 * U)
    got = reference.rms_norm(inputs @ centred.T, WEIGHT, BIAS, eps=eps)
    expected = reference.layer_norm(inputs @ weights.T, WEIGHT, BIAS, eps=eps)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)


@pytest.mark.equation("l2-norm")
def test_l2_norm_is_shorter_by_the_root_of_n() -> None:
    for n in (1, 4, 100, 4096):
        x = np.random.default_rng(n).normal(0.5, 1.0, n)
        unit = x / np.linalg.norm(x)
        shorter = reference.rms_norm(x, eps=0.0) / np.sqrt(n)
        np.testing.assert_allclose(unit, shorter, rtol=(n + 8) * U)
        np.testing.assert_allclose(reference.rms(unit), 1 / np.sqrt(n), rtol=(n + 8) * U)


@pytest.mark.parametrize(
    ("n", "error"), [(0, ValueError), (-2, ValueError), (2.0, TypeError), (True, TypeError)]
)
def test_no_projector_of_that_size(n: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="give an integer"):
        geometry.centring(n)
