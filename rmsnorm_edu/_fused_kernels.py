"""The loops behind `fused_cpu`, compiled by numba: a row is read and written once.

A matrix is a flat array and the distance of its rows in elements, so that one compiled function
serves contiguous matrices and slices of wider ones; `start` and `stop` bound the rows of one call.
Nothing is reordered by the compiler (no fastmath): a sum has the order written here, that of
torch's sum on x86, and nan and inf are what they are in NumPy.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Floats = NDArray[Any]
if getattr(config, "DISABLE_JIT", 0):  # the loops would run in Python, hours long
    raise ImportError("NUMBA_DISABLE_JIT is set, and the fused rung is compiled: start without it")
LINE = 64  # bytes that cross between memory and cache at once
BYTES = 128  # of one accumulator: four vectors of 32 bytes, which the processor adds side by side


_compiled = partial(njit, nogil=True, error_model="numpy")  # 1/0 is inf, as in NumPy


def _jit(function: Callable[..., Any]) -> Any:
    """Compile on first use; keep the machine code for later processes where a folder allows it."""
    try:
        return _compiled(cache=True)(function)
    except RuntimeError:  # neither the package's folder nor the user's can be written to
        return _compiled(cache=False)(function)


def _generate_fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c, rounded once, as torch's addcmul rounds it."""

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return c(a, b, c), generated


def _generate_store(typing: Any, values: Any, out: Any, index: Any) -> Any:
    """out[index:] = values[index:], 32 bytes of them, past the cache; `out` lies on a line."""

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.VectorType(context.get_value_type(out.dtype), 256 // out.dtype.bitwidth)
        places = []
        for k in (0, 1):
            data = context.make_array(signature.args[k])(context, builder, arguments[k]).data
            place = builder.gep(data, [arguments[2]])
            places.append(builder.bitcast(place, kind.as_pointer()))
        store = builder.store(builder.load(places[0], align=4), places[1], align=32)
        hint = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        store.set_metadata("nontemporal", hint)
        return context.get_dummy_value()

    return types.void(values, out, index), generated


def _generate_ask(typing: Any, values: Any, index: Any) -> Any:
    """Ask for the line of values[index], which may lie beyond the end: it is on its way then."""

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte = ir.IntType(8).as_pointer()
        place = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        builder.call(ask, [place, *(ir.Constant(number, k) for k in (0, 2, 1))])  # read, to L2
        return context.get_dummy_value()

    return types.void(values, index), generated


def _generate_fence(typing: Any) -> Any:
    """Other threads see what was stored past the cache before they see what comes later."""

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generated


_fma: Any = intrinsic(_generate_fma)
_store_past: Any = intrinsic(_generate_store)
_fence: Any = intrinsic(_generate_fence)
_ask: Any = intrinsic(_generate_ask)


@_jit
def _flush(sums: Floats, level: int, lanes: int) -> None:
    """Add the accumulator of a level to the next one's and begin again with 0."""
    for lane in range(level * lanes, (level + 1) * lanes):
        sums[lane + lanes] += sums[lane]
        sums[lane] = 0


@_jit
def _dot(a: Floats, b: Floats | None, sums: Floats) -> Any:
    """Σ aᵢbᵢ of two rows; Σ aᵢ² without a b.

    `sums` holds four accumulators of BYTES each. A lane of the first adds
    up 16 terms before it is emptied into the second, that one 16 of these,
    and so on: so a sum passes few roundings.
    """
    n = a.size
    lanes = sums.size // 4
    for lane in range(4 * lanes):
        sums[lane] = 0
    done = 0
    while done + 4 * lanes <= n:
        p = a[done : done + 4 * lanes]
        q = p  # one pointer: the compiler sees one load a term
        if b is not None:
            q = b[done : done + 4 * lanes]
        for lane in range(lanes):  # made into vectors: no lane waits
            total = sums[lane]
            for step in range(4):
                total += p[step * lanes + lane] * q[step * lanes + lane]
            sums[lane] = total
        done += 4 * lanes
        if done % (16 * lanes) == 0:
            _flush(sums, 0, lanes)
            if done % (256 * lanes) == 0:
                _flush(sums, 1, lanes)
                if done % (4096 * lanes) == 0:
                    _flush(sums, 2, lanes)
    return _rest(a, a if b is None else b, sums, done)


@_jit
def _rest(a: Floats, b: Floats, sums: Floats, done: int) -> Any:
    """What `_dot` has summed of the first `done` products, and the others."""
    n = a.size
    lanes = sums.size // 4
    width = lanes // 4
    if n < width:  # too short for a vector: torch's loop over single numbers has a vector of one
        lanes, width = 4, 1
    while done + lanes <= n:
        for lane in range(lanes):
            sums[lane] += a[done + lane] * b[done + lane]
        done += lanes
    for lane in range(lanes):
        for level in range(1, 4):
            sums[lane] += sums[level * lanes + lane]
    while done + width <= n:
        for lane in range(width):
            sums[lane] += a[done + lane] * b[done + lane]
        done += width
    total = sums.dtype.type(0)
    for i in range(done, n):
        total += a[i] * b[i]
    for lane in range(width):
        for vector in range(1, 4):
            sums[lane] += sums[vector * width + lane]
        total += sums[lane]
    return total


@_jit
def forward(
    x: Floats,
    x_row: int,
    weight: Floats,
    bias: Floats,
    eps: Any,
    y: Floats,
    y_row: int,
    address: int,
    start: int,
    stop: int,
) -> None:
    """y = x · rstd · weight + bias of the rows start … stop − 1.

    y lies at `address` and is written past the cache; in the usual way
    if that is 0.
    """
    n, item = weight.size, weight.itemsize
    sums = np.empty(4 * (BYTES // item), weight.dtype)
    piece = np.empty(16 * LINE // item, weight.dtype)
    one, size = weight.dtype.type(1), weight.dtype.type(n)
    for r in range(start, stop):
        row = x[r * x_row : r * x_row + n]
        out = y[r * y_row : r * y_row + n]
        rstd = one / np.sqrt(_dot(row, None, sums) / size + eps)
        done = n  # in the usual way: all, or up to the row's first line
        if address:
            done = min(n, -(address + r * y_row * item) % LINE // item)
        for i in range(done):
            out[i] = row[i] * rstd * weight[i] + bias[i]
        while done + piece.size <= n:
            end = done + piece.size
            for i in range(done, end, LINE // item):
                _ask(x, (r + 1) * x_row + i)  # for a line of the next row
            a, w, b, o = row[done:end], weight[done:end], bias[done:end], out[done:end]
            for i in range(piece.size):
                piece[i] = a[i] * rstd * w[i] + b[i]
            for i in range(0, piece.size, 32 // item):
                _store_past(piece, o, i)
            done = end
        a, w, b, o = row[done:], weight[done:], bias[done:], out[done:]
        for i in range(n - done):
            o[i] = a[i] * rstd * w[i] + b[i]
    _fence()


@_jit
def backward(
    dy: Floats,
    dy_row: int,
    x: Floats,
    x_row: int,
    weight: Floats,
    eps: Any,
    dx: Floats,
    dx_row: int,
    part: Floats,
    start: int,
    stop: int,
) -> None:
    """dx of rows start … stop − 1; their share of dweight to `part` (n,)."""
    n = weight.size
    sums = np.empty(4 * (BYTES // weight.itemsize), weight.dtype)
    product = np.empty_like(weight)
    one, size = weight.dtype.type(1), weight.dtype.type(n)
    for i in range(n):
        part[i] = 0
    for r in range(start, stop):
        row = x[r * x_row : r * x_row + n]
        upstream = dy[r * dy_row : r * dy_row + n]
        out = dx[r * dx_row : r * dx_row + n]
        rstd = one / np.sqrt(_dot(row, None, sums) / size + eps)
        for i in range(n):
            product[i] = upstream[i] * row[i]
        share = _dot(product, weight, sums) * rstd * (rstd * (rstd / size))
        for i in range(n):
            out[i] = _fma(-row[i], share, upstream[i] * weight[i] * rstd)
            part[i] += product[i] * rstd
