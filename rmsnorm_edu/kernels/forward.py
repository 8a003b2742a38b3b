"""y = x · rstd · gain + bias in Triton, rstd = 1/√(mean(x²) + eps): the rungs, and their host.

Every kernel reads rows of d columns, row r and column c at x_ptr + r · x_row + c · x_col (steps in
elements), and writes y without gaps, and rstd (rows,) for the backward. It computes in the type
of rstd: float32, for float64 rows float64. eps is a constant, so that it is exact in float64;
row numbers are int64, because row · x_row may pass 2³¹. How many rows there are is never compiled
in: whatever depends on it could give a row other bits in another batch.
"""

from typing import Any

import torch
from torch import Tensor

from rmsnorm_edu._inputs import checked_eps
from rmsnorm_edu._words import known
from rmsnorm_edu.kernels import _choice
from rmsnorm_edu.kernels._arithmetic import rstd_of
from rmsnorm_edu.kernels._choice import Flags, Launch
from rmsnorm_edu.kernels._inputs import checked_matrix
from rmsnorm_edu.kernels._runtime import launch, processors, tl, triton

Vector = Tensor | None


@triton.jit(do_not_specialize=["rows"])
def one_row(
    x_ptr, w_ptr, b_ptr, y_ptr, rstd_ptr, x_row, x_col, rows, d,
    eps: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr,
    CASTING: tl.constexpr, WEIGHT_OFFSET: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """v1: one row, one program.

    Changed: NumPy's passes are one kernel; the row stays in registers.
    Buys: x is read once, y written once: 2·d·s bytes a row.
    Costs: a long row runs out of registers, a short one idles lanes.
    """
    wide: tl.constexpr = rstd_ptr.dtype.element_ty
    narrow: tl.constexpr = x_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK).to(tl.int64)
    inside = columns < d
    source = x_ptr + row * x_row + columns * x_col
    x = tl.load(source, mask=inside, other=0.0).to(wide)
    rstd = rstd_of(tl.sum(x * x, axis=0), d, eps)
    y = x * rstd
    if CASTING == 1:
        y = y.to(narrow).to(wide)
    if HAS_WEIGHT:
        w = tl.load(w_ptr + columns, mask=inside, other=0.0).to(wide)
        y *= w + WEIGHT_OFFSET
    if HAS_BIAS:
        y += tl.load(b_ptr + columns, mask=inside, other=0.0).to(wide)
    y = y.to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + row * d + columns, y, mask=inside)
    tl.store(rstd_ptr + row, rstd)


@triton.jit(do_not_specialize=["rows"])
def long_row(
    x_ptr, w_ptr, b_ptr, y_ptr, rstd_ptr, x_row, x_col, rows, d,
    eps: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr,
    CASTING: tl.constexpr, WEIGHT_OFFSET: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """v2: a loop along a long row.

    Changed: a block walks along the row, for the sum, then for y.
    Buys: rows of any length, with the registers of one block.
    Costs: x is read twice, 3·d·s bytes a row; a cache may help.
    """
    wide: tl.constexpr = rstd_ptr.dtype.element_ty
    narrow: tl.constexpr = x_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_row
    y_ptr += row * d
    squares = tl.zeros((BLOCK,), wide)  # a sum for each lane
    for start in range(0, d, BLOCK):
        columns = start + tl.arange(0, BLOCK).to(tl.int64)
        source = x_ptr + columns * x_col
        x = tl.load(source, mask=columns < d, other=0.0).to(wide)
        squares += x * x
    rstd = rstd_of(tl.sum(squares, axis=0), d, eps)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, d, BLOCK):
        columns = start + tl.arange(0, BLOCK).to(tl.int64)
        inside, source = columns < d, x_ptr + columns * x_col
        y = tl.load(source, mask=inside, other=0.0).to(wide) * rstd
        if CASTING == 1:
            y = y.to(narrow).to(wide)
        if HAS_WEIGHT:
            w = tl.load(w_ptr + columns, mask=inside, other=0.0).to(wide)
            y *= w + WEIGHT_OFFSET
        if HAS_BIAS:
            y += tl.load(b_ptr + columns, mask=inside, other=0.0).to(wide)
        y = y.to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + columns, y, mask=inside)


@triton.jit(do_not_specialize=["rows"])
def many_rows(
    x_ptr, w_ptr, b_ptr, y_ptr, rstd_ptr, x_row, x_col, rows, d,
    eps: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr,
    CASTING: tl.constexpr, WEIGHT_OFFSET: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """v3: several short rows, one program.

    Changed: the block is a tile of ROWS rows, summed along axis 1.
    Buys: work enough for a program; the weight is read once a tile.
    Costs: a mask for rows, too; a long row has no room for a second.
    """
    wide: tl.constexpr = rstd_ptr.dtype.element_ty
    narrow: tl.constexpr = x_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK).to(tl.int64)
    there, here = row < rows, columns < d
    inside = there[:, None] & here[None, :]
    source = x_ptr + row[:, None] * x_row + columns[None, :] * x_col
    x = tl.load(source, mask=inside, other=0.0).to(wide)
    rstd = rstd_of(tl.sum(x * x, axis=1), d, eps)
    y = x * rstd[:, None]
    if CASTING == 1:
        y = y.to(narrow).to(wide)
    if HAS_WEIGHT:
        w = tl.load(w_ptr + columns, mask=here, other=0.0).to(wide)
        y *= (w + WEIGHT_OFFSET)[None, :]
    if HAS_BIAS:
        b = tl.load(b_ptr + columns, mask=here, other=0.0).to(wide)
        y += b[None, :]
    target = y_ptr + row[:, None] * d + columns[None, :]
    tl.store(target, y.to(y_ptr.dtype.element_ty), mask=inside)
    tl.store(rstd_ptr + row, rstd, mask=there)


@triton.jit(do_not_specialize=["rows"])
def pipelined(
    x_ptr, w_ptr, b_ptr, y_ptr, rstd_ptr, x_row, x_col, rows, d,
    eps: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr,
    CASTING: tl.constexpr, WEIGHT_OFFSET: tl.constexpr,
    STAGES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """v4: a program stays, and asks for its next row early.

    Changed: few programs walk down the rows, STAGES - 1 loads ahead.
    Buys: loads during sum and store; the weight once a program.
    Costs: shared memory for these rows; before sm_80 no load ahead.
    """
    wide: tl.constexpr = rstd_ptr.dtype.element_ty
    narrow: tl.constexpr = x_ptr.dtype.element_ty
    columns = tl.arange(0, BLOCK).to(tl.int64)
    inside = columns < d
    if HAS_WEIGHT:
        w = tl.load(w_ptr + columns, mask=inside, other=0.0).to(wide)
        w += WEIGHT_OFFSET
    if HAS_BIAS:
        b = tl.load(b_ptr + columns, mask=inside, other=0.0).to(wide)
    first = tl.program_id(0).to(tl.int64)
    step = tl.num_programs(0)
    for row in tl.range(first, rows, step, num_stages=STAGES):
        source = x_ptr + row * x_row + columns * x_col
        x = tl.load(source, mask=inside, other=0.0).to(wide)
        rstd = rstd_of(tl.sum(x * x, axis=0), d, eps)
        y = x * rstd
        if CASTING == 1:
            y = y.to(narrow).to(wide)
        if HAS_WEIGHT:
            y *= w
        if HAS_BIAS:
            y += b
        y = y.to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + row * d + columns, y, mask=inside)
        tl.store(rstd_ptr + row, rstd)


RUNGS: dict[str, Any] = {
    "one_row": one_row,
    "long_row": long_row,
    "many_rows": many_rows,
    "pipelined": pipelined,
}


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

    Statistics and products are float32, for float64 rows float64; so is rstd. "torch" and
    "gemma" round once, to x's type; "llama" rounds x · rstd to x's type and returns the common
    type of x and weight. The gain is weight_offset + weight. `rung` is a name in `RUNGS`; None
    takes the table's, by d, types and flags. Raises ValueError for an unknown word, for a rung
    whose block cannot hold d columns, and for other shapes and eps, TypeError for other types.
    """
    checked_matrix(x, {}, {"weight": weight, "bias": bias})
    flags = Flags(weight is not None, bias is not None, casting, weight_offset)
    plan = chosen(x.shape[1], x.dtype, flags, rung)
    return run(plan, flags, x, weight, bias, checked_eps(eps))


def run(
    plan: Launch, flags: Flags, x: Tensor, weight: Vector, bias: Vector, eps: float
) -> tuple[Tensor, Tensor]:
    """`forward` as `plan` says."""
    rows, d = x.shape
    y = torch.empty(rows, d, dtype=output_type(x, weight, flags.casting), device=x.device)
    rstd = torch.empty(rows, dtype=computing_type(x), device=x.device)
    w, b = (x if v is None else v.contiguous() for v in (weight, bias))
    x_row = x.stride(0) if rows > 1 else d  # the step beyond an only row may be anything
    arguments = (x, w, b, y, rstd, x_row, x.stride(1), rows, d, eps)
    options: dict[str, Any] = flags.constants() | plan.options()
    launch(RUNGS[plan.kernel], _grid(plan, rows, x), *arguments, **options)
    return y, rstd


def chosen(d: int, dtype: torch.dtype, flags: Flags, rung: str | None = None) -> Launch:
    """The table's entry for rows of d columns of `dtype`, or the one for the rung of that name.

    >>> [chosen(d, torch.float16, Flags()).kernel for d in (128, 4096, 65536)]
    ['many_rows', 'one_row', 'long_row']
    """
    table = _choice.forward_table(d, dtype)
    if rung is None:
        return _choice.TUNED.get((d, dtype, flags)) or next(iter(table.values()))
    known(rung, RUNGS, "rung")
    if rung not in table:
        fit = ", ".join(table)
        raise ValueError(f"rung {rung!r} has no room for d = {d} of {dtype}: take {fit}")
    return table[rung]


def computing_type(x: Tensor) -> torch.dtype:
    """float64 for float64, else float32, whatever the weight's type."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def output_type(x: Tensor, weight: Vector, casting: str) -> torch.dtype:
    """x's type; with a weight and "llama" the common type of both."""
    if weight is None or casting != "llama":
        return x.dtype
    return torch.promote_types(x.dtype, weight.dtype)


def _grid(plan: Launch, rows: int, x: Tensor) -> tuple[int]:
    if "STAGES" in plan.constants:
        return (min(rows, 4 * processors(x)),)
    return (triton.cdiv(rows, plan.constants.get("ROWS", 1)),)
