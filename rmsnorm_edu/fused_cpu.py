"""RMSNorm on the processor, rung by rung: from a loop in Python to one pass over the memory.

`rms_norm` and `rms_norm_vjp` are the top rungs: numba compiles them on first use, and threads share
the rows. `loop`, `numpy`, `einsum` and `blocked` are the rungs below, for x (rows, n) and
weight (n,); they need NumPy alone, and check nothing.
"""

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from rmsnorm_edu import _team
from rmsnorm_edu._flat import flat, matrix, output, same_matrix, vector
from rmsnorm_edu._inputs import checked_eps, positive

__all__ = ["RUNGS", "blocked", "einsum", "fused", "loop", "numpy", "rms_norm", "rms_norm_vjp"]
__all__ += ["streamed"]
Floats = NDArray[Any]
Out = Floats | None
PIECE = 2**20  # bytes of x that a thread takes at a time
PAST = 2**26  # bytes of a y that no cache would keep for the next program: it is written past it
BLOCK = 2**19  # bytes of x in a block of `blocked`: with its y it stays in a core's cache


def loop(x: Floats, weight: Floats, eps: float = 1e-6, out: Out = None) -> Floats:
    """Rung 1: the equation, number by number.

    What changed:  nothing yet.
    It should buy: every step can be read.
    It costs:      each operation on a number is one of Python's.
    """
    y = np.empty_like(x) if out is None else out
    for i, row in enumerate(x):
        total = 0.0
        for value in row:
            total += float(value) ** 2
        divisor = (total / len(row) + eps) ** 0.5
        for j, value in enumerate(row):
            y[i, j] = value / divisor * weight[j]
    return y


def numpy(x: Floats, weight: Floats, eps: float = 1e-6, out: Out = None) -> Floats:
    """Rung 2: whole arrays instead of numbers.

    What changed:  an operation is one call for all rows.
    It should buy: loops in machine code.
    It costs:      every call reads its operands from memory and
                   writes a result of x's size: three of them.
    """
    squares = x * x
    rms = np.sqrt(squares.mean(-1, keepdims=True) + x.dtype.type(eps))
    xhat = x / rms
    y: Floats = np.multiply(xhat, weight, out=out)
    return y


def einsum(x: Floats, weight: Floats, eps: float = 1e-6, out: Out = None) -> Floats:
    """Rung 3: no array in between.

    What changed:  squares are summed as they arise, and xhat is made
                   where y will be.
    It should buy: one array of x's size instead of three.
    It costs:      the memory is still read three times, written twice.
    """
    mean_square = np.einsum("ij,ij->i", x, x) / x.dtype.type(x.shape[-1])
    rms = np.sqrt(mean_square + x.dtype.type(eps))
    y: Floats = np.divide(x, rms[:, np.newaxis], out=out)
    y *= weight
    return y


def blocked(x: Floats, weight: Floats, eps: float = 1e-6, out: Out = None) -> Floats:
    """Rung 4: some rows at a time.

    What changed:  all steps for a block of rows before the next begins.
    It should buy: the first step reads the memory, the others find the
                   block in the cache.
    It costs:      a loop in Python; one core.
    """
    y = np.empty_like(x) if out is None else out
    size = max(1, BLOCK // max(1, x[:1].nbytes))
    for start in range(0, len(x), size):
        rows = slice(start, start + size)
        einsum(x[rows], weight, eps, out=y[rows])
    return y


def fused(x: Floats, weight: Floats, eps: float = 1e-6, out: Out = None) -> Floats:
    """Rung 5: the steps inside of one compiled loop.

    What changed:  a row is squared, summed and scaled while it is in
                   the cache of a core, and threads share the rows.
    It should buy: one read, one write, on all cores.
    It costs:      numba, and a few seconds to compile.
    """
    return _forward(x, weight, None, eps, out, None, past=False)


def streamed(x: Floats, weight: Floats, eps: float = 1e-6, out: Out = None) -> Floats:
    """Rung 6: y goes past the cache.

    What changed:  whole lines of y are written to memory at once;
                   the next row is asked for meanwhile.
    It should buy: no line of y is read before it is written,
                   and reads do not wait for writes.
    It costs:      who needs y next finds nothing of it in the cache.
    """
    return _forward(x, weight, None, eps, out, None, past=True)


RUNGS: dict[str, Callable[..., Floats]] = {
    rung.__name__: rung for rung in (loop, numpy, einsum, blocked, fused, streamed)
}


def rms_norm(
    x: Floats,
    weight: Floats | None = None,
    bias: Floats | None = None,
    *,
    eps: float = 1e-6,
    out: Floats | None = None,
    threads: SupportsIndex | None = None,
) -> Floats:
    """y = x / sqrt(mean(x²) + eps) · weight + bias for each row of x (rows, n), float32 or float64.

    weight and bias (n,) have x's dtype, and y. Sums are in that dtype, in the order of torch's sum
    on x86: y has the bits of torch.nn.RMSNorm there, and a row has the same bits in every batch and
    for any number of threads (None: one for each processor). `out` takes y and is returned; fresh
    memory costs more than the norm. A y of PAST bytes or more is written past the cache. x and out
    may be slices of the columns of wider matrices; an x with other strides is copied. Raises
    TypeError for other dtypes, ValueError for shapes, eps, threads and an `out` that overlaps an
    argument, ImportError without numba.
    """
    return _forward(x, weight, bias, eps, out, threads, past=None)


def _forward(
    x: Floats,
    weight: Floats | None,
    bias: Floats | None,
    eps: float,
    out: Floats | None,
    threads: SupportsIndex | None,
    past: bool | None,
) -> Floats:
    """`rms_norm`; y is written past the cache or not, or, for None, if it has PAST bytes."""
    kernels = _kernels()
    x = matrix(x, "x")
    w, b = vector(weight, x, "weight"), vector(bias, x, "bias", default=-0.0)
    y = output(out, x, {"x": x, "weight": w, "bias": b})
    address = y.ctypes.data if (y.nbytes >= PAST if past is None else past) else 0
    arguments = (*flat(x), w, b, _eps(eps, x), *flat(y, written=True), address)
    size = max(1, PIECE // (x.shape[1] * x.itemsize))
    _team.run(lambda *piece: kernels.forward(*arguments, *piece), len(x), size, _count(threads))
    return y


def rms_norm_vjp(
    dy: Floats,
    x: Floats,
    weight: Floats | None = None,
    *,
    eps: float = 1e-6,
    out: Floats | None = None,
    threads: SupportsIndex | None = None,
) -> tuple[Floats, Floats | None]:
    """Gradients (dx, dweight) of Σ dy·y for `rms_norm`: dx has x's shape, dweight (n,).

    dxᵢ = (dyᵢ · weightᵢ − x̂ᵢ · mean(dy · weight · x̂)) · rstd with x̂ = x · rstd; dweight is the sum
    of dy · x̂ over the rows, None without a weight. The rows are cut into about √rows chunks; each
    gives a partial sum, and these are added up in order: dweight too has the same bits for any
    number of threads. `out` takes dx. Shapes, dtypes and errors as `rms_norm`.
    """
    kernels = _kernels()
    x = matrix(x, "x")
    dy = same_matrix(dy, x, "dy")
    w = vector(weight, x, "weight")
    dx = output(out, x, {"dy": dy, "x": x, "weight": w})
    chunk = max(16, math.isqrt(len(x)))  # the partials are small beside x: 1/√rows
    partials = np.empty((-(-len(x) // chunk), x.shape[1]), x.dtype)
    arguments = (*flat(dy), *flat(x), w, _eps(eps, x), *flat(dx, written=True))

    def work(start: int, stop: int) -> None:
        kernels.backward(*arguments, partials[start // chunk], start, stop)

    _team.run(work, len(x), chunk, _count(threads))
    return dx, None if weight is None else partials.sum(axis=0)


def _eps(eps: float, x: Floats) -> Any:
    """`eps` in x's type; beyond its range it is inf, quietly, as in torch."""
    with np.errstate(over="ignore"):
        return x.dtype.type(checked_eps(eps))


def _count(threads: SupportsIndex | None) -> int:
    return _team.processors() if threads is None else positive(threads, "threads")


def _kernels() -> ModuleType:
    try:
        from rmsnorm_edu import _fused_kernels
    except ModuleNotFoundError as error:
        if error.name not in ("numba", "llvmlite"):
            raise
        raise ImportError('the fused rung needs numba: pip install "rmsnorm_edu[cpu]"') from error
    return _fused_kernels
