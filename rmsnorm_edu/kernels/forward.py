"""y = x · rstd · gain + bias in Triton, rstd = 1/√(mean(x²) + eps): the rungs, and their host.

Every kernel reads rows of d columns, row r and column c at x_ptr + r · x_row + c · x_col (steps in
elements), and writes y without gaps, and rstd (rows,) for the backward. It computes in the type
of rstd: float32, or float64 where an input is.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rmsnorm_edu._words import known
from rmsnorm_edu.kernels import _choice
from rmsnorm_edu.kernels._choice import Flags, Launch
from rmsnorm_edu.kernels._runtime import checked_device, launch, tl, triton

Vector = Tensor | None


# v1, one row, one program
# - changed: the five operations of NumPy are one kernel; a row stays in registers between them
# - buys: x is read once and y written once, 2·d·s bytes a row instead of nine passes
# - costs: a block must cover the whole row, so a long row runs out of registers
# - costs: a row of 64 columns leaves most lanes of the program idle
@triton.jit
def one_row(
    x_ptr,
    w_ptr,
    b_ptr,
    y_ptr,
    rstd_ptr,
    x_row,
    x_col,
    rows,
    d,
    eps: tl.constexpr,  # a constant, so that it is exact in float64 too
    HAS_WEIGHT: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    CASTING: tl.constexpr,
    WEIGHT_OFFSET: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program normalises one row of at most BLOCK columns."""
    wide: tl.constexpr = rstd_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)  # row · x_row may pass 2³¹
    columns = tl.arange(0, BLOCK)
    inside = columns < d
    x = tl.load(x_ptr + row * x_row + columns * x_col, mask=inside, other=0.0).to(wide)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / d + eps)
    y = x * rstd
    if CASTING == 1:
        y = y.to(x_ptr.dtype.element_ty).to(wide)
    if HAS_WEIGHT:
        y *= tl.load(w_ptr + columns, mask=inside, other=0.0).to(wide) + WEIGHT_OFFSET
    if HAS_BIAS:
        y += tl.load(b_ptr + columns, mask=inside, other=0.0).to(wide)
    tl.store(y_ptr + row * d + columns, y.to(y_ptr.dtype.element_ty), mask=inside)
    tl.store(rstd_ptr + row, rstd)


RUNGS: dict[str, Any] = {"one_row": one_row}


def forward(
    x: Tensor,
    weight: Vector = None,
    bias: Vector = None,
    eps: float = 1e-6,
    casting: str = "torch",
    weight_offset: float = 0.0,
    *,
    rung: str | None = None,
) -> tuple[Tensor, Tensor]:
    """(y, rstd) of x (rows, d) in any strides; weight and bias (d,); y (rows, d), rstd (rows,).

    Statistics and products are float32, or float64 where an input is; so is rstd. "torch" and
    "gemma" round once, to x's type; "llama" rounds x·rstd to x's type and returns the common type
    of x and weight. The gain is weight_offset + weight. `rung` names a rung of `RUNGS`; None
    takes the table's, by d, types and flags. Raises ValueError for an unknown word.
    """
    checked_device(x)
    rows, d = x.shape
    flags = Flags(weight is not None, bias is not None, casting, weight_offset)
    plan = chosen(d, x.dtype, flags, rung)
    y = torch.empty(rows, d, dtype=output_type(x, weight, casting), device=x.device)
    rstd = torch.empty(rows, dtype=computing_type(x, weight, bias), device=x.device)
    grid = (triton.cdiv(rows, plan.constants.get("ROWS", 1)),)
    vectors = [x if v is None else v.contiguous() for v in (weight, bias)]
    launch(
        RUNGS[plan.kernel], grid, x, *vectors, y, rstd, *x.stride(), rows, d, eps,
        **flags.constants(), **plan.options(),
    )  # fmt: skip
    return y, rstd


def chosen(d: int, dtype: torch.dtype, flags: Flags, rung: str | None = None) -> Launch:
    """The table's entry for rows of d columns of `dtype`, or that of the rung of this name."""
    name = "one_row" if rung is None else rung
    return known(name, _ENTRIES, "rung")(d, dtype)


def computing_type(*tensors: Vector) -> torch.dtype:
    """float64 where a tensor is float64, else float32."""
    wide = any(t is not None and t.dtype == torch.float64 for t in tensors)
    return torch.float64 if wide else torch.float32


def output_type(x: Tensor, weight: Vector, casting: str) -> torch.dtype:
    """x's type; with a weight and "llama" the common type of both."""
    if weight is None or casting != "llama":
        return x.dtype
    return torch.promote_types(x.dtype, weight.dtype)


def _one_row(d: int, dtype: torch.dtype) -> Launch:
    block = _choice.next_power_of_2(d)
    return Launch("one_row", {"BLOCK": block}, num_warps=_choice.warps(block, dtype))


_ENTRIES: dict[str, Callable[[int, torch.dtype], Launch]] = {"one_row": _one_row}
