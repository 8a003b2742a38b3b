"""The tensors that `nn` accepts; anything else raises an error that says the fix."""

from collections.abc import Sequence

import torch
from torch import Tensor

from rmsnorm_edu._inputs import positive

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def checked_tensors(x: Tensor, weight: Tensor | None, bias: Tensor | None, ndim: int) -> None:
    """Float tensors, x with `ndim` axes of at least one feature, weight and bias of their shape."""
    checked_float(x, "x")
    ndim = positive(ndim, "ndim")
    if ndim > x.ndim or 0 in x.shape[-ndim:]:
        raise ValueError(
            f"x has shape {tuple(x.shape)}, ndim = {ndim}: give x at least that many axes, "
            "ndim >= 1, and at least one feature, (..., n)"
        )
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is None:
            continue
        checked_float(vector, name)
        # torch itself lets a weight on "meta" through, and leaves it out
        if vector.device != x.device:
            raise ValueError(
                f"{name} is on {vector.device}, x on {x.device}: "
                f"give both on one, for example {name}.to(x.device)"
            )
        if vector.shape != x.shape[-ndim:]:
            raise ValueError(
                f"{name} has shape {tuple(vector.shape)}, x {tuple(x.shape)}: "
                f"give {name} the shape {tuple(x.shape[-ndim:])}"
            )


def checked_float(x: Tensor, name: str) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} is {type(x).__name__}; give a tensor, torch.as_tensor({name})")
    if x.dtype not in FLOATS:
        raise TypeError(f"{name} has dtype {x.dtype}; give floats, for example {name}.float()")
    if x.is_nested or x.layout != torch.strided:
        raise TypeError(
            f"{name} is nested or of layout {x.layout}; give a strided tensor, {name}.to_dense() "
            f"of a sparse one, {name}.values() of a nested one"
        )


def checked_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    """`normalized_shape` as a tuple of sizes >= 1."""
    sizes = (shape,) if not isinstance(shape, Sequence) else shape
    if not sizes:
        raise ValueError("normalized_shape is empty; give the sizes of the last axes, like 64")
    return tuple(positive(size, "normalized_shape") for size in sizes)


def checked_last(x: Tensor, shape: tuple[int, ...]) -> None:
    """That x ends in the axes `shape`."""
    checked_float(x, "x")
    if tuple(x.shape[-len(shape) :]) != shape:
        wanted = ", ".join(map(str, ("...", *shape)))
        raise ValueError(
            f"x has shape {tuple(x.shape)}, normalized_shape is {shape}: give x ({wanted})"
        )


def checked_size(k: int | None, n: int) -> int:
    if k is None:
        return n
    size = positive(k, "k")
    if size > n:
        raise ValueError(f"k = {size} of n = {n} features: give 1 <= k <= {n}")
    return size
