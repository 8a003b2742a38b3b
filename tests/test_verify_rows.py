"""`verify` with very many rows, and with rows in batches of even and odd size."""

import numpy as np
import pytest

from rmsnorm_edu.checks import batch, verify


def mean_square(x, axis=-1):
    return np.mean(np.square(x.astype(np.float64)), axis=axis, keepdims=True)


def norm(x, weight, eps):
    return (x / np.sqrt(mean_square(x) + eps) * weight).astype(x.dtype)


def gradients(dy, x, weight, eps):
    rstd = 1 / np.sqrt(mean_square(x) + eps)
    xhat, u = x * rstd, dy * weight.astype(np.float64)
    dx = rstd * (u - xhat * np.mean(u * xhat, axis=-1, keepdims=True))
    return dx.astype(x.dtype), np.sum(dy * xhat, axis=0).astype(x.dtype)


def beyond_a_grid(x, weight, eps):
    y = norm(x, weight, eps)
    y[65_535:] = 0
    return y


def rows_of_a_grid(dy, x, weight, eps):
    dx, _ = gradients(dy, x, weight, eps)
    return dx, gradients(dy[:65_535], x[:65_535], weight, eps)[1]


def by_parity(x, weight, eps):
    squares = np.square(x)
    squares = squares[:, ::-1] if len(x) % 2 else squares
    mean = np.cumsum(squares, axis=-1)[:, -1:] / x.dtype.type(x.shape[-1])
    return (x / np.sqrt(mean + x.dtype.type(eps)) * weight).astype(x.dtype)


def all_products(x, weight, eps):
    """Right, with rows² numbers on the way."""
    mean = np.diag(x @ x.T)[:, np.newaxis] / x.dtype.type(x.shape[-1])
    return (x / np.sqrt(mean + x.dtype.type(eps)) * weight).astype(x.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rows_beyond_a_grid_must_be_right(dtype):
    report = verify(beyond_a_grid, rows_of_a_grid, dtype=dtype, seeds=1)
    assert [failure.fault for failure in report.failures] == ["y", "dweight"]
    assert report.failures[0].kinds == ("65,600 rows",)
    assert verify(norm, gradients, dtype=dtype, seeds=1).ok


def test_a_batch_of_odd_size_is_tried():
    (failure,) = verify(by_parity, seeds=1).failures
    assert failure.fault == "batch"
    assert "of 9 of them" in failure.code


def test_memory_that_grows_with_the_square_of_the_rows_is_left_in_peace():
    assert verify(all_products, seeds=1).ok
    few = np.dtype(np.float32)
    assert batch.takes_the_square(lambda case: all_products(case.x, case.weight, 0.1), few)
    assert not batch.takes_the_square(lambda case: norm(case.x, case.weight, 0.1), few)
