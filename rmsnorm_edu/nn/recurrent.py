"""GRU and LSTM with norms inside, in the semantics of the authors' 2019 code.

Source: `layers.py` of bzhangGo/rmsnorm at 2e726f1, run; Ba, Kiros and Hinton (2016), appendix, for
the places of the norms. The matrices are stored as there: rows of the input, columns of the gates.
"""

from typing import ClassVar

import torch
from torch import Tensor

from rmsnorm_edu.nn._cell import Cell, Tensors, mixed
from rmsnorm_edu.nn._cell_inputs import checked_mask, first_state


class NormGRU(Cell):
    """A GRU whose four projections are normalised, as the 2019 code computes it.

    With N a norm with a weight of its own each time, and [r | u] one vector of 2·hidden::

        [r̂ | û]   = N(x W + b) + N(h U)                 r, u = σ(r̂), σ(û)
        candidate = tanh(N(x Wₓ + bₓ) + r · N(h Uₓ))
        h_next    = u · h + (1 − u) · candidate
        h_next    = mask · h_next + (1 − mask) · h

    - One norm spans both gates; the candidate has its own.
    - r multiplies the normalised projection, not the state that is projected.
    - The biases stand inside the norm of the input. u keeps, as z does in `torch.nn.GRU`.
    - A mask between 0 and 1 mixes the new state with the old; it touches neither x nor a norm.
    - At h = 0 an "rms" norm has the slope weight / √eps (316 for 1e-5): so much larger is the
      gradient of a first state of zero.

    `norm` is "rms", "layer" or None; `p`, for "rms" alone, is the share of each normalised vector
    from whose first int(n·p) features the mean square is taken: n is 2·hidden or hidden, and the
    rounding is down, as in the 2019 code. Statistics are computed in float32 or wider.
    `compiled=True` passes the step through `torch.compile`, which gives no second derivatives.

    Parameters: the state's blocks start orthogonal, the input's uniform in ±0.1 (orthogonal where
    square), biases 0, the norms' weights 1. Each block is a draw of its own from torch's
    generator. (The helpers of the attentive reader, in which the 2019 LSTM ran, seed NumPy's
    generator with 123 at each call: there all four gates start with identical weights.)
    """

    ORIGINAL: ClassVar[dict[str, str]] = {
        "W": "weight_ih_gates",
        "b": "bias_gates",
        "U": "weight_hh_gates",
        "Wx": "weight_ih_candidate",
        "bx": "bias_candidate",
        "Ux": "weight_hh_candidate",
        "b1": "norm_ih_gates.bias",
        "b2": "norm_ih_candidate.bias",
        "b3": "norm_hh_gates.bias",
        "b4": "norm_hh_candidate.bias",
        "s1": "norm_ih_gates.weight",
        "s2": "norm_ih_candidate.weight",
        "s3": "norm_hh_gates.weight",
        "s4": "norm_hh_candidate.weight",
    }

    def _build(self) -> None:
        self.weight_ih_gates = self._matrix(self.input_size, 2)
        self.weight_hh_gates = self._matrix(self.hidden_size, 2)
        self.bias_gates = self._bias(2)
        self.weight_ih_candidate = self._matrix(self.input_size, 1)
        self.weight_hh_candidate = self._matrix(self.hidden_size, 1)
        self.bias_candidate = self._bias(1)
        self.norm_ih_gates, self.norm_hh_gates = self._norm(2), self._norm(2)
        self.norm_ih_candidate, self.norm_hh_candidate = self._norm(1), self._norm(1)

    def _first_values(self, block: Tensor) -> None:
        torch.nn.init.uniform_(block, -0.1, 0.1)

    def forward(self, x: Tensor, mask: Tensor | None = None, h0: Tensor | None = None) -> Tensor:
        """The states after each step, (T, B, hidden), in x's type.

        x (T, B, input), in the weights' type unless autocast is on; mask (T, B) or None for ones;
        h0 (B, hidden), or (hidden,) for the same first state in each example, or None for zeros.
        T and B may be 0. Raises ValueError for other shapes and TypeError for other types.
        """
        self._check(x)
        h = first_state(h0, "h0", x, self.hidden_size)
        return self._run(x, checked_mask(mask, x), (h,))[0]

    def project(self, x: Tensor) -> Tensors:
        """The input's share of the gates (…, 2·hidden) and of the candidate (…, hidden)."""
        gates = self.norm_ih_gates(x @ self.weight_ih_gates + self.bias_gates)
        candidate = self.norm_ih_candidate(x @ self.weight_ih_candidate + self.bias_candidate)
        return gates, candidate

    def step(
        self,
        projected: Tensors,
        state: Tensors,
        mask: Tensor | None = None,
    ) -> Tensors:
        """From `project`'s parts at this step and (h,) to the next (h,)."""
        (gates_x, candidate_x), (h,) = projected, state
        gates_h = self.norm_hh_gates(h @ self.weight_hh_gates)
        r, u = torch.sigmoid(gates_x + gates_h).chunk(2, dim=-1)
        candidate_h = self.norm_hh_candidate(h @ self.weight_hh_candidate)
        candidate = torch.tanh(candidate_x + r * candidate_h)
        h_next = u * h + (1 - u) * candidate
        return (mixed(mask, h_next, h).to(h.dtype),)


class NormLSTM(Cell):
    """An LSTM with three norms, as the 2019 code computes it.

    With N a norm with a weight of its own each time, over 4·hidden numbers in the first line::

        z      = N(x W + b) + N(h U) + b                b twice, with or without a norm
        i, f, o = σ(z₁), σ(z₂), σ(z₃)    g = tanh(z₄)   the order of the columns
        c_next = mask · (f · c + i · g) + (1 − mask) · c
        h_next = mask · (o · tanh(N(c_next))) + (1 − mask) · h

    - One norm spans all four blocks of columns.
    - The bias stands inside the norm of the input and once more outside; with norm=None it counts
      double.
    - The cell is normalised for the output alone: what the next step gets is c_next itself.

    `norm`, `p` (n is 4·hidden, and hidden for the cell), `compiled` and the first values are those
    of `NormGRU`, except for the input's blocks: uniform in ±√(6 / (input + hidden)). The forget
    gate's bias starts at 0 like the others.
    """

    ORIGINAL: ClassVar[dict[str, str]] = {
        "W": "weight_ih",
        "U": "weight_hh",
        "b": "bias",
        "b1": "norm_ih.bias",
        "b2": "norm_hh.bias",
        "b3": "norm_cell.bias",
        "s1": "norm_ih.weight",
        "s2": "norm_hh.weight",
        "s3": "norm_cell.weight",
    }

    def _build(self) -> None:
        self.weight_ih = self._matrix(self.input_size, 4)
        self.weight_hh = self._matrix(self.hidden_size, 4)
        self.bias = self._bias(4)
        self.norm_ih, self.norm_hh = self._norm(4), self._norm(4)
        self.norm_cell = self._norm(1)

    def _first_values(self, block: Tensor) -> None:
        torch.nn.init.xavier_uniform_(block)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        h0: Tensor | None = None,
        c0: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The states h and the cells c after each step, (T, B, hidden) each, in x's type.

        x, mask, h0 and errors as in `NormGRU.forward`; c0 like h0.
        """
        self._check(x)
        h = first_state(h0, "h0", x, self.hidden_size)
        c = first_state(c0, "c0", x, self.hidden_size)
        states, cells = self._run(x, checked_mask(mask, x), (h, c))
        return states, cells

    def project(self, x: Tensor) -> Tensors:
        """The input's share of the four gates, (…, 4·hidden)."""
        return (self.norm_ih(x @ self.weight_ih + self.bias),)

    def step(
        self,
        projected: Tensors,
        state: Tensors,
        mask: Tensor | None = None,
    ) -> Tensors:
        """From `project`'s part at this step and (h, c) to the next (h, c)."""
        h, c = state
        z = projected[0] + self.norm_hh(h @ self.weight_hh) + self.bias
        *gates, candidate = z.chunk(4, dim=-1)
        i, f, o = (torch.sigmoid(gate) for gate in gates)
        c_next = mixed(mask, f * c + i * torch.tanh(candidate), c)
        h_next = mixed(mask, o * torch.tanh(self.norm_cell(c_next)), h)
        return h_next.to(h.dtype), c_next.to(c.dtype)
