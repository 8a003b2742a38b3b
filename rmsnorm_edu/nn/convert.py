"""Checkpoints from elsewhere, and which parameters a weight decay leaves alone.

Nothing in the numbers of a file says which gain it holds, w or 1 + w: the caller has to know. So
each conversion has a direction in its name, and is asked for once.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from rmsnorm_edu.nn.modules import RMSNorm

__all__ = ["decay_groups", "from_one_plus", "from_paper", "to_one_plus", "to_paper"]

_OURS = {"scale": "weight", "offset": "bias"}
_THEIRS = {ours: theirs for theirs, ours in _OURS.items()}


def from_paper(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state_dict of the 2019 torch class under our names: scale → weight, offset → bias.

    Works on the last part of each key, so a whole model's "encoder.norm.scale" becomes
    "encoder.norm.weight"; other keys stay. The tensors are the caller's own, not copies. Raises
    ValueError if the new name is taken already.

    >>> sorted(from_paper({"norm.scale": torch.ones(2), "linear.bias": torch.ones(2)}))
    ['linear.bias', 'norm.weight']
    """
    return _renamed(state_dict, {key: _with_leaf(key, _OURS) for key in state_dict})


def to_paper(state_dict: Mapping[str, Tensor], norms: Iterable[str] = ("",)) -> dict[str, Tensor]:
    """The inverse of `from_paper`, for the modules named in `norms`: weight → scale, bias → offset.

    Other modules have a "weight" too, so a model's norms have to be named, as in
    model.named_modules(); the default, "", is the state_dict of a norm alone. Raises ValueError
    for a module without a weight or a name that is taken already.

    >>> sorted(to_paper({"norm.weight": torch.ones(2), "linear.weight": torch.ones(2)}, ["norm"]))
    ['linear.weight', 'norm.scale']
    """
    prefixes = [f"{name}." if name else "" for name in _listed(norms, "norms")]
    _check_present(state_dict, [f"{prefix}weight" for prefix in prefixes])
    inside = [prefix + leaf for prefix in prefixes for leaf in _THEIRS]
    return _renamed(state_dict, {key: _with_leaf(key, _THEIRS) for key in inside})


def from_one_plus(state_dict: Mapping[str, Tensor], names: Iterable[str]) -> dict[str, Tensor]:
    """Gemma-style weights w, with the gain 1 + w, as plain gains: w → 1 + w for the keys `names`.

    The sum is taken in float32 (float64 for float64) and stays there, as Gemma's own code takes it
    in float32: in bfloat16 it would keep eight bits. Load it into a float32 norm, or with
    convention="gemma" load the file as it is and convert nothing.

    A second call adds a second 1, and so does a call on a file that holds gains: llama.cpp's GGUF
    files of Gemma do. Nothing in the numbers shows it, and nothing raises; compare one gain with
    the model's original. Raises ValueError for a name that is not there or is named twice.

    >>> from_one_plus({"norm.weight": torch.tensor([0.5])}, ["norm.weight"])
    {'norm.weight': tensor([1.5000])}
    """
    return _shifted(state_dict, names, 1.0)


def to_one_plus(
    state_dict: Mapping[str, Tensor], names: Iterable[str], dtype: torch.dtype | None = None
) -> dict[str, Tensor]:
    """The inverse of `from_one_plus`: gains → gain − 1 for the keys `names`, in `dtype` if given.

    The difference is taken in float32 or float64. A bfloat16 w of at least 2⁻¹⁶ comes back bit for
    bit; of a smaller one, 1 + w has lost up to 2⁻²⁴. Raises as `from_one_plus` does.

    >>> to_one_plus({"norm.weight": torch.tensor([1.5])}, ["norm.weight"])
    {'norm.weight': tensor([0.5000])}
    """
    shifted = _shifted(state_dict, names := _listed(names, "names"), -1.0)
    return shifted | {name: shifted[name].to(dtype) for name in names if dtype is not None}


def decay_groups(
    model: nn.Module, weight_decay: float, is_norm: Callable[[nn.Module], bool] | None = None
) -> list[dict[str, Any]]:
    """Two parameter groups for an optimiser: the first decays, the second does not.

    No decay for every parameter with fewer than two axes (gains and biases of any class, known
    here or not) and for every parameter of a norm, whatever its axes: torch's own, this
    package's, and modules for which `is_norm(module)` holds. A tied parameter is listed once, and
    does not decay if one of its owners is a norm.

    Decay pulls a plain gain to 0, which takes the layer's signal away, and a gain stored as 1 + w
    to 1, since it pulls w to 0: milder, and still a wish that the data have not expressed. Neither
    belongs to the weights whose size the decay is there to limit. Raises ValueError for a negative
    weight_decay.

    >>> model = nn.Sequential(nn.Linear(3, 3), nn.RMSNorm(3))
    >>> [len(group["params"]) for group in decay_groups(model, 0.1)]
    [1, 2]
    """
    if isinstance(weight_decay, bool) or not isinstance(weight_decay, Real):
        kind = type(weight_decay).__name__
        raise TypeError(f"weight_decay = {weight_decay!r} is {kind}; give a number, like 0.1")
    if not 0 <= weight_decay < math.inf:
        raise ValueError(f"weight_decay = {weight_decay}; give a finite number >= 0, like 0.1")
    of_norms = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, _NORMS) or (is_norm is not None and is_norm(module))
        for parameter in module.parameters(recurse=False)
    }
    groups: tuple[list[nn.Parameter], list[nn.Parameter]] = ([], [])
    for parameter in model.parameters():  # each once, tied or not
        groups[parameter.ndim < 2 or id(parameter) in of_norms].append(parameter)
    return [
        {"params": groups[0], "weight_decay": weight_decay},
        {"params": groups[1], "weight_decay": 0.0},
    ]


_NORMS = (RMSNorm, nn.RMSNorm, nn.LayerNorm)  # those whose gain can have two axes or more


def _with_leaf(key: str, names: Mapping[str, str]) -> str:
    """The key with its last part renamed."""
    before, dot, leaf = key.rpartition(".")
    return before + dot + names.get(leaf, leaf)


def _renamed(state_dict: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, Tensor]:
    renamed: dict[str, Tensor] = {}
    for key, tensor in state_dict.items():
        new = names.get(key, key)
        if new in renamed or (new != key and new in state_dict):
            raise ValueError(f"{key} becomes {new}, which is there already; keep one of the two")
        renamed[new] = tensor
    return renamed


def _shifted(
    state_dict: Mapping[str, Tensor], names: Iterable[str], by: float
) -> dict[str, Tensor]:
    names = _listed(names, "names")
    _check_present(state_dict, names)
    if len(set(names)) < len(names):
        raise ValueError(f"names has a key twice: {sorted(names)}; name each once")
    return dict(state_dict) | {name: _added(state_dict[name], by) for name in names}


def _listed(names: Iterable[str], what: str) -> list[str]:
    if isinstance(names, str):  # its letters would be taken for names
        raise TypeError(f"{what} is the string {names!r}; give a list, [{names!r}]")
    return list(names)


def _added(w: Tensor, by: float) -> Tensor:
    return w.to(torch.promote_types(w.dtype, torch.float32)) + by


def _check_present(state_dict: Mapping[str, Tensor], names: Iterable[str]) -> None:
    missing = [name for name in names if name not in state_dict]
    if missing:
        there = ", ".join(state_dict) or "nothing"
        raise ValueError(f"no {', '.join(missing)} in the state_dict, which has {there}")
