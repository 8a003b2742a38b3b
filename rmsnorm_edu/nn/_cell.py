"""What `NormGRU` and `NormLSTM` share: the loop over the steps, the first values, the 2019 names.

A cell states its matrices and norms, `project` (what depends on x alone, for all steps at once)
and `step` (one step of the recurrence).
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import FunctionType
from typing import Any, ClassVar, Self, SupportsIndex

import torch
from torch import Tensor

from rmsnorm_edu._inputs import checked_eps, positive
from rmsnorm_edu.nn._cell_inputs import check_sequence
from rmsnorm_edu.nn._cell_norms import CellNorm, check_norm
from rmsnorm_edu.nn._original import check_shapes, checked_originals, names_of

Tensors = tuple[Tensor, ...]


class Cell(torch.nn.Module):
    """A recurrent layer over (T, B, input_size) with norms inside; see its two kinds."""

    ORIGINAL: ClassVar[dict[str, str]]  # the 2019 code's name → the parameter's name here

    def __init__(
        self,
        input_size: SupportsIndex,
        hidden_size: SupportsIndex,
        norm: str | None = "rms",
        *,
        p: float | None = None,
        eps: float = 1e-5,
        compiled: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_norm(norm, p)
        self.input_size = positive(input_size, "input_size")
        self.hidden_size = positive(hidden_size, "hidden_size")
        self.norm, self.p, self.eps, self.compiled = norm, p, checked_eps(eps), compiled
        self._build()
        self.to(device=device, dtype=dtype)
        self.reset_parameters()

    def _build(self) -> None:
        """Make the parameters and the norms."""
        raise NotImplementedError

    def _first_values(self, block: Tensor) -> None:
        """Fill one gate's columns of the input's matrix, where they are not square."""
        raise NotImplementedError

    def project(self, x: Tensor) -> Tensors:
        """What the steps need of x, which no state enters: (T, B, …) each."""
        raise NotImplementedError

    def step(self, projected: Tensors, state: Tensors, mask: Tensor | None = None) -> Tensors:
        """The state after one step: `project`'s parts at that step, the state before it, (B,)."""
        raise NotImplementedError

    def _matrix(self, rows: int, gates: int) -> torch.nn.Parameter:
        return torch.nn.Parameter(torch.empty(rows, gates * self.hidden_size))

    def _bias(self, gates: int) -> torch.nn.Parameter:
        return torch.nn.Parameter(torch.empty(gates * self.hidden_size))

    def _norm(self, gates: int) -> torch.nn.Module:
        if self.norm is None:
            return torch.nn.Identity()
        features = gates * self.hidden_size
        return CellNorm(features, self.norm, self.p, self.eps)

    def _check(self, x: Any) -> None:
        check_sequence(x, self.input_size, next(self.parameters()).dtype)

    def reset_parameters(self) -> None:
        """Draw the first values from torch's generator: each gate's block a draw of its own.

        The state's blocks are orthogonal, and so are square blocks of the input; weights of the
        norms are 1, biases 0.
        """
        for name, parameter in self.named_parameters(recurse=False):
            if parameter.ndim == 1:
                torch.nn.init.zeros_(parameter)
                continue
            for block in torch.split(parameter.detach(), self.hidden_size, dim=1):
                from_state = name.startswith("weight_hh") or len(block) == self.hidden_size
                _draw(block, torch.nn.init.orthogonal_ if from_state else self._first_values)
        for norm in self.children():
            if isinstance(norm, CellNorm):
                norm.reset_parameters()

    def _run(self, x: Tensor, mask: Tensor | None, state: Tensors) -> Tensors:
        """The states after every step, (T, B, hidden) each."""
        projected = self.project(x)
        if not len(x):  # no step: empty, and still a function of the weights
            none = projected[0][..., : self.hidden_size].to(x.dtype)
            return tuple(none + s[None][:0] for s in state)
        masks = len(x) * (None,) if mask is None else mask.unbind()
        parts = zip(*(part.unbind() for part in projected), strict=True)
        step = type(self).step
        if self.compiled and not torch.compiler.is_compiling():
            step = _compiled(step, self.norm, self.hidden_size)
        states = []
        for part, at_step in zip(parts, masks, strict=True):
            state = step(self, part, state, at_step)
            states.append(state)
        return tuple(torch.stack(sequence) for sequence in zip(*states, strict=True))

    @classmethod
    def from_original(
        cls,
        params: Mapping[str, Any],
        norm: str | None = "rms",
        *,
        p: float | None = None,
        eps: float = 1e-5,
    ) -> Self:
        """The cell with the 2019 code's parameters: arrays or tensors, copied, in their type.

        The names are those of `ORIGINAL`, without the layer's prefix: s1… for "rms", s1… and b1…
        for "layer", neither for None. Raises ValueError that lists the names missing, unknown or
        of a wrong shape, TypeError for what is not floats of one type.
        """
        check_norm(norm, p)
        names = names_of(cls.ORIGINAL, norm)
        tensors = checked_originals(params, tuple(names))
        sizes = len(tensors["W"]), len(tensors["U"])
        cell = cls(*sizes, norm, p=p, eps=eps, device="meta", dtype=tensors["W"].dtype)
        shapes = {old: tuple(parameter.shape) for old, parameter in cell.to_original().items()}
        check_shapes(tensors, shapes)
        cell.load_state_dict({names[old]: tensors[old] for old in names}, assign=True)
        return cell

    def to_original(self) -> dict[str, torch.nn.Parameter]:
        """The 2019 name → the live parameter, so that its gradient can be read by that name."""
        names = names_of(self.ORIGINAL, self.norm)
        return {old: self.get_parameter(new) for old, new in names.items()}

    def extra_repr(self) -> str:
        """For print: the sizes and what is not usual."""
        p = "" if self.p is None else f", p={self.p}"
        compiled = ", compiled=True" if self.compiled else ""
        return f"{self.input_size}, {self.hidden_size}, {self.norm!r}{p}, eps={self.eps}{compiled}"


def mixed(mask: Tensor | None, new: Tensor, old: Tensor) -> Tensor:
    """``mask · new + (1 − mask) · old``, with one number of the mask for each row."""
    if mask is None:
        return new
    share = mask[:, None]
    return share * new + (1 - share) * old


def _draw(block: Tensor, fill: Callable[[Tensor], object]) -> None:
    """Fill a block from a draw in float32 or wider: halves have no QR factorisation."""
    wide = torch.float64 if block.dtype == torch.float64 else torch.float32
    drawn = torch.empty(block.shape, dtype=wide, device=block.device)
    fill(drawn)
    block.copy_(drawn)


@cache
def _compiled(
    step: Callable[..., Tensors], norm: str | None, hidden_size: int
) -> Callable[..., Tensors]:
    """The step compiled, for each norm and size from a copy of its code.

    The compiler keeps eight variants of one code, and runs it eagerly after that. A mask or none,
    a state with a gradient or none, training or not: one cell alone has six.
    """
    code, defaults = step.__code__.replace(), step.__defaults__
    return torch.compile(FunctionType(code, step.__globals__, step.__name__, defaults))
