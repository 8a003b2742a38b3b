"""Blocks of rows: the bits of a row do not depend on batch, block or memory layout."""

import pytest
import torch
from tensors import gains, uneven

from rmsnorm_edu.nn import _blocked
from rmsnorm_edu.nn.functional import rms_norm

LONG = 2**15 + 232  # alone, torch sums a row of so many features in parts


def gradients(x, dy, weight, **options):
    x, weight = x.detach().clone().requires_grad_(), weight.clone().requires_grad_()
    y = rms_norm(x, weight, **options)
    return (y.detach(), *torch.autograd.grad(y, (x, weight), dy))


@pytest.mark.parametrize("convention", ["torch", "paper_torch"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("rows", "n"), [(70, 37), (700, 3000), (5, LONG)])
def test_a_row_has_the_same_bits_in_any_batch(rows, n, dtype, convention) -> None:
    x, dy = uneven(rows, n, dtype=dtype), uneven(rows, n, dtype=dtype, seed=1)
    options = {"convention": convention, "k": n - 1}
    y, dx, _ = gradients(x, dy, gains(n, dtype=dtype), **options)
    for some in (slice(0, 1), slice(1, 4), slice(rows - 2, rows)):
        few, dfew, _ = gradients(x[some], dy[some], gains(n, dtype=dtype), **options)
        assert torch.equal(few, y[some])
        assert torch.equal(dfew, dx[some])


@pytest.mark.parametrize("size", [1, 2**10, 2**14])
def test_blocks_of_any_size(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """y and dx are the same; dweight is summed in another order, and off by its rounding."""
    x, dy, weight = uneven(31, 64).float(), uneven(31, 64, seed=1).float(), gains(64).float()
    whole = gradients(x, dy, weight)
    monkeypatch.setattr(_blocked, "BLOCK", size)
    parts = gradients(x, dy, weight)
    assert torch.equal(parts[0], whole[0])
    assert torch.equal(parts[1], whole[1])
    xhat = x / x.square().mean(-1, keepdim=True).sqrt()
    allowed = 32 * 2.0**-24 * (dy * xhat).abs().sum(0)
    assert torch.all((parts[2] - whole[2]).abs() <= allowed)


def test_the_recorded_backward_has_the_same_bits() -> None:
    x, dy, weight = uneven(70, 3000).float(), uneven(70, 3000, seed=1).float(), gains(3000).float()
    _, dx, _ = gradients(x, dy, weight)
    x.requires_grad_()
    recorded = torch.autograd.grad(rms_norm(x, weight), x, dy, create_graph=True)[0]
    assert recorded.requires_grad
    assert torch.equal(recorded, dx)


LAYOUTS = {
    "with gaps": lambda x: torch.stack([x, x + 1], -1)[..., 0],
    "every second row": lambda x: torch.stack([x, x + 1], 1)[:, 0],
    "transposed": lambda x: x.mT.contiguous().mT,
    "one of a split": lambda x: torch.cat([x, x, x], -1).split(x.shape[-1], -1)[1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_row_has_the_same_bits_in_any_layout(layout: str) -> None:
    x, dy, weight = uneven(90, 1500).float(), uneven(90, 1500, seed=1).float(), gains(1500).float()
    other = LAYOUTS[layout](x)
    assert not other.is_contiguous()
    before = other.clone()
    for a, b in zip(gradients(x, dy, weight), gradients(other, dy, weight), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(rms_norm(other, weight), rms_norm(x, weight))
    assert torch.equal(other, before)


def test_channels_last_and_expanded() -> None:
    x, weight = uneven(2, 6, 5, 8).float(), gains(8).float()
    y = rms_norm(x, weight)
    assert torch.equal(rms_norm(x.to(memory_format=torch.channels_last), weight), y)
    row = x[0, 0, :1].expand(700, 8).requires_grad_()
    y = rms_norm(row, weight)
    assert torch.equal(y, rms_norm(row.detach().clone(), weight))
    y.sum().backward()  # an upstream gradient of one number, expanded


def test_nothing_of_the_caller_is_written_to() -> None:
    x, dy, weight, bias = uneven(70, 3000), uneven(70, 3000, seed=1), gains(3000), gains(3000)
    given = [t.float() for t in (x, dy, weight, bias)]
    before = [t.clone() for t in given]
    leaves = [given[0].requires_grad_(), given[2].requires_grad_(), given[3].requires_grad_()]
    rms_norm(*leaves).backward(given[1])
    assert all(torch.equal(a, b) for a, b in zip(given, before, strict=True))


def test_no_rows() -> None:
    y, dx, dweight = gradients(torch.empty(0, 3, 8), torch.empty(0, 3, 8), gains(8).float())
    assert y.shape == dx.shape == (0, 3, 8)
    assert dweight.tolist() == [0.0] * 8


def test_the_weight_gradient_of_many_rows_errs_little() -> None:
    """A sum of 70000 numbers, one after the other, is wrong by 8e-6; in pairs by 1e-7."""
    x, dy, weight = (uneven(70000, 8).abs() + 0.5).float(), torch.ones(70000, 8), gains(8).float()
    got = gradients(x, dy, weight, eps=1e-6)[2].double()
    exact = gradients(x.double(), dy.double(), weight.double(), eps=1e-6)[2]
    assert torch.all((got - exact).abs() <= 16 * 2.0**-24 * exact)


@pytest.mark.parametrize("eps", [0.0, 1e-12])
@pytest.mark.parametrize("convention", ["torch", "paper_torch"])
def test_gradient_of_a_tiny_row_is_finite(convention: str, eps: float) -> None:
    """The cube of 1/RMS, or 1/RMS · 1/ε², would be beyond float32."""
    x = (1e-17 * uneven(3, 8)).float()
    dy, weight, options = uneven(3, 8, seed=1).float(), gains(8).float(), {"eps": eps}
    got = gradients(x, dy, weight, convention=convention, **options)[1].double()
    given = (x.double(), dy.double(), weight.double())
    exact = gradients(*given, convention=convention, **options)[1]
    torch.testing.assert_close(got, exact, rtol=0, atol=1e-6 * float(exact.abs().max()))
