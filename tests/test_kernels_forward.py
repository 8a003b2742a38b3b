"""The forward rungs against float64, within `precision`'s bound, on a GPU or in the interpreter.

The interpreter cuts bfloat16 off where a GPU rounds: there the bound is that of a truncation.
"""

import numpy as np
import pytest
import torch
from dialects import of
from tensors import TYPES, gains, uneven

from rmsnorm_edu import conventions, precision
from rmsnorm_edu.kernels._choice import forward_table
from rmsnorm_edu.kernels._runtime import INTERPRETED, default_device
from rmsnorm_edu.kernels.forward import RUNGS, forward

pytestmark = pytest.mark.equation("rms-norm", "eps-inside")
SIZES = (1, 2, 3, 7, 31, 100, 127, 128, 129, 1000, 1024, 1025, 4096, 8192, 65536)
HALVES = (torch.float16, torch.bfloat16)
THREE = (torch.float32, *HALVES)
EPS = 1e-5


def on_device(*tensors: torch.Tensor | None) -> list[torch.Tensor | None]:
    """Each where the kernels run, with its strides."""
    return [None if t is None else t.to(default_device()) for t in tensors]


def is_right(x, weight, y, *, convention="torch", eps=EPS) -> bool:
    """Whether y is the convention's, element by element; without a weight the gain is 1."""
    rows, stored = of(x), of(y.cpu())
    one = np.full(x.shape[1], 1 - conventions.get(convention).gain_offset)
    w = one if weight is None else of(weight)
    narrow = min((x, y), key=lambda t: torch.finfo(t.dtype).bits).dtype
    store = "truncate" if INTERPRETED and narrow == torch.bfloat16 else "round"
    words = {"convention": convention, "eps": eps}
    allowed = precision.allowed(
        "y", rows, w, dtype=str(narrow).removeprefix("torch."), store=store, **words
    )
    exact = conventions.exact(convention, rows.astype(np.float64), w.astype(np.float64), eps=eps)
    return bool(np.all(np.abs(stored.astype(np.float64) - exact) <= allowed))


@pytest.mark.parametrize("dtype", THREE, ids=str)
@pytest.mark.parametrize("d", SIZES)
def test_chosen_rung(d: int, dtype: torch.dtype) -> None:
    x, w = uneven(3 if d < 9999 else 1, d, dtype=dtype, seed=d), gains(d, dtype=dtype)
    y, rstd = forward(*on_device(x, w), eps=EPS)
    assert (y.dtype, rstd.dtype, rstd.shape) == (dtype, torch.float32, x.shape[:1])
    assert is_right(x, w, y)
    exact = 1 / np.hypot(conventions.reference.rms(of(x).astype(np.float64)), EPS**0.5)
    assert np.allclose(rstd.cpu(), exact, rtol=precision.bound("float32", d), atol=0)


@pytest.mark.parametrize("rung", RUNGS)
def test_every_rung_that_fits(rung: str) -> None:
    fitting = [d for d in SIZES if rung in forward_table(d, torch.float32)]
    assert fitting
    for d in fitting:
        x, w = uneven(2, d, seed=d, dtype=torch.float32), gains(d, dtype=torch.float32)
        assert is_right(x, w, forward(*on_device(x, w), eps=EPS, rung=rung)[0]), d


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("dtype", [*HALVES, torch.float64], ids=str)
def test_every_rung_in_every_type(rung: str, dtype: torch.dtype) -> None:
    x, w = uneven(3, 100, dtype=dtype), gains(100, dtype=dtype)
    assert is_right(x, w, forward(*on_device(x, w), eps=EPS, rung=rung)[0])


@pytest.mark.parametrize("casting", ["torch", "llama", "gemma"])
@pytest.mark.parametrize("x_type", TYPES.values(), ids=str)
def test_castings_and_types_of_the_weight(casting: str, x_type: torch.dtype) -> None:
    for w_type in (*TYPES.values(), None):
        casts_as_conventions(casting, x_type, w_type, None)


@pytest.mark.parametrize("casting", ["torch", "llama", "gemma"])
@pytest.mark.parametrize("rung", RUNGS)
def test_castings_on_every_rung(casting: str, rung: str) -> None:
    casts_as_conventions(casting, torch.float16, torch.float32, rung)


def casts_as_conventions(casting, x_type, w_type, rung) -> None:
    x, w = uneven(2, 37, dtype=x_type), None if w_type is None else gains(37, dtype=w_type)
    offset = 1.0 if casting == "gemma" else 0.0
    y, _ = forward(*on_device(x, w), None, EPS, casting, offset, rung=rung)
    expected = conventions.apply(casting, of(x), None if w is None else of(w), eps=EPS)
    assert str(y.dtype).endswith(expected.dtype.name)
    assert is_right(x, w, y, convention=casting)


def test_casting_changes_what_it_says() -> None:
    x, w = uneven(4, 512, dtype=torch.float16), gains(512, dtype=torch.float16)
    for casting in ("torch", "llama"):
        y = of(forward(*on_device(x, w), eps=EPS, casting=casting)[0].cpu())
        expected = conventions.apply(casting, of(x), of(w), eps=EPS)
        # the sum's order moves rstd by some float32 roundings, each 2^-13 of a float16 one
        assert np.mean(y != expected) < 0.01


@pytest.mark.parametrize("rung", RUNGS)
def test_bias_and_offset(rung: str) -> None:
    x, w, b = uneven(3, 37), gains(37), gains(37).flip(0) + 0.3
    y, rstd = forward(*on_device(x, w, b), EPS, "torch", 0.25, rung=rung)
    expected = conventions.exact("torch", of(x), of(w) + 0.25, eps=EPS) + of(b)
    assert rstd.dtype == torch.float64
    scale = np.abs(expected) + np.abs(of(b))
    assert np.all(np.abs(of(y.cpu()) - expected) <= 2 * precision.bound("float64", 37) * scale)


@pytest.mark.parametrize("rung", RUNGS)
def test_strides_are_honoured(rung: str) -> None:
    wide, w = uneven(6, 300, dtype=torch.float32), gains(200, dtype=torch.float32)[::2]
    layouts = {
        "rows apart": wide[:3, 7:107],
        "columns apart": wide[:3, 1:201:2],
        "transposed": wide.reshape(300, 6)[:100].t()[:3],
        "rows repeated": wide[:1, :100].expand(3, 100),
        "one row": wide[::6, 50:150],
    }
    for name, x in layouts.items():
        rows = x.to(default_device())
        y, _ = forward(_as_strided(x, rows), w.to(default_device()), eps=EPS, rung=rung)
        assert y.is_contiguous(), name
        assert is_right(x.contiguous(), w.contiguous(), y), name


def _as_strided(x: torch.Tensor, copy: torch.Tensor) -> torch.Tensor:
    """`copy` in the strides of x: a move to another device may have closed the gaps."""
    room = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
    apart = torch.empty(room, dtype=x.dtype, device=copy.device)
    apart = apart.as_strided(x.shape, x.stride())
    if 0 in x.stride():
        apart[:1].copy_(copy[:1])
        return apart
    return apart.copy_(copy)


def test_same_row_has_the_same_bits_in_any_batch() -> None:
    for d, dtype in (
        (7, torch.float32),
        (64, torch.float16),
        (129, torch.float32),
        (1000, HALVES[1]),
    ):
        x, w = on_device(uneven(20, d, dtype=dtype), gains(d, dtype=dtype))
        for rung in (None, "pipelined"):
            every, rstd = forward(x, w, rung=rung)
            for part in (slice(7, 8), slice(3, 12)):
                y, r = forward(x[part], w, rung=rung)
                assert torch.equal(y, every[part])
                assert torch.equal(r, rstd[part])


@pytest.mark.parametrize("rung", RUNGS)
def test_zeros_infinities_and_nan(rung: str) -> None:
    x, w = uneven(5, 33, dtype=torch.float32), gains(33, dtype=torch.float32)
    x[0], x[1, 4], x[2, 5], x[3, 6] = 0, torch.nan, torch.inf, -torch.inf
    y, _ = forward(*on_device(x, w), eps=EPS, rung=rung)
    expected = conventions.apply("torch", of(x), of(w), eps=EPS)
    assert np.array_equal(np.isnan(of(y.cpu())), np.isnan(expected))
    assert torch.all(y[0] == 0)
    assert torch.all((y[2:4].cpu() == 0) | torch.isnan(y[2:4].cpu()))
    assert is_right(x[4:], w, y[4:])
    x = torch.zeros(1, 33)
    assert torch.all(torch.isnan(forward(*on_device(x, w), eps=0.0, rung=rung)[0]))


@pytest.mark.parametrize("rung", RUNGS)
def test_rows_whose_squares_are_below_the_normal_numbers(rung: str) -> None:
    """With s the smallest number, squares and mean are off by s/2 each, and rstd by what s moves.

    An instruction that takes such a mean for 0 makes rstd infinite.
    """
    sizes = torch.tensor([[1e-19], [1e-20], [1e-21]], dtype=torch.float64)
    x, w = (sizes * uneven(1, 100)).float(), gains(100, dtype=torch.float32)
    y = of(forward(*on_device(x, w), eps=0.0, rung=rung)[0].cpu())
    rows, gain = of(x.double()), of(w.double())
    square = np.mean(rows**2, axis=1, keepdims=True)
    assert np.all(square < np.finfo(np.float32).tiny)
    lost = 1 / np.sqrt(1 - precision.subnormal("float32") / square) - 1
    exact = conventions.exact("torch", rows, gain, eps=0.0)
    allowed = precision.allowed("y", rows, gain, dtype="float32", eps=0.0)
    assert np.all(np.abs(y - exact) <= (1 + lost) * allowed + lost * np.abs(exact))


@pytest.mark.parametrize("rung", RUNGS)
def test_no_rows(rung: str) -> None:
    x, w = on_device(torch.empty(0, 9, dtype=torch.float16), torch.full((9,), 1.5))
    y, rstd = forward(x, w, casting="llama", rung=rung)
    assert (y.shape, y.dtype, rstd.shape) == ((0, 9), torch.float32, (0,))


def test_what_is_given_stays() -> None:
    x, w, b = on_device(uneven(3, 20), gains(20), gains(20))
    before = [t.clone() for t in (x, w, b)]
    forward(x, w, b)
    assert all(map(torch.equal, before, (x, w, b)))


def test_words_that_are_unknown_or_do_not_fit() -> None:
    x = torch.ones(2, 1000, device=default_device())
    with pytest.raises(ValueError, match=r"casting = 'fp32'; it is one of torch, llama, gemma"):
        forward(x, casting="fp32")
    with pytest.raises(ValueError, match=r"rung = 'v1'; it is one of one_row, long_row"):
        forward(x, rung="v1")
    with pytest.raises(ValueError, match=r"'many_rows' has no room for d = 1000 of torch.float32"):
        forward(x, rung="many_rows")


@pytest.mark.parametrize("dtype", TYPES.values(), ids=str)
def test_table_covers_every_length_without_looking_at_a_batch(dtype: torch.dtype) -> None:
    for d in (*range(1, 3000, 37), *SIZES, 10**6):
        for rung, plan in forward_table(d, dtype).items():
            block, warps = plan.constants["BLOCK"], plan.num_warps
            assert rung == plan.kernel
            assert block >= d or rung == "long_row"
            assert block * max(4, dtype.itemsize) <= 2**16
            assert warps in (1, 2, 4, 8, 16) or (rung == "long_row" and warps == 32)
