"""The inputs on which an implementation of RMSNorm shows what it does."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
EPS = (1e-6, 1e-5, 1e-3, 0.1)
# rows that big and that small stay inside the type when they are squared, and rstd³ does, too
_HUGE = {"float16": 2e4, "bfloat16": 1e9, "float32": 1e9, "float64": 1e60}
_TINY = {"float16": 1e-4, "bfloat16": 1e-12, "float32": 1e-12, "float64": 1e-60}
_PLAIN = {"one feature": (3, 1), "one row": (1, 7), "square": (5, 5), "no columns alike": (4, 6)}


_SMALL = {"float16": 2e-3}  # with eps = 0; 1/RMS stays far inside the type
_WIDE = ("huge", "tiny", "mixed", "near", "small", "long", "thousands")


@dataclass(frozen=True)
class Case:
    """One input: x and dy (rows, n), weight (n,), of one type; `kind` says what is special.

    `strided`: x and dy do not lie row after row without gaps, which an implementation may refuse.
    """

    kind: str
    x: Array
    weight: Array
    dy: Array
    eps: float
    strided: bool = False

    @property
    def residual(self) -> Array:
        """What is added to x in the fused norm: x turned round, and smaller."""
        share = 1 / 16 if self.kind.startswith("huge") else 0.6  # so that no sum overflows
        return _turned(self.x, share)

    @property
    def dresidual(self) -> Array:
        """What comes back for the sum of x and the residual."""
        return _turned(self.dy, 0.7)

    def arguments(self, function: str) -> tuple[Any, ...]:
        """The arguments of `function`, one of forward, vjp, add and add_vjp."""
        fused = function in ("add", "add_vjp")
        x = (self.x, self.residual) if fused else (self.x,)
        gradients = {"vjp": (self.dy,), "add_vjp": (self.dy, self.dresidual)}
        return (*gradients.get(function, ()), *x, self.weight, self.eps)


def cases(seed: int, dtype: np.dtype[Any], *, narrow: bool = False) -> Iterator[Case]:
    """Every kind of input once, small ones first; the weight has both signs and is never 1.

    `narrow`: for conventions that store more than x̂ in float16, where squares of large numbers
    overflow and ε vanishes: rows of size 1 and ε = 1/8 alone.
    """
    rng = np.random.default_rng(seed)
    for kind, x in _rows(rng, dtype.name):
        if narrow and kind.split()[0] in _WIDE:
            continue
        eps = 0.125 if narrow else float(rng.choice(EPS))
        if kind.startswith("near"):
            x = x * np.sqrt(eps)
        case = _case(kind, x, 0.0 if "eps = 0" in kind else eps, rng, dtype)
        yield _CHANGED.get(kind, _as_it_is)(case)


def long_cases(dtype: np.dtype[Any], *, narrow: bool = False) -> Iterator[Case]:
    """Long inputs, enough once: more rows than a block, more features than one.

    The last features and the last dy are the largest, so that to leave out any is to be far off.
    """
    rng = np.random.default_rng(0)
    case = _case("thousands of rows", _normal(rng, (2_051, 2)), 0.125, rng, dtype)
    case.dy[-3:] *= dtype.type(30)
    yield case
    x = _normal(rng, (1, 8197))
    x[:, -5:] *= 30.0
    size, eps = (0.25, 0.125) if narrow else (1.0, 1e-5)
    yield _case("thousands of features", x * size, eps, rng, dtype)


def miscounted(n: int, dtype: np.dtype[Any]) -> Case:
    """n features that grow, so that one too many or too few in the mean of squares shows."""
    rng = np.random.default_rng(0)
    x = np.linspace(0.1, 3.0, n) * rng.uniform(0.9, 1.1, (2, n))
    return _case("a share that floats miscount", x, 0.125, rng, dtype)


def _rows(rng: np.random.Generator, dtype: str) -> Iterator[tuple[str, Array]]:
    for kind, shape in _PLAIN.items():
        yield kind, _normal(rng, shape)
    yield "constant rows", rng.uniform(0.5, 4.0, (3, 1)) * np.ones((3, 4))
    with_zeros = _normal(rng, (3, 8))
    with_zeros[1] = 0.0
    yield "a row of zeros", with_zeros
    for kind in _CHANGED:
        yield kind, _normal(rng, (3, 4))
    yield "near the root of eps", _normal(rng, (5, 6)) * np.logspace(-1, 1, 5)[:, np.newaxis]
    yield "a large mean", _normal(rng, (3, 9)) + 10.0
    sizes = np.array([[1.0], [0.1], [_SMALL.get(dtype, 1e-5)]])
    yield "small numbers and eps = 0", rng.uniform(1.0, 3.0, (3, 5)) * sizes
    yield "huge numbers", rng.uniform(-3, 3, (3, 5)) * _HUGE[dtype]
    yield "tiny numbers", rng.uniform(-3, 3, (3, 5)) * _TINY[dtype]
    yield "mixed sizes", _normal(rng, (4, 5)) * np.array([[1e-2], [1.0], [30.0], [1e3]])
    yield "many rows", _normal(rng, (int(rng.integers(300, 600)), 3))
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


def _turned(a: Array, share: float) -> Array:
    turned: Array = (np.flip(a, -1).astype(np.float64) * share).astype(a.dtype)
    return turned


def _as_it_is(case: Case) -> Case:
    return case


def _zero_weight(case: Case) -> Case:
    weight = case.weight.copy()
    weight[1] = 0
    return replace(case, weight=weight)


def _by_columns(case: Case) -> Case:
    x, dy = np.asfortranarray(case.x), np.asfortranarray(case.dy)
    return replace(case, x=x, dy=dy, strided=True)


def _with_gaps(case: Case) -> Case:
    x, weight, dy = (np.repeat(a, 2, axis=-1)[..., ::2] for a in (case.x, case.weight, case.dy))
    return replace(case, x=x, weight=weight, dy=dy, strided=True)


_CHANGED = {
    "a weight of 0": _zero_weight,
    "arrays stored by columns": _by_columns,
    "arrays with gaps in memory": _with_gaps,
}
