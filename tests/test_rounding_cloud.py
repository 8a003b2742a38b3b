"""The figure of the precision chapter: its errors, their bound, what its letters say."""

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("ml_dtypes")

import ml_dtypes
import traitlets

from rmsnorm_edu import conventions, explorables, precision
from rmsnorm_edu.explorables import rounding_cloud as cloud

NAMES = list(cloud.LABELS)
CHOICES = [(dtype, name, eps) for dtype in cloud.DTYPES for name in NAMES for eps in (None, 0.0)]
EVERY = pytest.mark.parametrize(("dtype", "name", "eps"), CHOICES)


def measured(dtype, name, eps):
    """The sizes, what the convention returns there, its errors."""
    exponents = cloud.sizes(dtype)
    y, true = cloud.outputs(name, cloud.inputs(dtype, exponents, cloud.DTYPES[dtype]), eps)
    return exponents, y.astype(np.float64), cloud.errors(y, true)


def test_float16_has_few_sizes_and_the_wide_types_all():
    assert cloud.sizes("float16") == list(range(-24, 15, 2))
    for dtype in ("bfloat16", "float32"):
        assert cloud.sizes(dtype) == list(range(-100, 101, 2))


@pytest.mark.parametrize("dtype", cloud.DTYPES)
def test_the_largest_number_of_a_row_is_a_power_of_two(dtype):
    exponents = cloud.sizes(dtype)
    x = cloud.inputs(dtype, exponents, 3).astype(np.float64)
    np.testing.assert_array_equal(np.max(np.abs(x), axis=-1).T, [np.exp2(exponents)] * 3)
    assert np.all(np.abs(np.mean(x, axis=-1)) > 0), "never a zero mean"


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_the_gains_are_of_either_sign_and_not_one(offset):
    gain = offset + cloud.gains("float32", offset).astype(np.float64)
    assert np.min(gain) < -1 < 1 < np.max(gain)
    assert np.min(np.abs(gain)) >= 0.5 - 1e-6


@EVERY
def test_errors_are_below_the_bound_in_one_range_and_only_there(dtype, name, eps):
    exponents, _, errors = measured(dtype, name, eps)
    limit = cloud.bound(name, dtype)
    first, last = cloud.holds(exponents, errors, limit)
    inside = [first <= k <= last for k in exponents]
    assert np.all(errors[inside] <= limit)
    assert not np.any(np.all(errors <= limit, axis=-1)[np.logical_not(inside)])
    assert limit == pytest.approx(
        precision.bound(dtype, 512, convention=name, summation="pairwise")
        / precision.UNIT_ROUNDOFF[dtype]
    )


@EVERY
def test_the_range_ends_where_squares_overflow(dtype, name, eps):
    exponents, y, errors = measured(dtype, name, eps)
    last = cloud.holds(exponents, errors, cloud.bound(name, dtype))[1]
    beyond = [k > last for k in exponents]
    assert np.all(y[beyond] == 0), "x / infinity"
    rounds = conventions.NAMES[name].rounds
    edge = 62  # the sum of 512 squares is beyond float32, though the largest begins at 64
    if dtype == "float16":  # a square; the norm of 512 features; nothing
        edge = 8 if "square" in rounds else 14 if "norm" in rounds else 16
    assert last == edge - 2


@pytest.mark.parametrize(("dtype", "name"), [(d, n) for d in cloud.DTYPES for n in NAMES])
def test_without_eps_lost_squares_divide_by_nothing(dtype, name):
    exponents, y, errors = measured(dtype, name, 0.0)
    smallest = np.isfinite(errors[0])
    if dtype == "float16" and not {"square", "norm"} & set(conventions.NAMES[name].rounds):
        assert np.all(smallest), "float32 squares every float16 number"
    else:
        assert not np.any(smallest)
    if dtype == "float32":
        zero = [k for k, row in zip(exponents, y, strict=True) if not np.all(np.isfinite(row))]
        outside = conventions.NAMES[name].eps_outside
        # 2**-150 rounds to 0 in float32; so does the mean over 512 of a few squares of 2**-148.
        assert max(zero) == (-76 if outside else -74)


def test_an_error_of_one_ulp_is_measured_as_such():
    true = np.array([[1.0, -0.5, 0.25], [4.0, 1.0, 3.0]])
    y = true.astype(np.float16)
    y[0, 1] -= np.float16(2.0**-11)  # half a u of the largest output, which is 1
    y[1, 2] += np.float16(2.0**-8)
    np.testing.assert_array_equal(cloud.errors(y, true), [1.0, 2.0])


@pytest.mark.parametrize("dtype", cloud.DTYPES)
def test_the_page_knows_the_range_of_the_types(dtype):
    info, known = ml_dtypes.finfo(precision.numpy_type(dtype)), cloud.data()["types"][dtype]
    found = [known[key] for key in ("max", "normal", "least", "u")]
    least = info.smallest_subnormal
    assert found == [float(v) for v in (info.max, info.smallest_normal, least, info.eps / 2)]


@EVERY
def test_letters_are_the_errors_and_what_became_of_the_row(dtype, name, eps):
    data = cloud.data()
    exponents, y, errors = measured(dtype, name, eps)
    text = rows(data, dtype, name, "own" if eps is None else "zero")
    assert len(text) == len(exponents) * cloud.DTYPES[dtype]
    for letter, row, error in zip(text, y.reshape(-1, cloud.N), errors.ravel(), strict=True):
        if letter in (cloud.ZERO, cloud.INFINITE, cloud.NAN):
            there = {"0": np.all(row == 0), "inf": np.any(np.isinf(row)), "nan": any(row != row)}
            kind = {cloud.ZERO: "0", cloud.INFINITE: "inf", cloud.NAN: "nan"}[letter]
            assert there[kind]
        else:
            level = data["levels"][data["letters"].index(letter)]
            assert abs(level - error) < 0.047 if error < 4 else 0.74 < level / error < 1.3


def rows(data, dtype, name, word):
    """The letters of a choice, put together as the page does."""
    own, found = (data["cells"][f"{dtype} {name}"][w]["rows"] for w in ("own", word))
    return found + own[len(found) :]


def test_llama_rounds_twice_and_torch_once():
    assert cloud.missed("torch", "bfloat16") == 0
    assert cloud.bound("torch", "bfloat16") < 1.1
    assert 0.2 < cloud.missed("llama", "bfloat16") < 0.3
    assert 1.9 < cloud.bound("llama", "bfloat16") < 2.1
    assert cloud.missed("gemma_flax", "float16") > 0.3


def test_the_figure_is_made_once_and_is_equal_each_time():
    assert cloud.data() is cloud.data()
    assert explorables.RoundingCloud().data == cloud.data()


@pytest.mark.parametrize(
    "change",
    [{"dtype": "float8"}, {"convention": "batch"}, {"eps": "big"}, {"exponent": 101}],
)
def test_the_figure_refuses_what_it_cannot_show(change):
    with pytest.raises(traitlets.TraitError):
        explorables.RoundingCloud(**change)
