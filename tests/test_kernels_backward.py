"""The backward kernels, interpreted: each rung against float64, within what rounding explains."""

import numpy as np
import pytest
from dialects import of
from tensors import TYPES, gains, uneven

pytest.importorskip("triton", reason="Triton has wheels for Linux alone")
import torch
from torch import Tensor

from rmsnorm_edu import precision, reference
from rmsnorm_edu.kernels import _runtime, forward
from rmsnorm_edu.kernels import backward as module
from rmsnorm_edu.kernels.backward import backward

EPS = 1e-6
SIZES = (1, 2, 3, 7, 31, 100, 127, 128, 129, 1000, 1024, 1025, 4096, 8192, 65536)
HALF = ("float16", "bfloat16")
RUNGS = [("dx_only", 100), ("partials", 100), ("many_rows", 100), ("dx_long", 100)]
RUNGS += [("dx_only", 600), ("dx_long", 5000)]
EACH = [(100, "many_rows"), (520, "partials"), (520, "dx_long")]


def inputs(rows: int, d: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    """dy, x and weight, on the device of the kernels."""
    device = _runtime.default_device()
    dy = uneven(rows, d, seed=1).flip(0) - 0.2 if rows else uneven(1, d)[:0]
    x = uneven(rows, d) if rows else uneven(1, d)[:0]
    return tuple(t.to(dtype).to(device) for t in (dy, x, gains(d)))


def rstd_of(x: Tensor) -> Tensor:
    """What the forward saves: float32, or float64 for float64."""
    wide = x.to(torch.float64).square().mean(1)
    return (wide + EPS).rsqrt().to(forward.computing_type(x))


def judged(results, dy: Tensor, x: Tensor, weight: Tensor, offset: float = 0.0) -> None:
    """dx, dweight and dbias (None: not asked for) differ by rounding alone."""
    store = "truncate" if x.dtype == torch.bfloat16 else "round"  # Triton's interpreter cuts off
    name = str(x.dtype).removeprefix("torch.")
    dx, dweight, dbias = (None if a is None else of(a.double().cpu()) for a in results)
    dy, x, w = (of(a.double().cpu()) for a in (dy, x, weight))
    true = reference.rms_norm_vjp(dy, x, offset + w, eps=EPS)
    for what, got, exact in (("dx", dx, true[0]), ("dweight", dweight, true[1])):
        if got is not None:
            limit = precision.allowed(what, x, offset + w, dy, eps=EPS, store=store, dtype=name)
            assert (np.abs(got - exact) <= limit).all(), what
    if dbias is not None:
        limit = (len(dy) - 1) * 2.0**-24 * np.abs(dy).sum(0)
        assert (np.abs(dbias - dy.sum(0)) <= limit).all()


@pytest.mark.equation("dx-vector", "dx-kernel", "dweight", "dweight-partials")
@pytest.mark.parametrize("dtype", ["float32", *HALF])
@pytest.mark.parametrize("d", SIZES)
def test_every_size_and_type_within_the_bound(d: int, dtype: str) -> None:
    dy, x, weight = inputs(2 if d > 1025 else 5, d, TYPES[dtype])
    results = backward(dy, x, weight, rstd_of(x), has_bias=d % 2 == 1)
    assert [r.dtype for r in results[:2]] == [x.dtype, weight.dtype]
    assert (results[2] is None) is (d % 2 == 0)
    judged(results, dy, x, weight)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(("rung", "d"), RUNGS)
def test_every_rung_gives_the_same_gradients(rung: str, d: int, weighted: bool) -> None:
    dy, x, weight = inputs(7, d)
    w = weight if weighted else None
    dx, dweight, dbias = backward(
        dy, x, w, rstd_of(x), has_bias=True, weight_offset=0.75, rung=rung
    )
    assert (dweight is None) is (not weighted or rung == "dx_only")
    assert (dbias is None) is (rung == "dx_only")
    gain = weight if weighted else torch.full_like(weight, 0.25)
    judged((dx, dweight, dbias), dy, x, gain, 0.75)


def test_float64_is_computed_in_float64() -> None:
    dy, x, weight = inputs(5, 100, torch.float64)
    for got, exact in zip(
        backward(dy, x, weight, rstd_of(x))[:2],
        reference.rms_norm_vjp(*(of(a.cpu()) for a in (dy, x, weight)), eps=EPS),
        strict=True,
    ):
        np.testing.assert_allclose(of(got.cpu()), exact, rtol=0, atol=1e-13 * np.abs(exact).max())


@pytest.mark.parametrize(("d", "rung"), EACH)
def test_strides_are_honoured_and_nothing_is_written_over(d: int, rung: str) -> None:
    dy, x, weight = inputs(6, d)
    spread = torch.full((9, d, 3), torch.nan, device=x.device)
    spread[2:8, :, 1] = x
    columns = torch.empty(d, 6, device=x.device).copy_(dy.T)
    strided = (columns.T, spread[2:8, :, 1], weight.repeat_interleave(2)[::2])
    kept = [t.clone() for t in strided]
    got = backward(*strided, rstd_of(x), has_bias=True, rung=rung)
    plain = backward(dy, x, weight, rstd_of(x), has_bias=True, rung=rung)
    assert all(map(torch.equal, got, plain))
    assert all(map(torch.equal, strided, kept))


@pytest.mark.parametrize(("d", "rung"), EACH)
def test_a_gradient_that_is_one_number_expanded(d: int, rung: str) -> None:
    """What y.sum().backward() hands over: steps of 0."""
    _, x, weight = inputs(5, d)
    dy = torch.full((), 0.75, device=x.device).expand(5, d)
    assert dy.stride() == (0, 0)
    judged(backward(dy, x, weight, rstd_of(x), has_bias=True, rung=rung), dy, x, weight)


@pytest.mark.parametrize("rows", [0, 1, 13])
@pytest.mark.parametrize(("d", "rung"), EACH)
def test_every_program_writes_its_sums(
    rows: int, d: int, rung: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fresh memory holds nan here: a program that wrote none of its rows would show."""
    empty = torch.empty
    monkeypatch.setattr(module, "processors", lambda x: 5)
    monkeypatch.setattr(torch, "empty", lambda *size, **kw: empty(*size, **kw).fill_(torch.nan))
    dy, x, weight = inputs(rows, d)
    results = backward(dy, x, weight, rstd_of(x), has_bias=True, rung=rung)
    monkeypatch.undo()
    if rows:
        return judged(results, dy, x, weight)
    assert results[0].shape == (0, d)
    assert all(torch.equal(total, torch.zeros_like(weight)) for total in results[1:])


@pytest.mark.parametrize(("d", "rung"), EACH)
def test_a_row_has_the_same_bits_in_any_batch_and_a_sum_in_every_run(d: int, rung: str) -> None:
    dy, x, weight = inputs(5, d)
    rstd = rstd_of(x)
    dx, dweight, _ = backward(dy, x, weight, rstd, rung=rung)
    for part in (slice(0, 1), slice(1, 4), slice(4, 5)):
        assert torch.equal(backward(dy[part], x[part], weight, rstd[part], rung=rung)[0], dx[part])
    assert torch.equal(backward(dy, x, weight, rstd, rung=rung)[1], dweight)


@pytest.mark.parametrize(("d", "rung"), EACH)
def test_zeros_nan_and_infinities(d: int, rung: str) -> None:
    """As the reference: a zero row passes dy · gain / sqrt(eps) on; nan and inf spoil their row."""
    dy, x, weight = inputs(5, d)
    x[0] = 0.0
    x[1, 2], x[2, 1], dy[3, 0] = torch.nan, torch.inf, torch.nan
    dx, dweight, _ = (
        of(t.cpu()) for t in backward(dy, x, weight, rstd_of(x), has_bias=True, rung=rung)
    )
    exact = reference.rms_norm_vjp(*(of(t.cpu()) for t in (dy, x, weight)), eps=EPS)
    size = np.nanmax(
        np.abs(exact[0]), axis=1, keepdims=True, initial=1.0, where=exact[0] == exact[0]
    )
    np.testing.assert_array_equal(np.isnan(dx), np.isnan(exact[0]))
    assert np.isnan(dx).sum() == 3 * d
    assert np.nanmax(np.abs(dx - exact[0]) / size) < 1e-6
    np.testing.assert_array_equal(np.isnan(dweight), np.isnan(exact[1]))


def test_an_unknown_rung_and_one_without_room_say_what_there_is() -> None:
    dy, x, weight = inputs(2, 600)
    with pytest.raises(ValueError, match="it is one of dx_only, partials, many_rows, dx_long"):
        backward(dy, x, weight, rstd_of(x), rung="locks")
    with pytest.raises(ValueError, match="no room for d = 600: take partials, dx_only, dx_long"):
        backward(dy, x, weight, rstd_of(x), rung="many_rows")
