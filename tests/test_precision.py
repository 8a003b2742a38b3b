"""`precision.bound`: thousands of measured errors, in many orders of summation, lie under it.

Truth is computed in float64, for float64 in the processor's wider long double.
"""

import math

import numpy as np
import pytest
from rounding_errors import (
    EPS,
    ORDERS,
    SIZES,
    backward,
    forward,
    numpy_type,
    numpys,
    rows,
    rstd_of,
    sequential,
    wider,
    with_truth,
    worst,
)

from rmsnorm_edu import conventions, precision, reference


def measured(name, n, total, seed=0):
    """The largest errors of y, dx and dweight, as parts of bound · scale and of what is allowed."""
    dtype, compute = numpy_type(name), conventions.computing_type(numpy_type(name))
    x, weight, dy = rows(name, n, seed)
    y = forward(x, weight, total, compute).astype(dtype)
    dx, dweight = (a.astype(dtype) for a in backward(dy, x, weight, total, compute))
    true = wider(name)
    exact_dx, exact_dweight = backward(dy, x, weight, numpys, true)
    results = {
        "y": (y, forward(x, weight, numpys, true)),
        "dx": (dx, exact_dx),
        "dweight": (dweight, exact_dweight),
    }
    order = ORDERS[total]
    for what, (got, exact) in results.items():
        scale = precision.scale(what, x, weight, dy, eps=EPS)
        bound = precision.bound(name, n, len(x), what=what, summation=order)
        allowed = precision.allowed(what, x, weight, dy, eps=EPS, summation=order)
        with np.errstate(invalid="ignore"):  # 0/0: an exact zero
            part = np.nan_to_num(np.abs(got.astype(true) - exact) / allowed)
        results[what] = worst(got, exact, scale * bound, dtype), float(np.max(part))
    return results


def tightness(name, n, total, seed):
    """The largest errors as parts of their bounds."""
    return {what: part for what, (part, _) in measured(name, n, total, seed).items()}


by_order = pytest.mark.parametrize("total", ORDERS, ids=lambda f: f.__name__)


@pytest.mark.equation("rounding-bound", "gradient-bound")
@by_order
@pytest.mark.parametrize("name", with_truth)
def test_no_error_is_above_the_bound(name, total):
    for n in SIZES:
        for seed in range(2):
            for what, parts in measured(name, n, total, seed).items():
                assert max(parts) <= 1, (n, seed, what, parts)


@by_order
@pytest.mark.parametrize("name", with_truth)
def test_the_bound_is_not_absurdly_loose(name, total):
    """Half precision: the last rounding is most of it. Wider: chance keeps below the worst case,
    but rows of equal entries, whose additions all err to one side, come within ten times it."""
    half = name in ("float16", "bfloat16")
    least = {"y": 0.5, "dx": 0.3, "dweight": 0.2} if half else {"y": 0.08, "dx": 0.01}
    for n in (16, 128, 1024, 4096):
        found = [tightness(name, n, total, seed) for seed in range(2)]
        for what, part in least.items():
            assert max(f[what] for f in found) >= part, (n, what)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("convention", conventions.NAMES)
def test_every_convention_is_within_its_own_bound(convention, name):
    c = conventions.NAMES[convention]
    eps = 1e-3  # above float16's smallest normal number, so that no rounding of it underflows
    for n in (1, 5, 64, 1024):
        x, weight, _ = rows(name, n, seed=8)
        x = np.clip(x, -200, 200) if name == "float16" else x  # 2019's float16 squares overflow
        x = x / 32 if "total" in c.rounds else x  # sums in float16 overflow sooner
        y = conventions.apply(convention, x, weight, eps=eps).astype(np.float64)
        exact = conventions.exact(convention, x, weight, eps=eps)
        allowed = precision.allowed("y", x, weight, eps=eps, convention=convention)
        assert np.all(np.abs(y - exact) <= allowed), n


def test_conventions_that_round_more_need_more():
    torch = precision.bound("bfloat16", 1024)
    paper = precision.bound("bfloat16", 1024, convention="paper_torch")
    tensorflow = precision.bound("bfloat16", 1024, convention="paper_tensorflow")
    v = 2.0**-8
    assert torch == pytest.approx(v, rel=0.02)
    assert paper == pytest.approx(5 * v, rel=0.02)  # norm, rms, divisor, x̂ and the result
    assert tensorflow == pytest.approx(4.5 * v, rel=0.02)  # half of 3, rstd, w · x, the result
    x, weight, _ = rows("bfloat16", 64, seed=3)
    y = conventions.apply("paper_torch", x, weight, eps=EPS)
    exact = reference.rms_norm(x.astype(float), weight.astype(float), eps=EPS, eps_outside=True)
    error = worst(y, exact, precision.scale("y", x, weight, eps=EPS, eps_outside=True), "bfloat16")
    assert error > torch  # so the wider bound is needed


@by_order
@pytest.mark.equation("safe-scaling")
def test_prescaling_and_the_other_formula_of_dx_are_within_the_bound(total):
    for n in SIZES:
        x, weight, dy = rows("float32", n, seed=4)
        m = np.max(np.abs(x), axis=-1, keepdims=True)
        small = x / m
        root = np.sqrt(total(small * small) / np.float32(n) + np.float32(EPS) / m / m)
        y = small / root * weight
        exact = forward(x, weight, numpys, np.dtype(np.float64))
        allowed = precision.bound("float32", n, summation=ORDERS[total])
        assert worst(y, exact, precision.scale("y", x, weight, eps=EPS), "float32") <= allowed

        rstd, u = rstd_of(x, total), dy * weight
        dx = rstd * u - x * (rstd**3 * total(u * x) / np.float32(n))
        exact, _ = backward(dy, x, weight, numpys, np.dtype(np.float64))
        allowed = precision.bound("float32", n, what="dx", summation=ORDERS[total])
        scale = precision.scale("dx", x, weight, dy, eps=EPS)
        assert worst(dx, exact, scale, "float32") <= allowed


def test_dweight_grows_with_the_rows_and_its_errors_stay_below():
    rng = np.random.default_rng(6)
    for count in (1, 100, 10_000):
        x = rng.normal(0.5, 1, (count, 4)).astype(np.float32)
        dy = rng.uniform(0.5, 1, (count, 4)).astype(np.float32)
        weight = np.array([2.0, -0.5, 1.5, 0.3], np.float32)
        _, dweight = backward(dy, x, weight, sequential, np.dtype(np.float32))
        _, exact = backward(dy, x, weight, numpys, np.dtype(np.float64))
        allowed = precision.bound("float32", 4, count, what="dweight")
        scale = precision.scale("dweight", x, weight, dy, eps=EPS)
        assert worst(dweight, exact, scale, "float32") <= allowed
    assert allowed == pytest.approx(10_000 * 2.0**-24, rel=0.01)


def test_sums_in_half_precision_are_above_the_bound():
    for n in (3, 64, 1024):
        x, weight, _ = rows("float16", n, seed=2)
        x = x[:4]  # the normal ones
        halves = forward(x, weight, sequential, np.dtype(np.float16))
        exact = forward(x, weight, numpys, np.dtype(np.float64))
        error = worst(halves, exact, precision.scale("y", x, weight, eps=EPS), "float16")
        assert error > precision.bound("float16", n)


def test_scales_are_the_sizes_of_what_is_summed():
    x, weight, dy = np.array([[3.0, -4.0]]), np.array([2.0, -0.5]), np.array([[1.0, 3.0]])
    r = 1 / math.sqrt(12.5)
    np.testing.assert_allclose(precision.scale("y", x, weight, eps=0.0), [[6 * r]])
    np.testing.assert_allclose(precision.scale("dweight", x, weight, dy, eps=0.0), [3 * r, 12 * r])
    u, along = 2.0, (2 * 3 * r + 1.5 * 4 * r) / 2
    np.testing.assert_allclose(
        precision.scale("dx", x, weight, dy, eps=0.0), [[r * (u + 4 * r * along)]]
    )
    outside = precision.scale("dx", np.zeros((1, 2)), weight, dy, eps=0.5, eps_outside=True)
    np.testing.assert_allclose(outside, [[4.0]])


def test_dtypes_are_taken_by_name_and_by_type():
    assert precision.bound("float32", 64) == precision.bound(np.float32, 64)
    assert precision.bound(np.dtype("float64"), 64) < 1e-14
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert precision.bound("bfloat16", 64) == precision.bound(ml_dtypes.bfloat16, 64)
