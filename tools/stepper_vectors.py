"""A recording for the tests of the figure KernelStepper; explorable_vectors writes it.

Its kernel has what the figure tells apart: a loop with a masked end, bytes that are read again,
a sum of lanes, a tile summed along either axis.
"""

from typing import Any

import torch

from rmsnorm_edu.explorables import kernel_stepper as figure
from rmsnorm_edu.kernels import trace
from rmsnorm_edu.kernels._runtime import tl, triton

ROWS, D = 3, 6


@triton.jit
def tested(
    x_ptr, y_ptr, down_ptr, across_ptr, rows, d,
    BLOCK: tl.constexpr, TILE: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Each program divides its row by its RMS; the last lines sum the whole array, twice."""
    program = tl.program_id(0)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, d, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < d
        x = tl.load(x_ptr + program * d + columns, mask=inside, other=0.0)
        squares += x * x
    size = tl.sqrt(tl.sum(squares, axis=0) / d)
    for start in range(0, d, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + program * d + columns, mask=columns < d, other=0.0)
        tl.store(y_ptr + program * d + columns, x / size, mask=columns < d)
    row = tl.arange(0, TILE)[:, None]
    column = tl.arange(0, 2 * BLOCK)[None, :]
    every = (row < rows) & (column < d)
    tile = tl.load(x_ptr + row * d + column, mask=every, other=0.0)
    down = tl.sum(tile, axis=0)
    across = tl.sum(tile, axis=1)
    tl.store(down_ptr + tl.arange(0, 2 * BLOCK), down, mask=tl.arange(0, 2 * BLOCK) < d)
    tl.store(across_ptr + tl.arange(0, TILE), across, mask=tl.arange(0, TILE) < rows)


def kernel_stepper() -> dict[str, Any]:
    """The scene as the figure gets it; bytes by array, and the arrays as the launch left them."""
    x = trace.example(ROWS, D)["x"]
    others = [torch.zeros(shape) for shape in ((ROWS, D), (D,), (ROWS,))]
    found = trace.run(tested, (ROWS,), x, *others, ROWS, D, BLOCK=4, TILE=4)
    launch = found.launches[0]
    return {
        "scenes": figure.data({"tested": found}),
        "counts": launch["counts"],
        "after": {name: array["after"] for name, array in launch["arrays"].items()},
    }
