"""Wrong RMSNorms that are no mutants of the book, to be rejected with a reason that fits."""

from collections.abc import Callable
from typing import Any

import numpy as np
from implementations import Array, Function, gradients, pairwise, right, widened

# --- wrong forwards ---------------------------------------------------------------------------


def forward_by(divisor: Callable[[Array, Any], Array]) -> Function:
    """y = x / divisor(x, eps) · weight in the wide type."""

    def forward(x: Array, weight: Array, eps: float) -> Array:
        wide = widened(x)
        return (wide / divisor(wide, wide.dtype.type(eps)) * widened(weight)).astype(x.dtype)

    return forward


def _unbiased(x: Array, eps: Any) -> Array:
    with np.errstate(divide="ignore"):
        return np.sqrt(np.sum(x * x, axis=-1, keepdims=True) / np.array(x.shape[-1] - 1.0) + eps)


def _wrong_axis(x: Array, eps: Any) -> Array:
    return np.sqrt(np.mean(x * x, axis=0, keepdims=True) + eps)


def _lost_axis(x: Array, eps: Any) -> Array:
    return np.sqrt(np.mean(x * x, axis=-1) + eps)


def _whole(x: Array, eps: Any) -> Array:
    return np.sqrt(np.mean(x * x) + eps)


def _without_eps(x: Array, eps: Any) -> Array:
    size = np.sqrt(pairwise(x))
    return np.where(size == 0, x.dtype.type(1), size)


def centred(x: Array, weight: Array, eps: float) -> Array:
    wide = widened(x)
    return right((wide - np.mean(wide, axis=-1, keepdims=True)).astype(x.dtype), weight, eps)


def half_sums(x: Array, weight: Array, eps: float) -> Array:
    """The squares are added up in float16, as a kernel without a wide accumulator does."""
    scale = np.float64(np.max(np.abs(x.astype(np.float64))) or 1.0)  # so that nothing overflows
    small = (x.astype(np.float64) / scale).astype(np.float16)
    total = np.zeros(len(x), np.float16)
    for i in range(x.shape[-1]):
        total = total + small[:, i] * small[:, i]
    mean = total.astype(np.float64)[:, None] / x.shape[-1] * scale**2
    y = x.astype(np.float64) / np.sqrt(mean + eps) * weight.astype(np.float64)
    return y.astype(x.dtype)


def mutating(x: Array, weight: Array, eps: float) -> Array:
    y = right(x, weight, eps)
    x[...] = y
    return y


def mutating_weight(x: Array, weight: Array, eps: float) -> Array:
    y = right(x, weight, eps)
    weight += weight.dtype.type(1)
    return y


def raises_for_many_rows(x: Array, weight: Array, eps: float) -> Array:
    if len(x) > 128:
        raise MemoryError("grid too large")
    return right(x, weight, eps)


def forgets_the_tail(x: Array, weight: Array, eps: float) -> Array:
    """A kernel whose block has 128 features: the others stay 0."""
    y = right(x, weight, eps)
    y[:, 128:] = 0
    return y


def overflows(x: Array, weight: Array, eps: float) -> Array:
    """Squares in x's own type: right for float32, inf for large halves."""
    mean = np.mean(np.square(x), axis=-1, keepdims=True)
    return (x / np.sqrt(mean + x.dtype.type(eps)) * weight).astype(x.dtype)


WRONG: dict[str, tuple[Function, str]] = {  # with a word of the reason
    "n - 1": (forward_by(_unbiased), "n - 1"),
    "wrong axis": (forward_by(_wrong_axis), "wrong axis"),
    "lost axis": (forward_by(_lost_axis), ""),
    "whole array": (forward_by(_whole), "whole array"),
    "mean subtracted": (centred, "subtracted the mean"),
    "standard deviation": (
        forward_by(lambda x, eps: np.sqrt(np.var(x, axis=-1, keepdims=True) + eps)),
        "standard deviation",
    ),
    "eps outside": (forward_by(lambda x, eps: np.sqrt(pairwise(x)) + eps), "outside"),
    "eps x 1e5": (forward_by(lambda x, eps: np.sqrt(pairwise(x) + 1e5 * eps)), ""),
    "eps / 10": (forward_by(lambda x, eps: np.sqrt(pairwise(x) + 0.1 * eps)), ""),
    "eps ignored": (forward_by(_without_eps), "eps is not used"),
    "own eps": (forward_by(lambda x, eps: np.sqrt(pairwise(x) + 1e-6)), "eps of your own"),
    "weight missing": (lambda x, w, eps: right(x, np.ones_like(w), eps), "weight is missing"),
    "1 + w": (lambda x, w, eps: right(x, (1 + w).astype(w.dtype), eps), "1 + weight"),
    "|w|": (lambda x, w, eps: right(x, np.abs(w), eps), ""),
    "L2": (forward_by(lambda x, eps: np.sqrt(pairwise(x) * x.shape[-1] + eps)), "L2 norm"),
    "no root": (forward_by(lambda x, eps: pairwise(x) + eps), "root is missing"),
    "half sums": (half_sums, "rounding explains"),
    "input mutated": (mutating, "wrote into"),
    "weight mutated": (mutating_weight, "wrote into"),
    "float64 output": (lambda x, w, eps: right(x, w, eps).astype(np.longdouble), "dtype"),
    "wrong shape": (lambda x, w, eps: right(x, w, eps)[..., None], "shape"),
    "list": (lambda x, w, eps: right(x, w, eps).tolist(), "no array"),
    "nan": (forward_by(lambda x, eps: np.sqrt(pairwise(x)) * (pairwise(x) > 0)), ""),
    "raises": (raises_for_many_rows, "grid too large"),
    "tail": (forgets_the_tail, "rounding explains"),
    "nothing": (lambda x, w, eps: None, "no array"),
}


# --- wrong gradients --------------------------------------------------------------------------


def wrong_vjp(
    second: float = 1.0, powers: tuple[int, int] = (1, 1), over: str = "xhat", eps_factor: float = 1
) -> Function:
    """`gradients` with a second term of another size, other powers of the weight, another x̂."""

    def vjp(dy: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array]:
        wide, dy_wide, w = widened(x), widened(dy), widened(weight)
        rstd = 1 / np.sqrt(pairwise(wide) + wide.dtype.type(eps * eps_factor))
        xhat = wide * rstd
        first, along = dy_wide * w ** powers[0], dy_wide * w ** powers[1]
        dx = rstd * (first - second * xhat * np.mean(along * xhat, axis=-1, keepdims=True))
        factors = {"xhat": xhat, "x": wide, "1": np.ones_like(wide), "y": xhat * w}
        dweight = np.sum(dy_wide * factors[over], axis=0)
        return dx.astype(x.dtype), dweight.astype(x.dtype)

    return vjp


def one_row_short(dy: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array]:
    """A kernel that adds up whole blocks of 64 rows only."""
    dx, dweight = gradients(dy, x, weight, eps)
    whole = len(x) // 64 * 64 or len(x)
    return dx, gradients(dy[:whole], x[:whole], weight, eps)[1] if whole < len(x) else dweight


WRONG_VJP: dict[str, tuple[Function, str]] = {
    "no second term": (wrong_vjp(0.0), "second term"),
    "its wrong sign": (wrong_vjp(-1.0), "wrong sign"),
    "half of it": (wrong_vjp(0.5), ""),
    "no weight in dx": (wrong_vjp(powers=(0, 0)), "lacks the weight"),
    "weight twice in dx": (wrong_vjp(powers=(2, 2)), "weight twice"),
    "extra weight in the second term": (wrong_vjp(powers=(1, 2)), "weight twice"),
    "no weight in the second term": (wrong_vjp(powers=(1, 0)), "lacks the weight"),
    "dweight without x-hat": (wrong_vjp(over="1"), "lacks x-hat"),
    "dweight with x": (wrong_vjp(over="x"), "has x where"),
    "dweight with y": (wrong_vjp(over="y"), "weight in it"),
    "eps ignored": (wrong_vjp(eps_factor=1e-9), ""),
    "rows left out": (one_row_short, ""),
    "dweight of every row": (
        lambda dy, x, w, eps: (gradients(dy, x, w, eps)[0], dy),
        "shape",
    ),
    "dx alone": (lambda dy, x, w, eps: gradients(dy, x, w, eps)[0], "two arrays"),
}
