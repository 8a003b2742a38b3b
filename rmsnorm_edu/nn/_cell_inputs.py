"""What a recurrent cell is given, checked: each error says the shape it got and the fix."""

from typing import Any

import torch
from torch import Tensor


def check_sequence(x: Any, input_size: int, dtype: torch.dtype) -> None:
    """x of shape (T, B, input_size) in the weights' type (under autocast: in any float type)."""
    if not isinstance(x, Tensor):
        raise TypeError(f"x is {type(x).__name__}; give a torch tensor (T, B, {input_size})")
    wanted = f"(T, B, {input_size}): steps, examples, features"
    if x.ndim == 2 and x.shape[1] == input_size:
        raise ValueError(
            f"x is 2-D, {_shape(x)}; give {wanted}. One sequence of T steps is x[:, None], "
            "one step of B examples is x[None]"
        )
    if x.ndim != 3 or x.shape[2] != input_size:
        raise ValueError(f"x has the shape {_shape(x)}; give {wanted}")
    if not x.dtype.is_floating_point:
        raise TypeError(f"x is {x.dtype}; give floats: look the embedding of each token up first")
    if x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(
            f"x is {x.dtype}, the weights are {dtype}; give x.to({dtype}), "
            f"or turn the module with .to({x.dtype})"
        )


def first_state(given: Tensor | None, name: str, x: Tensor, hidden: int) -> Tensor:
    """The state before the first step, (B, hidden): zeros, or what was given, one row for all."""
    examples = x.shape[1]
    if given is None:
        return x.new_zeros(examples, hidden)
    _check_tensor(given, name)
    shape = tuple(given.shape)
    if shape not in ((examples, hidden), (hidden,)):
        squeezed = f"; take {name}[0]" if shape == (1, examples, hidden) else ""
        raise ValueError(
            f"{name} has the shape {shape}; give (B, hidden_size) = ({examples}, {hidden}), "
            f"or ({hidden},) for the same state in each example{squeezed}"
        )
    if given.dtype != x.dtype:
        raise TypeError(f"{name} is {given.dtype}, x is {x.dtype}; give {name}.to({x.dtype})")
    return given.expand(examples, hidden)


def checked_mask(mask: Tensor | None, x: Tensor) -> Tensor | None:
    """The mask as (T, B) in x's type, or None; a last axis of 1 is dropped, as in 2019."""
    if mask is None:
        return None
    _check_tensor(mask, "mask")
    steps, examples = x.shape[:2]
    if tuple(mask.shape) not in ((steps, examples), (steps, examples, 1)):
        turned = "; take mask.T" if tuple(mask.shape) == (examples, steps) else ""
        raise ValueError(
            f"mask has the shape {_shape(mask)}; give (T, B) = ({steps}, {examples}): "
            f"1 where a step counts, 0 where it does not{turned}"
        )
    if mask.dtype.is_complex:
        raise TypeError(f"mask is {mask.dtype}; give floats between 0 and 1, or bool")
    return mask.reshape(steps, examples).to(x.dtype)


def _check_tensor(given: Any, name: str) -> None:
    if not isinstance(given, Tensor):
        kind = type(given).__name__
        raise TypeError(f"{name} is {kind}; give a tensor, torch.as_tensor({name})")


def _shape(x: Tensor) -> tuple[int, ...]:
    return tuple(x.shape)
