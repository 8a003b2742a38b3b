"""What `reference` promises for unusual values, shapes and dtypes, and its errors."""

import math
from fractions import Fraction

import numpy as np
import pytest

from rmsnorm_edu import reference

U = 2.0**-53  # unit roundoff of float64
X = np.array([[1.5, -0.5, 2.0, 0.25], [3.0, 3.5, -1.0, 0.0]])
WEIGHT = np.array([0.5, -2.0, 1.5, 3.0])
BIAS = np.array([0.25, 1.0, -1.0, 0.0])

# ---- the unusual values of the contract

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("eps", [0.0, 1e-6])
def test_nan_and_inf_spoil_their_row_alone(eps: float, outside: bool) -> None:
    x = np.array([[1.0, NAN, 2.0], [1.0, INF, -2.0], [-INF, 1.0, INF], [INF, NAN, 0.0], X[0, :3]])
    got = reference.rms_norm(x, WEIGHT[:3], eps=eps, eps_outside=outside)
    expected = np.array([[NAN] * 3, [0.0, NAN, 0.0], [NAN, 0.0, NAN], [NAN] * 3])
    np.testing.assert_array_equal(got[:4], expected)
    alone = reference.rms_norm(x[4], WEIGHT[:3], eps=eps, eps_outside=outside)
    np.testing.assert_array_equal(got[4], alone)
    np.testing.assert_array_equal(reference.rms(x)[:4], [NAN, INF, INF, NAN])


def test_nan_and_inf_behind_the_first_k_stay_where_they_are() -> None:
    y = reference.rms_norm([3.0, -3.0, NAN, INF], WEIGHT, eps=0.0, k=2)
    np.testing.assert_array_equal(y, [0.5, 2.0, NAN, INF])


@pytest.mark.parametrize("outside", [False, True])
def test_a_zero_row(outside: bool) -> None:
    zero, dy = np.zeros((1, 4)), np.array([[1.0, -2.0, 0.5, 4.0]])
    eps = {"eps": 1e-4, "eps_outside": outside}
    np.testing.assert_array_equal(reference.rms_norm(zero, WEIGHT, BIAS, **eps), [BIAS])
    dx, dweight = reference.rms_norm_vjp(dy, zero, WEIGHT, **eps)
    np.testing.assert_allclose(dx, dy * WEIGHT / (1e-4 if outside else 1e-2), rtol=4 * U)
    np.testing.assert_array_equal(dweight, np.zeros(4))
    np.testing.assert_allclose(reference.rms_norm_jvp(dy, zero, WEIGHT, **eps), dx, rtol=4 * U)
    assert reference.rms(zero) == 0
    none = {"eps": 0.0, "eps_outside": outside}
    assert np.isnan(reference.rms_norm(zero, WEIGHT, **none)).all()
    assert np.isnan(reference.rms_norm_vjp(dy, zero, WEIGHT, **none)[0]).all()


@pytest.mark.parametrize("outside", [False, True])
def test_zeros_in_the_first_k_alone(outside: bool) -> None:
    """The output is then x/D with D made of eps alone (golden README, trap 7)."""
    x, dy = np.array([0.0, 0.0, 3.0, -1.0]), np.array([1.0, -2.0, 0.5, 4.0])
    options = {"eps": 1e-4, "k": 2, "eps_outside": outside}
    d = 1e-4 if outside else 1e-2
    np.testing.assert_allclose(reference.rms_norm(x, WEIGHT, **options), x / d * WEIGHT, rtol=4 * U)
    dx, dweight = reference.rms_norm_vjp(dy, x, WEIGHT, **options)
    np.testing.assert_allclose(dx, dy * WEIGHT / d, rtol=4 * U)
    np.testing.assert_allclose(dweight, dy * x / d, rtol=4 * U)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0, 4)])
def test_no_rows_give_an_empty_result(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    assert reference.rms(x).shape == shape[:-1]
    assert reference.rms_norm(x, WEIGHT, BIAS).shape == shape
    assert reference.layer_norm(x, WEIGHT, BIAS).shape == shape
    assert reference.rms_norm_jvp(x, x, WEIGHT, WEIGHT).shape == shape
    dx, dweight = reference.rms_norm_vjp(x, x, WEIGHT)
    assert dx.shape == shape
    np.testing.assert_array_equal(dweight, np.zeros(4))


# ---- what is accepted, and the errors


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
def test_floats_of_every_width_are_computed_in_float64(dtype) -> None:
    x, weight = X.astype(dtype), WEIGHT.astype(dtype)
    for got in (reference.rms(x), reference.rms_norm(x, weight), reference.layer_norm(x, weight)):
        assert got.dtype == np.float64
        assert got.dtype.isnative
    np.testing.assert_array_equal(reference.rms_norm(x, weight), reference.rms_norm(X, WEIGHT))
    assert reference.rms_norm(X.tolist(), WEIGHT.tolist()).dtype == np.float64


MASKED = np.ma.array([1.0, 2.0], mask=[0, 1])
BAD_X = {
    "integers": (np.array([[1, 2]]), TypeError, r"x has dtype int64; give float16"),
    "a list of integers": ([1, 2, 3], TypeError, r"dtype int64.*astype"),
    "booleans": (np.array([True]), TypeError, "dtype bool"),
    "complex": (np.array([1 + 2j]), TypeError, "dtype complex128"),
    "objects": (np.array([None, 1.0]), TypeError, "dtype object"),
    "long double": (np.ones(2, np.longdouble), TypeError, "give float16, float32 or float64"),
    "words": (["a", "b"], TypeError, "dtype"),
    "masked": (MASKED, TypeError, "x has masked values; fill them first"),
    "a list of masked": ([MASKED, MASKED], TypeError, "x has masked values; fill them first"),
    "a masked number": ([[1.0], [np.ma.masked]], TypeError, "x has masked values"),
    "nothing": (None, TypeError, "dtype object"),
    "a number": (3.0, ValueError, r"x has shape \(\); give at least one feature"),
    "no features": (np.zeros((2, 0)), ValueError, r"x has shape \(2, 0\); give at least one"),
    "an empty list": ([], ValueError, r"x has shape \(0,\); give at least one feature"),
    "ragged": (
        [[1.0], [1.0, 2.0]],
        ValueError,
        "x is inhomogeneous; give rows of the same length",
    ),
}
FUNCTIONS = {
    "rms": reference.rms,
    "rms_norm": reference.rms_norm,
    "rms_norm_vjp": lambda x: reference.rms_norm_vjp(x, x),
    "rms_norm_jvp": lambda x: reference.rms_norm_jvp(x, x),
    "layer_norm": reference.layer_norm,
    "layer_norm_vjp": lambda x: reference.layer_norm_vjp(x, x),
    "batch_norm": reference.batch_norm,
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("what", BAD_X)
def test_bad_x_is_an_error(what: str, function: str) -> None:
    x, error, message = BAD_X[what]
    with pytest.raises(error, match=message):
        FUNCTIONS[function](x)


VJP, JVP = reference.rms_norm_vjp, reference.rms_norm_jvp
AXIS_2 = r"axis = 2, but x has shape \(2, 4\): give -2 <= axis < 2"
OUTSIDE = "eps_outside = 'no' is str; give True or False"
BAD_CALLS = {
    "short weight": (
        lambda: reference.rms_norm(X, WEIGHT[:3]),
        ValueError,
        r"weight has shape \(3,\); x has shape \(2, 4\).*shape \(4,\)",
    ),
    "weight of a row": (lambda: reference.rms_norm(X, X), ValueError, r"weight has shape \(2, 4\)"),
    "one weight": (lambda: reference.rms_norm(X, 2.0), ValueError, r"weight has shape \(\)"),
    "integer weight": (lambda: reference.rms_norm(X, [1, 2, 3, 4]), TypeError, "weight has dtype"),
    "long bias": (lambda: reference.rms_norm(X, None, np.ones(5)), ValueError, "bias has shape"),
    "vjp weight": (lambda: VJP(X, X, WEIGHT[:1]), ValueError, r"weight has shape \(1,\)"),
    "dy of another shape": (
        lambda: VJP(X[:1], X),
        ValueError,
        r"dy has shape \(1, 4\), x \(2, 4\); give dy the shape of x",
    ),
    "dy integers": (lambda: VJP(X.astype(int), X), TypeError, "dy has dtype int64"),
    "dx of another shape": (lambda: JVP(X[0], X), ValueError, r"dx has shape \(4,\)"),
    "dweight alone": (lambda: JVP(X, X, None, WEIGHT), ValueError, "dweight without weight"),
    "dweight short": (lambda: JVP(X, X, WEIGHT, WEIGHT[:2]), ValueError, "dweight has shape"),
    "negative eps": (lambda: reference.rms_norm(X, eps=-1e-6), ValueError, r"eps = -1e-06; give"),
    "nan eps": (lambda: reference.rms_norm(X, eps=NAN), ValueError, "eps = nan; give a finite"),
    "infinite eps": (lambda: reference.layer_norm(X, eps=INF), ValueError, "eps = inf"),
    "eps in words": (lambda: reference.rms_norm(X, eps="1e-6"), TypeError, "eps = '1e-6' is str"),
    "eps none": (lambda: reference.rms_norm(X, eps=None), TypeError, "eps = None is NoneType"),
    "huge eps": (lambda: reference.rms_norm(X, eps=10**400), ValueError, "eps = inf; give"),
    "huge fraction": (lambda: VJP(X, X, eps=Fraction(10**400)), ValueError, "eps = inf; give"),
    "eps an array": (lambda: reference.rms_norm(X, eps=np.array(1e-6)), TypeError, "is ndarray"),
    "eps true": (lambda: reference.rms_norm(X, eps=True), TypeError, "eps = True is bool"),
    "k zero": (lambda: reference.rms_norm(X, k=0), ValueError, "k = 0; give an integer >= 1"),
    "k negative": (lambda: VJP(X, X, k=-1), ValueError, "k = -1; give an integer >= 1"),
    "k beyond n": (lambda: JVP(X, X, k=5), ValueError, r"k = 5, but x has.*give 1 <= k <= 4"),
    "k a fraction": (lambda: reference.rms_norm(X, k=2.0), TypeError, "k = 2.0 is float"),
    "k true": (lambda: reference.rms_norm(X, k=True), TypeError, "k = True is bool"),
    "k an array": (lambda: VJP(X, X, k=np.array(1)), TypeError, r"k = array\(1\) is ndarray"),
    "k a list": (lambda: JVP(X, X, k=np.array([1])), TypeError, r"k = array\(\[1\]\) is ndarray"),
    "outside in words": (lambda: reference.rms_norm(X, eps_outside="no"), TypeError, OUTSIDE),
    "outside 1": (lambda: VJP(X, X, eps_outside=1), TypeError, "eps_outside = 1 is int; give True"),
    "outside none": (lambda: JVP(X, X, eps_outside=None), TypeError, "eps_outside = None is"),
    "ragged dy": (lambda: VJP([[1.0], [1.0, 2.0]], X), ValueError, "dy is inhomogeneous; give"),
    "ragged weight": (lambda: reference.rms_norm(X, [[1.0], []]), ValueError, "weight is inhomog"),
    "masked weight": (lambda: reference.rms_norm(X[0, :2], MASKED), TypeError, "weight has masked"),
    "no such axis": (lambda: reference.rms(X, axis=2), ValueError, AXIS_2),
    "axis none": (lambda: reference.rms(X, axis=None), TypeError, "axis = None is NoneType"),
    "axis true": (lambda: reference.rms(X, axis=True), TypeError, "axis = True is bool"),
    "empty axis": (
        lambda: reference.rms(np.ones((0, 3)), axis=0),
        ValueError,
        r"x has shape \(0, 3\); give at least one feature along axis 0",
    ),
    "batch without rows": (
        lambda: reference.batch_norm(np.ones((0, 4))),
        ValueError,
        r"x has shape \(0, 4\); batch_norm",
    ),
    "batch weight": (lambda: reference.batch_norm(X, WEIGHT[:2]), ValueError, "weight has shape"),
    "weight_norm of a vector": (lambda: reference.weight_norm(WEIGHT), ValueError, "v has shape"),
    "weight_norm gain": (
        lambda: reference.weight_norm(X, WEIGHT),
        ValueError,
        r"gain has shape \(4,\); v has shape \(2, 4\): .*one number a row, shape \(2,\)",
    ),
    "weight_norm integers": (lambda: reference.weight_norm([[1, 2]]), TypeError, "v has dtype"),
}


@pytest.mark.parametrize("what", BAD_CALLS)
def test_bad_calls_are_errors(what: str) -> None:
    call, error, message = BAD_CALLS[what]
    with pytest.raises(error, match=message):
        call()


# ---- partial_size


@pytest.mark.parametrize(("n", "p", "ceil", "floor"), [
    (100, 0.07, 7, 7), (100, 0.29, 29, 28), (100, 0.57, 57, 56), (50, 0.58, 29, 28),
    (8, 0.0625, 1, None), (512, 0.0625, 32, 32), (7, 1.0, 7, 7), (7, 1, 7, 7),
    (1, 1e-9, 1, None), (49, 1 / 49, 1, None), (10, np.float32(0.3), 3, 3),
    (3, np.float64(0.5), 2, 1),
])  # fmt: skip
def test_partial_size(n: int, p: float, ceil: int, floor: int | None) -> None:
    assert reference.partial_size(n, p) == ceil
    if floor is not None:
        assert reference.partial_size(np.int64(n), p, "floor") == floor
        return
    with pytest.raises(ValueError, match=r"= 0 features: .*ZeroDivisionError.*or rounding=\"ceil"):
        reference.partial_size(n, p, "floor")


def test_partial_size_gives_advice_that_works() -> None:
    """The 2019 code's int(n * p) must not be 0 at the p that the error names."""
    for n in (*range(1, 2001), 10**6, 2**40):
        with pytest.raises(ValueError, match="take p >= ") as refusal:
            reference.partial_size(n, 0.5 / n, "floor")
        advice = float(str(refusal.value).partition("take p >= ")[2].split()[0])
        assert 1 <= n * advice < 1.011
        assert reference.partial_size(n, advice, "floor") == 1


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ((8, 0.0), ValueError, "p = 0.0; it is a fraction.*ZeroDivisionError"),
    ((8, -0.5), ValueError, "p = -0.5"),
    ((8, 1.0000001), ValueError, "p = 1.0000001"),
    ((8, NAN), ValueError, "p = nan"),
    ((8, "0.5"), TypeError, "p = '0.5' is str"),
    ((8, True), TypeError, "p = True is bool"),
    ((0, 0.5), ValueError, "n = 0; give an integer >= 1"),
    ((8.0, 0.5), TypeError, "n = 8.0 is float"),
    ((10**400, 0.5, "floor"), ValueError, "n has 1329 bits; no array is that large"),
    ((8, 0.5, "round"), ValueError, 'rounding = \'round\'; it is "ceil"'),
    ((8, 0.5, np.array(["ceil", "floor"])), ValueError, 'rounding = array.*; it is "ceil"'),
])  # fmt: skip
def test_partial_size_errors(arguments: tuple, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        reference.partial_size(*arguments)
