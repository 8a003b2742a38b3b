"""`nn.functional.rms_norm` beside `conventions.apply`, `checks.verify` and the 2019 code's numbers.

A float32 sum has another order in torch than in NumPy: `dialects.near` allows for that.
"""

import numpy as np
import pytest
import torch
from dialects import near, numpy_type, of
from golden_cases import Case, rms_cases
from tensors import TYPES, gains, in_numpy, tensor, uneven
from test_golden import GRADIENT_TOLERANCE, Y_TOLERANCE, dweight_error, dx_error, y_error

from rmsnorm_edu import checks, conventions, nn
from rmsnorm_edu.nn.functional import rms_norm

pytestmark = pytest.mark.equation("rms-norm", "eps-inside", "eps-outside")
GOLDEN = [case for case in rms_cases() if case.facts["unit"] != "ln"]


@pytest.mark.parametrize("name", conventions.NAMES)
def test_forward_is_that_of_conventions(name: str) -> None:
    x = uneven(12, 37)
    x[3] = 0
    for x_type in TYPES.values():
        for weight_type in (*TYPES.values(), None):
            rows = x.to(x_type)
            weight = None if weight_type is None else gains(37, dtype=weight_type)
            for eps in (None, 0.05):
                y = of(rms_norm(rows, weight, convention=name, eps=eps))
                arrays = (of(rows), None if weight is None else of(weight))
                expected = conventions.apply(name, *arrays, eps=eps)
                assert y.dtype == expected.dtype
                near(_at_most(y, x_type, weight_type), _at_most(expected, x_type, weight_type))


def _at_most(y: np.ndarray, *types: torch.dtype | None) -> np.ndarray:
    """y in float32 if a part of it was computed so, where the result is float64."""
    computed = y.dtype == np.float64 and types[0] != torch.float64
    return y.astype(np.float32) if computed else y


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("torch", "float32"),
        ("paper_torch", "float16"),
        ("gemma", "bfloat16"),
        ("x_transformers", "bfloat16"),
    ],
)
def test_verify_accepts(name: str, dtype: str) -> None:
    numpy_type(dtype)
    report = checks.verify(**in_numpy(name), convention=name, dtype=dtype, seeds=1)
    assert report.ok, report


def test_verify_accepts_a_partial_norm() -> None:
    name = "paper_torch"
    report = checks.verify(**in_numpy(name, 0.29), convention=name, p=0.29, seeds=1)
    assert report.ok, report


@pytest.mark.parametrize("unit", sorted({case.facts["unit"] for case in GOLDEN}))
def test_numbers_of_2019(unit: str) -> None:
    """The module with the paper's conventions: forward, and the gradients of x, weight, bias."""
    for case in [case for case in GOLDEN if case.facts["unit"] == unit]:
        norm, x = _module(case), tensor(case.x.copy()).requires_grad_()
        y = norm(x)
        y.backward(tensor(case.dy))
        kind = case.facts["dtype"]
        assert y_error(case, of(y.detach())) <= Y_TOLERANCE[kind], case.id
        assert dx_error(case, of(x.grad)) <= GRADIENT_TOLERANCE[kind], case.id
        assert dweight_error(case, of(norm.weight.grad)) <= GRADIENT_TOLERANCE[kind], case.id
        if case.dbias is not None:
            terms = np.abs(case.dy).reshape(-1, case.x.shape[-1]).sum(axis=0).max()
            off = np.abs(of(norm.bias.grad) - case.dbias).max()
            assert off <= GRADIENT_TOLERANCE[kind] * terms, case.id


def _module(case: Case) -> nn.RMSNorm:
    p = case.facts.get("p", -1.0)
    norm = nn.RMSNorm(
        case.x.shape[-1],
        case.facts["eps"],
        dtype=TYPES[case.facts["dtype"]],
        bias=case.bias is not None,
        p=p if 0 < p <= 1 else None,
        convention="paper_torch" if case.options["eps_outside"] else "paper_tensorflow",
    )
    with torch.no_grad():
        norm.weight.copy_(tensor(case.weight))
        if norm.bias is not None:
            norm.bias.copy_(tensor(case.bias))
    return norm
