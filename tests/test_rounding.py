"""The number types and their steps, against ml_dtypes and NumPy."""

import numpy as np
import pytest
from rounding_errors import TYPES, numpy_type

from rmsnorm_edu import precision


@pytest.mark.parametrize("name", TYPES)
def test_the_constants_of_a_type_are_those_of_its_library(name):
    info = pytest.importorskip("ml_dtypes").finfo(numpy_type(name))
    assert precision.subnormal(name) == float(info.smallest_subnormal)
    assert float(info.eps) / 2 == precision.UNIT_ROUNDOFF[name]


@pytest.mark.parametrize("name", TYPES)
def test_a_step_leads_to_the_next_number(name):
    dtype = numpy_type(name)
    for value in (1.0, -1.0, 1.5, 2.0, 0.3, 100.0, -0.007):
        start = abs(np.array(value, dtype))
        step = precision.ulp(value, name)
        after = (start.astype(float) + step).astype(dtype)
        assert precision.ulps_apart(start, after) == 1
        assert float(after) - float(start) == step


@pytest.mark.equation("a-float")
@pytest.mark.parametrize("name", TYPES)
def test_a_number_is_sign_power_and_fraction_and_its_step_is_the_powers(name):
    """The fields are read from the bits: sign, exponent with its bias, t fraction bits."""
    dtype = numpy_type(name)
    t = pytest.importorskip("ml_dtypes").finfo(dtype).nmant
    width, unsigned = 8 * dtype.itemsize, np.dtype(f"u{dtype.itemsize}")
    bias = 2 ** (width - t - 2) - 1
    for value in (1.0, -1.5, 2.75, -0.3, 100.0, 6e-3):
        stored = np.array(value, dtype)
        bits = int(stored.view(unsigned))
        sign, f = bits >> (width - 1), bits & (2**t - 1)
        e = ((bits >> t) & (2 ** (width - t - 1) - 1)) - bias
        assert float(stored) == (-1) ** sign * 2.0**e * (1 + f / 2**t)
        assert precision.ulp(value, name) == 2.0 ** (e - t)


def test_distances_cross_zero_and_go_both_ways():
    a = np.array([1.0, -1.0, 0.0, -0.0, 6e-8, 1.0], np.float16)
    b = np.array([1.001, -1.001, -0.0, 0.0, -6e-8, 1.0], np.float16)
    assert precision.ulps_apart(a, b).tolist() == [1, 1, 0, 0, 2, 0]
    assert precision.ulps_apart(b, a).tolist() == [1, 1, 0, 0, 2, 0]
    strided = np.repeat(a, 2)[::2]
    assert precision.ulps_apart(strided, b).tolist() == [1, 1, 0, 0, 2, 0]


def test_two_types_have_no_common_steps():
    with pytest.raises(TypeError, match=r"a has dtype float16 and shape .* b float32"):
        precision.ulps_apart(np.float16([1.0]), np.float32([1.0]))
    with pytest.raises(ValueError, match="dtype = int8; it is one of float16"):
        precision.ulp(1.0, "int8")


def test_steps_are_between_finite_numbers_alone():
    for value in (np.nan, [1.0, -np.inf], 7e4):
        with pytest.raises(ValueError, match="not finite in float16; give finite ones"):
            precision.ulp(value, "float16")
    for value in (None, "1.0", [1j], np.zeros(2, "M8[s]")):
        with pytest.raises(TypeError, match="give numbers"):
            precision.ulp(value, "float16")
    assert precision.ulp(65504, "float16") == np.inf
    nan = np.float32([np.nan])
    with pytest.raises(ValueError, match="b has nan or inf"):
        precision.ulps_apart(np.float32([1.5]), nan)
    with pytest.raises(TypeError, match="a has dtype int32; give one of float16"):
        precision.ulps_apart(np.int32([1]), np.int32([4]))
    with pytest.raises(ValueError, match=r"shape \(2,\), b float32 and \(3,\)"):
        precision.ulps_apart(np.float32([1, 2]), np.float32([1, 2, 3]))
    masked = np.ma.masked_array([1.5, 2.5], [False, True])
    with pytest.raises(TypeError, match="a has masked values"):
        precision.ulps_apart(masked, masked)


def test_the_order_of_the_bytes_does_not_count():
    assert precision.ulps_apart(np.array([1.0], ">f4"), np.array([2.0], ">f4")) == 2**23


def test_float64_of_two_signs_is_too_far_apart():
    assert precision.ulps_apart(5e-324, -5e-324) == 2
    assert precision.ulps_apart(1.5, -1.5) == 2 * 0x3FF8 * 2**48
    with pytest.raises(ValueError, match="give float64 of one sign"):
        precision.ulps_apart(4.0, -4.0)
