"""How near the bounds are: what they still let through, and that a wrong order of casts is not."""

import numpy as np
import pytest
from rounding_errors import EPS, backward, forward, numpy_type, numpys, rows, sequential

from rmsnorm_edu import conventions, precision

HALVES = ("float16", "bfloat16")
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)


def many_rows(n, count=1000, seed=0):
    rng = np.random.default_rng([seed, n])
    x = rng.normal(0.3, 1.0, (count, n)).astype(np.float32)
    weight = (rng.choice([-1, 1], n) * rng.uniform(0.3, 2.5, n)).astype(np.float32)
    return x, weight, rng.normal(0.2, 1, (count, n)).astype(np.float32)


@pytest.mark.parametrize("n", [1, 2, 8, 64, 127, 128, 500, 1024, 4096])
def test_of_a_hundred_rows_one_comes_within_ten_times_of_the_bound(n):
    x, weight, _ = many_rows(n)
    y, exact = forward(x, weight, numpys, F32), forward(x, weight, numpys, F64)
    largest = np.max(np.abs(y - exact), axis=-1) / np.max(np.abs(exact), axis=-1)
    bound = precision.bound("float32", n, summation="pairwise")
    assert bound / 10 <= np.quantile(largest, 0.99) < bound
    each = np.abs(y - exact) / np.abs(exact)
    assert bound / 10 <= np.quantile(each, 0.99) < bound


def test_gradients_are_bounded_more_loosely():
    """Their bounds add up what in truth cancels: dx within 15 times, dweight within 100."""
    x, weight, dy = many_rows(1024, 200)
    got, exact = backward(dy, x, weight, numpys, F32), backward(dy, x, weight, numpys, F64)
    parts = {}
    for what, a, b in zip(("dx", "dweight"), got, exact, strict=True):
        allowed = precision.allowed(what, x, weight, dy, eps=EPS, summation="pairwise")
        part = np.abs(a - b) / allowed
        parts[what] = np.quantile(part.max(axis=-1) if what == "dx" else part, 0.99)
    assert 1 / 15 < parts["dx"] < 1
    assert 1 / 100 < parts["dweight"] < 1


def test_what_is_allowed_to_dx_is_a_third_of_bound_times_scale():
    x, weight, dy = many_rows(1024, 50)
    bound = precision.bound("float32", 1024, what="dx", summation="pairwise")
    simple = bound * precision.scale("dx", x, weight, dy, eps=EPS)
    sharp = precision.allowed("dx", x, weight, dy, eps=EPS, summation="pairwise")
    assert np.all(sharp < simple / 3)


@pytest.mark.equation("rounding-bound")
@pytest.mark.parametrize("name", HALVES)
def test_half_outputs_may_err_by_less_than_a_step(name):
    """Where one rounding is all; a sum one after another in float32 is good for 16,000 terms."""
    step = 2 * precision.UNIT_ROUNDOFF[name]
    single = [c for c in conventions.NAMES if one_rounding(conventions.NAMES[c])]
    assert "torch" in single
    for convention in single:
        for n in (1, 7, 127, 4096, 16_000, 65_535, 65_536):
            for order in ("pairwise", "blocked", "any"):
                far = order == "any" and n > 16_000 and name == "float16"
                bound = precision.bound(name, n, convention=convention, summation=order)
                assert far or bound < step, (convention, n, order)


def one_rounding(c):
    return not c.rounds and not c.gain_first


def cast_first(x, weight, dtype):
    """LLaMA's order: the normalised row is stored before the weight multiplies it."""
    xhat = forward(x, np.ones_like(weight), sequential, F32).astype(dtype)
    return (xhat.astype(np.float32) * weight.astype(np.float32)).astype(dtype)


@pytest.mark.parametrize("name", HALVES)
def test_another_order_of_casts_is_beyond_the_bound(name):
    dtype = numpy_type(name)
    for n in (16, 64, 1024):
        x, weight, _ = rows(name, n, seed=1, count=16)
        exact = forward(x, weight, sequential, F64)
        allowed = precision.allowed("y", x, weight, eps=EPS)
        for order, right in ((cast_first, False), (once, True)):
            error = np.abs(order(x, weight, dtype).astype(float) - exact)
            assert np.all(error <= allowed) == right
            scale = precision.scale("y", x, weight, eps=EPS)
            assert np.all(error <= precision.bound(name, n) * scale) == right


def once(x, weight, dtype):
    return forward(x, weight, sequential, F32).astype(dtype)


def cut(a):
    """Cut off to bfloat16, as Triton's interpreter stores."""
    return (a.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def test_cutting_off_errs_twice_as_much_as_rounding():
    x, weight, _ = rows("bfloat16", 1024, seed=5)
    stored = cut(forward(x, weight, numpys, F32))
    exact = forward(x, weight, numpys, F64)
    error = np.max(np.abs(stored - exact) / np.abs(exact))
    assert precision.bound("bfloat16", 1024) < error
    assert error <= precision.bound("bfloat16", 1024, store="truncate")


def test_cutting_off_counts_wherever_a_convention_stores():
    """LLaMA's order cuts off twice: twice as much as to round twice, more than to cut once."""
    x, weight, _ = rows("bfloat16", 1024, seed=5, count=50)
    wide, w = x.astype(np.float32), weight.astype(np.float32)
    rstd = 1 / np.sqrt(np.mean(wide * wide, axis=-1, keepdims=True) + np.float32(EPS))
    y, exact = cut(cut(wide * rstd) * w), forward(x, weight, numpys, F64)
    error = np.max(np.abs(y - exact) / np.abs(exact))
    once_cut = precision.bound("bfloat16", 1024, store="truncate")
    rounded_twice = precision.bound("bfloat16", 1024, convention="llama")
    assert max(once_cut, rounded_twice) < error
    assert error <= precision.bound("bfloat16", 1024, convention="llama", store="truncate")
