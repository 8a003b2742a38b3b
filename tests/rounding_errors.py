"""RMSNorm and its gradients in any order of summation, and their errors against a wider type."""

from functools import cache

import numpy as np
import pytest

from rmsnorm_edu import precision

TYPES = ("float16", "bfloat16", "float32", "float64")
SIZES = (1, 2, 3, 7, 16, 33, 128, 129, 500, 1024, 4096)
KINDS = ("normal", "constant", "large mean", "uneven", "eps matters")
EPS = 1e-6
wide_enough = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="long double is float64 on this machine"
)
with_truth = [pytest.param(t, marks=wide_enough if t == "float64" else ()) for t in TYPES]


def numpy_type(name):
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    return precision.numpy_type(name)


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
