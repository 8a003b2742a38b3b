"""The rules by which the chapter counts factors of 1 + u, each against exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from rounding_errors import ORDERS

from rmsnorm_edu import precision

U = Fraction(1, 2**24)
ONE = 1 + U


def factors(computed, exact):
    """How many factors of 1 + u the number is off, rounded up."""
    ratio = Fraction(float(computed)) / exact
    count = 0
    while not ONE**-count <= ratio <= ONE**count:
        count += 1
    return count


def numbers(count, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 10, count).astype(np.float32)


@pytest.mark.equation("one-rounding", "factors-off")
def test_one_operation_is_one_factor_off_and_nothing_less_would_do() -> None:
    """|η| ≤ u/(1 + u), reached by 1 + u, which lies in the middle and goes to 1."""
    a, b = numbers(500), numbers(500, 1)
    for x, y, total, product in zip(a, b, a + b, a * b, strict=True):
        exact = Fraction(float(x)), Fraction(float(y))
        for got, z in ((total, sum(exact)), (product, exact[0] * exact[1])):
            eta = Fraction(float(got)) / z - 1
            assert abs(eta) <= U / ONE
            assert 1 / ONE <= 1 + eta <= ONE
    stored = np.float32(1) + np.float32(2.0**-24)
    assert Fraction(float(stored)) / ONE - 1 == -U / ONE
    assert Fraction(precision.UNIT_ROUNDOFF["float32"]) == U


@pytest.mark.equation("factors-of-a-product")
def test_products_and_quotients_add_their_factors() -> None:
    for seed in range(40):
        a = numbers(12, seed)
        product, exact = a[0], Fraction(float(a[0]))
        for k, factor in enumerate(a[1:], start=1):
            by = Fraction(float(factor))
            product, exact = (
                (product * factor, exact * by) if k % 2 else (product / factor, exact / by)
            )
            assert factors(product, exact) <= k


@pytest.mark.equation("factors-of-a-sum")
@pytest.mark.parametrize("order", ORDERS, ids=lambda f: f.__name__)
def test_a_sum_of_squares_is_its_depth_and_one_off(order) -> None:
    for n in (1, 2, 7, 8, 100, 300):
        x = numbers(n, n)
        exact = sum(Fraction(float(v)) ** 2 for v in x)
        total = order((x * x)[None])[0, 0]
        assert factors(total, exact) <= 1 + precision.depth(n, ORDERS[order])


@pytest.mark.equation("factors-of-a-root")
def test_a_root_halves_the_factors() -> None:
    for a in numbers(200):
        for k in (0, 5, 20):
            moved = np.float32(float(Fraction(float(a)) * ONE**k))  # k + 1 factors off
            root, off = Fraction(float(np.sqrt(moved))), Fraction(k + 1, 2) + 1
            ratio = root**2 / Fraction(float(a))  # squared, so that it stays a fraction
            assert ONE ** int(-2 * off) <= ratio <= ONE ** int(2 * off)


@pytest.mark.equation("rounding-bound")
def test_the_bound_is_the_equation_of_the_chapter() -> None:
    for n in (1, 64, 4096):
        for order in ("any", "blocked", "pairwise"):
            exponent = precision.depth(n, order) / 2 + 8
            for name, v in (("float32", 2.0**-24), ("float16", 2.0**-11), ("bfloat16", 2.0**-8)):
                expected = (1 + 2.0**-24) ** exponent * (1 + v) - 1
                found = precision.bound(name, n, summation=order)
                assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.equation("gradient-bound")
def test_what_dx_may_err_by_is_the_equation_of_the_chapter() -> None:
    rng = np.random.default_rng(3)
    x, dy = rng.normal(0.3, 1, (2, 5, 40)).astype(np.float32)
    g = rng.uniform(-2.5, 2.5, 40).astype(np.float32)
    wide, up, weight = (a.astype(float) for a in (x, dy, g))
    divisor = np.sqrt(np.mean(wide**2, -1, keepdims=True) + 1e-6)
    xhat = wide / divisor
    products, steep = weight * up * xhat, np.max(np.abs(xhat), -1, keepdims=True)
    a = np.max(np.abs(weight * up), -1, keepdims=True)
    b = steep * np.mean(np.abs(products), -1, keepdims=True)
    c = steep * np.abs(np.mean(products, -1, keepdims=True))
    dx = (weight * up - xhat * np.mean(products, -1, keepdims=True)) / divisor

    def grown(k):
        return np.expm1(k * np.log1p(2.0**-24))

    d = precision.depth(40, "pairwise")
    second = grown(1.5 * d + 25) * c + (1 + grown(1.5 * d + 25)) * grown(d + 5) * b
    before = (grown(d / 2 + 9) * a + second) / divisor
    expected = before * ONE + 2.0**-24 * np.max(np.abs(dx), -1, keepdims=True)
    found = precision.allowed("dx", x, g, dy, eps=1e-6, summation="pairwise")
    np.testing.assert_allclose(found, expected.astype(float), rtol=1e-9)
