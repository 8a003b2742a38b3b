"""The equations of the chapter "A module for PyTorch": memory, decay, a gain that cannot move."""

import pytest
import torch
from torch import nn

from rmsnorm_edu import precision
from rmsnorm_edu.nn import RMSNorm
from rmsnorm_edu.nn.convert import decay_groups

WIDTH = {torch.float16: (2, 4), torch.bfloat16: (2, 4), torch.float32: (4, 4)}


class Plain(nn.Module):
    """The norm in plain operations, differentiated by autograd."""

    def __init__(self, n: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((n,), 1.5, dtype=dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        xhat = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return (xhat * self.weight).to(x.dtype)


class Closed(torch.autograd.Function):
    """The backward in closed form, for what it keeps: x and rstd."""

    @staticmethod
    def forward(x, weight):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        rstd = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return (wide * rstd * weight).to(x.dtype), rstd

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output[1])


class ByHand(Plain):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Closed.apply(x, self.weight)[0]


def bytes_kept(layer: nn.Module, x: torch.Tensor) -> int:
    """What autograd keeps beside the weight."""
    tensors: dict[int, torch.Tensor] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        tensors[tensor.data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        layer(x)
    return sum(t.nbytes for t in tensors.values() if t.numel() != x.shape[-1])


@pytest.mark.equation("kept-bytes")
@pytest.mark.parametrize("dtype", WIDTH)
def test_bytes_kept_for_the_way_back(dtype: torch.dtype) -> None:
    rows, n = 6, 40
    b_x, b_c = WIDTH[dtype]
    x = torch.linspace(-1, 3, rows * n).reshape(rows, n).to(dtype).requires_grad_()
    by_autograd = rows * (2 * n * b_c + b_c)
    by_hand = rows * (n * b_x + b_c)
    assert bytes_kept(Plain(n, torch.float32), x) == by_autograd
    assert bytes_kept(ByHand(n, torch.float32), x) == by_hand
    assert bytes_kept(RMSNorm(n), x) == rows * n * b_x


@pytest.mark.equation("decayed-gain")
@pytest.mark.parametrize("one_plus", [False, True])
def test_decay_without_a_gradient(one_plus: bool) -> None:
    start, rate, strength, steps = 1.75, 0.1, 0.5, 30
    stored = nn.Parameter(torch.tensor([[start - one_plus]], dtype=torch.float64))
    adam = torch.optim.AdamW([stored], lr=rate, weight_decay=strength)
    for _ in range(steps):
        stored.grad = torch.zeros_like(stored)
        adam.step()
    factor = (1 - rate * strength) ** steps
    expected = 1 + (start - 1) * factor if one_plus else start * factor
    assert float(stored.detach()) + one_plus == pytest.approx(expected, rel=1e-12)


def test_decay_groups_keep_the_gain() -> None:
    layer = RMSNorm(3)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([0.5, -2.0, 3.0]))
    adam = torch.optim.AdamW(decay_groups(layer, 0.5), lr=0.1)
    layer.weight.grad = torch.zeros(3)
    adam.step()
    assert layer.weight.tolist() == [0.5, -2.0, 3.0]


@pytest.mark.equation("stuck-gain")
@pytest.mark.parametrize(("dtype", "fraction_bits"), [("float16", 10), ("bfloat16", 7)])
def test_a_step_below_half_a_gap_is_lost(dtype: str, fraction_bits: int) -> None:
    kind = getattr(torch, dtype)
    one, limit = torch.ones(1, dtype=kind), 2.0 ** -(fraction_bits + 2)
    assert precision.ulp([0.75], dtype)[0] == 2 * limit  # the gap below 1
    assert torch.equal((one.double() - 0.999 * limit).to(kind), one)
    assert not torch.equal((one.double() - 1.001 * limit).to(kind), one)
