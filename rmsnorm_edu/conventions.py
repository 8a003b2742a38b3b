"""The dialects of RMSNorm as data: where each library puts ε, where it rounds, what it returns.

`apply` runs one on NumPy arrays. Its arithmetic is float64 for float64 inputs and float32 for all
others, with the sum of squares in float64; a convention says which of its intermediate results
it stores in a narrower type. Outputs in half precision then come out as the library's, up to a
rare last bit; float32 outputs differ by the order of the sum, a few units in the last place.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmsnorm_edu import reference
from rmsnorm_edu._arithmetic import AnyFloat, applied, common_type, computing_type, own_eps
from rmsnorm_edu._dialects import LOOKALIKES, NAMES, Convention
from rmsnorm_edu._inputs import checked_eps, positive, unmasked
from rmsnorm_edu._words import known

__all__ = ["LOOKALIKES", "NAMES", "AnyFloat", "Convention", "apply", "common_type"]
__all__ += ["computing_type", "exact", "exact_vjp", "floats", "get"]

Wide = NDArray[np.float64]
_DTYPES = ("float16", "bfloat16", "float32", "float64")


def apply(
    name: str,
    x: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    eps: float | None = None,
    gate: ArrayLike | None = None,
    group_size: int | None = None,
) -> AnyFloat:
    """Normalise the last axis of x as the implementation `name` of `NAMES` or `LOOKALIKES` does.

    x has shape (..., n), weight (n,); each float16, float32, float64 or ml_dtypes' bfloat16.
    `eps` replaces the convention's own. `gate`, of x's shape, is the second input of a gated
    convention; without it no gate is applied. `group_size`: each group of so many features has an
    RMS of its own. Returns an array of x's shape, of the type that the convention says; a row has
    the same bits in any batch and in any memory layout. What overflows or is undefined there does
    so here: inf and nan come out without a warning. float64 is computed in float64, also where a
    library goes to float32. Raises TypeError for other types and for masked values, ValueError
    for an unknown name, another shape, a gate that the convention does not have, a group size
    that does not divide n, or an eps that is negative or not finite.

    >>> tiny = [1e-5, 1e-5]
    >>> [round(float(apply(name, tiny)[0]), 5) for name in ("paper_torch", "paper_theano")]
    [0.999, 0.00316]
    """
    c = _any(name)
    x, w = _checked(x, weight)
    gate = _checked_gate(c, name, x, gate)
    size = _checked_group(x, group_size)
    with np.errstate(all="ignore"):
        return applied(c, x, w, c.eps if eps is None else checked_eps(eps), gate, size)


def exact(
    name: str, x: ArrayLike, weight: ArrayLike | None = None, *, eps: float | None = None
) -> Wide:
    """The formula of the convention `name` without its roundings, for rows of any size.

    Takes what `apply` takes, without gate and groups, and computes in float64; for most it is
    `reference.rms_norm` with eps in its place. Without `eps` it is the convention's own, for the
    type of x. Raises as `apply` does.

    >>> float(exact("x_transformers", [3.0, 4.0], [2.0, 1.0])[0]) / 2**0.5
    1.2
    """
    c = _any(name)
    x, w = _checked(x, weight)
    eps = own_eps(c, x.dtype) if eps is None else checked_eps(eps)
    x = x.astype(np.float64)
    gain = None if w is None else c.gain_offset + w.astype(np.float64)
    if not (c.eps_floor or c.about_mean):
        return reference.rms_norm(x, gain, eps=eps, eps_outside=c.eps_outside)
    with np.errstate(all="ignore"):
        xhat = _floored(x, eps) if c.eps_floor else _over_std(x, eps)
        return xhat if gain is None else xhat * gain


def exact_vjp(
    name: str, dy: ArrayLike, x: ArrayLike, weight: ArrayLike, *, eps: float | None = None
) -> tuple[Wide, Wide]:
    """(dx, dweight) of `exact(name, x, weight)` for the upstream gradient dy, of x's shape.

    dx as x, dweight (n,), summed over the rows. Raises as `exact` does, and ValueError for a
    lookalike, whose derivative is not here.

    >>> dx, _ = exact_vjp("torch", [1.0, 0.0], [3.0, 4.0], [2.0, 1.0], eps=0.0)
    >>> bool(abs(dx @ [3.0, 4.0]) < 1e-15)
    True
    """
    c = get(name)
    x, w = _checked(x, weight)
    if w is None:
        raise ValueError(f"exact_vjp needs a weight: give one, ({x.shape[-1]},)")
    eps = own_eps(c, x.dtype) if eps is None else checked_eps(eps)
    x, dy = x.astype(np.float64), floats(dy, "dy").astype(np.float64)
    gain = c.gain_offset + w.astype(np.float64)
    floor = 0.0 if c.eps_floor else eps
    dx, _ = reference.rms_norm_vjp(dy, x, gain, eps=floor, eps_outside=c.eps_outside)
    if c.eps_floor:
        linear = dy * gain * (x.shape[-1] ** 0.5 / (eps or 1.0))
        dx = np.where(_below(x, eps), linear, dx)
    dweight = np.sum(dy * exact(name, x, eps=eps), axis=tuple(range(x.ndim - 1)))
    return dx, np.asarray(dweight)


def get(name: str) -> Convention:
    """The convention `name` of `NAMES`; ValueError, with all names, for any other.

    The lookalikes are not among them: no bound on the error of RMSNorm holds for those.
    """
    return known(name, NAMES, "convention")


def floats(a: ArrayLike, name: str) -> AnyFloat:
    """`a` in C order and the machine's byte order; TypeError if it is of no type above.

    So a row's sum has one order, and a type is the same whatever its bytes' order.
    """
    a = unmasked(a, name)
    if a.dtype.name not in _DTYPES:
        raise TypeError(f"{name} has dtype {a.dtype}; give one of {', '.join(_DTYPES)}")
    return np.asarray(a, dtype=a.dtype.newbyteorder("="), order="C")


def _any(name: str) -> Convention:
    return get(name) if name not in [*LOOKALIKES] else LOOKALIKES[name]


def _checked(x: ArrayLike, weight: ArrayLike | None) -> tuple[AnyFloat, AnyFloat | None]:
    x = floats(x, "x")
    w = None if weight is None else floats(weight, "weight")
    if x.ndim == 0 or x.shape[-1] == 0 or (w is not None and w.shape != x.shape[-1:]):
        raise ValueError(
            f"x has shape {x.shape}, weight {None if w is None else w.shape}: "
            "give x (..., n) with n >= 1, and weight (n,)"
        )
    return x, w


def _checked_gate(c: Convention, name: str, x: AnyFloat, gate: ArrayLike | None) -> AnyFloat | None:
    if gate is None:
        return None
    if c.gate is None:
        gated = ", ".join(n for n, other in NAMES.items() if other.gate)
        raise ValueError(f"{name} has no gate; those that have one are {gated}")
    gate = floats(gate, "gate")
    if gate.shape != x.shape:
        raise ValueError(f"gate has shape {gate.shape}, x {x.shape}; give gate the shape of x")
    return gate


def _checked_group(x: AnyFloat, size: int | None) -> int:
    n = x.shape[-1]
    size = n if size is None else positive(size, "group_size")
    if n % size:
        raise ValueError(f"group_size = {size} does not divide the {n} features of x")
    return size


def _below(x: Wide, eps: float) -> NDArray[np.bool_]:
    """Whether ‖x‖ is below the floor ε, for each row, (..., 1)."""
    return np.asarray(x.shape[-1] ** 0.5 * reference.rms(x)[..., np.newaxis] < eps)


def _floored(x: Wide, eps: float) -> Wide:
    """x·√n / max(‖x‖, eps)."""
    linear = x * (x.shape[-1] ** 0.5 / (eps or 1.0))
    return np.where(_below(x, eps), linear, reference.rms_norm(x, eps=0.0))


def _over_std(x: Wide, eps: float) -> Wide:
    """x / sqrt(var(x) + eps)."""
    std = reference.rms(x - np.mean(x, axis=-1, keepdims=True))[..., np.newaxis]
    return np.asarray(x / np.hypot(std, np.sqrt(eps)))
