"""`precision.bound`: thousands of measured errors, in many orders of summation, lie under it.

Truth is computed in float64, for float64 in the processor's wider long double.
"""

import math
from functools import cache

import numpy as np
import pytest

from rmsnorm_edu import conventions, precision, reference

TYPES = ("float16", "bfloat16", "float32", "float64")
SIZES = (1, 2, 3, 7, 16, 33, 128, 129, 500, 1024, 4096)
KINDS = ("normal", "constant", "large mean", "uneven", "eps matters")
EPS = 1e-6
wide_enough = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="long double is float64 on this machine"
)
with_truth = [pytest.param(t, marks=wide_enough if t == "float64" else ()) for t in TYPES]


def numpy_type(name):
    if name != "bfloat16":
        return np.dtype(name)
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)


def wider(name):
    return np.dtype(np.longdouble if name == "float64" else np.float64)


def sequential(a):
    return np.cumsum(a, axis=-1)[..., -1:]


def backwards(a):
    return sequential(a[..., ::-1])


def blocked(a):
    sums = [sequential(a[..., i : i + 128]) for i in range(0, a.shape[-1], 128)]
    return sequential(np.concatenate(sums, axis=-1))


def numpys(a):
    return np.sum(np.ascontiguousarray(a), axis=-1, keepdims=True)


def tree(a):
    while a.shape[-1] > 1:
        if a.shape[-1] % 2:
            a = np.concatenate([a, np.zeros_like(a[..., :1])], axis=-1)
        a = a[..., 0::2] + a[..., 1::2]
    return a


ORDERS = {
    sequential: "any",
    backwards: "any",
    blocked: "blocked",
    numpys: "pairwise",
    tree: "pairwise",
}


@cache
def rows(name, n, seed=0, count=4):
    """x, weight, dy of `count` rows of each kind, in the type, with eps = 1e-6 in mind."""
    rng = np.random.default_rng([seed, n])
    shape = (count, n)
    x = {
        "normal": rng.normal(0.3, 1.0, shape),
        "constant": np.tile(rng.uniform(0.5, 3, (count, 1)), n),
        "large mean": rng.normal(30, 1, shape),
        "uneven": rng.normal(0, 1, shape) * 2.0 ** rng.integers(-8, 8, shape),
        "eps matters": rng.normal(0, 1e-3, shape),
    }
    dtype = numpy_type(name)
    weight = rng.choice([-1, 1], n) * rng.uniform(0.3, 2.5, n)
    dy = rng.normal(0.2, 1, (count * len(KINDS), n))
    stacked = np.concatenate([x[kind] for kind in KINDS])
    return stacked.astype(dtype), weight.astype(dtype), dy.astype(dtype)


def rstd_of(x, total):
    n = x.dtype.type(x.shape[-1])
    eps = x.dtype.type(EPS)
    return 1 / np.sqrt(total(x * x) / n + eps)


def forward(x, weight, total, compute):
    x, weight = x.astype(compute), weight.astype(compute)
    return x * rstd_of(x, total) * weight


def backward(dy, x, weight, total, compute):
    dy, x, weight = dy.astype(compute), x.astype(compute), weight.astype(compute)
    rstd = rstd_of(x, total)
    xhat, u = x * rstd, dy * weight
    dx = rstd * (u - xhat * (total(u * xhat) / compute.type(x.shape[-1])))
    return dx, total((dy * xhat).T)[:, 0]


def worst(got, truth, allowed_scale, dtype):
    """Largest error in units of the scale; what underflow may add is taken off."""
    error = np.abs(got.astype(truth.dtype) - truth) - precision.subnormal(dtype)
    return float(np.max(error / allowed_scale))


def measured(name, n, total, seed=0):
    """The largest errors of y, dx and dweight, in units of their scales."""
    dtype, compute = numpy_type(name), conventions.computing_type(numpy_type(name))
    x, weight, dy = rows(name, n, seed)
    y = forward(x, weight, total, compute).astype(dtype)
    dx, dweight = (a.astype(dtype) for a in backward(dy, x, weight, total, compute))
    true = wider(name)
    exact_dx, exact_dweight = backward(dy, x, weight, numpys, true)
    scales = {w: precision.scale(w, x, weight, dy, eps=EPS) for w in ("y", "dx", "dweight")}
    return {
        "y": worst(y, forward(x, weight, numpys, true), scales["y"], dtype),
        "dx": worst(dx, exact_dx, scales["dx"], dtype),
        "dweight": worst(dweight, exact_dweight, scales["dweight"], dtype),
    }, len(x)


def tightness(name, n, total, seed):
    """The largest errors as parts of their bounds."""
    found, count = measured(name, n, total, seed)
    return {
        what: error / precision.bound(name, n, count, what=what, summation=ORDERS[total])
        for what, error in found.items()
    }


by_order = pytest.mark.parametrize("total", ORDERS, ids=lambda f: f.__name__)


@by_order
@pytest.mark.parametrize("name", with_truth)
def test_no_error_is_above_the_bound(name, total):
    for n in SIZES:
        for seed in range(2):
            for what, part in tightness(name, n, total, seed).items():
                assert part <= 1, (n, seed, what, part)


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
        y = conventions.apply(convention, x, weight, eps=eps).astype(np.float64)
        exact = reference.rms_norm(
            x.astype(float), weight.astype(float), eps=eps, eps_outside=c.eps_outside
        )
        scale = precision.scale("y", x, weight, eps=eps, eps_outside=c.eps_outside)
        allowed = precision.bound(name, n, convention=convention)
        assert worst(y, exact, scale, name) <= allowed, n


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


def test_cutting_off_errs_twice_as_much_as_rounding():
    x, weight, _ = rows("bfloat16", 1024, seed=5)
    y = forward(x, weight, numpys, np.dtype(np.float32))
    cut = (y.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    exact = forward(x, weight, numpys, np.dtype(np.float64))
    error = worst(cut, exact, precision.scale("y", x, weight, eps=EPS), "bfloat16")
    assert precision.bound("bfloat16", 1024) < error
    assert error <= precision.bound("bfloat16", 1024, store="truncate")


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


@pytest.mark.parametrize("n", SIZES)
def test_the_depth_of_a_sum_is_that_of_its_longest_path(n):
    """Additions in the worst order, counted: each summand carries how many it has been through."""
    counted = [0] * n
    while len(counted) > 1:
        pairs = [max(counted[i : i + 2]) + (len(counted[i : i + 2]) > 1)
                 for i in range(0, len(counted), 2)]  # fmt: skip
        counted = pairs
    assert counted[0] <= precision.depth(n, "pairwise")
    assert counted[0] == math.ceil(math.log2(n))
    assert precision.depth(n, "pairwise") <= precision.depth(n, "blocked") or n > 128
    assert precision.depth(n, "blocked") <= precision.depth(n) == n - 1


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
    for name in TYPES:
        tiny = ml_dtypes.finfo(numpy_type(name)).smallest_subnormal
        assert precision.subnormal(name) == float(tiny)
        epsilon = float(ml_dtypes.finfo(numpy_type(name)).eps)
        assert precision.UNIT_ROUNDOFF[name] == epsilon / 2
