"""The passes of each operation over memory, as data: what it reads and what it writes.

A fused operation is one pass. Its `_unfused` twin is what PyTorch runs when no kernel fuses it:
every elementary operation reads its arrays from memory and writes its result there, the
backward as automatic differentiation derives it from the forward (torch 2.13; tests/test_cost.py
counts the operations of torch). A pass that begins with "cast" exists for 16-bit types only.
"""

from typing import NamedTuple

BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}

# Everything else is wide: it holds numbers of the computing type, at least 4 bytes.
OWN_TYPE = {"x", "residual", "new_residual", "y", "dy", "dresidual", "dx", "dx of the norm"}
OWN_TYPE |= {"weight", "bias", "dweight", "dbias"}
# Everything else has rows × n numbers.
PER_FEATURE = {"weight", "bias", "dweight", "dbias", "wide dweight", "wide dbias"}
PER_ROW = {"rstd", "mean", "mean square", "variance", "shifted", "dot", "cube", "half", "factor"}
PER_ROW |= {"total"}

_FORWARD = """
cast x: x -> wide x
square: wide x -> squares
mean: squares -> mean square
add eps: mean square -> shifted
root: shifted -> rstd
normalise: wide x, rstd -> normalised
scale: normalised, weight -> wide y
cast y: wide y -> y
"""

# d(x·rstd·w): dweight and the direct way first, then the way through rstd, whose derivative by
# the mean is −½ rstd³ and whose mean is shared out over the row as 2x/n.
_BACKWARD = """
cast dy: dy -> wide dy
dy · normalised: wide dy, normalised -> products
sum over rows: products -> wide dweight
cast dweight: wide dweight -> dweight
dy · weight: wide dy, weight -> u
u · x: u, wide x -> ux
u · rstd: u, rstd -> direct
sum over features: ux -> dot
cube: rstd -> cube
times −½: cube -> half
dot · half: dot, half -> factor
share over n: factor -> shared
power 1: wide x -> copy
times 2: copy -> doubled
shared · doubled: shared, doubled -> through the mean
add both ways: direct, through the mean -> wide dx
cast dx: wide dx -> dx
"""

_LAYER_NORM = """
cast x: x -> wide x
mean: wide x -> mean
subtract: wide x, mean -> centred
square: centred -> squares
mean of squares: squares -> variance
add eps: variance -> shifted
root: shifted -> rstd
normalise: centred, rstd -> normalised
scale: normalised, weight -> scaled
add bias: scaled, bias -> wide y
cast y: wide y -> y
"""

_LAYER_NORM_BACKWARD = """
cast dy: dy -> wide dy
sum dy over rows: wide dy -> wide dbias
cast dbias: wide dbias -> dbias
dy · normalised: wide dy, normalised -> products
sum over rows: products -> wide dweight
cast dweight: wide dweight -> dweight
dy · weight: wide dy, weight -> u
u · centred: u, centred -> uc
u · rstd: u, rstd -> direct
sum over features: uc -> dot
cube: rstd -> cube
times −½: cube -> half
dot · half: dot, half -> factor
share over n: factor -> shared
power 1: centred -> copy
times 2: copy -> doubled
shared · doubled: shared, doubled -> through the variance
add both ways: direct, through the variance -> dcentred
negate: dcentred -> negative
sum for the mean: negative -> total
share the mean: total -> spread
add the mean: dcentred, spread -> wide dx
cast dx: wide dx -> dx
"""

_NORM = "norm: x, weight -> y, rstd"
_NORM_BACK = "norm: dy, x, weight, rstd -> dx, dweight"
_ADD = "add: x, residual -> new_residual"
_ADD_BACK = "add: dx of the norm, dresidual -> dx"

_TEXT = {
    "forward": _NORM,
    "backward": _NORM_BACK,
    "add_forward": "norm: x, residual, weight -> new_residual, y, rstd",
    "add_backward": "norm: dy, dresidual, new_residual, weight, rstd -> dx, dweight",
    "forward_unfused": _FORWARD,
    "backward_unfused": _BACKWARD,
    "add_then_forward": f"{_ADD}\nnorm: new_residual, weight -> y, rstd",
    "add_then_backward": "norm: dy, new_residual, weight, rstd -> dx of the norm, dweight\n"
    + _ADD_BACK,
    "add_forward_unfused": f"{_ADD}\n{_FORWARD}".replace(" x -> wide x", " new_residual -> wide x"),
    "add_backward_unfused": _BACKWARD.replace("-> dx\n", "-> dx of the norm\n") + _ADD_BACK,
    "layer_norm_forward": "norm: x, weight, bias -> y, mean, rstd",
    "layer_norm_backward": "norm: dy, x, weight, mean, rstd -> dx, dweight, dbias",
    "layer_norm_forward_unfused": _LAYER_NORM,
    "layer_norm_backward_unfused": _LAYER_NORM_BACKWARD,
}

# How many vectors of partial sums each program of a backward keeps.
PARTIALS = {"backward": 1, "add_backward": 1, "add_then_backward": 1, "layer_norm_backward": 2}

# Arithmetic: (for each element, for each row).
_NORM_FLOPS = (4, 3)  # square, sum, · rstd, · weight; / n, + eps, root
# x̂, dy·w, ·x̂, sum, x̂·mean, difference, ·rstd; dy·x̂, sum over rows; / n
_BACK_FLOPS = (9, 1)
# dy·x̂, sum, dy·w, u·x, u·rstd, sum, / n, power, ·2, product, sum of both; cube, ·−½, product
_AUTOGRAD_FLOPS = (11, 3)
# sum, x − mean, square, sum, · rstd, · weight, + bias; / n twice, + eps, root
_LAYER_FLOPS = (7, 4)
# x − mean, ·rstd, dy·w, sum, ·x̂, sum, x̂·mean, two differences, ·rstd; dy·x̂ and two sums; / n twice
_LAYER_BACK_FLOPS = (13, 2)

# what _AUTOGRAD_FLOPS has, and: sum of dy, negate, sum, / n, sum
_LAYER_AUTOGRAD_FLOPS = (16, 3)


def _plus_add(flops: tuple[int, int]) -> tuple[int, int]:
    return flops[0] + 1, flops[1]


FLOPS = {
    "forward": _NORM_FLOPS,
    "backward": _BACK_FLOPS,
    "add_forward": _plus_add(_NORM_FLOPS),
    "add_backward": _plus_add(_BACK_FLOPS),
    "forward_unfused": _NORM_FLOPS,
    "backward_unfused": _AUTOGRAD_FLOPS,
    "add_then_forward": _plus_add(_NORM_FLOPS),
    "add_then_backward": _plus_add(_BACK_FLOPS),
    "add_forward_unfused": _plus_add(_NORM_FLOPS),
    "add_backward_unfused": _plus_add(_AUTOGRAD_FLOPS),
    "layer_norm_forward": _LAYER_FLOPS,
    "layer_norm_backward": _LAYER_BACK_FLOPS,
    "layer_norm_forward_unfused": _LAYER_FLOPS,
    "layer_norm_backward_unfused": _LAYER_AUTOGRAD_FLOPS,
}


class Pass(NamedTuple):
    """One journey over memory: its name and the arrays that it reads and writes."""

    name: str
    reads: list[str]
    writes: list[str]


def _parsed(text: str) -> list[Pass]:
    """The passes of lines like "scale: normalised, weight -> wide y"."""
    passes = []
    for line in filter(None, text.splitlines()):
        name, arrays = line.split(": ")
        reads, writes = arrays.split(" -> ")
        passes.append(Pass(name, reads.split(", "), writes.split(", ")))
    return passes


PASSES = {name: _parsed(text) for name, text in _TEXT.items()}


def size(array: str, rows: int, n: int, own: int) -> int:
    """Bytes of an array; `own` is the size of one number of the norm's type."""
    numbers = n if array in PER_FEATURE else rows if array in PER_ROW else rows * n
    return numbers * (own if array in OWN_TYPE else max(own, 4))
