"""What the tests of gradients share: the complex step, random problems, the size of terms.

Truth is the complex step of the norm as it is written: Im f(x + ih)/h with h = 1e-30 has no
difference in it, so it is good to the rounding of a few operations. A gradient is compared
relative to the size of the two terms that cancel in it, with some n + 24 roundings of 2⁻⁵³.
"""

import itertools

import numpy as np
import pytest

from rmsnorm_edu import reference

U = 2.0**-53  # unit roundoff of float64
H = 1e-30
EPS = (0.0, 1e-6, 0.3)
vjp, jvp = reference.rms_norm_vjp, reference.rms_norm_jvp


def norm(x, weight, eps):
    """RMSNorm of one row as it is written; complex x, too."""
    return x / np.sqrt(np.mean(x * x) + eps) * weight


def jacobian(function, x):
    """∂f_i/∂x_j by complex step, one column an entry of x."""
    steps = 1j * H * np.eye(x.size)
    return np.stack([np.imag(function(x + step)) / H for step in steps], axis=-1)


def problem(seed, n=None):
    """(dy, x, weight): mean far from 0, weights of both signs."""
    rng = np.random.default_rng(seed)
    n = n or int(rng.integers(1, 12))
    weight = rng.uniform(0.3, 2.0, n) * rng.choice([-1.0, 1.0], n)
    return rng.normal(0.5, 1.0, n), rng.normal(0.7, 1.0, n), weight


def close(got, expected, scale=1.0, n=12):
    """Within 2 n + 24 roundings of terms as large as `scale`."""
    scale = np.maximum(np.max(np.abs(expected), initial=0.0), scale)
    np.testing.assert_allclose(got, expected, rtol=0, atol=(2 * n + 24) * U * scale)


def divisor(x, eps):
    return np.sqrt(np.mean(x * x) + eps)


def matrix_r(x, eps):
    """R = (I − x̂x̂ᵀ/n) / D."""
    d = divisor(x, eps)
    return (np.eye(x.size) - np.outer(x / d, x / d) / x.size) / d


def size(u, x, eps):
    """The size of the terms of dx."""
    return np.max(np.abs(u), initial=0.0) * (1 + x.size**0.5) / divisor(x, eps)


cases = pytest.mark.parametrize(("seed", "eps"), list(itertools.product(range(8), EPS)))
