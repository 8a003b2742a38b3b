"""The chapter "Gradients": right angles, growing weights, what eps and rows of zeros do."""

import exact
import numpy as np
import pytest
from calculus import U, close, divisor, matrix_r, problem, size, vjp

# ---- geometry


@pytest.mark.equation("dx-orthogonal", "dx-scale")
@pytest.mark.parametrize("seed", range(8))
def test_dx_stands_on_x_and_shrinks_as_x_grows(seed) -> None:
    dy, x, weight = problem(seed)
    dx, top = vjp(dy, x, weight, eps=0.0)[0], size(dy * weight, x, 0.0)
    assert abs(dx @ x) <= (2 * x.size + 24) * U * top * np.sum(np.abs(x))
    for alpha in (0.01, -3.0, 1e5):
        again = vjp(dy, alpha * x, weight, eps=0.0)[0]
        close(again * abs(alpha), dx, top)


def layer(seed):
    """(w, x, dy, weight): a linear layer of 5 units on a batch of 7, and what comes back."""
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.3, 2.0, 5) * rng.choice([-1.0, 1.0], 5)
    return rng.normal(0.2, 1.0, (5, 4)), rng.normal(0.5, 1.0, (7, 4)), rng.normal(
        0.3, 1.0, (7, 5)
    ), weight  # fmt: skip


def dw_of(w, x, dy, weight, eps=0.0):
    return vjp(dy, x @ w.T, weight, eps=eps)[0].T @ x


@pytest.mark.equation("dw-orthogonal", "growth")
@pytest.mark.parametrize("seed", range(8))
def test_a_step_against_dw_can_only_lengthen_the_weights(seed) -> None:
    w, x, dy, weight = layer(seed)
    dw = dw_of(w, x, dy, weight)
    assert abs(np.sum(dw * w)) <= 1e-13 * np.linalg.norm(dw) * np.linalg.norm(w)
    for rate in (0.1, 3.0):
        grown = np.sum((w - rate * dw) ** 2)
        assert grown > np.sum(w**2)
        np.testing.assert_allclose(grown, np.sum(w**2) + rate**2 * np.sum(dw**2), rtol=1e-13)


@pytest.mark.equation("dw-scale")
@pytest.mark.parametrize("delta", [0.5, 2.0, 10.0])
def test_dw_shrinks_with_larger_weights_and_ignores_the_inputs_scale(delta) -> None:
    w, x, dy, weight = layer(1)
    dw = dw_of(w, x, dy, weight)
    np.testing.assert_allclose(dw_of(delta * w, x, dy, weight), dw / delta, rtol=1e-12)
    np.testing.assert_allclose(dw_of(w, delta * x, dy, weight), dw, rtol=1e-12)


@pytest.mark.equation("effective-rate")
@pytest.mark.parametrize("length", [1.0, 30.0])
def test_the_direction_learns_with_the_rate_over_the_squared_length(length) -> None:
    """To first order in the step: what is left is of its square, 2 (rate ‖dw‖/‖w‖)²."""
    w, x, dy, weight = layer(2)
    unit = w / np.linalg.norm(w)
    w, rate = length * unit, 1e-4
    stepped = w - rate * dw_of(w, x, dy, weight)
    change = stepped / np.linalg.norm(stepped) - unit
    predicted = -rate / length**2 * dw_of(unit, x, dy, weight)
    np.testing.assert_allclose(stepped, length * (unit + predicted), rtol=1e-12)
    angle = np.linalg.norm(predicted)
    assert np.linalg.norm(change - predicted) <= 2 * angle**2 + 1e-13
    assert angle > 1e-9


@pytest.mark.equation("decay-balance")
@pytest.mark.parametrize(("rate", "decay", "start"), [(0.1, 0.2, 0.3), (0.5, 0.05, 40.0)])
def test_weight_decay_and_growth_meet_at_one_length(rate, decay, start) -> None:
    """With ‖dw‖ = c/‖w‖, as for one size of gradient; the balance attracts from both sides."""
    rng, w, c = np.random.default_rng(3), start * np.ones(6), 1.7
    for _ in range(1500):
        before, dw = w, vjp(rng.normal(0.5, 1.0, 6), w, eps=0.0)[0]
        dw *= c / np.linalg.norm(w) / np.linalg.norm(dw)
        w = (1 - rate * decay) * w - rate * dw
    balance = rate * c**2 / (2 * decay - rate * decay**2)
    np.testing.assert_allclose(np.sum(w**2) ** 2, balance, rtol=1e-9)
    cosine = before @ w / np.linalg.norm(before) / np.linalg.norm(w)
    np.testing.assert_allclose(cosine, 1 - rate * decay, rtol=1e-9)


# ---- eps and rows of zeros


@pytest.mark.equation("radial")
@pytest.mark.parametrize("seed", range(8))
def test_eps_lets_a_radial_gradient_through(seed) -> None:
    u, x, _ = problem(seed)
    for eps in (1e-3, 0.3, 10.0):
        d = divisor(x, eps)
        close(matrix_r(x, eps) @ x, eps / d**3 * x, size(x, x, eps))
        dx = vjp(u, x, eps=eps)[0]
        assert abs(dx @ x - eps / d**3 * (u @ x)) <= 1e-13 * size(u, x, eps) * np.sum(np.abs(x))


@pytest.mark.equation("zero-row")
@pytest.mark.parametrize(("eps", "factor"), [(2.0**-23, 2896.3), (1e-6, 1e3), (1e-5, 316.23)])
def test_a_row_of_zeros_sends_back_u_over_the_root_of_eps(eps, factor) -> None:
    dy, weight, zero = np.array([1.0, -2.0, 0.5]), np.array([2.0, -0.5, 3.0]), np.zeros(3)
    dx, dweight = vjp(dy, zero, weight, eps=eps)
    np.testing.assert_allclose(dx, dy * weight / np.sqrt(eps), rtol=4 * U)
    np.testing.assert_allclose(dx / (dy * weight), factor, rtol=2e-5)
    assert not dweight.any()
    outside = vjp(dy, zero, weight, eps=eps, eps_outside=True)[0]
    np.testing.assert_allclose(outside, dy * weight / eps, rtol=4 * U)
    for place in (False, True):  # the k first are 0, the others are not
        part = vjp(dy, [0.0, 0.0, 5.0], weight, eps=eps, k=2, eps_outside=place)[0]
        np.testing.assert_allclose(part, dy * weight / (eps if place else np.sqrt(eps)), rtol=4 * U)


@pytest.mark.parametrize("eps", [1e-5, 0.3])
@pytest.mark.parametrize("outside", [False, True])
def test_one_feature_a_large_mean_and_a_small_one_beside_it(eps, outside) -> None:
    """Rows whose two terms nearly cancel, against 400 digits."""
    dy, weight = np.array([1.0, -2.0, 0.5, 3.0]), np.array([2.0, -0.5, 3.0, 1.5])
    for x in ([3.0], [-1e-4], [100.3, 99.7, 100.1, 100.0], [1e-7, 1e4, -1e4, 0.0]):
        row, n = np.array(x), len(x)
        for k in {1, (n + 1) // 2, n}:
            case = dy[:n], row, weight[:n], eps, k, outside
            got = vjp(dy[:n], row, weight[:n], eps=eps, k=k, eps_outside=outside)[0]
            close(got, exact.dx(*case), exact.size_of_terms(*case))
