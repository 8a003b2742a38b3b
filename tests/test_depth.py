"""The figure of why_normalise: its simulation, and the laws by which it draws other gains."""

import numpy as np
import pytest

pytest.importorskip("anywidget")

import traitlets

from rmsnorm_edu import explorables
from rmsnorm_edu.explorables import depth

GAINS = (0.5, 0.73, 1.31, 2.0)
LAYER = np.arange(1.0, 101.0)
TINY = 1e-12  # a hundred products and sums of 64 terms: far below, seen 3e-15


@pytest.mark.equation("signal-growth")
@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("seed", [0, 7])
def test_without_a_norm_the_size_is_a_power_of_the_gain(gain, seed):
    at_one = depth.sizes("none", seed=seed)
    found = depth.sizes("none", gain, seed=seed)
    np.testing.assert_allclose(found, gain**LAYER * at_one, rtol=TINY)


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_with_a_norm_only_the_last_gain_is_left(norm, gain):
    exact = gain * depth.sizes(norm, eps=0.0)
    np.testing.assert_allclose(depth.sizes(norm, gain, eps=0.0), exact, rtol=TINY)


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_the_eps_of_the_page_is_below_what_the_figure_shows(norm, gain):
    # At spread s a norm's answer is 1 / sqrt(1 + eps / s²), too small by at most eps / 2s². The
    # mean of 64 entries of either sign is within three times size / 8, so s² > 0.85 size².
    at_one, found = depth.sizes(norm), depth.sizes(norm, gain)
    bound = depth.EPS / (2 * 0.85 * min(at_one.min(), found.min()) ** 2)
    np.testing.assert_allclose(found, gain * at_one, rtol=bound)
    assert bound < 1e-5, "the figure shows three digits"


def test_a_shorter_network_is_the_beginning_of_a_longer_one():
    for norm in depth.NORMS:
        whole = depth.sizes(norm, 0.9, width=16)
        np.testing.assert_array_equal(whole[:50], depth.sizes(norm, 0.9, depth=50, width=16))


def test_the_simulation_is_the_one_of_the_chapter():
    rng = np.random.default_rng(0)
    h = rng.standard_normal(64)
    matrices = np.sqrt(2 / 64) * rng.standard_normal((50, 64, 64))
    found = []
    for w in matrices:
        a = 0.75 * (w @ h)
        found.append(np.sqrt(np.mean(a**2)))
        h = np.maximum(a / np.sqrt(np.mean(a**2) + 1e-6), 0.0)
    np.testing.assert_allclose(depth.sizes("rms", 0.75)[:50], found, rtol=TINY)


def test_fifty_layers_turn_one_into_almost_nothing_or_a_billion():
    low, one, high = (depth.sizes("none", gain)[49] for gain in (0.75, 1.0, 1.5))
    assert 0.1 < one < 10
    assert low < 1e-6
    assert high > 1e8
    critical = one ** (-1 / 50)
    assert depth.sizes("none", critical)[49] == pytest.approx(1.0, rel=TINY)


def test_an_unknown_norm_is_named():
    with pytest.raises(ValueError, match=r"norm = 'batch'; give one of \['none', 'rms', 'layer'\]"):
        depth.sizes("batch")


def test_the_figure_draws_the_simulation():
    figure = explorables.Depth()
    assert set(figure.state()) == {"gain", "layer", "curves"}
    for norm, curve in figure.curves.items():
        np.testing.assert_allclose(curve, depth.sizes(norm), rtol=1e-8)


@pytest.mark.parametrize("change", [{"gain": 0.4}, {"gain": 2.5}, {"layer": 0}, {"layer": 101}])
def test_the_figure_refuses_what_it_cannot_show(change):
    with pytest.raises(traitlets.TraitError):
        explorables.Depth(**change)
