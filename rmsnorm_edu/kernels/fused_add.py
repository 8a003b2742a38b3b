"""The residual add and the norm in one kernel: h = x + residual, y = norm(h) · gain; both written.

A block of a Transformer adds its result x to the residual stream, and the next block wants the sum
normalised. In one kernel the sum makes no trip of its own: 4nds bytes instead of 5nds.

The norm is that of h as it is stored, rounded to its type. So y is a function of the h that the
stream carries, the backward needs nothing but h, and the result is that of an addition and a norm
one after the other. A norm of the sum before rounding would be a little closer to the exact y,
and its backward would see another row than its forward did.

With dh, the gradient that comes along the stream, the gradient of x and of residual is
dh + (u − x̂ · mean(u · x̂)) · rstd, where x̂ = h · rstd and u = dy · gain: 4nds bytes again.
"""

from typing import Any

import torch
from torch import Tensor

from rmsnorm_edu._inputs import checked_eps
from rmsnorm_edu.kernels import backward as _backward
from rmsnorm_edu.kernels._arithmetic import mean_of, rstd_of
from rmsnorm_edu.kernels._choice import Flags, Launch, next_power_of_2
from rmsnorm_edu.kernels._inputs import checked_matrix
from rmsnorm_edu.kernels._runtime import launch, tl, triton
from rmsnorm_edu.kernels.forward import computing_type, output_type


@triton.jit(do_not_specialize=["rows"])
def add_rows(
    x_ptr, residual_ptr, w_ptr, y_ptr, h_ptr, rstd_ptr,
    x_row, x_col, residual_row, residual_col, rows, d,
    eps: tl.constexpr, HAS_WEIGHT: tl.constexpr, CASTING: tl.constexpr,
    WEIGHT_OFFSET: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """ROWS whole rows a program, one where a row is long.

    Changed: the norm's kernel reads a second input and writes a second
    result, their sum.
    Buys: the sum is not read again, nor is there a kernel of its own to
    launch: 4nds, not 5nds.
    Costs: registers for two rows, and freedom: who wants h elsewhere must
    take it from here.
    """
    wide: tl.constexpr = rstd_ptr.dtype.element_ty
    narrow: tl.constexpr = h_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK).to(tl.int64)[None, :]
    mask = (row < rows) & (cols < d)
    x = tl.load(x_ptr + row * x_row + cols * x_col, mask, other=0.0)
    residual = tl.load(residual_ptr + row * residual_row + cols * residual_col, mask, other=0.0)
    h = (x.to(wide) + residual.to(wide)).to(narrow)
    tl.store(h_ptr + row * d + cols, h, mask)
    h = h.to(wide)
    rstd = rstd_of(tl.sum(h * h, axis=1, keep_dims=True), d, eps)
    y = h * rstd
    if CASTING == 1:
        y = y.to(narrow).to(wide)
    if HAS_WEIGHT:
        y *= tl.load(w_ptr + cols, cols < d, other=0.0).to(wide) + WEIGHT_OFFSET
    tl.store(y_ptr + row * d + cols, y, mask)
    tl.store(rstd_ptr + row, rstd, row < rows)


@triton.jit
def add_long(
    x_ptr, residual_ptr, w_ptr, y_ptr, h_ptr, rstd_ptr,
    x_row, x_col, residual_row, residual_col, d,
    eps: tl.constexpr, HAS_WEIGHT: tl.constexpr, CASTING: tl.constexpr,
    WEIGHT_OFFSET: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A long row a program, BLOCK features at a time.

    Changed: a first walk along the row adds and sums, a second one reads
    h again and normalises.
    Buys: any d.
    Costs: h is read once more, 5nds when it is no longer in the cache.
    """
    wide: tl.constexpr = rstd_ptr.dtype.element_ty
    narrow: tl.constexpr = h_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros([BLOCK], dtype=wide)
    for start in range(0, d, BLOCK):
        cols = tl.cast(start, tl.int64) + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_row + cols * x_col, cols < d, other=0.0)
        residual = tl.load(
            residual_ptr + row * residual_row + cols * residual_col, cols < d, other=0.0
        )
        h = (x.to(wide) + residual.to(wide)).to(narrow)
        tl.store(h_ptr + row * d + cols, h, cols < d)
        squares += h.to(wide) * h.to(wide)
    rstd = rstd_of(tl.sum(squares), d, eps)
    tl.store(rstd_ptr + row, rstd)
    tl.debug_barrier()  # h is read by other threads than those that wrote it
    for start in range(0, d, BLOCK):
        cols = tl.cast(start, tl.int64) + tl.arange(0, BLOCK)
        y = tl.load(h_ptr + row * d + cols, cols < d, other=0.0).to(wide) * rstd
        if CASTING == 1:
            y = y.to(narrow).to(wide)
        if HAS_WEIGHT:
            y *= tl.load(w_ptr + cols, cols < d, other=0.0).to(wide) + WEIGHT_OFFSET
        tl.store(y_ptr + row * d + cols, y, cols < d)


@triton.jit(do_not_specialize=["rows", "chunk"])
def add_rows_backward(
    dy_ptr, dh_ptr, h_ptr, w_ptr, rstd_ptr, dx_ptr, dw_ptr,
    dy_row, dy_col, dh_row, dh_col, rows, chunk, d,
    HAS_WEIGHT: tl.constexpr, WEIGHT_OFFSET: tl.constexpr,
    BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The backward's many_rows, with ROWS = 1 where a row is long.

    Changed: it reads dh, the gradient of the stream, and adds it before
    the one rounding.
    Buys: 4nds bytes for dy, dh, h and the gradient that both inputs
    share; added afterwards it would be 6nds.
    Costs: registers for a third row.
    """
    wide: tl.constexpr = rstd_ptr.dtype.element_ty
    pid = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)[None, :]
    if HAS_WEIGHT:
        gain = tl.load(w_ptr + cols, cols < d, other=0.0).to(wide)
        gain += WEIGHT_OFFSET
    dweight = tl.zeros([ROWS, BLOCK], dtype=wide)
    end = tl.minimum(pid * chunk + chunk, rows)
    for first in range(pid * chunk, end, ROWS):
        row = tl.cast(first, tl.int64) + tl.arange(0, ROWS)[:, None]
        mask = (row < end) & (cols < d)
        rstd = tl.load(rstd_ptr + row, row < end, other=0.0)
        xhat = tl.load(h_ptr + row * d + cols, mask, other=0.0).to(wide) * rstd
        u = tl.load(dy_ptr + row * dy_row + cols * dy_col, mask, other=0.0).to(wide)
        if HAS_WEIGHT:
            dweight += u * xhat
            u *= gain
        along = mean_of(tl.sum(u * xhat, axis=1, keep_dims=True), d)
        dx = tl.load(dh_ptr + row * dh_row + cols * dh_col, mask, other=0.0).to(wide)
        dx += (u - xhat * along) * rstd
        tl.store(dx_ptr + row * d + cols, dx, mask)
    if HAS_WEIGHT:
        total = tl.sum(dweight, axis=0, keep_dims=True)
        tl.store(dw_ptr + pid * d + cols, total, cols < d)


@triton.jit
def add_long_backward(
    dy_ptr, dh_ptr, h_ptr, w_ptr, rstd_ptr, dx_ptr,
    dy_row, dy_col, dh_row, dh_col, d,
    HAS_WEIGHT: tl.constexpr, WEIGHT_OFFSET: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The backward's dx_long with dh; dweight is the business of its dweight_tiles.

    Changed: the second walk reads dh too.
    Buys: any d.
    Costs: dy and h are read twice here and once more for dweight.
    """
    wide: tl.constexpr = rstd_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    rstd = tl.load(rstd_ptr + row)
    along = tl.zeros([BLOCK], dtype=wide)
    for start in range(0, d, BLOCK):
        cols = tl.cast(start, tl.int64) + tl.arange(0, BLOCK)
        u = tl.load(dy_ptr + row * dy_row + cols * dy_col, cols < d, other=0.0).to(wide)
        if HAS_WEIGHT:
            u *= tl.load(w_ptr + cols, cols < d, other=0.0).to(wide) + WEIGHT_OFFSET
        along += u * (tl.load(h_ptr + row * d + cols, cols < d, other=0.0).to(wide) * rstd)
    mean = mean_of(tl.sum(along), d)
    for start in range(0, d, BLOCK):
        cols = tl.cast(start, tl.int64) + tl.arange(0, BLOCK)
        u = tl.load(dy_ptr + row * dy_row + cols * dy_col, cols < d, other=0.0).to(wide)
        if HAS_WEIGHT:
            u *= tl.load(w_ptr + cols, cols < d, other=0.0).to(wide) + WEIGHT_OFFSET
        xhat = tl.load(h_ptr + row * d + cols, cols < d, other=0.0).to(wide) * rstd
        dx = tl.load(dh_ptr + row * dh_row + cols * dh_col, cols < d, other=0.0).to(wide)
        tl.store(dx_ptr + row * d + cols, dx + (u - xhat * mean) * rstd, cols < d)


KERNELS: dict[str, Any] = {
    "add_rows": add_rows,
    "add_long": add_long,
    "add_rows_backward": add_rows_backward,
    "add_long_backward": add_long_backward,
}


def forward(
    x: Tensor,
    residual: Tensor,
    weight: Tensor | None = None,
    eps: float = 1e-6,
    casting: str = "torch",
    weight_offset: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """(y, h, rstd) for x and residual (rows, d) of one type, in any strides; weight (d,).

    h = x + residual in their type, y and rstd as `forward.forward` makes them of h.
    """
    checked_matrix(x, {"residual": residual}, {"weight": weight})
    rows, d = x.shape
    flags = Flags(weight is not None, False, casting, weight_offset).constants()
    plan = chosen(d, computing_type(x), "add_rows", "add_long")
    y = torch.empty(rows, d, dtype=output_type(x, weight, casting), device=x.device)
    h = torch.empty(rows, d, dtype=x.dtype, device=x.device)
    rstd = torch.empty(rows, dtype=computing_type(x), device=x.device)
    w = x if weight is None else weight.contiguous()
    arguments = (x, residual, w, y, h, rstd, *_backward.steps(x), *_backward.steps(residual))
    del flags["HAS_BIAS"]
    options: dict[str, Any] = flags | plan.options() | {"eps": checked_eps(eps)}
    if plan.kernel == "add_long":
        launch(add_long, (rows,), *arguments, d, **options)
    else:
        launch(
            add_rows, (triton.cdiv(rows, plan.constants["ROWS"]),), *arguments, rows, d, **options
        )
    return y, h, rstd


def backward(
    dy: Tensor,
    dh: Tensor,
    h: Tensor,
    weight: Tensor | None,
    rstd: Tensor,
    *,
    weight_offset: float = 0.0,
) -> tuple[Tensor, Tensor | None]:
    """(dx, dweight) for dy and dh (rows, d), in any strides, and what `forward` returned.

    dx is the gradient of x and of residual, in h's type.
    """
    checked_matrix(h, {"dy": dy, "dh": dh}, {"weight": weight, "rstd": rstd}, "h")
    rows, d = h.shape
    plan = chosen(d, rstd.dtype, "add_rows_backward", "add_long_backward")
    dx = torch.empty(rows, d, dtype=h.dtype, device=h.device)
    h = h.contiguous()
    tensors = (dy, dh, h, h if weight is None else weight.contiguous(), rstd, dx)
    strides = (*_backward.steps(dy), *_backward.steps(dh))
    flags = {"HAS_WEIGHT": weight is not None, "WEIGHT_OFFSET": float(weight_offset)}
    options: dict[str, Any] = flags | plan.options()
    if plan.kernel == "add_long_backward":
        launch(add_long_backward, (rows,), *tensors, *strides, d, **options)
        return dx, None if weight is None else _backward.long_sums(dy, h, weight, rstd)[0]
    grid, chunk = _backward.chunks(plan, h)
    sums = torch.empty(grid[0], d, dtype=rstd.dtype, device=h.device)
    launch(add_rows_backward, grid, *tensors, sums, *strides, rows, chunk, d, **options)
    return dx, _backward.reduced(sums, weight)


def chosen(d: int, compute: torch.dtype, short: str, long: str) -> Launch:
    """The kernel `short` where a row fits the registers of a program, else `long`."""
    block = next_power_of_2(d)
    if block > _backward.LONGEST:
        return Launch(long, {"BLOCK": 4096}, num_warps=8)
    warps = 4 if block <= 2048 else block * compute.itemsize // 2048
    return Launch(short, {"BLOCK": block, "ROWS": max(1, min(128, 2048 // block))}, warps)
