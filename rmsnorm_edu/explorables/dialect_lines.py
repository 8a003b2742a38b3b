"""A convention's arithmetic as four or five short lines, for a type of x and one of the weight."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rmsnorm_edu._arithmetic import (
    cast_first,
    common_type,
    gain_of,
    output_type,
    own_eps,
    xhat_type,
)
from rmsnorm_edu._dialects import Convention
from rmsnorm_edu._rounding import numpy_type
from rmsnorm_edu.conventions import AnyFloat

ROLES = ("cast", "size", "divisor", "xhat", "return")  # the order of the lines
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SUMS = {"float32": "", "float32 in sequence": ", one by one", "float64": ", in float64"}


def lines(c: Convention, dtype: DTypeLike, weight: DTypeLike) -> dict[str, str]:
    """What the record computes, by the role of the line, for x and weight of these types.

    "a → float16" stores a in that type; what is not stored so is kept in float32. n is the number
    of features, m the mean square, N = ‖x‖, D the divisor, x̂ = x / D. Two conventions with the
    same lines return the same bits. The types are not float64; a gate is left out.
    """
    x, w = _types(c, dtype, weight)
    pairs = [("x", numpy_type(dtype), x.dtype), ("w", numpy_type(weight), w.dtype)]
    cast = ", ".join(f"{name} → {new.name}" for name, old, new in pairs if new != old)
    found = {"cast": cast} | _divisor(c, x.dtype) | _products(c, x.dtype, w)
    return {role: found[role] for role in ROLES if found.get(role)}


def says(c: Convention, dtype: DTypeLike, weight: DTypeLike) -> list[str]:
    """What the record does unlike others, in words that follow the name of the library."""
    x, w = _types(c, dtype, weight)
    narrow, stored = x.dtype.name, xhat_type(c, x.dtype, w)
    half = {place for place in c.rounds if x.itemsize == 2}
    texts = {
        f"stores x² and what follows in {narrow}": "square" in half,
        f"stores ‖x‖ and D in {narrow}": "divisor" in half,
        f"stores ‖x‖ and x/‖x‖ in {narrow}": "unit" in half,
        f"rounds x̂ to {stored.name} before it multiplies": stored.itemsize == 2,
        "adds up the squares one after the other": c.sums == "float32 in sequence",
        "divides by D where others multiply by 1/D": c.divides,
        "multiplies x by w first": c.gain_first,
        "multiplies w by 1/D first": c.gain_with_rstd,
        f"rounds w to {narrow} first": w.dtype != numpy_type(weight) and w.itemsize == 2,
    }
    return [text for text, does in texts.items() if does]


def epsilon(value: float) -> str:
    """1e-06 as 10⁻⁶, 1.19e-07 as 1.19 × 10⁻⁷; its spaces do not break.

    >>> epsilon(1e-6)
    '10⁻⁶'
    """
    mantissa, exponent = f"{value:.2e}".split("e")
    power = f"10{str(int(exponent)).translate(_RAISED)}"
    return power if float(mantissa) == 1 else f"{mantissa}\u00a0×\u00a0{power}"


def _types(c: Convention, dtype: DTypeLike, weight: DTypeLike) -> tuple[AnyFloat, AnyFloat]:
    """x and weight as they are after the first line, if it converts them."""
    x, w = cast_first(c, np.ones(1, numpy_type(dtype)), np.ones(1, numpy_type(weight)))
    assert w is not None
    return x, w


def _to(kind: np.dtype[Any]) -> str:
    """An arrow to the type, none to the one in which all is computed."""
    return "" if kind == np.float32 else f" → {kind.name}"


def _divisor(c: Convention, narrow: np.dtype[Any]) -> dict[str, str]:
    """The lines for D, with an arrow at each result that is stored in x's type."""

    def kept(place: str, text: str) -> str:
        return text + (_to(narrow) if place in c.rounds else "")

    def inner(place: str, text: str) -> str:
        return text if kept(place, text) == text else f"({kept(place, text)})"

    eps = inner("eps", epsilon(own_eps(c, narrow)))
    if c.eps_outside:
        size = kept("norm", "N = √(Σx²)")
        outside = kept("divisor", f"D = {inner('rms', 'N/√n')} + {eps}")
        divisor = f"D = max(N, {eps})" if c.eps_floor else outside
    else:
        square = kept("square", "x²")
        total = inner("total", f"Σ({square})")
        mean = f"{total} / n" if "total" in c.rounds else f"mean({square})"
        size = kept("mean", f"m = {mean}")
        divisor = f"D = √({kept('sum', f'm + {eps}')})"
    return {"size": size + _SUMS[c.sums], "divisor": divisor}


def _products(c: Convention, narrow: np.dtype[Any], w: AnyFloat) -> dict[str, str]:
    """The lines from D to the result."""
    out = output_type(c, narrow, w)
    kind = gain_of(c, w).dtype
    gain = f"(1 + w{_to(kind)})" if c.gain_offset else "w"
    rstd = f"(1/D{_to(narrow)})" if "rstd" in c.rounds else "(1/D)"
    if c.gain_first:
        kind = common_type(narrow, kind)
        product = f"a = x · {gain}{_to(kind)}"
        return {"xhat": product, "return": _returned(f"a · {rstd}", kind, out)}
    if c.gain_with_rstd:
        last = _returned("x · s", np.dtype(np.float32), out)
        return {"xhat": f"s = {gain} · (1/D)", "return": last}
    stored = xhat_type(c, narrow, w)
    quotient = "x / D" if c.divides else f"x · {rstd}"
    if c.eps_floor:
        quotient = f"(x/D{_to(narrow) if 'unit' in c.rounds else ''}) · √n"
    last = _returned(f"x̂ · {gain}", common_type(stored, kind), out)
    return {"xhat": f"x̂ = {quotient}{_to(stored)}", "return": last}


def _returned(product: str, kind: np.dtype[Any], out: np.dtype[Any]) -> str:
    """The last line: float32 goes to the output's type, a half product is rounded before that."""
    first = f"({product}{_to(kind)})" if _to(kind) and kind != out else product
    return f"return {first} → {out.name}"
