"""The dialects of RMSNorm as data: where each library puts ε, where it rounds, what it returns.

`apply` runs one on NumPy arrays. Its arithmetic is float64 for float64 inputs and float32 for all
others, with the sum of squares in float64; a convention says which of its intermediate results
it stores in a narrower type. Outputs in half precision then come out as the library's, up to a
rare last bit; float32 outputs differ by the order of the sum, a few units in the last place.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from rmsnorm_edu._inputs import checked_eps
from rmsnorm_edu._words import known

AnyFloat = NDArray[Any]  # float16, float32, float64, or bfloat16 of ml_dtypes
_DTYPES = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class Convention:
    """What one implementation computes: y = x / D · (gain_offset + weight), in which roundings.

    `eps` is the default, None for finfo of the computing type; D = sqrt(mean(x²) + eps), with
    `eps_outside` D = ‖x‖·n^-½ + eps. `rounds` names the intermediate results that are stored in
    x's type: "square", then "mean", "eps" and "sum" (under the root), or "norm", "rms" and
    "divisor" with eps outside; "rstd" (1/D); "xhat". `divides`: x / D, otherwise x · (1/D).
    `gain_first`: (weight · x) · (1/D). `output` is "x", x's type, or "promoted", the common type
    of x and weight. `k_rounding` is the `rounding` of `reference.partial_size`, None where no
    part can be chosen. `source` names file and version; `evidence` says whether that was
    "executed" or "read".
    """

    eps: float | None
    source: str
    evidence: str = "executed"
    eps_outside: bool = False
    divides: bool = False
    rounds: tuple[str, ...] = ()
    gain_offset: float = 0.0
    gain_first: bool = False
    output: str = "promoted"
    k_rounding: str | None = None


_PAPER = "bzhangGo/rmsnorm at 2e726f1, "
NAMES: Mapping[str, Convention] = MappingProxyType(
    {
        "paper_torch": Convention(
            eps=1e-8,
            eps_outside=True,
            divides=True,
            rounds=("norm", "rms", "divisor", "xhat"),
            k_rounding="floor",
            source=_PAPER + "rmsnorm_torch.py",
        ),
        "paper_tensorflow": Convention(
            eps=1e-8,
            gain_first=True,
            rounds=("square", "mean", "eps", "sum", "rstd"),
            k_rounding="floor",
            source=_PAPER + "rmsnorm_tensorflow.py",
        ),
        "paper_theano": Convention(
            eps=1e-5,
            divides=True,
            source=_PAPER + "layers.py, rln (float32 and float64 only)",
        ),
        "paper_lasagne": Convention(
            eps=1e-6,
            divides=True,
            source=_PAPER + "README.md, RMSNormLayer of rows (float32 and float64 only)",
        ),
        "torch": Convention(
            eps=None,
            output="x",
            source="torch 2.13.0, torch.nn.functional.rms_norm on a CPU",
        ),
    }
)


def apply(
    name: str, x: ArrayLike, weight: ArrayLike | None = None, *, eps: float | None = None
) -> AnyFloat:
    """Normalise the last axis of x as the implementation `name` of `NAMES` does.

    x has shape (..., n), weight (n,); each float16, float32, float64 or ml_dtypes' bfloat16.
    `eps` replaces the convention's own. Returns an array of x's shape, of the type that the
    convention says; a row has the same bits in any batch and in any memory layout. What
    overflows or is undefined there does so here: inf and nan come out without a warning. Raises
    TypeError for other types and for masked values, ValueError for an unknown name, another
    shape, or an eps that is negative or not finite.

    >>> tiny = [1e-5, 1e-5]
    >>> [round(float(apply(name, tiny)[0]), 5) for name in ("paper_torch", "paper_theano")]
    [0.999, 0.00316]
    """
    convention = get(name)
    x = floats(x, "x")
    w = None if weight is None else floats(weight, "weight")
    if x.ndim == 0 or x.shape[-1] == 0 or (w is not None and w.shape != x.shape[-1:]):
        raise ValueError(
            f"x has shape {x.shape}, weight {None if w is None else w.shape}: "
            "give x (..., n) with n >= 1, and weight (n,)"
        )
    with np.errstate(all="ignore"):
        return _applied(convention, x, w, convention.eps if eps is None else checked_eps(eps))


def get(name: str) -> Convention:
    """The convention `name`; ValueError for an unknown one, with the names that there are."""
    return known(name, NAMES, "convention")


def computing_type(dtype: DTypeLike) -> np.dtype[np.floating]:
    """The type that a row of `dtype` is computed in: float64 for float64, otherwise float32."""
    return np.dtype(np.float64 if np.dtype(dtype) == np.float64 else np.float32)


def common_type(a: DTypeLike, b: DTypeLike) -> np.dtype[Any]:
    """The type that two float types promote to, the wider; float32 for float16 and bfloat16."""
    a, b = np.dtype(a), np.dtype(b)
    if a == b or a.itemsize > b.itemsize:
        return a
    return b if a.itemsize < b.itemsize else np.dtype(np.float32)


def floats(a: ArrayLike, name: str) -> AnyFloat:
    """`a` in C order, so that a row's sum has one order; TypeError if it is of no type above."""
    if np.ma.is_masked(a):  # asarray would bring the hidden values back
        raise TypeError(f"{name} has masked values; fill them first, {name}.filled(...)")
    a = np.asarray(a, order="C")
    if a.dtype.name not in _DTYPES:
        raise TypeError(f"{name} has dtype {a.dtype}; give one of {', '.join(_DTYPES)}")
    return a


def _applied(c: Convention, x: AnyFloat, w: AnyFloat | None, eps: float | None) -> AnyFloat:
    wide = computing_type(x.dtype)
    divisor = _divisor(c, x, wide.type(np.finfo(wide).eps if eps is None else eps))
    if w is None:
        return _quotient(c, x.astype(wide), divisor, x.dtype).astype(x.dtype)
    gain = w if c.gain_offset == 0 else c.gain_offset + w.astype(computing_type(w.dtype))
    if c.gain_first:
        y = _quotient(c, _product(x, gain), divisor, x.dtype)
    else:
        y = _product(_quotient(c, x.astype(wide), divisor, x.dtype), gain)
    return y.astype(x.dtype if c.output == "x" else common_type(x.dtype, w.dtype))


def _divisor(c: Convention, x: AnyFloat, eps: np.floating) -> AnyFloat:
    """D of each row, (..., 1), in the type of eps, which is the computing one."""

    def kept(place: str, value: AnyFloat | np.floating) -> AnyFloat:
        value = np.asarray(value)
        return value.astype(x.dtype if place in c.rounds else eps.dtype).astype(eps.dtype)

    n = x.shape[-1]
    squares = kept("square", np.square(x.astype(eps.dtype)))
    total = np.sum(squares, axis=-1, keepdims=True, dtype=np.float64)
    if c.eps_outside:
        rms = kept("rms", kept("norm", np.sqrt(total)) * eps.dtype.type(n**-0.5))
        return kept("divisor", rms + eps)
    return np.sqrt(kept("sum", kept("mean", total / n) + kept("eps", eps)))


def _quotient(c: Convention, a: AnyFloat, divisor: AnyFloat, narrow: np.dtype[Any]) -> AnyFloat:
    """a / D in a's type, or in `narrow` where the convention stores it so."""
    if c.divides:
        xhat = a / divisor
    else:
        rstd = np.asarray(1 / divisor)
        xhat = a * (rstd.astype(narrow) if "rstd" in c.rounds else rstd).astype(rstd.dtype)
    return xhat.astype(narrow if "xhat" in c.rounds else a.dtype)


def _product(a: AnyFloat, gain: AnyFloat) -> AnyFloat:
    """a · gain in their common type, rounded once."""
    common = common_type(a.dtype, gain.dtype)
    wide = computing_type(common)
    return (a.astype(wide) * gain.astype(wide)).astype(common)
