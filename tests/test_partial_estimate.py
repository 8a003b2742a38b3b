"""The figure of the partial chapter: its seeded rows, and what is derived for them."""

import math

import numpy as np
import pytest

pytest.importorskip("anywidget")

import traitlets

from rmsnorm_edu import explorables, partial, reference
from rmsnorm_edu.explorables import partial_estimate as figure


def standard_error(values):
    return np.std(values) / math.sqrt(len(values))


def test_the_counter_gives_uniform_numbers_and_goes_on_where_it_stopped():
    u = figure.uniforms(0, 2**16)
    assert 0 < u.min() < u.max() < 1
    np.testing.assert_array_equal(figure.uniforms(1000, 50), u[1000:1050])
    np.testing.assert_array_equal(u[:3] * 2**32 % 1, 0.5)
    # The largest distance from the uniform distribution: above 1.63 / √n once in a hundred draws.
    distance = np.max(np.abs(np.sort(u) - (np.arange(len(u)) + 0.5) / len(u)))
    assert distance < 1.63 / math.sqrt(len(u))


def test_the_normal_numbers_have_the_moments_of_normal_ones():
    x = figure.drawn(math.inf)
    for power, moment in {1: 0, 2: 1, 3: 0, 4: 3, 6: 15}.items():
        assert abs(np.mean(x**power) - moment) < 4 * standard_error(x**power)
    for lag in (1, 2, 8, 1024):
        product = x[lag:] ** 2 * x[:-lag] ** 2
        assert abs(np.mean(product) - 1) < 4 * standard_error(product), "neighbours independent"


def test_the_heavy_tails_are_students():
    # P(|t| > c) of three degrees: 1 − (2/π)(arctan(c/√3) + (c/√3) / (1 + c²/3)).
    x = np.abs(figure.drawn(figure.FREEDOM))
    for c in (0.5, 2.0, 10.0, 40.0):
        a = c / math.sqrt(3)
        tail = 1 - 2 / math.pi * (math.atan(a) + a / (1 + a * a))
        error = math.sqrt(tail * (1 - tail) / len(x))
        assert abs(np.mean(x > c) - tail) < 4 * error


@pytest.mark.parametrize(("n", "k"), [(8, 1), (64, 4), (1024, 64), (1024, 512), (4096, 256)])
def test_independent_normal_features_spread_as_derived(n, k):
    r = figure.ratios("normal", n, k)
    mean = partial.mean(k, n)
    assert abs(np.mean(r) - mean) < 4 * standard_error(r)
    assert abs(np.mean(r**2) - 1) < 4 * standard_error(r**2)
    far = (r - mean) ** 2
    assert abs(np.mean(far) - partial.sd(k, n) ** 2) < 4 * standard_error(far)


def test_heavy_tails_are_right_in_the_mean_square_and_spread_further():
    r = figure.ratios("heavy", 1024, 64)
    assert abs(np.mean(r**2) - 1) < 4 * standard_error(r**2), "by symmetry, whatever the features"
    assert np.std(r) > 3 * np.std(figure.ratios("normal", 1024, 64))


def test_sorted_features_are_no_sample():
    down, up = (figure.rows(features, 64) for features in ("largest", "smallest"))
    assert (np.diff(down) <= 0).all()
    np.testing.assert_array_equal(up[:, ::-1], down)
    np.testing.assert_array_equal(up[0], np.sort(np.abs(figure.rows("normal", 64)[0])))
    assert figure.ratios("largest", 1024, 64).min() > 2
    assert figure.ratios("smallest", 1024, 64).max() < 0.1


def test_the_outlier_counts_for_nothing_or_for_too_much():
    x, plain = figure.rows("outlier", 1024), figure.rows("normal", 1024)
    changed = (x != plain).any(axis=0)
    assert list(np.flatnonzero(changed)) == [1024 // 3]
    np.testing.assert_array_equal(x[:, 341], 30 * plain[:, 341])
    missed, held = (figure.ratios("outlier", 1024, k).mean() for k in (341, 342))
    assert missed < 0.85 < 1.2 < held
    np.testing.assert_array_equal(figure.ratios("outlier", 1024, 1024), 1.0)


def test_unknown_features_are_named():
    with pytest.raises(ValueError, match=r"features = 'flat'; give one of \['normal', 'heavy'"):
        figure.rows("flat", 8)


def test_the_figure_opens_where_the_2019_code_was_used():
    shown = explorables.PartialEstimate()
    assert shown.state() == {"p": 0.0625, "n": 1024, "features": "normal"}
    assert reference.partial_size(shown.n, shown.p) == 64
    assert reference.partial_size(shown.n, shown.p, "floor") == 64
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        reference.partial_size(8, shown.p, "floor")


@pytest.mark.parametrize("change", [{"p": 0.0}, {"p": 1.1}, {"n": 12}, {"features": "flat"}])
def test_the_figure_refuses_what_it_cannot_show(change):
    with pytest.raises(traitlets.TraitError):
        explorables.PartialEstimate(**change)
