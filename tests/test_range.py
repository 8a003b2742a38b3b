"""What lies between input and result may leave float64's range; the result must not notice."""

import math
from collections.abc import Callable

import exact
import numpy as np
import pytest

from rmsnorm_edu import reference
from rmsnorm_edu._wide import Wide

U = 2.0**-53  # unit roundoff of float64
SMALLEST = 2.0**-1074  # the spacing of subnormal numbers
NAN, INF = math.nan, math.inf
VJP, JVP, LN_VJP = reference.rms_norm_vjp, reference.rms_norm_jvp, reference.layer_norm_vjp
TINY = 1e-201 * math.sqrt(0.4)  # 1 / RMS(1, 2) = sqrt(0.4)

VALUES: dict[str, tuple[Callable[[], object], list[float]]] = {
    "slope 0, Σ too large": (
        lambda: VJP([1.0] * 3, [0.0, 1e308, 1e308], eps=1.0, k=1)[0],
        [1.0] * 3,
    ),
    "x̂ too large": (lambda: VJP([1.0, 1.0], [0.0, 1e305], eps=1e-8, k=1)[0], [1e4, 1e4]),
    "x̂ too large, forwards": (lambda: JVP([1.0, 1.0], [0.0, 1e305], eps=1e-8, k=1), [1e4, 1e4]),
    "dy along x": (lambda: VJP([1e308] * 4, [1e5] * 4, eps=0.0)[0], [0.0] * 4),
    "u too large": (lambda: VJP([1e200] * 4, [1e150] * 4, [1e150] * 4)[0], [0.0] * 4),
    "u too small": (
        lambda: VJP([1e-200] * 2, [1e-200, 2e-200], [1e-200] * 2, eps=0.0)[0],
        [4 * TINY, -2 * TINY],
    ),
    "a small weight": (
        lambda: reference.rms_norm([0.0, 1e305], [1.0, 1e-10], eps=1e-8, k=1),
        [0.0, 1e299],
    ),
    "a bias against it": (
        lambda: reference.rms_norm([[3.0, -3.0]], [1.2e308, 1.7e308], [1e308, 1.2e308], eps=0.0)[0],
        [INF, -5e307],
    ),
    "a sum of rows": (
        lambda: VJP([[1e308], [1e308], [-1e308]], [[2.0]] * 3, [3.0], eps=0.0)[1],
        [1e308],
    ),
    "weight_norm": (lambda: reference.weight_norm([[1e-200, 1e200]], [1e308])[0], [1e-92, 1e308]),
    "a large mean": (
        lambda: reference.layer_norm([1.5e308, 1e308, 1e307]),
        reference.layer_norm([15.0, 10.0, 1.0], eps=0.0).tolist(),
    ),
    "far apart": (
        lambda: reference.layer_norm([1.7e308, -1.7e308, 1.7e308]),
        [math.sqrt(0.5), -math.sqrt(2.0), math.sqrt(0.5)],
    ),
    "a feature with a large mean": (
        lambda: reference.batch_norm([[1e308], [1.1e308], [0.0]], [-2.0])[:, 0],
        (-2 * reference.layer_norm([10.0, 11.0, 0.0], eps=0.0)).tolist(),
    ),
    "layer_norm's gradient": (
        lambda: LN_VJP([1e9, 2e9, 3e9], [1e308, 1.2e308, -1e308], eps=0.0)[0],
        (1e-298 * LN_VJP([1.0, 2.0, 3.0], [10.0, 12.0, -10.0], eps=0.0)[0]).tolist(),
    ),
    "the same far apart": (
        lambda: LN_VJP([1e9, 2e9, 3e9], [1.6e308, -1.6e308, 0.0], eps=0.0)[0],
        (1e-298 * LN_VJP([1.0, 2.0, 3.0], [16.0, -16.0, 0.0], eps=0.0)[0]).tolist(),
    ),
    "a constant row's gradient": (
        lambda: LN_VJP([1.0, -2.0], [1.7e308] * 2, eps=4.0)[0],
        [0.75, -0.75],
    ),
    "a gradient that is all mean": (
        lambda: LN_VJP([1e308] * 3, [0.1, 0.2, 0.3], eps=0.0)[0],
        [0.0] * 3,
    ),
}


@pytest.mark.parametrize("what", VALUES)
def test_a_result_in_range_is_right(what: str) -> None:
    call, expected = VALUES[what]
    np.testing.assert_allclose(call(), expected, rtol=256 * U)  # some are differences


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("eps", [0.0, 1e-8, 1e300])
def test_elements_of_all_sizes_against_exact_arithmetic(eps: float, outside: bool) -> None:
    """A result beyond 1.8e308 is inf; one below the normal numbers has their absolute spacing."""
    rng = np.random.default_rng(3)
    low = 160.0 if eps > 1 else -140.0  # what is far below eps, 400 digits do not reach
    for _ in range(40):
        x, dy, weight = np.where(rng.random((3, 4)) < 0.5, -1, 1) * 10 ** np.stack(
            [rng.uniform(low, 305, 4), rng.uniform(-300, 300, 4), rng.uniform(-300, 300, 4)]
        )
        options = {"eps": eps, "k": 2, "eps_outside": outside}
        y = reference.rms_norm(x, weight, **options)
        expected = exact.rms_norm(x, weight, eps, 2, outside)
        np.testing.assert_allclose(y, expected, rtol=16 * U, atol=SMALLEST)
        dx, _ = VJP(dy, x, weight, **options)
        terms = exact.size_of_terms(dy, x, weight, eps, 2, outside)
        if math.isfinite(terms):
            expected = exact.dx(dy, x, weight, eps, 2, outside)
            np.testing.assert_allclose(dx, expected, rtol=0, atol=64 * U * terms + SMALLEST)


@pytest.mark.parametrize("outside", [False, True])
def test_inf_and_nan_follow_the_same_rule_in_the_derivatives(outside: bool) -> None:
    x = np.array([[1.0, INF, -2.0], [1.0, NAN, -2.0], [1.0, 3.0, -2.0]])
    weight, step = np.array([2.0, -1.0, 0.5]), np.array([[1.0, -2.0, 3.0]] * 3)
    expected = [[0.0, NAN, 0.0], [NAN] * 3]
    dx, dweight = VJP(step, x, weight, eps_outside=outside)
    np.testing.assert_array_equal(dx[:2], expected)
    np.testing.assert_array_equal(dx[2], VJP(step[2], x[2], weight, eps_outside=outside)[0])
    assert np.isnan(dweight).all()  # the row with nan takes part in every sum
    moved = JVP(step, x, weight, eps_outside=outside)
    np.testing.assert_array_equal(moved[:2], expected)
    np.testing.assert_array_equal(moved[2], JVP(step[2], x[2], weight, eps_outside=outside))


def test_inf_and_nan_in_the_twins() -> None:
    x = np.array([[1.0, INF, -2.0], [1.0, NAN, -2.0], [1.0, 3.0, -2.0]])
    for y in (reference.layer_norm(x), reference.layer_norm_vjp(x, x)[0]):
        assert np.isnan(y[:2]).all()
        assert np.isfinite(y[2]).all()
    assert np.isnan(reference.batch_norm(x)[:, 1]).all()
    assert np.isfinite(reference.batch_norm(x)[:, [0, 2]]).all()
    w = reference.weight_norm(x, [2.0, -1.0, INF])
    np.testing.assert_array_equal(w, [[0.0, NAN, 0.0], [NAN] * 3, [INF, INF, -INF]])
    np.testing.assert_array_equal(reference.weight_norm([[0.0, 1.0]], [INF]), [[NAN, INF]])


def test_batch_norm_is_contiguous() -> None:
    x = np.random.default_rng(1).normal(2.0, 1.0, (3, 5, 4))
    for rows in (x, x[0], np.asfortranarray(x)):
        assert reference.batch_norm(rows).flags.c_contiguous


def test_wide_numbers_count_as_float64_does_where_it_can() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(0.3, 1e3, (2, 5, 300))
    a[0, :4] = 0.0, -0.0, INF, NAN
    with np.errstate(all="ignore"):
        for got, expected in (
            (Wide(a) * b, a * b),
            (Wide(a) / b, a / b),
            (Wide(b) / a, b / a),
            (Wide(a) + b, a + b),
            (Wide(a) - Wide(b), a - b),
            (Wide(a).sum(), a.sum(-1, keepdims=True)),
        ):
            np.testing.assert_array_equal(got.floats(), expected)
        absorbed = Wide(np.array([0.0, 0.0, 2.0])).absorbing(Wide(np.array([INF, NAN, INF])))
        np.testing.assert_array_equal(absorbed.floats(), [0.0, 0.0, INF])
