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


def test_distances_cross_zero_and_go_both_ways():
    a = np.array([1.0, -1.0, 0.0, -0.0, 6e-8, 1.0], np.float16)
    b = np.array([1.001, -1.001, -0.0, 0.0, -6e-8, 1.0], np.float16)
    assert precision.ulps_apart(a, b).tolist() == [1, 1, 0, 0, 2, 0]
    assert precision.ulps_apart(b, a).tolist() == [1, 1, 0, 0, 2, 0]
    strided = np.repeat(a, 2)[::2]
    assert precision.ulps_apart(strided, b).tolist() == [1, 1, 0, 0, 2, 0]


def test_two_types_have_no_common_steps():
    with pytest.raises(TypeError, match="a has dtype float16, b float32"):
        precision.ulps_apart(np.float16([1.0]), np.float32([1.0]))
    with pytest.raises(ValueError, match="dtype = int8; it is one of float16"):
        precision.ulp(1.0, "int8")
