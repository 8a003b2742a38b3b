"""`precision.depth`: the longest way of a summand, counted in the order itself."""

import math

import numpy as np
import pytest
from rounding_errors import SIZES

from rmsnorm_edu import precision


def pairwise(a):
    """NumPy's order: 8 lanes up to 128 summands, halves (of multiples of 8) beyond."""
    n = len(a)
    if n < 8:
        return one_by_one(a)
    if n <= 128:
        lanes = [one_by_one(a[lane : n // 8 * 8 : 8]) for lane in range(8)]
        while len(lanes) > 1:
            lanes = [x + y for x, y in zip(lanes[::2], lanes[1::2], strict=True)]
        return one_by_one([lanes[0], *a[n // 8 * 8 :]])
    half = n // 2 // 8 * 8
    return pairwise(a[:half]) + pairwise(a[half:])


def one_by_one(a):
    total = a[0]
    for term in a[1:]:
        total = total + term
    return total


def blocked(a):
    return one_by_one([one_by_one(a[i : i + 128]) for i in range(0, len(a), 128)])


def tree(a):
    while len(a) > 1:
        a = [one_by_one(a[i : i + 2]) for i in range(0, len(a), 2)]
    return a[0]


class Counted:
    """A summand that knows the most additions that any part of it has been through."""

    def __init__(self, depth=0):
        self.depth = depth

    def __add__(self, other):
        return Counted(max(self.depth, other.depth) + 1)


@pytest.mark.equation("summation-depth")
@pytest.mark.parametrize(
    ("order", "name"), [(one_by_one, "any"), (blocked, "blocked"), (pairwise, "pairwise")]
)
def test_the_depth_is_that_of_the_longest_way(order, name):
    for n in (*SIZES, 8, 9, 15, 120, 127, 135, 1001, 4095, 8192):
        assert order([Counted() for _ in range(n)]).depth == precision.depth(n, name), n


def test_that_order_is_numpys():
    rng = np.random.default_rng(0)
    for n in (*SIZES, 127, 135, 1001):
        a = rng.normal(0.5, 1, n).astype(np.float32) ** 2
        assert np.sum(a) == pairwise(a), n


@pytest.mark.equation("summation-depth")
def test_a_tree_is_never_deeper_and_a_block_never_shallower():
    assert tree([Counted() for _ in range(1000)]).depth == 10
    for n in range(1, 3000):
        pairwise_depth = precision.depth(n, "pairwise")
        assert math.ceil(math.log2(n)) <= pairwise_depth
        assert n > 128 or pairwise_depth <= precision.depth(n, "blocked")
        assert precision.depth(n, "blocked") <= precision.depth(n) == n - 1


def test_the_depth_of_a_pairwise_sum_grows_with_the_logarithm():
    depths = [precision.depth(128 * 2**k, "pairwise") for k in range(0, 41, 10)]
    assert depths == [18, 28, 38, 48, 58]
    assert precision.depth(2**62 + 12345, "pairwise") < 90
