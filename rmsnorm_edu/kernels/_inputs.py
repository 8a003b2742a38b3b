"""The tensors that the kernels accept; anything else raises an error that says the fix."""

import math
from collections.abc import Mapping
from numbers import Real

import torch
from torch import Tensor

from rmsnorm_edu.kernels._runtime import checked_device

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def checked_rows(x: Tensor, name: str = "x") -> None:
    """A strided float tensor (..., d) with d >= 1, where the kernels of this process run."""
    _checked_float(x, name)
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"{name} has shape {tuple(x.shape)}; give (..., d) with d >= 1 features")
    checked_device(x, name)


def checked_vector(vector: Tensor | None, x: Tensor, name: str) -> None:
    """None, or a float tensor (d,) on the device of x (..., d)."""
    if vector is not None:
        _checked_float(vector, name)
        _checked_beside(vector, x, name, tuple(x.shape[-1:]))


def checked_twin(a: Tensor, x: Tensor, name: str) -> None:
    """A tensor of the shape, type and device of x."""
    _checked_float(a, name)
    if a.dtype != x.dtype:
        raise TypeError(f"{name} has dtype {a.dtype}, x {x.dtype}: give {name}.to({x.dtype})")
    _checked_beside(a, x, name, tuple(x.shape))


def checked_matrix(
    x: Tensor, twins: Mapping[str, Tensor], vectors: Mapping[str, Tensor | None], name: str = "x"
) -> None:
    """What a kernel's host takes: x (rows, d), `twins` of its shape, `vectors` of d features.

    The vector "rstd" has one number for each row, in float32 or float64, which is what a kernel
    computes in, and no gaps. A kernel itself would read beyond a short one.
    """
    checked_rows(x, name)
    if x.ndim != 2:
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}; give (rows, d), {name}.flatten(0, -2)"
        )
    for twin, a in twins.items():
        _checked_float(a, twin)
        _checked_beside(a, x, twin, tuple(x.shape), name)
    for key, vector in vectors.items():
        if vector is not None:
            _checked_float(vector, key)
            _checked_beside(vector, x, key, (x.shape[key != "rstd"],), name)
    _checked_rstd(vectors.get("rstd"))
    for key, tensor in {name: x, **twins, **vectors}.items():
        if tensor is not None and tensor.is_neg():  # torch keeps the minus of conj().imag in mind
            raise ValueError(f"{key} has a minus that its memory lacks: give {key}.resolve_neg()")


def _checked_rstd(rstd: Tensor | None) -> None:
    if rstd is None:
        return
    if rstd.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"rstd has dtype {rstd.dtype}; give what the forward returned, float32")
    if not rstd.is_contiguous():
        raise ValueError(f"rstd has strides {rstd.stride()}; give rstd.contiguous()")


def checked_offset(offset: float) -> float:
    """A finite number that is added to the weight."""
    if isinstance(offset, bool) or not isinstance(offset, Real):
        kind = type(offset).__name__
        raise TypeError(f"weight_offset = {offset!r} is {kind}; give a number, 0.0 or 1.0")
    try:
        value = float(offset)
    except OverflowError:  # an integer beyond float64
        value = math.inf
    if not abs(value) < math.inf:
        raise ValueError(f"weight_offset = {value}; give a finite number, 0.0 or 1.0")
    return value


def _checked_float(x: Tensor, name: str) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} is {type(x).__name__}; give a tensor, torch.as_tensor({name})")
    if x.dtype not in FLOATS:
        raise TypeError(f"{name} has dtype {x.dtype}; give floats, for example {name}.float()")
    if x.is_nested or x.layout != torch.strided:
        raise TypeError(
            f"{name} is nested or of layout {x.layout}; give a strided tensor, {name}.to_dense() "
            f"of a sparse one, {name}.values() of a nested one"
        )


def _checked_beside(
    a: Tensor, x: Tensor, name: str, shape: tuple[int, ...], beside: str = "x"
) -> None:
    if tuple(a.shape) != shape:
        raise ValueError(
            f"{name} has shape {tuple(a.shape)}, {beside} {tuple(x.shape)}: "
            f"give {name} the shape {shape}"
        )
    if a.device != x.device:
        raise ValueError(
            f"{name} is on {a.device}, {beside} on {x.device}: "
            f"give both on one, for example {name}.to({beside}.device)"
        )
