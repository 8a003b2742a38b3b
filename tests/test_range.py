"""Rows near the end of float64's range, and the twins' rules for nan and inf."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from rmsnorm_edu import reference

U = 2.0**-53  # unit roundoff of float64
NAN, INF = math.nan, math.inf
LN_VJP = reference.layer_norm_vjp

VALUES: dict[str, tuple[Callable[[], object], list[float]]] = {
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
}


@pytest.mark.parametrize("what", VALUES)
def test_a_result_in_range_is_right(what: str) -> None:
    call, expected = VALUES[what]
    np.testing.assert_allclose(call(), expected, rtol=256 * U)  # some are differences


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
