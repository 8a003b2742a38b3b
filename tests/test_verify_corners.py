"""`verify` in the corners: layouts, lengths, eps = 0, functions that change, hostile results."""

import sys

import numpy as np
import pytest
from implementations import gradients, pairwise, right, widened
from wrong_implementations import WRONG, forward_by

from rmsnorm_edu.checks import verify
from rmsnorm_edu.checks.inputs import cases, long_cases

DTYPES = ("float32", "float16", "bfloat16", "float64")
pytest.importorskip("ml_dtypes")


def strides_ignored(x, weight, eps):
    return right(x.ravel(order="K").reshape(x.shape), weight, eps)


def a_few_rows(x, weight, eps):
    y = right(x, weight, eps)
    y[256:] = 0
    return y


def a_grid_of_rows(x, weight, eps):
    y = right(x, weight, eps)
    y[2048:] = 0
    return y


def first_features(size):
    def divisor(x, eps):
        return np.sqrt(np.sum(x[:, :size] ** 2, axis=-1, keepdims=True) / x.shape[-1] + eps)

    return forward_by(divisor)


def from_y(dy, x, weight, eps):
    """x̂ out of the stored y, as memory-saving layers do: 0/0 where the weight is 0."""
    wide, w, dy_wide = widened(x), widened(weight), widened(dy)
    rstd = 1 / np.sqrt(pairwise(wide) + wide.dtype.type(eps))
    with np.errstate(invalid="ignore"):
        xhat = wide * rstd * w / w
    u = dy_wide * w
    dx = rstd * (u - xhat * np.mean(u * xhat, axis=-1, keepdims=True))
    return dx.astype(x.dtype), np.sum(dy_wide * xhat, axis=0).astype(x.dtype)


def vjp_of_a_few_rows(dy, x, weight, eps):
    return gradients(dy, x, weight, eps)[0], gradients(dy[:256], x[:256], weight, eps)[1]


CORNERS = {
    "strides ignored": (strides_ignored, "arrays stored by columns"),
    "256 rows": (a_few_rows, "many rows"),
    "2048 rows": (a_grid_of_rows, "thousands of rows"),
    "4096 features": (first_features(4096), "thousands of features"),
    "8192 features": (first_features(8192), "thousands of features"),
    "falsy eps": (lambda x, w, eps: right(x, w, eps or 1e-5), "eps = 0"),
}
CORNERS_VJP = {
    "x-hat out of y": (from_y, "a weight of 0"),
    "256 rows": (vjp_of_a_few_rows, "many rows"),
    "falsy eps": (lambda dy, x, w, eps: gradients(dy, x, w, eps or 1e-5), "eps = 0"),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CORNERS)
def test_forwards_that_are_wrong_in_one_corner_fail_there(name, dtype):
    function, kind = CORNERS[name]
    report = verify(function, dtype=dtype, seeds=1)
    assert any(kind in found for failure in report.failures for found in failure.kinds), report


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CORNERS_VJP)
def test_gradients_that_are_wrong_in_one_corner_fail_there(name, dtype):
    function, kind = CORNERS_VJP[name]
    report = verify(vjp=function, dtype=dtype, seeds=1)
    assert any(kind in found for failure in report.failures for found in failure.kinds), report


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])  # float16 cannot tell
def test_a_tiny_eps_in_place_of_0_is_noticed(dtype):
    assert not verify(lambda x, w, eps: right(x, w, eps or 1e-8), dtype=dtype, seeds=1).ok


def test_the_layouts_reach_the_function():
    seen = set()

    def spy(x, weight, eps):
        seen.add((x.flags.c_contiguous, x.flags.f_contiguous, weight.flags.c_contiguous))
        return right(x, weight, eps)

    assert verify(spy, seeds=1).ok
    assert seen >= {(True, False, True), (False, True, True), (False, False, False)}


def test_a_clear_error_is_an_answer_to_a_strided_array_but_to_no_other():
    def refuses(x, weight, eps):
        if not (x.flags.c_contiguous and weight.flags.c_contiguous):
            raise ValueError("x is not contiguous: give np.ascontiguousarray(x)")
        return right(x, weight, eps)

    assert verify(refuses, seeds=2).ok
    report = verify(lambda x, weight, eps: refuses(x.T.copy().T, weight, eps), seeds=1)
    assert not report.ok


def test_a_function_that_always_raises_is_wrong_everywhere():
    assert "ValueError: no. Wrong on 20 of 20 inputs: every kind of input." in repr(
        verify(refusing, seeds=1)
    )


def test_an_error_beyond_float64_is_reported_without_a_warning():
    report = verify(lambda x, w, eps: np.full_like(x, 1e308), dtype="float64", seeds=1)
    assert "what rounding explains" in repr(report)


def test_the_inputs_have_the_corners():
    float32 = np.dtype(np.float32)
    seen = [*cases(0, float32), *long_cases(float32)]
    assert max(len(case.x) for case in seen) > 2048
    assert max(case.x.shape[-1] for case in seen) > 8192
    assert any(case.eps == 0 for case in seen)
    assert any(np.any(case.weight == 0) for case in seen)
    assert [case.kind for case in seen if case.strided] == [
        "arrays stored by columns",
        "arrays with gaps in memory",
    ]


# --- functions that do not give one result for one input ------------------------------------


def every(calls, other):
    """`right`, but each n-th call does something else."""
    count = 0

    def forward(x, weight, eps):
        nonlocal count
        count += 1
        return other(x, weight, eps) if count % calls == 0 else right(x, weight, eps)

    return forward


def after(calls, first, then):
    """`first` for some calls, and from then on something else."""
    count = 0

    def forward(x, weight, eps):
        nonlocal count
        count += 1
        return first(x, weight, eps) if count <= calls else then(x, weight, eps)

    return forward


def refusing(x, weight, eps):
    raise ValueError("no")


def raising(x, weight, eps):
    raise RuntimeError("now and then")


def doubled(x, weight, eps):
    return right(x, weight, eps) * x.dtype.type(2)


OTHERS = {
    "raises": raising,
    "doubles": doubled,
    "shape": lambda x, w, eps: np.ones((3, 17), x.dtype),
    "None": lambda x, w, eps: None,
    "nan": lambda x, w, eps: np.full_like(x, np.nan),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("calls", [2, 3, 7])
def test_now_and_then_is_a_fault_of_its_own(calls, other):
    report = verify(every(calls, OTHERS[other]), seeds=2)
    assert [failure.fault for failure in report.failures] == ["changing"]
    assert "different results for one and the same input" in repr(report)
    assert "Wrong on" not in repr(report)


@pytest.mark.parametrize("then", OTHERS)
@pytest.mark.parametrize("calls", [1, 40])
def test_a_function_that_turns_while_it_is_judged_gets_a_report(calls, then):
    for first in (doubled, right, WRONG["L2"][0]):
        report = verify(after(calls, first, OTHERS[then]), seeds=2)
        assert not report.ok
        for failure in report.failures:
            assert (failure.fault == "changing") == ("one and the same" in failure.reason)


def test_sums_in_a_new_order_each_time_are_noticed():
    rng = np.random.default_rng(0)

    def shuffled(x, weight, eps):
        order = rng.permutation(x.shape[-1])
        wide = widened(x)
        mean = (np.cumsum(np.square(wide[:, order]), axis=-1)[:, -1:]) / x.shape[-1]
        return (wide / np.sqrt(mean + eps) * widened(weight)).astype(x.dtype)

    assert [failure.fault for failure in verify(shuffled, seeds=1).failures] == ["changing"]


def test_a_result_that_the_next_call_overwrites_is_noticed():
    kept = {}

    def reusing(x, weight, eps):
        y = kept.setdefault(x.shape, np.empty_like(x))
        y[...] = right(x, weight, eps)
        return y

    (failure,) = verify(reusing, seeds=1).failures
    assert failure.fault == "reused"
    assert "a later result over an earlier one" in failure.reason


def test_gradients_that_pile_up_are_noticed():
    total = {}

    def piling(dy, x, weight, eps):
        dx, dweight = gradients(dy, x, weight, eps)
        total[weight.shape] = total.get(weight.shape, 0) + dweight
        return dx, total[weight.shape]

    assert [failure.fault for failure in verify(vjp=piling, seeds=1).failures] == ["changing"]


# --- what a hostile function may do ---------------------------------------------------------


class Strange(np.ndarray):
    def astype(self, *arguments, **keywords):
        raise RuntimeError("astype")


def leaves(*arguments):
    sys.exit(2)


def stops(*arguments):
    raise GeneratorExit


def interrupts(*arguments):
    raise KeyboardInterrupt


def test_leaving_is_an_answer_and_an_interrupt_is_not():
    assert "SystemExit: 2" in repr(verify(leaves, seeds=1))
    assert "GeneratorExit" in repr(verify(vjp=stops, seeds=1))
    with pytest.raises(KeyboardInterrupt):
        verify(interrupts, seeds=1)


def test_subclasses_are_judged_by_their_numbers_and_masked_ones_refused():
    assert verify(lambda x, w, eps: right(x, w, eps).view(Strange), seeds=1).ok
    masked = verify(lambda x, w, eps: np.ma.masked_array(right(x, w, eps), mask=True), seeds=1)
    assert "masked values" in repr(masked)


def test_no_reason_is_told_that_only_nan_would_explain():
    """A zero row alone is wrong; "eps is not used" would make it nan, and explain nothing."""

    def zero_row(x, weight, eps):
        return np.where(np.all(x == 0, axis=-1, keepdims=True), weight, right(x, weight, eps))

    (failure,) = verify(zero_row, seeds=3).failures
    assert failure.kinds == ("a row of zeros",)
    assert "rounding explains" in failure.reason


def test_types_are_taken_in_any_byte_order():
    assert verify(right, dtype=">f4", seeds=1).ok
