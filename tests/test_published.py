"""`mutants.published`: the tests are as their sources have them, and what they let pass."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rmsnorm_edu import reference
from rmsnorm_edu.checks import survives
from rmsnorm_edu.mutants import MUTANTS, RMSNorm
from rmsnorm_edu.mutants.published import TESTS

pytest.importorskip("ml_dtypes")


@pytest.mark.parametrize("name", TESTS)
def test_the_right_norm_passes_each_and_a_norm_of_nothing_none(name: str) -> None:
    class Nothing(RMSNorm):
        def product(self, xhat, weight):
            return 0 * xhat - 9

        def dx(self, dy, x, weight, eps):
            return 0 * x - 9

    assert TESTS[name].passes(RMSNorm())
    assert not TESTS[name].passes(Nothing())
    assert re.search(r"at [0-9a-f]{7}, ", TESTS[name].source)


@pytest.mark.parametrize("name", TESTS)
def test_the_inputs_are_of_the_type_and_the_shapes_said(name: str) -> None:
    test = TESTS[name]
    for x, weight, dy in test.inputs():
        assert x.shape == dy.shape
        assert weight.shape == x.shape[-1:]
        assert x.shape in test.shapes
        assert x.dtype == weight.dtype == dy.dtype == test.dtype
    strided = [not x.flags.c_contiguous for x, _, _ in test.inputs()]
    assert any(strided) == test.strided


def test_rows_with_gaps_and_another_type_show_where_the_test_looks_at_them() -> None:
    passing = {
        name: {t for t, test in TESTS.items() if test.passes(MUTANTS[name])}
        for name in ("strides ignored", "float32 comes out")
    }
    assert passing["strides ignored"] == set(TESTS) - {"vLLM"}
    assert passing["float32 comes out"] == {"Liger", "Liger, float32", "Unsloth"}


@pytest.mark.equation("allclose")
def test_close_is_what_numpy_asks() -> None:
    rng = np.random.default_rng(3)
    expected = rng.normal(0.5, 1.0, (500, 4))
    found = set()
    for test in (TESTS["Liger"], TESTS["vLLM"], TESTS["Triton tutorial"]):
        for got, b in zip(expected + rng.normal(0, 0.1, (500, 4)), expected, strict=True):
            answer = np.allclose(got, b, rtol=test.rtol, atol=test.atol)
            assert test.close(got, b) == answer
            found.add(answer)
    assert found == {True, False}


@pytest.mark.equation("blind-below")
def test_a_relative_error_passes_up_to_the_tolerances_and_no_further() -> None:
    expected = np.random.default_rng(0).normal(0.5, 1.0, 200)
    for test in (TESTS["Liger"], TESTS["vLLM"], TESTS["Triton tutorial"]):
        limit = test.rtol + test.atol / np.abs(expected)
        for sign in (1.0, -1.0):
            below, above = 1 + sign * 0.999 * limit, 1 + sign * 1.001 * limit
            assert test.close(expected * below, expected)
            for b, factor in zip(expected, above, strict=True):
                assert not test.close(np.array(b * factor), np.array(b))


def test_a_one_sided_test_does_not_see_what_is_too_large() -> None:
    test, expected = TESTS["Unsloth"], np.array([1.0, -2.0])
    assert test.close(expected + 100, expected)
    assert not test.close(expected - 0.06, expected)


@pytest.mark.equation("eps-too-large")
def test_the_share_that_an_eps_too_large_takes() -> None:
    rng = np.random.default_rng(1)
    x, weight = rng.normal(0.3, 2.0, (5, 7)), rng.uniform(1.2, 2.5, 7)
    for eps, c in ((1e-6, 1e5), (0.1, 3.0), (1e-3, 0.01)):
        y = reference.rms_norm(x, weight, eps=eps)
        wrong = reference.rms_norm(x, weight, eps=c * eps)
        r = reference.rms(x)[:, np.newaxis]
        ratio = np.sqrt((r**2 + eps) / (r**2 + c * eps))
        np.testing.assert_allclose(wrong, ratio * y, rtol=1e-14)


@pytest.mark.equation("weight-adjoint")
def test_the_weight_and_its_gradient_give_the_sum_of_dy_y() -> None:
    rng = np.random.default_rng(2)
    x, dy = rng.normal(0.5, 1.0, (2, 6, 9))
    weight = rng.choice([-1.0, 1.0], 9) * rng.uniform(0.5, 2.0, 9)
    for eps in (0.0, 0.1):
        _, dweight = reference.rms_norm_vjp(dy, x, weight, eps=eps)
        y = reference.rms_norm(x, weight, eps=eps)
        size = np.sum(np.abs(dy * y))
        assert abs(np.sum(weight * dweight) - np.sum(dy * y)) < 64 * 2.0**-53 * size


def test_spoiled_inputs_let_mutants_live() -> None:
    def weight_of_one(case):
        return replace(case, weight=np.ones_like(case.weight))

    mutant = MUTANTS["w outside the mean, too"]
    assert survives(mutant, weight_of_one, seeds=1)
    assert not survives(mutant, seeds=1)
    assert survives(MUTANTS["n − 1"], lambda case: None, seeds=1)


def test_the_property_that_the_page_shows_with_hypothesis_holds() -> None:
    pytest.importorskip("hypothesis")
    page = Path(__file__).parents[1] / "book/equation/testing.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)
    scope: dict = {}
    exec(code, scope)
    scope["test_scale"]()
