"""The residual add with its norm, interpreted: against float64, within what rounding explains."""

import numpy as np
import pytest
from dialects import of
from tensors import TYPES, gains, uneven

pytest.importorskip("triton", reason="Triton has wheels for Linux alone")
import torch
from torch import Tensor

from rmsnorm_edu import precision, reference
from rmsnorm_edu.kernels import _runtime, fused_add
from rmsnorm_edu.kernels import backward as backward_module
from rmsnorm_edu.kernels.forward import forward

EPS = 1e-6
SIZES = (1, 2, 3, 7, 31, 100, 127, 128, 129, 1000, 1024, 1025, 4096, 8192, 65536)
PART = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-7}  # of a store; bf16: cut off
WIDE = 2.0**-24  # of an operation


@pytest.fixture(params=[(100, 8192), (520, 8192), (520, 256)], ids=["tile", "row", "loop"])
def d(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The length of a row; the last is longer than what counts as long here."""
    size, longest = request.param
    monkeypatch.setattr(backward_module, "LONGEST", longest)
    return size


def inputs(rows: int, d: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    """x, residual, dy, dh (rows, d), and weight (d,)."""
    some = max(rows, 1)
    four = [uneven(some, d, seed=seed)[:rows] for seed in range(4)]
    four[1] = 3.0 - 0.5 * four[1]
    return tuple(t.to(dtype).to(_runtime.default_device()) for t in (*four, gains(d)))


def exact(tensor: Tensor) -> np.ndarray:
    return of(tensor.double().cpu())


def judged(results, h: Tensor, dy: Tensor, dh: Tensor, weight: Tensor, offset: float = 0.0) -> None:
    """y, dx and dweight, for this h, differ from float64 by rounding alone."""
    y, dx, dweight = map(exact, results)
    name = str(h.dtype).removeprefix("torch.")
    words = {"eps": EPS, "dtype": name, "store": "truncate" if name == "bfloat16" else "round"}
    h, dy, dh, w = exact(h), exact(dy), exact(dh), exact(weight) + offset
    true_dx, true_dweight = reference.rms_norm_vjp(dy, h, w, eps=EPS)
    true_y = reference.rms_norm(h, w, eps=EPS)
    assert (np.abs(y - true_y) <= precision.allowed("y", h, w, **words)).all()
    assert (np.abs(dweight - true_dweight) <= precision.allowed("dweight", h, w, dy, **words)).all()
    # one addition more, and the one store is of dh + dx
    limit = precision.allowed("dx", h, w, dy, **words) + PART[name] * np.abs(dh)
    limit = limit + 2 * WIDE * (np.abs(dh) + np.abs(true_dx))
    assert (np.abs(dx - (dh + true_dx)) <= limit).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("d", SIZES)
def test_every_size_and_type_within_the_bound(d: int, dtype: str) -> None:
    x, residual, dy, dh, weight = inputs(1 if d > 1025 else 5, d, TYPES[dtype])
    y, h, rstd = fused_add.forward(x, residual, weight, EPS)
    whole = exact(x) + exact(residual)
    assert (np.abs(exact(h) - whole) <= PART[dtype] * (1 + WIDE) * np.abs(whole)).all()
    dx, dweight = fused_add.backward(dy, dh, h, weight, rstd)
    assert [t.dtype for t in (y, h, dx, dweight)] == [TYPES[dtype]] * 4
    judged((y, dx, dweight), h, dy, dh, weight)


@pytest.mark.parametrize("casting", ["torch", "llama", "gemma"])
def test_it_is_an_addition_and_a_norm(d: int, casting: str) -> None:
    """In float16, which the interpreter rounds right; only the order of the sum differs."""
    x, residual, *_, weight = inputs(3, d, torch.float16)
    words = {"eps": 1e-5, "casting": casting, "weight_offset": 1.0}
    y, h, rstd = fused_add.forward(x, residual, weight.float(), **words)
    assert torch.equal(h, x + residual)
    plain, plain_rstd = forward(h, weight.float(), **words)
    assert y.dtype == plain.dtype == (torch.float32 if casting == "llama" else torch.float16)
    torch.testing.assert_close(rstd, plain_rstd, rtol=1e-6, atol=0)
    torch.testing.assert_close(y, plain, rtol=2.0**-10, atol=0)


@pytest.mark.parametrize("weighted", [True, False])
def test_strides_are_honoured_and_nothing_is_written_over(d: int, weighted: bool) -> None:
    x, residual, dy, dh, weight = inputs(3, d)
    w = weight if weighted else None
    apart = [t.T.contiguous().T for t in (x, dy)]
    apart += [torch.stack((t, t), 2)[:, :, 1] for t in (residual, dh)]
    kept = [t.clone() for t in apart]
    forwards = fused_add.forward(x, residual, w), fused_add.forward(apart[0], apart[2], w)
    assert all(map(torch.equal, *forwards))
    _, h, rstd = forwards[0]
    dx, dweight = fused_add.backward(dy, dh, h, w, rstd, weight_offset=0.5)
    again = fused_add.backward(apart[1], apart[3], h, w, rstd, weight_offset=0.5)
    assert torch.equal(dx, again[0])
    assert dweight is again[1] is None if w is None else torch.equal(dweight, again[1])
    assert all(map(torch.equal, apart, kept))


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_every_program_writes_its_sums(d: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh memory holds nan here: a program that wrote none of its rows would show."""
    empty = torch.empty
    monkeypatch.setattr(backward_module, "processors", lambda x: 5)
    monkeypatch.setattr(torch, "empty", lambda *size, **kw: empty(*size, **kw).fill_(torch.nan))
    x, residual, dy, dh, weight = inputs(rows, d)
    y, h, rstd = fused_add.forward(x, residual, weight, EPS)
    dx, dweight = fused_add.backward(dy, dh, h, weight, rstd)
    monkeypatch.setattr(torch, "empty", empty)
    if rows:
        return judged((y, dx, dweight), h, dy, dh, weight)
    assert y.shape == h.shape == dx.shape == (0, d)
    assert torch.equal(dweight, torch.zeros_like(weight))


def test_a_row_has_the_same_bits_in_any_batch(d: int) -> None:
    x, residual, dy, dh, weight = inputs(4, d)
    y, h, rstd = fused_add.forward(x, residual, weight)
    dx, _ = fused_add.backward(dy, dh, h, weight, rstd)
    part = slice(1, 3)
    assert torch.equal(fused_add.forward(x[part], residual[part], weight)[0], y[part])
    alone = fused_add.backward(dy[part], dh[part], h[part], weight, rstd[part])
    assert torch.equal(alone[0], dx[part])


def test_zeros_nan_and_infinities(d: int) -> None:
    x, residual, dy, dh, weight = inputs(5, d)
    residual[0] = -x[0]
    x[1, 2], residual[2, 1], dh[3, 0] = torch.nan, torch.inf, torch.nan
    y, h, rstd = fused_add.forward(x, residual, weight, EPS)
    dx, dweight = fused_add.backward(dy, dh, h, weight, rstd)
    true_y = reference.rms_norm(exact(h), exact(weight), eps=EPS)
    true_dx, true_dweight = reference.rms_norm_vjp(exact(dy), exact(h), exact(weight), eps=EPS)
    np.testing.assert_allclose(exact(y), true_y, rtol=1e-5)
    np.testing.assert_allclose(exact(dx), true_dx + exact(dh), rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(exact(dweight), true_dweight, rtol=1e-5, atol=1e-4)
    assert (exact(y)[0] == 0).all()
    assert np.isnan(exact(dx)).sum(1).tolist() == [0, d, d, 1, 0]
