"""The unfused twins are the passes that torch runs: its own operations are counted here."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rmsnorm_edu import cost

WITHOUT_BYTES = {"view", "detach", "expand"}  # they describe the same memory another way


class Counted(TorchDispatchMode):
    """Bytes that pass by: of every operation, the memory of what it reads and what it writes.

    And its arithmetic: one operation for each number of its largest array, for a mean one more
    for each result; conversions are none.
    """

    bytes = flops = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        name = operation.__name__.split(".")[0]
        if name not in WITHOUT_BYTES:
            tensors = [a for a in tree_leaves((args, result)) if isinstance(a, torch.Tensor)]
            self.bytes += sum(a.untyped_storage().nbytes() for a in tensors)
            if name != "_to_copy":
                self.flops += max(a.numel() for a in tensors)
                self.flops += result.numel() if name == "mean" else 0
        return result


def layer_norm(x, weight, bias):
    wide = x.float()
    centred = wide - wide.mean(-1, keepdim=True)
    rstd = torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (centred * rstd * weight + bias).type_as(x)


def rms_norm(x, weight):
    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-6)


def by_hand(x, weight):
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)) * weight


@pytest.mark.equation("unfused-bytes")
@pytest.mark.parametrize(("rows", "n"), [(1, 7), (5, 8), (64, 48)])
@pytest.mark.parametrize(
    ("function", "prefix", "dtype"),
    [
        (by_hand, "", torch.float32),
        (rms_norm, "", torch.float32),
        (rms_norm, "", torch.float16),
        (rms_norm, "", torch.bfloat16),
        (layer_norm, "layer_norm_", torch.float32),
        (layer_norm, "layer_norm_", torch.bfloat16),
    ],
)
def test_torch_does_what_the_unfused_twins_do(function, prefix, dtype, rows, n):
    generator = torch.Generator().manual_seed(0)
    x = (torch.randn(rows, n, generator=generator) + 0.5).to(dtype).requires_grad_()
    vectors = torch.rand(2 if prefix else 1, n, generator=generator) + 0.5
    weights = [v.to(dtype).clone().requires_grad_() for v in vectors]
    dy = torch.randn(rows, n, generator=generator).to(dtype)
    with Counted() as there:
        y = function(x, *weights)
    with Counted() as back:
        y.backward(dy)
    assert there.bytes == cost.bytes_moved(f"{prefix}forward_unfused", rows, n, dtype)
    assert there.flops == cost.flops(f"{prefix}forward_unfused", rows, n)
    assert back.flops == cost.flops(f"{prefix}backward_unfused", rows, n)
    assert back.bytes == cost.bytes_moved(f"{prefix}backward_unfused", rows, n, dtype)
