"""`reference` against numbers recorded from the authors' own 2019 code (tests/golden/README.md).

Tolerances are those of the README: every recorded number carries the rounding of the framework
that made it, in float32 or float64; an error is compared with the size of the terms that cancel.
"""

import numpy as np
import pytest
from golden_cases import (
    CENTRED_TOLERANCE,
    GRADIENT_TOLERANCE,
    Y_TOLERANCE,
    Case,
    cases,
    dweight_error,
    dx_error,
    rms_cases,
    row_error,
    y_error,
)

from rmsnorm_edu import reference

pytestmark = pytest.mark.equation("rms-norm", "eps-inside", "eps-outside")
ROOT_MEAN_SQUARE = [case for case in rms_cases() if case.facts["unit"] != "ln"]
CENTRED = [case for case in rms_cases() if case.facts["unit"] == "ln"]
CRASHES = [
    case for group in ("g1_torch_rmsnorm", "g2_tf_rmsnorm") for case in cases(group) if case.crashes
]
by_id = {"ids": lambda case: f"{case.id}-{case.facts.get('kind', 'helper')}"}


@pytest.mark.parametrize("case", ROOT_MEAN_SQUARE, **by_id)
def test_output(case: Case) -> None:
    y = reference.rms_norm(case.x, case.weight, case.bias, **case.options)
    assert y_error(case, y) <= Y_TOLERANCE[case.facts["dtype"]]


@pytest.mark.parametrize("case", ROOT_MEAN_SQUARE, **by_id)
def test_gradients(case: Case) -> None:
    dx, dweight = reference.rms_norm_vjp(case.dy, case.x, case.weight, **case.options)
    assert dx_error(case, dx) <= GRADIENT_TOLERANCE[case.facts["dtype"]]
    assert dweight_error(case, dweight) <= GRADIENT_TOLERANCE[case.facts["dtype"]]


@pytest.mark.parametrize("case", [c for c in rms_cases() if c.dbias is not None], **by_id)
def test_gradient_of_the_bias_is_the_sum_over_rows(case: Case) -> None:
    dbias = case.dy.reshape(-1, case.x.shape[-1]).astype(np.float64).sum(axis=0)
    terms = np.max(np.abs(case.dy).reshape(-1, case.x.shape[-1]).sum(axis=0))
    assert row_error(dbias, case.dbias, terms) <= GRADIENT_TOLERANCE[case.facts["dtype"]]


@pytest.mark.equation("layer-norm")
@pytest.mark.parametrize("case", CENTRED, **by_id)
def test_layer_norm(case: Case) -> None:
    y = reference.layer_norm(case.x, case.weight, case.bias, **case.options)
    dx, dweight = reference.layer_norm_vjp(case.dy, case.x, case.weight, **case.options)
    worst = max(y_error(case, y), dx_error(case, dx), dweight_error(case, dweight))
    assert worst <= CENTRED_TOLERANCE[case.facts["dtype"]]


@pytest.mark.parametrize("case", CRASHES, **by_id)
def test_the_recorded_crash_is_an_error_that_names_it(case: Case) -> None:
    with pytest.raises(ValueError, match=r"dies of ZeroDivisionError \(PyTorch\) or gives nan"):
        reference.partial_size(case.facts["d"], case.facts["p"], "floor")


@pytest.mark.parametrize("case", [c for c in rms_cases() if 0 < c.facts.get("p", 0) <= 1], **by_id)
def test_partial_size_rounds_as_the_2019_code(case: Case) -> None:
    assert reference.partial_size(case.facts["d"], case.facts["p"], "floor") == case.k


SLOPES = {"identity": (1.0, 1.0), "relu": (0.0, 1.0), "lrelu": (0.1, 1.0)}  # below 0, from 0 on


@pytest.mark.parametrize(
    "case", [c for c in cases("g7_lasagne") if "inner" not in c.facts], **by_id
)
def test_lasagne_layer(case: Case) -> None:
    """The mean runs over H and W in 4-D, over the features in 2-D; then weight, bias, φ."""
    flat = case.x.reshape(*case.x.shape[:2], -1) if case.x.ndim == 4 else case.x
    a_channel = (-1, 1) if case.x.ndim == 4 else (-1,)
    one = np.ones(case.x.shape[1])
    weight = (one if case.weight is None else case.weight).astype(np.float64).reshape(a_channel)
    bias = (0 * one if case.bias is None else case.bias).astype(np.float64).reshape(a_channel)
    xhat = reference.rms_norm(flat, eps=case.facts["eps"])
    before = xhat * weight + bias
    below, above = SLOPES[case.facts["nonlinearity"]]
    slope = np.where(before < 0, below, above)
    dbefore = case.dy.reshape(flat.shape) * slope
    dx, _ = reference.rms_norm_vjp(dbefore * weight, flat, eps=case.facts["eps"])
    assert y_error(case, (before * slope).reshape(case.x.shape)) <= Y_TOLERANCE[case.facts["dtype"]]
    assert dx_error(case, dx.reshape(case.x.shape)) <= GRADIENT_TOLERANCE[case.facts["dtype"]]


WRONG = {
    "eps at the other place": (58, lambda c: {"eps_outside": not c.options["eps_outside"]}),
    "p ignored": (70, lambda c: {"k": c.x.shape[-1]}),
    "p rounded up": (
        39,
        lambda c: {
            "k": reference.partial_size(c.facts["d"], c.facts["p"])
            if 0 < c.facts["p"] <= 1
            else c.k
        },
    ),
    "eps ten times too large": (59, lambda c: {"eps": 10 * c.options["eps"]}),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_variants_are_noticed(name: str) -> None:
    """Negative controls: the tolerance is not so wide that an error of the field gets through."""
    at_least, change = WRONG[name]
    float64 = [
        c
        for g in ("g1_torch_rmsnorm", "g2_tf_rmsnorm")
        for c in cases(g)
        if c.facts["dtype"] == "float64" and not c.crashes
    ]
    missed = sum(
        y_error(c, reference.rms_norm(c.x, c.weight, c.bias, **(c.options | change(c)))) > 1e-6
        for c in float64
    )
    assert missed >= at_least, f"only {missed} of {len(float64)} cases notice: {name}"
