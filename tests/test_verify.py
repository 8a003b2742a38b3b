"""`verify`: rejects every wrong norm with a reason that fits, and no right one."""

from functools import partial

import false_alarms
import numpy as np
import pytest
from implementations import RIGHT, RIGHT_VJP, gradients, right
from wrong_implementations import WRONG, WRONG_VJP

from rmsnorm_edu import conventions
from rmsnorm_edu.checks import Report, verdict, verify
from rmsnorm_edu.checks.inputs import cases
from rmsnorm_edu.checks.judge import Judge
from rmsnorm_edu.checks.rules import Rules

ml_dtypes = pytest.importorskip("ml_dtypes")


def test_many_seeds_do_not_reject_what_is_right() -> None:
    report = verify(right, gradients, seeds=20)
    assert report.ok, report
    assert report.inputs > 350


@pytest.mark.parametrize("name", RIGHT)
def test_right_forwards_do_not_depend_on_the_batch(name: str) -> None:
    judge = Judge(Rules("torch", np.dtype(np.float32)))
    assert verdict._depends_on_the_batch(judge, "forward", RIGHT[name]) == []


@pytest.mark.parametrize("name", ["sequential", "einsum", "tree", "scaled by max", "newton"])
def test_right_forwards_pass(name: str) -> None:
    report = verify(RIGHT[name], seeds=1)
    assert report.ok, report


@pytest.mark.parametrize("name", RIGHT_VJP)
def test_right_gradients_pass(name: str) -> None:
    report = verify(vjp=RIGHT_VJP[name], seeds=1)
    assert report.ok, report


@pytest.mark.parametrize("dtype", false_alarms.DTYPES)
def test_a_sample_of_the_campaign_raises_no_alarm(dtype: str) -> None:
    results = list(false_alarms.alarms(false_alarms.DTYPES[dtype], range(2)))
    assert len(results) > 1500
    assert [result for result in results if result[1]] == []


@pytest.mark.parametrize("name", WRONG)
def test_wrong_forwards_fail_for_their_reason(name: str) -> None:
    function, reason = WRONG[name]
    report = verify(function, seeds=2)
    assert not report.ok
    assert reason in repr(report)


@pytest.mark.parametrize("name", WRONG_VJP)
def test_wrong_gradients_fail_for_their_reason(name: str) -> None:
    function, reason = WRONG_VJP[name]
    report = verify(vjp=function, seeds=2)
    assert not report.ok
    assert reason in repr(report)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_the_wrong_ones_fail_in_every_type(dtype: str) -> None:
    assert [n for n, (function, _) in WRONG.items() if _passes(function, None, dtype)] == []
    assert [n for n, (function, _) in WRONG_VJP.items() if _passes(None, function, dtype)] == []


def _passes(forward, vjp, dtype: str) -> bool:
    """Whether no input of seed 0 shows a fault; without the search for a smaller one."""
    judge = Judge(Rules("torch", np.dtype(getattr(ml_dtypes, dtype, dtype))))
    name, function = ("forward", forward) if forward else ("vjp", vjp)
    return all(
        judge.fault(name, function, case.arguments(name)) is None
        for case in cases(0, judge.rules.dtype)
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", conventions.NAMES)
def test_each_convention_is_judged_by_its_own_rules(name: str, dtype: str) -> None:
    judge = Judge(Rules(name, false_alarms.DTYPES[dtype]))
    found = [
        (case.kind, judge.fault("forward", partial(_apply, name), case.arguments("forward")))
        for case in verdict._inputs(judge.rules, 1)
    ]
    assert [pair for pair in found if pair[1]] == []


@pytest.mark.parametrize("name", ["llama", "gemma", "x_transformers"])
def test_conventions_pass_with_all_that_is_asked(name: str) -> None:
    report = verify(partial(_apply, name), convention=name, seeds=1)
    assert report.ok, report


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("convention", ["llama", "gemma_flax", "paper_tensorflow"])
def test_what_is_stored_in_half_precision_does_not_spare_the_long_rows(
    convention: str, dtype: str
) -> None:
    """Nor, but where ε vanishes beside a stored mean, small eps."""

    def first_1024(x, weight, eps):
        wide = x.astype(float)
        mean = np.sum(np.square(wide[:, :1024]), -1, keepdims=True) / x.shape[-1]
        gain = conventions.get(convention).gain_offset + weight.astype(float)
        return (wide / np.sqrt(mean + eps) * gain).astype(x.dtype)

    def own_eps(x, weight, eps):
        return _apply(convention, x, weight, 0.125)

    assert not verify(first_1024, convention=convention, dtype=dtype, seeds=1).ok
    if (convention, dtype) in (("llama", "float16"), ("gemma_flax", "bfloat16")):
        assert not verify(own_eps, convention=convention, dtype=dtype, seeds=1).ok


def test_a_convention_is_not_another() -> None:
    outside = verify(partial(_apply, "paper_torch"), convention="paper_tensorflow", seeds=1)
    assert not outside.ok
    assert "eps stands outside" in repr(outside)
    assert not verify(partial(_apply, "paper_tensorflow"), convention="paper_torch", seeds=1).ok


@pytest.mark.parametrize("convention", ["gemma", "paper_torch", "x_transformers"])
def test_the_norm_of_another_convention_is_not_called_a_mutant(convention: str) -> None:
    (failure,) = verify(right, convention=convention, seeds=2).failures
    assert failure.reason.startswith("y is off by ")


def _apply(name: str, x, weight, eps):
    return conventions.apply(name, x, weight, eps=eps)


@pytest.mark.usefixtures("own_threads")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_torch_passes(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)  # its threads only get in each other's way on such small arrays

    def tensor(a):
        return torch.tensor(a.astype(np.float64)).to(getattr(torch, dtype))

    def array(t):
        a = t.detach().to(torch.float64).numpy()
        return a.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)

    def forward(x, weight, eps):
        w = tensor(weight)
        return array(torch.nn.functional.rms_norm(tensor(x), w.shape, w, eps))

    def vjp(dy, x, weight, eps):
        x, w = tensor(x).requires_grad_(), tensor(weight).requires_grad_()
        y = torch.nn.functional.rms_norm(x, w.shape, w, eps)
        return tuple(map(array, torch.autograd.grad(y, (x, w), tensor(dy))))

    report = verify(forward, vjp, dtype=dtype, seeds=1)
    assert report.ok, report


def test_the_inputs_are_as_the_contract_says() -> None:
    seen = [case for seed in range(5) for case in cases(seed, np.dtype(np.float32))]
    rows, features = zip(*(case.x.shape for case in seen), strict=True)
    assert min(rows) == min(features) == 1
    assert max(rows) > 128
    assert any(n > 128 and n % 2 for n in features)
    assert any(r == n > 1 for r, n in zip(rows, features, strict=True))
    assert any(np.any(np.all(case.x == 0, axis=-1)) for case in seen)
    sizes = [np.max(np.abs(case.x)) for case in seen]
    assert max(sizes) > 1e8
    assert min(sizes) < 1e-10
    for case in seen:
        assert np.min(np.abs(np.abs(case.weight) - 1)) > 0.05
        assert case.weight.size == 1 or (case.weight.min() < 0 < case.weight.max())
        assert case.eps > 0 or "eps = 0" in case.kind
    assert all(case.dy.dtype == case.x.dtype == case.weight.dtype == np.float32 for case in seen)


def test_the_report_shows_the_smallest_input_and_says_what_is_needed() -> None:
    report = verify(WRONG["wrong axis"][0], seeds=1)
    (failure,) = report.failures
    assert (failure.function, failure.fault) == ("forward", "y")
    assert "forward([[" in failure.code
    assert "should be" in failure.code
    assert len(failure.code) < 200
    assert "one row" not in failure.kinds or "square" in failure.kinds
    assert repr(report).startswith("○ forward (convention torch, float32): ")
    assert report._repr_html_().startswith('<div class="check">')


def test_a_good_report_is_one_line() -> None:
    report = verify(right, gradients, seeds=1)
    assert isinstance(report, Report)
    assert repr(report).count("\n") == 0
    assert repr(report).startswith("✓ forward and vjp (convention torch, float32): right on all ")
    assert 'class="check is-right"' in report._repr_html_()


def test_both_functions_are_reported() -> None:
    report = verify(WRONG["1 + w"][0], WRONG_VJP["its wrong sign"][0], seeds=1)
    assert {failure.function for failure in report.failures} == {"forward", "vjp"}


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({}, ValueError, r"nothing to judge: give forward\(x, weight, eps\), vjp"),
        ({"forward": 3}, TypeError, "forward = 3 cannot be called; give the function"),
        ({"vjp": [right]}, TypeError, "vjp = .* cannot be called"),
        ({"seeds": 1.5}, TypeError, r"seeds = 1\.5 .*give an integer"),
        ({"seeds": "a"}, TypeError, "seeds = 'a'"),
        ({"seeds": True}, TypeError, "seeds = True"),
        ({"seeds": -3}, ValueError, "seeds = -3"),
        ({"dtype": None}, ValueError, "dtype = None; it is one of float16, bfloat16"),
        ({"dtype": "half2"}, ValueError, "dtype = half2; it is one of"),
        ({"convention": ["torch"]}, ValueError, "convention = .* it is one of paper_torch"),
    ],
)
def test_what_cannot_be_judged_is_told_the_fix(keywords, error, words):
    judged = {"forward": right} if keywords and "vjp" not in keywords else {}
    with pytest.raises(error, match=words):
        verify(**(judged | keywords))
