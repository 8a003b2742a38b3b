"""The backward of rows too long for the registers of one program: two kernels, each with a loop.

The formulas and the arguments are those of `backward`, whose `reduce` adds up the partial sums.
"""

from rmsnorm_edu.kernels._arithmetic import mean_of
from rmsnorm_edu.kernels._runtime import tl, triton


@triton.jit
def dx_long(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dy_row, dy_col, x_row, x_col, d,
    BLOCK: tl.constexpr, HAS_WEIGHT: tl.constexpr,
    WEIGHT_OFFSET: tl.constexpr,
):  # fmt: skip
    """Long rows: dx by two walks along the row, BLOCK features at a time.

    Changed: `dx_only` in a loop; the first walk sums, the second writes.
    Buys: any d; registers for one block, where a whole row would spill.
    Costs: x and dy are read twice, 5nds bytes when the second read misses
    the cache; and dweight is a kernel of its own again.
    """
    wide: tl.constexpr = rstd_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    rstd = tl.load(rstd_ptr + row)
    along = tl.zeros([BLOCK], dtype=wide)
    for start in range(0, d, BLOCK):
        cols = tl.cast(start, tl.int64) + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_row + cols * x_col, cols < d, other=0.0)
        u = tl.load(dy_ptr + row * dy_row + cols * dy_col, cols < d, other=0.0).to(wide)
        if HAS_WEIGHT:
            u *= tl.load(w_ptr + cols, cols < d, other=0.0).to(wide) + WEIGHT_OFFSET
        along += u * (x.to(wide) * rstd)
    mean = mean_of(tl.sum(along), d)
    for start in range(0, d, BLOCK):
        cols = tl.cast(start, tl.int64) + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_row + cols * x_col, cols < d, other=0.0)
        u = tl.load(dy_ptr + row * dy_row + cols * dy_col, cols < d, other=0.0).to(wide)
        if HAS_WEIGHT:
            u *= tl.load(w_ptr + cols, cols < d, other=0.0).to(wide) + WEIGHT_OFFSET
        dx = (u - x.to(wide) * rstd * mean) * rstd
        tl.store(dx_ptr + row * d + cols, dx, cols < d)


@triton.jit(do_not_specialize=["rows", "chunk"])
def dweight_tiles(
    dy_ptr, x_ptr, rstd_ptr, dw_ptr, db_ptr,
    dy_row, dy_col, x_row, x_col, rows, chunk, d,
    BLOCK: tl.constexpr, ROWS: tl.constexpr,
    HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """Long rows, the sums: a program has some features of a chunk of rows.

    Changed: the program sees some features of many rows; no row is whole
    anywhere.
    Buys: sums in registers for any d; the grid has two axes, chunks of
    rows and features.
    Costs: x and dy are read once more. The sums go to `reduce`, as those
    of `partials` do.
    """
    wide: tl.constexpr = rstd_ptr.dtype.element_ty
    pid = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    dweight = tl.zeros([ROWS, BLOCK], dtype=wide)
    dbias = tl.zeros([ROWS, BLOCK], dtype=wide)
    end = tl.minimum(pid * chunk + chunk, rows)
    for first in range(pid * chunk, end, ROWS):
        row = tl.cast(first, tl.int64) + tl.arange(0, ROWS)[:, None]
        mask = (row < end) & (cols < d)
        dy = tl.load(dy_ptr + row * dy_row + cols * dy_col, mask, other=0.0)
        if HAS_WEIGHT:
            rstd = tl.load(rstd_ptr + row, row < end, other=0.0)
            x = tl.load(x_ptr + row * x_row + cols * x_col, mask, other=0.0)
            dweight += dy.to(wide) * (x.to(wide) * rstd)
        if HAS_BIAS:
            dbias += dy.to(wide)
    if HAS_WEIGHT:
        total = tl.sum(dweight, axis=0, keep_dims=True)
        tl.store(dw_ptr + pid * d + cols, total, cols < d)
    if HAS_BIAS:
        tl.store(db_ptr + pid * d + cols, tl.sum(dbias, axis=0, keep_dims=True), cols < d)
