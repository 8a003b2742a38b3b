"""What `precision` does not take, and what it says then; where a bound or a scale is infinite."""

import math

import numpy as np
import pytest

from rmsnorm_edu import precision


def test_wrong_words_are_told_the_right_ones():
    with pytest.raises(ValueError, match="what = 'dw'; it is one of y, dx, dweight"):
        precision.bound("float32", 4, what="dw")
    with pytest.raises(ValueError, match="summation = 'random'; it is one of any, blocked"):
        precision.bound("float32", 4, summation="random")
    with pytest.raises(ValueError, match="store = 'floor'; it is one of round, truncate"):
        precision.bound("float32", 4, store="floor")
    with pytest.raises(ValueError, match="dtype = int32; it is one of float16"):
        precision.bound("int32", 4)
    with pytest.raises(ValueError, match="n = 0; give an integer >= 1"):
        precision.bound("float32", 0)
    for function in (precision.scale, precision.allowed):
        for what in ("dx", "dweight"):
            with pytest.raises(ValueError, match=f"what = '{what}' needs dy"):
                function(what, [[1.0, 2.0]], [1.5, -0.5], eps=1e-6)
        with pytest.raises(ValueError, match="what = 'z'; it is one of y"):
            function("z", [[1.0, 2.0]], [1.5, -0.5], eps=1e-6)
    with pytest.raises(ValueError, match="dtype = int64; it is one of float16"):
        precision.allowed("y", [[1, 2]], [1.5, -0.5], eps=1e-6)
    for dtype in (None, "float8", object(), "longdouble"):
        with pytest.raises(ValueError, match="it is one of float16, bfloat16, float32, float64"):
            precision.bound(dtype, 4)
        with pytest.raises(ValueError, match="it is one of float16"):
            precision.subnormal(dtype)
    with pytest.raises(ValueError, match=r"summation = \['any'\]; it is one of any"):
        precision.bound("float32", 4, summation=["any"])
    with pytest.raises(ValueError, match=r"what = \['y'\]; it is one of y"):
        precision.bound("float32", 4, what=["y"])
    with pytest.raises(ValueError, match=r"convention = \['torch'\]; it is one of paper_torch"):
        precision.bound("float32", 4, convention=["torch"])


@pytest.mark.parametrize("what", ["y", "dx", "dweight"])
def test_numbers_of_rows_and_features_are_checked_for_every_result(what):
    for wrong, error in ((0, ValueError), (-1, ValueError), (2.5, TypeError), ("a", TypeError)):
        with pytest.raises(error, match=r"n = .*give an integer"):
            precision.bound("float32", wrong, what=what)
        with pytest.raises(error, match=r"rows = .*give an integer"):
            precision.bound("float32", 4, wrong, what=what)
        with pytest.raises(error, match="give an integer"):
            precision.depth(wrong)


@pytest.mark.parametrize("function", [precision.scale, precision.allowed])
@pytest.mark.parametrize("what", ["y", "dx", "dweight"])
def test_a_part_of_no_features_is_none(function, what):
    for k, error in ((0, ValueError), (-1, ValueError), (3, ValueError), (True, TypeError)):
        with pytest.raises(error, match="k = "):
            function(what, [[1.5, 2.0]], [1.5, -0.5], [[0.5, 1.0]], eps=1e-6, k=k)


@pytest.mark.parametrize("function", [precision.scale, precision.allowed])
def test_what_is_beyond_float64_is_inf_without_a_warning(function):
    huge = np.full((2, 4), 1e308)
    for what in ("dx", "dweight"):
        assert np.all(np.isinf(function(what, np.full((2, 4), 1e-3), [1.5] * 4, huge, eps=0.0)))


def test_absurdly_many_features_have_no_bound():
    assert precision.bound("float16", 2**60) == math.inf
    assert precision.bound("float16", 4, 2**60, what="dweight") == math.inf
    assert precision.bound("float16", 2**60, summation="pairwise") < 2e-3
    with pytest.raises(ValueError, match=r"n has .* no array is that large"):
        precision.bound("float16", 10**400)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("z", [[1.0, 2.0]], None, [[1.0, 2.0]]), "what = 'z'"),
        (("dx", [[1.0, 2.0]], None, [1.0, 2.0]), r"dy has shape \(2,\)"),
        (("y", [[1.0, 2.0]], [1.5]), r"weight has shape \(1,\)"),
        (("y", [[1.0, 2.0]], [[1.5, 2.0]]), r"weight has shape \(1, 2\)"),
        (("y", 3.0), "shape"),
    ],
)
def test_scale_refuses_other_shapes_and_words(arguments, words):
    with pytest.raises(ValueError, match=words):
        precision.scale(*arguments)


def test_scale_refuses_other_types():
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    for wrong in ([1, 2], ["a", "b"], [1j, 2.0], masked):
        for place in range(3):
            arguments = [[1.0, 2.0], [1.5, -0.5], [1.0, 3.0]]
            arguments[place] = wrong
            with pytest.raises(TypeError, match=r"give one of float16|has masked values"):
                precision.scale("dx", *arguments)
    with pytest.raises(ValueError, match="eps = -1"):
        precision.scale("y", [1.0, 2.0], eps=-1)


def test_the_scale_of_a_row_without_a_finite_rstd_is_inf():
    assert precision.scale("dx", [1e-320, 0.0], dy=[1.0, 1.0], eps=0.0).tolist() == [np.inf]
    assert precision.scale("dx", [1e-320, 0.0], dy=[0.0, 0.0], eps=0.0).tolist() == [0.0]
