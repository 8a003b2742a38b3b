"""The inputs on which an implementation of RMSNorm shows what it does."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
EPS = (1e-6, 1e-5, 1e-3, 0.1)
# rows that big and that small stay inside the type when they are squared, and rstd³ does, too
_HUGE = {"float16": 2e4, "bfloat16": 1e9, "float32": 1e9, "float64": 1e60}
_TINY = {"float16": 1e-4, "bfloat16": 1e-12, "float32": 1e-12, "float64": 1e-60}
_PLAIN = {"one feature": (3, 1), "one row": (1, 7), "square": (5, 5), "no columns alike": (4, 6)}


@dataclass(frozen=True)
class Case:
    """One input: x and dy (rows, n), weight (n,), of one type; `kind` says what is special."""

    kind: str
    x: Array
    weight: Array
    dy: Array
    eps: float


def cases(seed: int, dtype: np.dtype[Any], *, narrow: bool = False) -> Iterator[Case]:
    """Every kind of input once, small ones first; the weight has both signs and is never 1.

    `narrow`: for conventions that compute in half precision, where squares of large numbers
    overflow and ε vanishes: rows of size 1 and ε = 1/8 alone.
    """
    rng = np.random.default_rng(seed)
    for kind, x in _rows(rng, dtype.name):
        if narrow and kind.split()[0] in ("huge", "tiny", "mixed", "near", "long"):
            continue
        eps = 0.125 if narrow else float(rng.choice(EPS))
        if kind.startswith("near"):
            x = x * np.sqrt(eps)
        yield _case(kind, x, eps, rng, dtype)


def _rows(rng: np.random.Generator, dtype: str) -> Iterator[tuple[str, Array]]:
    for kind, shape in _PLAIN.items():
        yield kind, _normal(rng, shape)
    yield "constant rows", rng.uniform(0.5, 4.0, (3, 1)) * np.ones((3, 4))
    with_zeros = _normal(rng, (3, 8))
    with_zeros[1] = 0.0
    yield "a row of zeros", with_zeros
    yield "near the root of eps", _normal(rng, (5, 6)) * np.logspace(-1, 1, 5)[:, np.newaxis]
    yield "a large mean", _normal(rng, (3, 9)) + 10.0
    yield "huge numbers", rng.uniform(-3, 3, (3, 5)) * _HUGE[dtype]
    yield "tiny numbers", rng.uniform(-3, 3, (3, 5)) * _TINY[dtype]
    yield "mixed sizes", _normal(rng, (4, 5)) * np.array([[1e-2], [1.0], [30.0], [1e3]])
    yield "many rows", _normal(rng, (int(rng.integers(130, 200)), 3))
    yield "many features", _normal(rng, (2, int(rng.integers(65, 160)) * 2 + 1))
    yield "long rows of one sign", rng.uniform(1.0, 3.0, (2, 1025))


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Rows of different sizes whose mean is not 0."""
    return rng.normal(0.5, 1.0, shape) * rng.uniform(0.5, 2.0, (shape[0], 1))


def _case(kind: str, x: Array, eps: float, rng: np.random.Generator, dtype: np.dtype[Any]) -> Case:
    n = x.shape[-1]
    signs = rng.permutation(np.resize([1.0, -1.0], n))
    weight = signs * rng.uniform(1.2, 2.5, n) ** rng.choice([-1.0, 1.0], n)
    dy = rng.normal(0.3, 1.0, x.shape)
    return Case(kind, x.astype(dtype), weight.astype(dtype), dy.astype(dtype), eps)
