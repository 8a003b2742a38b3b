"""The figure of the gradients chapter: what it refuses, and the facts that its buttons promise."""

import numpy as np
import pytest

pytest.importorskip("anywidget")

import traitlets

from rmsnorm_edu import explorables, reference

START = explorables.GradientPlane()
X, DY = np.array(START.x), np.array(START.dy)
WEIGHT = np.array([1.5, 0.5])


def dx_of(x, dy, eps=0.0):
    return reference.rms_norm_vjp(dy, x, WEIGHT, eps=eps)[0]


def test_the_state_is_the_four_inputs_of_the_backward_pass():
    assert set(START.state()) == {"x", "dy", "weight", "eps"}
    assert START.weight == [1.0, 1.0], "u = dy until the reader moves a weight"


@pytest.mark.parametrize(
    "change", [{"x": [1.7, 0.0]}, {"dy": [0.0, -1.3]}, {"weight": [1.0]}, {"eps": -0.1}]
)
def test_the_figure_refuses_what_it_cannot_show(change):
    with pytest.raises(traitlets.TraitError):
        explorables.GradientPlane(**change)


def test_what_the_buttons_promise_holds_with_a_weight_too():
    # float64, values of about 1 and a handful of operations: far below 1e-14
    np.testing.assert_allclose(dx_of(2 * X, DY), dx_of(X, DY) / 2, rtol=1e-14)
    aligned = X / WEIGHT  # u is then along x
    np.testing.assert_allclose(dx_of(X, aligned), 0.0, atol=1e-14)
    assert X @ dx_of(X, DY, eps=0.5) > 0.1, "a radial part returns"
    np.testing.assert_allclose(dx_of([0.0, 0.0], DY, 0.25), 2 * DY * WEIGHT, rtol=1e-14)
