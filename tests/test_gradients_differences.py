"""The chapter "Gradients": differences, the complex step, the second derivative."""

import numpy as np
import pytest
from calculus import H, U, cases, close, divisor, norm, problem, size, vjp


def third_derivative(dy, x, weight, eps, v, t):
    """φ‴(t) of φ(t) = ⟨dy, y(x + t v)⟩: the complex step of vᵀHv."""
    return np.imag(v @ hessian_vector(dy * weight, x + (t + 1j * H) * v, eps, v)) / H


@pytest.mark.equation("central-difference", "best-step")
@pytest.mark.parametrize("seed", range(6))
def test_central_differences_stay_below_their_bound_and_best_near_its_foot(seed) -> None:
    rng = np.random.default_rng(seed)
    x = np.round(8 * rng.normal(0.7, 1.0, 4)) / 8  # so that x ± h is exact for a power of two
    dy, weight = rng.normal(0.5, 1.0, 4), rng.uniform(0.3, 2.0, 4)
    v = np.array([0.0, 1.0, 0.0, 0.0])
    truth = vjp(dy, x, weight, eps=0.3)[0][1]
    rounding = (1.5 * 4 + 4) * U * np.sum(np.abs(dy * norm(x, weight, 0.3))) * 1.3
    steps = 2.0 ** -np.arange(3, 48)
    largest = max(
        abs(third_derivative(dy, x, weight, 0.3, v, t)) for t in np.linspace(-0.125, 0.125, 65)
    )
    for h in steps:
        up, down = (dy @ norm(x + s * h * v, weight, 0.3) for s in (1, -1))
        bound = largest * 1.01 * h**2 / 6 + rounding / h
        assert abs((up - down) / (2 * h) - truth) <= bound
    best = (3 * rounding / largest) ** (1 / 3)
    bounds = largest * steps**2 / 6 + rounding / steps
    assert 0.5 <= steps[np.argmin(bounds)] / best <= 2


@cases
@pytest.mark.equation("complex-step")
def test_the_complex_step_has_all_digits(seed, eps) -> None:
    dy, x, weight = problem(seed)
    step = np.imag([dy @ norm(x + 1e-20j * e, weight, eps) for e in np.eye(x.size)]) / 1e-20
    close(step, vjp(dy, x, weight, eps=eps)[0], size(dy * weight, x, eps))


def hessian_vector(u, x, eps, v):
    """H v of L(x) = ⟨u, x/D⟩, as the chapter derives it; complex x, too."""
    n, d = x.size, np.sqrt(np.mean(x * x) + eps)
    xhat = x / d
    p, q, m = np.sum(xhat * v) / n, np.sum(u * v) / n, np.sum(u * xhat) / n
    return -(p * u + q * xhat + m * v - 3 * m * p * xhat) / d**2


@cases
@pytest.mark.equation("hessian")
def test_the_gradient_has_a_symmetric_gradient(seed, eps) -> None:
    dy, x, weight = problem(seed)
    rng, u = np.random.default_rng(seed), dy * weight
    v, w = rng.normal(size=(2, x.size))

    def gradient(z):
        d = np.sqrt(np.mean(z * z) + eps)
        return (u - z / d * np.mean(u * z / d)) / d

    truth = np.imag(gradient(x + 1j * H * v)) / H
    top = 6 * np.max(np.abs(u)) * np.sum(np.abs(v)) / divisor(x, eps) ** 2
    close(hessian_vector(u, x, eps, v), truth, top)
    h = 2.0**-17 * divisor(x, eps) / np.max(np.abs(v))  # h² and 2⁻⁵³/h, relative, are small
    up, down = (vjp(dy, x + s * h * v, weight, eps=eps)[0] for s in (1, -1))
    np.testing.assert_allclose((up - down) / (2 * h), truth, rtol=0, atol=1e-7 * top)
    left, right = v @ hessian_vector(u, x, eps, w), w @ hessian_vector(u, x, eps, v)
    assert abs(left - right) <= 1e-13 * top * np.sum(np.abs(w))
