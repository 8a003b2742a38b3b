"""The backward kernels, rung by rung: dx, and the sums over all rows that dweight and dbias are.

With x̂ = x · rstd, gain = weight + offset and u = dy · gain, a row's gradient is
dx = (u − x̂ · mean(u · x̂)) · rstd, and dweight = Σ_rows dy · x̂, dbias = Σ_rows dy (the book's
equations dx-vector and dweight). It is the gradient of the formula: where a casting rounds
x̂ on the way, that rounding counts as the identity. All is computed in the type of rstd: float32,
for float64 rows float64. Nothing is written to dy, x or weight.
"""

from typing import Any

import torch
from torch import Tensor

from rmsnorm_edu._words import known
from rmsnorm_edu.kernels._arithmetic import mean_of
from rmsnorm_edu.kernels._choice import Launch, next_power_of_2
from rmsnorm_edu.kernels._inputs import checked_matrix
from rmsnorm_edu.kernels._runtime import launch, processors, tl, triton
from rmsnorm_edu.kernels.backward_long import dweight_tiles, dx_long


@triton.jit
def dx_only(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dy_row, dy_col, x_row, x_col, d,
    BLOCK: tl.constexpr, HAS_WEIGHT: tl.constexpr,
    WEIGHT_OFFSET: tl.constexpr,
):  # fmt: skip
    """One row per program: dx, and dweight not yet.

    Changed: the forward's one_row, with a second input dy, the saved rstd
    and one sum.
    Buys: each of dy, x and dx crosses once. rstd is read from memory.
    Costs: dweight is missing. It sums over all rows, a program sees one.
    """
    wide: tl.constexpr = rstd_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < d
    rstd = tl.load(rstd_ptr + row)
    x = tl.load(x_ptr + row * x_row + cols * x_col, mask, other=0.0)
    u = tl.load(dy_ptr + row * dy_row + cols * dy_col, mask, other=0.0)
    xhat = x.to(wide) * rstd
    u = u.to(wide)
    if HAS_WEIGHT:
        u *= tl.load(w_ptr + cols, mask, other=0.0).to(wide) + WEIGHT_OFFSET
    along = mean_of(tl.sum(u * xhat), d)
    tl.store(dx_ptr + row * d + cols, (u - xhat * along) * rstd, mask)


@triton.jit(do_not_specialize=["rows", "chunk"])
def partials(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr,
    dy_row, dy_col, x_row, x_col, rows, chunk, d,
    BLOCK: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr,
    WEIGHT_OFFSET: tl.constexpr,
):  # fmt: skip
    """A chunk of rows per program; the partial sums stay in registers.

    Changed: a fixed number of programs, and a loop in each over `chunk`
    rows that follow.
    Buys: no atomics: each program writes its sums once, to a row of its
    own, in a fixed order; weight is read once a program, not once a row.
    Costs: 2·P·d·4 bytes to write and read P partial rows, and registers
    for the sums. A program without rows writes its zeros too: nobody else
    does.
    """
    wide: tl.constexpr = rstd_ptr.dtype.element_ty
    pid = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < d
    if HAS_WEIGHT:
        gain = tl.load(w_ptr + cols, mask, other=0.0).to(wide)
        gain += WEIGHT_OFFSET
    dweight = tl.zeros([BLOCK], dtype=wide)
    dbias = tl.zeros([BLOCK], dtype=wide)
    for number in range(pid * chunk, tl.minimum(pid * chunk + chunk, rows)):
        row = tl.cast(number, tl.int64)
        rstd = tl.load(rstd_ptr + row)
        x = tl.load(x_ptr + row * x_row + cols * x_col, mask, other=0.0)
        dy = tl.load(dy_ptr + row * dy_row + cols * dy_col, mask, other=0.0)
        xhat = x.to(wide) * rstd
        dy = dy.to(wide)
        u = dy
        if HAS_WEIGHT:
            u = dy * gain
            dweight += dy * xhat
        if HAS_BIAS:
            dbias += dy
        along = mean_of(tl.sum(u * xhat), d)
        tl.store(dx_ptr + row * d + cols, (u - xhat * along) * rstd, mask)
    if HAS_WEIGHT:
        tl.store(dw_ptr + pid * d + cols, dweight, mask)
    if HAS_BIAS:
        tl.store(db_ptr + pid * d + cols, dbias, mask)


@triton.jit(do_not_specialize=["programs"])
def reduce(
    partial_ptr, sum_ptr, programs, d,
    BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The partial sums of all programs, added up in a fixed order.

    Changed: a second kernel, one program for each BLOCK features.
    Buys: one rounding to the parameter's type, at the end, and the same
    bits in every run.
    Costs: a launch, and P·d·4 bytes to read, mostly from the cache.
    """
    cols = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros([ROWS, BLOCK], dtype=partial_ptr.dtype.element_ty)
    for first in range(0, programs, ROWS):
        row = tl.cast(first, tl.int64) + tl.arange(0, ROWS)[:, None]
        total += tl.load(partial_ptr + row * d + cols, (row < programs) & (cols < d), other=0.0)
    total = tl.sum(total, axis=0, keep_dims=True)
    tl.store(sum_ptr + cols, total, cols < d)


@triton.jit(do_not_specialize=["rows", "chunk"])
def many_rows(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr,
    dy_row, dy_col, x_row, x_col, rows, chunk, d,
    BLOCK: tl.constexpr, ROWS: tl.constexpr,
    HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr,
    WEIGHT_OFFSET: tl.constexpr,
):  # fmt: skip
    """Short rows: ROWS of them at a time, as a tile of ROWS × BLOCK.

    Changed: `partials` with a second axis; each row has its own sum,
    along axis 1.
    Buys: enough bytes in flight when one row has only a few hundred of
    them.
    Costs: the sums are a tile too, folded along axis 0 at the end. A
    row's dx has the same bits at any place in the tile.
    """
    wide: tl.constexpr = rstd_ptr.dtype.element_ty
    pid = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)[None, :]
    if HAS_WEIGHT:
        gain = tl.load(w_ptr + cols, cols < d, other=0.0).to(wide)
        gain += WEIGHT_OFFSET
    dweight = tl.zeros([ROWS, BLOCK], dtype=wide)
    dbias = tl.zeros([ROWS, BLOCK], dtype=wide)
    end = tl.minimum(pid * chunk + chunk, rows)
    for first in range(pid * chunk, end, ROWS):
        row = tl.cast(first, tl.int64) + tl.arange(0, ROWS)[:, None]
        mask = (row < end) & (cols < d)
        rstd = tl.load(rstd_ptr + row, row < end, other=0.0)
        x = tl.load(x_ptr + row * x_row + cols * x_col, mask, other=0.0)
        dy = tl.load(dy_ptr + row * dy_row + cols * dy_col, mask, other=0.0)
        xhat = x.to(wide) * rstd
        dy = dy.to(wide)
        u = dy
        if HAS_WEIGHT:
            u = dy * gain
            dweight += dy * xhat
        if HAS_BIAS:
            dbias += dy
        along = mean_of(tl.sum(u * xhat, axis=1, keep_dims=True), d)
        tl.store(dx_ptr + row * d + cols, (u - xhat * along) * rstd, mask)
    at = pid * d + tl.arange(0, BLOCK)
    if HAS_WEIGHT:
        tl.store(dw_ptr + at, tl.sum(dweight, axis=0), tl.arange(0, BLOCK) < d)
    if HAS_BIAS:
        tl.store(db_ptr + at, tl.sum(dbias, axis=0), tl.arange(0, BLOCK) < d)


RUNGS: dict[str, Any] = {
    "dx_only": dx_only,
    "partials": partials,
    "many_rows": many_rows,
    "dx_long": dx_long,
}
KERNELS = RUNGS | {"dweight_tiles": dweight_tiles, "reduce": reduce}
LONGEST = 8192  # features whose sums fit the registers of a program
TILES = Launch("dweight_tiles", {"BLOCK": 1024, "ROWS": 4}, num_warps=8)


def backward(
    dy: Tensor,
    x: Tensor,
    weight: Tensor | None,
    rstd: Tensor,
    *,
    has_bias: bool = False,
    weight_offset: float = 0.0,
    rung: str | None = None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """(dx, dweight, dbias) for dy and x (rows, d) in any strides, weight (d,), rstd (rows,).

    dx has x's type, dweight weight's, dbias rstd's; a sum that is not wanted is None. `rung` names
    a rung of `RUNGS` ("dx_only" gives no sums); None takes the table's, by d and type alone, so
    that a row's dx has the same bits in any batch. Errors as `forward.forward`.
    """
    checked_matrix(x, {"dy": dy}, {"weight": weight, "rstd": rstd})
    rows, d = x.shape
    plan = chosen(d, rstd.dtype, rung)
    dx = torch.empty(rows, d, dtype=x.dtype, device=x.device)
    tensors = (dy, x, x if weight is None else weight.contiguous(), rstd, dx)
    strides = (*steps(dy), *steps(x))
    flags = {"HAS_WEIGHT": weight is not None, "WEIGHT_OFFSET": float(weight_offset)}
    options: dict[str, Any] = flags | plan.options()
    if plan.kernel in ("dx_only", "dx_long"):
        launch(RUNGS[plan.kernel], (rows,), *tensors, *strides, d, **options)
        if plan.kernel == "dx_only":
            return dx, None, None
        return dx, *long_sums(dy, x, weight, rstd, has_bias)
    grid, chunk = chunks(plan, x)
    sums = buffers(grid[0], rstd, d, weight is not None, has_bias)
    options["HAS_BIAS"] = has_bias
    launch(RUNGS[plan.kernel], grid, *tensors, *sums, *strides, rows, chunk, d, **options)
    return dx, reduced(sums[0], weight), reduced(sums[1], rstd)


def long_sums(
    dy: Tensor, x: Tensor, weight: Tensor | None, rstd: Tensor, has_bias: bool = False
) -> tuple[Tensor | None, Tensor | None]:
    """(dweight, dbias) of long rows: `dweight_tiles`, then `reduce`."""
    rows, d = x.shape
    grid, chunk = chunks(TILES, x)
    sums = buffers(grid[0], rstd, d, weight is not None, has_bias)
    options: dict[str, Any] = {"HAS_WEIGHT": weight is not None, "HAS_BIAS": has_bias}
    options |= TILES.options()
    arguments = (x, rstd, *sums, *steps(dy), *steps(x), rows, chunk, d)
    launch(dweight_tiles, grid, dy, *arguments, **options)
    return reduced(sums[0], weight), reduced(sums[1], rstd)


def buffers(programs: int, rstd: Tensor, d: int, *wanted: bool) -> list[Tensor]:
    """Memory for the partial sums of all programs, (programs, d), or (0, d) where not wanted."""
    return [torch.empty(programs * w, d, dtype=rstd.dtype, device=rstd.device) for w in wanted]


def reduced(partial: Tensor, like: Tensor | None) -> Tensor | None:
    """The rows of `partial` (programs, d) added up, in the type of `like`; None without rows."""
    programs, d = partial.shape
    if like is None or programs == 0:
        return None
    # the interpreter cannot store float64 as bfloat16, so that torch does
    kind = like.dtype if partial.dtype == torch.float32 else partial.dtype
    total = torch.empty(d, dtype=kind, device=partial.device)
    plan = reducing(d, programs)
    grid = (triton.cdiv(d, plan.constants["BLOCK"]),)
    launch(reduce, grid, partial, total, programs, d, **dict[str, Any](plan.options()))
    return total.to(like.dtype)


def chosen(d: int, compute: torch.dtype, rung: str | None = None) -> Launch:
    """The table's entry for rows of d features, computed in `compute`, or the rung of this name.

    >>> [chosen(d, torch.float32).kernel for d in (128, 4096, 65536)]
    ['many_rows', 'partials', 'dx_long']
    """
    table = backward_table(d, compute)
    if rung is None:
        return next(iter(table.values()))
    known(rung, RUNGS, "rung")
    if rung not in table:
        raise ValueError(f"rung {rung!r} has no room for d = {d}: take {', '.join(table)}")
    return table[rung]


def backward_table(d: int, compute: torch.dtype) -> dict[str, Launch]:
    """The rungs that can take rows of d features, computed in `compute`; the first is the choice.

    A thread holds 16 elements of a row in float32, 8 in float64, beside its part of the sums.
    """
    block = next_power_of_2(d)
    long = Launch("dx_long", {"BLOCK": min(4096, block)}, 8)
    if block > LONGEST:
        return {"dx_long": long}
    warps = max(1, block * compute.itemsize // 2048)
    found = [Launch(name, {"BLOCK": block}, warps) for name in ("partials", "dx_only")]
    if block <= 512:
        found.insert(0, Launch("many_rows", {"BLOCK": block, "ROWS": min(128, 2048 // block)}, 4))
    return {plan.kernel: plan for plan in (*found, long)}


def reducing(d: int, programs: int) -> Launch:
    """How `reduce` adds the sums of so many programs: a tile has 4096 of them, 128 rows at most."""
    rows = min(128, next_power_of_2(programs))
    block = min(next_power_of_2(d), 4096 // rows)
    return Launch("reduce", {"BLOCK": block, "ROWS": rows}, num_warps=8)


def chunks(plan: Launch, x: Tensor) -> tuple[tuple[int, int], int]:
    """((programs, tiles), rows of a program): the grid of a kernel that sums, by d and device.

    Some 8192 features of a processor's programs are in flight, and each has 4 programs at most.
    """
    rows, d = x.shape
    block, tile = plan.constants["BLOCK"], plan.constants.get("ROWS", 1)
    tiles = triton.cdiv(d, block)
    programs = triton.cdiv(processors(x) * max(1, min(4, LONGEST // block)), tiles)
    return (programs, tiles), triton.cdiv(triton.cdiv(rows, programs), tile) * tile


def steps(x: Tensor) -> tuple[int, int]:
    """The strides of x (rows, d); that of an only row may be anything, and is d."""
    return x.stride(0) if x.shape[0] > 1 else x.shape[1], x.stride(1)
