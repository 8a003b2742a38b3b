"""SGD on a loss that sees only the direction of w: the laws that its figure shows."""

import numpy as np
import pytest

pytest.importorskip("anywidget")

import traitlets

from rmsnorm_edu import explorables
from rmsnorm_edu.explorables import growing_weights

STATES = [(0.02, 0.0), (0.3, 0.0), (3.0, 0.0), (0.3, 0.1), (3.0, 0.05)]
TINY = 1e-13  # float64, two features: a step rounds by a few 1e-16 of ‖w‖² or of η²‖dw‖²


def parts(rate, decay):
    """The weights, the step that the gradient takes from each, and the squared norms."""
    w = growing_weights.walk(rate, decay)
    return w, w[1:] - (1 - rate * decay) * w[:-1], np.sum(w**2, axis=1)


def turns(rate, decay):
    """The angle of every step in radians."""
    w = growing_weights.walk(rate, decay)
    cross = w[:-1, 0] * w[1:, 1] - w[:-1, 1] * w[1:, 0]
    return np.arctan2(np.abs(cross), np.sum(w[:-1] * w[1:], axis=1))


@pytest.mark.parametrize(("rate", "decay"), STATES)
def test_a_step_is_a_tangent_and_its_square_is_added(rate, decay):
    w, step, squares = parts(rate, decay)
    lengths = np.sqrt(squares[:-1] * np.sum(step**2, axis=1))
    assert (np.abs(np.sum(w[:-1] * step, axis=1)) <= TINY * (squares[:-1] + lengths)).all()
    added = (1 - rate * decay) ** 2 * squares[:-1] + np.sum(step**2, axis=1)
    np.testing.assert_allclose(squares[1:], added, rtol=TINY)
    if decay == 0:
        assert (np.diff(squares) >= 0).all(), "plain SGD never makes w shorter"


@pytest.mark.parametrize(("rate", "decay"), STATES)
def test_the_norm_limits_the_angle_of_a_step(rate, decay):
    # ‖y − t‖ has at most √2 across w, and RMS(w) = ‖w‖/√2: ‖dw‖ ≤ 2/‖w‖.
    _, step, squares = parts(rate, decay)
    assert (np.linalg.norm(step, axis=1) <= rate * 2 / np.sqrt(squares[:-1]) * (1 + TINY)).all()
    limit = np.arctan(2 * rate / ((1 - rate * decay) * squares[:-1]))
    assert (turns(rate, decay) <= limit + TINY).all()


@pytest.mark.parametrize(("rate", "decay"), STATES)
def test_the_angles_are_all_that_moves_the_norm(rate, decay):
    # ‖w'‖² = (1 − ηλ)² ‖w‖² (1 + tan²): the logarithms add up over all steps
    _, _, squares = parts(rate, decay)
    grown = -2 * np.sum(np.log(np.cos(turns(rate, decay))))
    kept = 2 * growing_weights.STEPS * np.log1p(-rate * decay)
    assert np.log(squares[-1]) == pytest.approx(grown + kept, abs=1e-10)


def test_in_balance_a_step_turns_by_the_root_of_two_eta_lambda():
    late = turns(0.3, 0.1)[-50:]
    assert np.sqrt(np.mean(late**2)) == pytest.approx(np.sqrt(2 * 0.3 * 0.1), rel=0.05)


def test_ten_times_the_rate_calms_itself():
    slow, fast = turns(0.3, 0.0), turns(3.0, 0.0)
    assert fast[0] > 2.5 * slow[0]
    late = [np.sqrt(np.mean(t[-50:] ** 2)) for t in (slow, fast)]
    assert late[1] == pytest.approx(late[0], rel=0.2), "ten times the rate, but not the turn"


def test_an_example_that_asks_for_w_leaves_it_alone():
    assert growing_weights.walk(0.5, angles=(0.0, 0.0))[-1] == pytest.approx([1.0, 0.0], abs=TINY)


@pytest.mark.parametrize(("rate", "decay"), [(0.0, 0.0), (-1.0, 0.0), (0.3, -0.1), (3.0, 0.4)])
def test_what_would_not_be_descent_is_refused(rate, decay):
    with pytest.raises(ValueError, match=r"give rate > 0 and 0 <= rate \* decay < 1"):
        growing_weights.walk(rate, decay)


def test_the_figure_gets_the_examples_of_the_simulation():
    figure = explorables.GrowingWeights()
    assert set(figure.state()) == {"rate", "decay", "step", "angles"}
    assert figure.angles == list(growing_weights.targets())


@pytest.mark.parametrize("change", [{"rate": 4.0}, {"decay": 0.2}, {"step": 0}, {"step": 201}])
def test_the_figure_refuses_what_it_cannot_show(change):
    with pytest.raises(traitlets.TraitError):
        explorables.GrowingWeights(**change)
