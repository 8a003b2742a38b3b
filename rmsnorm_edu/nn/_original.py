"""The door to the 2019 code's parameters: their names and shapes, checked."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

ENDINGS: dict[str | None, tuple[str, ...]] = {
    "rms": (".weight",),
    "layer": (".weight", ".bias"),
    None: (),
}


def names_of(original: dict[str, str], norm: str | None) -> dict[str, str]:
    """Of the 2019 names those that a cell with this norm has, each with the name here."""
    endings = ENDINGS[norm]
    return {old: new for old, new in original.items() if "." not in new or new.endswith(endings)}


def checked_originals(params: Mapping[str, Any], wanted: tuple[str, ...]) -> dict[str, Tensor]:
    """The parameters as tensors of their own, in one float type; errors list what is wrong."""
    check_names(params, wanted)
    tensors = {name: _copied(name, params[name]) for name in wanted}
    types = {name: str(tensor.dtype) for name, tensor in tensors.items()}
    if len(set(types.values())) > 1:
        raise TypeError(f"the parameters have several types, {types}; give them one")
    for name in ("W", "U"):
        if tensors[name].ndim != 2:
            raise ValueError(f"{name} has the shape {tuple(tensors[name].shape)}; give a matrix")
    return tensors


def check_names(params: Mapping[str, Any], wanted: tuple[str, ...]) -> None:
    """ValueError that lists the missing and the unknown names."""
    missing = [name for name in wanted if name not in params]
    unknown = [name for name in params if name not in wanted]
    if missing or unknown:
        raise ValueError(
            f"missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}. "
            f"This cell has {', '.join(wanted)}: s1… come with a norm, b1… with "
            'norm="layer", and no name has the layer\'s prefix'
        )


def check_shapes(tensors: Mapping[str, Tensor], wanted: Mapping[str, tuple[int, ...]]) -> None:
    """ValueError that lists every parameter of another shape."""
    wrong = [
        f"{name} is {tuple(tensors[name].shape)}, must be {shape}"
        for name, shape in wanted.items()
        if tuple(tensors[name].shape) != shape
    ]
    if wrong:
        raise ValueError(f"{'; '.join(wrong)} (input size and hidden size: rows of W and of U)")


def _from_numpy(name: str, value: Any) -> Tensor:
    try:
        array = np.array(value, order="C")
        return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))
    except (TypeError, ValueError) as error:  # torch names the types it takes, not the parameter
        raise TypeError(f"{name} is {type(value).__name__}; give an array of floats") from error


def _copied(name: str, value: Any) -> Tensor:
    tensor = value.detach().clone() if isinstance(value, Tensor) else _from_numpy(name, value)
    if not tensor.is_floating_point():
        raise TypeError(f"{name} is {tensor.dtype}; give floats")
    return tensor
