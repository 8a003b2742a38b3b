"""The chapter "Gradients": dx node by node, its closed forms, its forward mode."""

import itertools

import exact
import numpy as np
import pytest
from calculus import (
    EPS,
    H,
    cases,
    close,
    divisor,
    jacobian,
    jvp,
    matrix_r,
    norm,
    problem,
    size,
    vjp,
)

from rmsnorm_edu import reference

# ---- backwards, node by node


@cases
@pytest.mark.equation("chain-rule")
def test_dx_is_the_row_dy_times_the_jacobian(seed, eps) -> None:
    dy, x, weight = problem(seed)
    j = jacobian(lambda z: norm(z, weight, eps), x)
    close(vjp(dy, x, weight, eps=eps)[0], dy @ j, size(dy * weight, x, eps))


@cases
@pytest.mark.equation("backprop-multiply", "backprop-root", "backprop-square", "two-paths")
def test_every_gradient_on_the_way_back(seed, eps) -> None:
    """What follows a node is a function of it alone; its derivative by complex step."""
    dy, x, weight = problem(seed)
    n, inside = x.size, np.mean(x * x) + eps
    root, rstd = np.sqrt(inside), 1 / np.sqrt(inside)
    dxhat = dy * weight
    drstd = np.sum(dxhat * x)
    droot = -drstd * rstd**2
    dinside = droot / (2 * root)
    dsquare = np.full(n, dinside / n)
    after = {
        "xhat": (lambda z: dy @ (weight * z), x * rstd, dxhat),
        "rstd": (lambda z: dy @ (weight * x * z), rstd, drstd),
        "root": (lambda z: dy @ (weight * x / z), root, droot),
        "inside": (lambda z: dy @ (weight * x / np.sqrt(z)), inside, dinside),
        "square": (lambda z: dy @ (weight * x / np.sqrt(np.mean(z) + eps)), x * x, dsquare),
    }
    for name, (loss, value, gradient) in after.items():
        truth = jacobian(loss, np.atleast_1d(value))
        top = np.max(np.abs(dxhat)) * np.max(np.abs(x)) * n * max(1.0, rstd**3)
        close(gradient, truth if name in ("xhat", "square") else truth[0], top)
    close(dxhat * rstd + dsquare * 2 * x, vjp(dy, x, weight, eps=eps)[0], size(dxhat, x, eps))


# ---- collapsed


@cases
@pytest.mark.equation("divisor-slope", "jacobian-index", "dx-index", "dx-vector", "dx-projector")
def test_index_vector_and_projector_form_are_the_jacobian(seed, eps) -> None:
    dy, x, weight = problem(seed)
    n, d, u = x.size, divisor(x, eps), dy * weight
    close(jacobian(lambda z: np.sqrt(np.mean(z * z) + eps), x), x / (n * d))
    by_index = weight[:, None] / d * (np.eye(n) - np.outer(x, x) / (n * d**2))
    close(by_index, jacobian(lambda z: norm(z, weight, eps), x), size(weight, x, eps))
    columns = np.stack([jvp(e, x, weight, eps=eps) for e in np.eye(n)], axis=-1)
    close(by_index, columns, size(weight, x, eps))
    dx, top = vjp(dy, x, weight, eps=eps)[0], size(u, x, eps)
    each = [sum(u[i] * ((i == j) - x[i] * x[j] / (n * d**2)) for i in range(n)) for j in range(n)]
    close(np.array(each) / d, dx, top)
    close((u - x / d * np.mean(u * x / d)) / d, dx, top)
    close(matrix_r(x, eps) @ u, dx, top)


@pytest.mark.equation("gradient-projector")
@pytest.mark.parametrize("seed", range(8))
def test_rms_times_r_is_a_projector_when_eps_is_zero(seed) -> None:
    _, x, _ = problem(seed)
    r = matrix_r(x, 0.0)
    p = reference.rms(x) * r
    np.testing.assert_array_equal(r, r.T)
    close(p @ p, p)
    close(p @ x, 0 * x, np.max(np.abs(x)) * x.size)
    close(np.linalg.eigvalsh(p), [0.0, *np.ones(x.size - 1)])


@cases
@pytest.mark.equation("dweight")
def test_gradients_of_weight_and_bias_are_sums_over_rows(seed, eps) -> None:
    rng = np.random.default_rng(seed)
    (_, _, weight), shape = problem(seed, 5), (3, 2, 5)
    x, dy = rng.normal(0.7, 1.0, shape), rng.normal(0.5, 1.0, shape)

    def loss(parameters):
        y = reference.rms_norm(x, eps=eps) * parameters[:5] + parameters[5:]
        return np.sum(dy * y)

    truth = jacobian(loss, np.concatenate([weight, [0.5, -1.0, 2.0, 0.1, 1.5]]))
    close(vjp(dy, x, weight, eps=eps)[1], truth[:5], 20.0)
    close(dy.sum(axis=(0, 1)), truth[5:], 20.0)


@pytest.mark.equation("paper-dw", "dw-matrix")
@pytest.mark.parametrize("seed", range(8))
def test_the_papers_equation_nine_is_an_outer_product(seed) -> None:
    dv, a, weight = problem(seed)
    rng = np.random.default_rng(seed)
    x = rng.normal(0.3, 1.0, 4)
    w = rng.normal(size=(a.size, 4))
    a, n = w @ x, a.size
    r, u = matrix_r(a, 0.0), weight * dv
    rows = np.diag(u) @ r  # row i of the sum in equation (9): its outer product with x
    nine = sum(np.outer(rows[i], x) for i in range(n))
    loss = jacobian(lambda z: dv @ norm(z.reshape(n, 4) @ x, weight, 0.0), w.ravel())
    top = size(u, a, 0.0) * np.max(np.abs(x)) * 4
    close(nine, loss.reshape(n, 4), top)
    close(np.outer(vjp(dv, a, weight, eps=0.0)[0], x), loss.reshape(n, 4), top)


@pytest.mark.equation("partial-dx")
@pytest.mark.parametrize(("seed", "eps", "outside"), list(itertools.product(range(6), EPS, (0, 1))))
def test_partial_norm_corrects_the_first_k_only(seed, eps, outside) -> None:
    dy, x, weight = problem(seed, 7)
    for k in (1, 3, 7):
        options = {"eps": eps, "k": k, "eps_outside": bool(outside)}
        dx = vjp(dy, x, weight, **options)[0]
        truth = exact.dx(dy, x, weight, eps, k, bool(outside))
        top = exact.size_of_terms(dy, x, weight, eps, k, bool(outside))
        close(dx, truth, top)
        if not outside:
            d, u, first = np.sqrt(np.mean(x[:k] ** 2) + eps), dy * weight, np.arange(7) < k
            close((u - first * x / d * np.sum(u * x / d) / k) / d, truth, top)


# ---- forward mode


@cases
@pytest.mark.equation("jvp")
def test_jvp_is_the_jacobian_times_a_column(seed, eps) -> None:
    _, x, weight = problem(seed)
    rng = np.random.default_rng(seed)
    dx, dweight = rng.normal(size=x.size), rng.normal(size=x.size)
    moved = norm(x + 1j * H * dx, weight + 1j * H * dweight, eps)
    top = size(dx, x, eps) * 2 + np.max(np.abs(x / divisor(x, eps) * dweight))
    close(jvp(dx, x, weight, dweight, eps=eps), moved.imag / H, top)
    close(jvp(dx, x, weight, eps=eps), weight * (matrix_r(x, eps) @ dx), top)


@cases
@pytest.mark.equation("adjoint")
def test_forward_and_backward_agree_to_thirteen_digits(seed, eps) -> None:
    rng = np.random.default_rng(seed)
    rows, n = (int(s) for s in rng.integers(1, 200, 2))
    dy, x, step = rng.normal(0.5, 1.0, (3, rows, n))
    weight, dweight = rng.uniform(0.3, 2.0, n), rng.normal(size=n)
    k = int(rng.integers(1, n + 1))
    for options in ({}, {"k": k}, {"eps_outside": True}):
        forward = dy * jvp(step, x, weight, dweight, eps=eps, **options)
        dx, dw = vjp(dy, x, weight, eps=eps, **options)
        size = np.sum(np.abs(forward)) + np.sum(np.abs(dx * step)) + np.sum(np.abs(dw * dweight))
        gap = np.sum(forward) - np.sum(dx * step) - np.sum(dw * dweight)
        assert abs(gap) <= 1e-13 * size
