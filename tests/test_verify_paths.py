"""`verify` beyond y and dx of the whole row: partial norms, fused sums, and the batch."""

import functools
import math

import numpy as np
import pytest
from implementations import RIGHT, forward_with, gradients, right, sequential, widened

from rmsnorm_edu import reference
from rmsnorm_edu.checks import verify
from rmsnorm_edu.checks.batch import FEATURES, GROUPS, ROWS, large_batch, small_batches
from rmsnorm_edu.mutants import MUTANTS, RMSNorm
from rmsnorm_edu.mutants.memory import BatchDependent

ml_dtypes = pytest.importorskip("ml_dtypes")


class OtherThreshold(BatchDependent):
    """One order up to `rows` rows, another beyond."""

    def __init__(self, rows, few=None, many=None):
        self.rows, self.sums = rows, (few or RIGHT["numpy_sum"], many or RIGHT["sequential"])

    def forward(self, x, weight, eps):
        return self.sums[len(x) > self.rows](x, weight, eps)


@pytest.mark.parametrize("rows", [4, 32, 255, 512, 1024])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_order_that_depends_on_the_batch_is_noticed_whatever_the_number(rows, dtype):
    (failure,) = verify(OtherThreshold(rows).forward, dtype=dtype, seeds=1).failures
    assert failure.fault == "batch"
    assert "when other rows stand beside it" in failure.reason


@pytest.mark.parametrize("other", ["blocks of 256", "tree", "einsum", "8 lanes", "streaming"])
def test_any_other_order_is_noticed(other):
    norm = OtherThreshold(100, RIGHT["sequential"], RIGHT[other])
    assert not verify(norm.forward, seeds=1).ok


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", ["vjp", "add", "add_vjp"])
def test_the_other_functions_are_asked_too(function, dtype):
    mutant = MUTANTS["order depends on the batch"]
    keywords = {function: getattr(mutant, function)}
    (failure,) = verify(**keywords, dtype=dtype, seeds=1).failures
    assert failure.fault == "batch"


def test_the_large_batch_begins_with_the_small_ones():
    large = large_batch(np.dtype(np.float32))
    assert large.x.shape == (ROWS, FEATURES)
    for size in GROUPS:
        joined = np.concatenate([case.x for case in small_batches(large, size)])
        np.testing.assert_array_equal(joined, large.x[: len(joined)])


@pytest.mark.parametrize("p", [0.1, 0.25, 0.99])
def test_a_partial_norm_is_not_the_whole_one(p):
    assert not verify(right, p=p, seeds=1).ok
    assert not verify(vjp=gradients, p=p, seeds=1).ok


def test_p_of_1_is_the_whole_norm():
    assert verify(right, gradients, p=1.0, seeds=1).ok


def test_k_is_rounded_as_the_convention_rounds():
    def floor(x, weight, eps):
        return norm(x, weight, eps, reference.partial_size(x.shape[-1], 0.29, "floor"))

    def ceil(x, weight, eps):
        return norm(x, weight, eps, reference.partial_size(x.shape[-1], 0.29))

    def norm(x, weight, eps, k):
        wide = widened(x)
        rms = np.sqrt(np.mean(np.square(wide[:, :k]), axis=-1, keepdims=True))
        return (wide / (rms + wide.dtype.type(eps)) * weight).astype(x.dtype)

    assert verify(floor, p=0.29, convention="paper_torch", seeds=1).ok
    assert not verify(ceil, p=0.29, convention="paper_torch", seeds=1).ok


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_k_is_that_of_the_decimal(dtype):
    """7% of 100 are 7, and 100 * 0.07 is 7.000000000000001."""

    def partial(k, x, weight, eps):
        wide = [a.astype(float) for a in (x, weight)]
        return reference.rms_norm(*wide, eps=eps, k=k(x.shape[-1])).astype(x.dtype)

    exact = functools.partial(partial, lambda n: reference.partial_size(n, 0.07))
    in_floats = functools.partial(partial, lambda n: math.ceil(n * 0.07))
    assert verify(exact, p=0.07, dtype=dtype, seeds=1).ok
    (failure,) = verify(in_floats, p=0.07, dtype=dtype, seeds=1).failures
    assert failure.kinds == ("a share that floats miscount",)


def test_a_share_of_no_feature_is_refused():
    with pytest.raises(ValueError, match=r"p = 0\.0001 of \d+ features is none"):
        verify(right, p=1e-4, convention="paper_torch", seeds=1)


@pytest.mark.parametrize("p", [0, -0.5, 1.5, "half"])
def test_what_is_no_share_is_refused(p):
    with pytest.raises((ValueError, TypeError), match="p = "):
        verify(right, p=p)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_norm_of_the_stored_sum_is_right_too(dtype):
    """As it is computed without fusion: x + residual is stored, and then normalised."""
    norm = RMSNorm()

    def add(x, residual, weight, eps):
        total = x + residual
        return norm.forward(total, weight, eps), total

    def add_vjp(dy, dnew, x, residual, weight, eps):
        dx, dweight = norm.vjp(dy, x + residual, weight, eps)
        return dx + dnew, dweight

    report = verify(add=add, add_vjp=add_vjp, dtype=dtype, seeds=4)
    assert report.ok, report
    assert report.judged == "add and add_vjp"


FUSED = {
    "y of x alone": lambda n, x, r, w, e: (n.forward(x, w, e), n.add(x, r, w, e)[1]),
    "the residual unchanged": lambda n, x, r, w, e: (n.add(x, r, w, e)[0], r),
    "y as the residual": lambda n, x, r, w, e: n.add(x, r, w, e)[:1] * 2,
    "the difference": lambda n, x, r, w, e: n.add(x, -r, w, e),
    "one array": lambda n, x, r, w, e: n.add(x, r, w, e)[0],
}


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_wrong_fused_norms_fail(name, dtype):
    norm = RMSNorm()
    report = verify(add=lambda *a: FUSED[name](norm, *a), dtype=dtype, seeds=1)
    assert not report.ok
    assert "add (convention torch" in repr(report)


def test_the_gradient_of_the_residual_is_not_forgotten():
    norm = RMSNorm()
    report = verify(add_vjp=lambda dy, dr, x, r, w, e: norm.vjp(dy, x + r, w, e), seeds=1)
    assert not report.ok


def test_a_sum_order_of_its_own_is_no_fault():
    assert verify(forward_with(sequential), seeds=1).ok
