"""Right RMSNorms that differ in their roundings, to be accepted, one and all."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

Array = np.ndarray
Function = Callable[..., Any]


def widened(x: Array) -> Array:
    return x.astype(np.float64 if x.dtype == np.float64 else np.float32)


# --- sums of squares in every order: (rows, n) -> (rows, 1) ---------------------------------


def numpy_sum(x: Array) -> Array:
    return np.sum(np.square(x), axis=-1, keepdims=True)


def sequential(x: Array) -> Array:
    return np.cumsum(np.square(x), axis=-1)[:, -1:]


def backwards(x: Array) -> Array:
    return sequential(x[:, ::-1])


def permuted(x: Array) -> Array:
    return sequential(x[:, np.random.default_rng(x.shape[-1]).permutation(x.shape[-1])])


def einsum(x: Array) -> Array:
    return np.einsum("ij,ij->i", x, x)[:, None]


def dot(x: Array) -> Array:
    return np.stack([row @ row for row in x])[:, None]


def matvec(x: Array) -> Array:
    return (np.square(x) @ np.ones(x.shape[-1], x.dtype))[:, None]


def matmul(x: Array) -> Array:
    return (x[:, None, :] @ x[:, :, None])[:, 0]


def transposed(x: Array) -> Array:
    return np.sum(np.square(np.ascontiguousarray(x.T)), axis=0)[:, None]


def euclid(x: Array) -> Array:
    return np.square(np.linalg.norm(x, axis=-1, keepdims=True))


def fsum(x: Array) -> Array:
    return np.array([[math.fsum(row)] for row in np.square(x).tolist()], dtype=x.dtype)


def compensated(x: Array) -> Array:
    total = lost = np.zeros(len(x), x.dtype)
    for column in np.square(x).T:
        term = column - lost
        grown = total + term
        lost = (grown - total) - term
        total = grown
    return total[:, None]


def fused_multiply_add(x: Array) -> Array:
    """Each x² + total rounded once: the product is exact in the wider type."""
    total = np.zeros(len(x), x.dtype)
    for column in x.T:
        wide = column.astype(np.longdouble)
        total = (wide * wide + total).astype(x.dtype)
    return total[:, None]


def blocked(size: int, x: Array) -> Array:
    """Blocks padded with zeros, each summed by NumPy, then their sums one after another."""
    padded = np.pad(np.square(x), ((0, 0), (0, -x.shape[-1] % size)))
    parts = np.sum(padded.reshape(len(x), -1, size), axis=-1)
    return np.cumsum(parts, axis=-1)[:, -1:]


def lanes(count: int, x: Array) -> Array:
    """`count` running sums side by side, as a vector unit has them, then one after another."""
    padded = np.pad(np.square(x), ((0, 0), (0, -x.shape[-1] % count)))
    sums = np.cumsum(padded.reshape(len(x), -1, count), axis=1)[:, -1]
    return np.cumsum(sums, axis=-1)[:, -1:]


def tree(x: Array) -> Array:
    squares = np.square(x)
    while squares.shape[-1] > 1:
        squares = np.pad(squares, ((0, 0), (0, squares.shape[-1] % 2)))
        half = squares.shape[-1] // 2
        squares = squares[:, :half] + squares[:, half:]
    return squares


def streaming(x: Array) -> Array:
    """The running mean that a kernel keeps which sees a feature at a time, times n."""
    mean = np.zeros(len(x), x.dtype)
    for i, column in enumerate(x.T):
        mean = mean + (np.square(column) - mean) * x.dtype.type(1 / (i + 1))
    return mean[:, None] * x.dtype.type(x.shape[-1])


def in_float64(x: Array) -> Array:
    return np.sum(np.square(x.astype(np.float64)), axis=-1, keepdims=True).astype(x.dtype)


SUMS: dict[str, Function] = {
    f.__name__: f for f in (numpy_sum, sequential, backwards, permuted, einsum, dot, matvec, matmul)
}
SUMS |= {f.__name__: f for f in (transposed, euclid, fsum, compensated, fused_multiply_add)}
SUMS |= {f.__name__: f for f in (tree, streaming, in_float64)}
SUMS |= {f"blocks of {size}": partial(blocked, size) for size in (32, 64, 128, 256, 1024)}
SUMS |= {f"{count} lanes": partial(lanes, count) for count in (4, 8, 16)}


def pairwise(x: Array) -> Array:
    return np.mean(np.square(x), axis=-1, keepdims=True)


# --- right forwards -------------------------------------------------------------------------


def forward_with(total: Function) -> Function:
    """y from a sum of squares (rows, 1), everything in the wide type, one rounding."""

    def forward(x: Array, weight: Array, eps: float) -> Array:
        wide = widened(x)
        mean = total(wide) / wide.dtype.type(x.shape[-1])
        rstd = 1 / np.sqrt(mean + wide.dtype.type(eps))
        return (wide * rstd * widened(weight)).astype(x.dtype)

    return forward


def by_the_reciprocal(x: Array, weight: Array, eps: float) -> Array:
    wide = widened(x)
    mean = numpy_sum(wide) * wide.dtype.type(1 / x.shape[-1])
    return (wide * (mean + wide.dtype.type(eps)) ** -0.5 * widened(weight)).astype(x.dtype)


def scaled(unit: Function, x: Array, weight: Array, eps: float) -> Array:
    """Divides by unit(max|x|) first; eps is divided with it."""
    wide = widened(x)
    m = np.max(np.abs(wide), axis=-1, keepdims=True)
    m = unit(np.where(m == 0, wide.dtype.type(1), m))
    small = wide / m
    with np.errstate(over="ignore"):  # eps/m² of a tiny row is inf, and y then 0: below the slack
        eps_scaled = wide.dtype.type(eps) / m / m
    return (small / np.sqrt(pairwise(small) + eps_scaled) * widened(weight)).astype(x.dtype)


def power_of_two(m: Array) -> Array:
    return np.ldexp(np.ones_like(m), np.frexp(m)[1])


def weight_first(x: Array, weight: Array, eps: float) -> Array:
    wide = widened(x)
    rstd = 1 / np.sqrt(pairwise(wide) + wide.dtype.type(eps))
    return (wide * (rstd * widened(weight))).astype(x.dtype)


def weight_times_x(x: Array, weight: Array, eps: float) -> Array:
    wide = widened(x)
    return (wide * widened(weight) / np.sqrt(pairwise(wide) + wide.dtype.type(eps))).astype(x.dtype)


def division(x: Array, weight: Array, eps: float) -> Array:
    wide = widened(x)
    return (wide / np.sqrt(pairwise(wide) + wide.dtype.type(eps)) * widened(weight)).astype(x.dtype)


def root_of_n(x: Array, weight: Array, eps: float) -> Array:
    """x √n / sqrt(Σ x² + n ε)."""
    wide, n = widened(x), x.shape[-1]
    length = np.sqrt(numpy_sum(wide) + wide.dtype.type(n * eps))
    return (wide * (wide.dtype.type(math.sqrt(n)) / length) * widened(weight)).astype(x.dtype)


def hypotenuse(x: Array, weight: Array, eps: float) -> Array:
    wide = widened(x)
    root = wide.dtype.type(math.sqrt(eps))
    return (wide / np.hypot(np.sqrt(pairwise(wide)), root) * widened(weight)).astype(x.dtype)


def newton(x: Array, weight: Array, eps: float) -> Array:
    """1/sqrt by a guess from half precision and steps that double its digits."""
    wide = widened(x)
    square = pairwise(wide) + wide.dtype.type(eps)
    mantissa, exponent = np.frexp(square)
    odd = exponent % 2
    mantissa, exponent = np.ldexp(mantissa, odd), exponent - odd  # even, so that it has a half
    guess = (1 / np.sqrt(mantissa.astype(np.float16))).astype(wide.dtype)
    for _ in range(4):
        guess = guess + guess * (1 - mantissa * guess * guess) / 2
    return (wide * np.ldexp(guess, -exponent // 2) * widened(weight)).astype(x.dtype)


def row_by_row(x: Array, weight: Array, eps: float) -> Array:
    return np.stack([division(row[None], weight, eps)[0] for row in x])


def all_in_float64(x: Array, weight: Array, eps: float) -> Array:
    wide = x.astype(np.float64)
    return (wide / np.sqrt(pairwise(wide) + eps) * weight.astype(np.float64)).astype(x.dtype)


right = forward_with(numpy_sum)
RIGHT: dict[str, Function] = {name: forward_with(total) for name, total in SUMS.items()}
RIGHT |= {"scaled by max": partial(scaled, lambda m: m)}
RIGHT |= {"scaled by 2^k": partial(scaled, power_of_two)}
RIGHT |= {
    f.__name__: f
    for f in (by_the_reciprocal, weight_first, weight_times_x, division, root_of_n, hypotenuse)
}
RIGHT |= {f.__name__: f for f in (newton, row_by_row, all_in_float64)}


# --- right gradients --------------------------------------------------------------------------


def vjp_with(total: Function, rows: Function) -> Function:
    """dx and dweight; `total` adds (rows, n) to (rows, 1), `rows` adds it to (n,)."""

    def vjp(dy: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array]:
        wide, dy_wide = widened(x), widened(dy)
        n = wide.dtype.type(x.shape[-1])
        rstd = 1 / np.sqrt(pairwise(wide) + wide.dtype.type(eps))
        u, xhat = dy_wide * widened(weight), wide * rstd
        dx = rstd * (u - xhat * (total(u * xhat) / n))
        return dx.astype(x.dtype), rows(dy_wide * xhat).astype(x.dtype)

    return vjp


_total: Function = partial(np.sum, axis=-1, keepdims=True)
_rows: Function = partial(np.sum, axis=0)
gradients = vjp_with(_total, _rows)


def cubed(dy: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array]:
    """rstd u − rstd³ x mean(u x)."""
    wide, u = widened(x), widened(dy) * widened(weight)
    rstd = 1 / np.sqrt(pairwise(wide) + wide.dtype.type(eps))
    mean = np.mean(u * wide, axis=-1, keepdims=True)
    dx = rstd * u - rstd**3 * wide * mean
    return dx.astype(x.dtype), gradients(dy, x, weight, eps)[1]


def coefficient(dy: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array]:
    """(u − x · (rstd² mean(u x))) · rstd."""
    wide, u = widened(x), widened(dy) * widened(weight)
    rstd = 1 / np.sqrt(pairwise(wide) + wide.dtype.type(eps))
    c = rstd * rstd * np.einsum("ij,ij->i", u, wide)[:, None] / wide.dtype.type(x.shape[-1])
    return ((u - wide * c) * rstd).astype(x.dtype), gradients(dy, x, weight, eps)[1]


def wide_gradients(dy: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array]:
    found = gradients(*(a.astype(np.float64) for a in (dy, x, weight)), eps)
    return found[0].astype(x.dtype), found[1].astype(x.dtype)


def _sequential_rows(a: Array) -> Array:
    return np.cumsum(a, axis=0)[-1]


def _partial_buffers(a: Array) -> Array:
    """Sums of 64 rows each, as a kernel leaves them in a buffer, and their sum."""
    return np.sum([np.sum(a[i : i + 64], axis=0) for i in range(0, len(a), 64)], axis=0)


def _matvec_rows(a: Array) -> Array:
    return np.ones(len(a), a.dtype) @ a


RIGHT_VJP: dict[str, Function] = {
    "gradients": gradients,
    "one after another": vjp_with(lambda a: np.cumsum(a, axis=-1)[:, -1:], _sequential_rows),
    "backwards": vjp_with(lambda a: np.cumsum(a[:, ::-1], axis=-1)[:, -1:], _rows),
    "partial buffers": vjp_with(_total, _partial_buffers),
    "matrix-vector": vjp_with(lambda a: (a @ np.ones(a.shape[-1], a.dtype))[:, None], _matvec_rows),
    "cubed": cubed,
    "coefficient": coefficient,
    "float64 inside": wide_gradients,
    "a list": lambda *arguments: list(gradients(*arguments)),
}
