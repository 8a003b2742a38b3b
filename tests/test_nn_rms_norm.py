"""`nn.RMSNorm` beside `torch.nn.RMSNorm`: the same bits, the same door, clear errors."""

import copy
import importlib.util
import pickle
import subprocess
import sys

import pytest
import torch
from tensors import TYPES, gains, uneven

from rmsnorm_edu import conventions, nn
from rmsnorm_edu.nn.functional import rms_norm

SHAPES = [(5, 37), (7,), (1, 1), (2, 3, 4096), (33, 8), (4, 40000), (0, 6), (2, 0, 6), (300, 700)]


def twins(shape, dtype=torch.float32, **options) -> tuple[torch.nn.RMSNorm, nn.RMSNorm]:
    """torch's norm with a weight that is not 1, and ours with its state."""
    theirs = torch.nn.RMSNorm(shape, dtype=dtype, **options)
    if theirs.weight is not None:
        theirs.weight.data.copy_(gains(*theirs.normalized_shape))
    ours = nn.RMSNorm(shape, dtype=dtype, **options)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    return theirs, ours


@pytest.mark.parametrize("dtype", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_forward_has_the_bits_of_torch(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = uneven(*shape, dtype=dtype)
    for options in ({}, {"eps": 0.03}, {"elementwise_affine": False}):
        theirs, ours = twins(shape[-1], dtype, **options)
        assert ours(x).dtype == dtype
        assert torch.equal(ours(x), theirs(x))
        assert torch.equal(ours(0 * x), theirs(0 * x))


def test_bits_of_several_axes_and_of_gradients_near_torch() -> None:
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-13)):
        theirs, ours = twins((3, 11), dtype)
        x = uneven(6, 2, 3, 11, dtype=dtype)
        got = []
        for norm in (theirs, ours):
            rows = x.clone().requires_grad_()
            y = norm(rows)
            y.backward(uneven(6, 2, 3, 11, dtype=dtype, seed=1))
            got.append((y, rows.grad, norm.weight.grad))
        assert torch.equal(got[0][0], got[1][0])
        for a, b in zip(got[0][1:], got[1][1:], strict=True):
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance * float(a.abs().max()))


# torch says that two types keep it from a fused kernel; ours has nothing to say
@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight:UserWarning")
def test_mixed_types_give_the_type_of_x() -> None:
    for x_type in TYPES.values():
        for weight_type in TYPES.values():
            theirs, ours = twins(37, weight_type)
            x = uneven(5, 37, dtype=x_type)
            assert ours(x).dtype == x_type
            assert torch.equal(ours(x), theirs(x))


def test_half_precision_squares_in_float32() -> None:
    """300² is beyond float16 (PyTorch PR 133085)."""
    norm = nn.RMSNorm(4, dtype=torch.float16)
    norm.weight.data.fill_(2.0)
    assert norm(torch.full((1, 4), 300.0, dtype=torch.float16)).tolist() == [[2.0] * 4]
    assert norm(torch.full((1, 4), 65504.0, dtype=torch.float16)).tolist() == [[2.0] * 4]


def test_autocast_keeps_the_type_of_x_as_torch_does() -> None:
    theirs, ours = twins(37)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for dtype in (torch.float32, torch.float64):
            x = uneven(5, 37, dtype=dtype).requires_grad_()
            y = ours(x)
            y.square().sum().backward()
            assert y.dtype == x.grad.dtype == dtype
            assert torch.equal(y, theirs(x.detach()))
        hidden = torch.nn.Linear(37, 37)(uneven(5, 37, dtype=torch.float32))
        assert ours(hidden).dtype == hidden.dtype == torch.bfloat16


def test_attributes_state_and_text() -> None:
    for shape in (6, [6], (6,), torch.Size([6]), (2, 3)):
        theirs, ours = twins(shape)
        assert ours.normalized_shape == theirs.normalized_shape
        assert (ours.eps, ours.elementwise_affine) == (None, True)
        assert list(ours.state_dict()) == list(theirs.state_dict()) == ["weight"]
        theirs.load_state_dict(ours.state_dict(), strict=True)
        assert repr(ours) == repr(theirs)
    bare = nn.RMSNorm(6, 1e-3, False)
    assert (bare.weight, bare.bias) == (None, None)
    assert list(bare.state_dict()) == []
    partial = nn.RMSNorm(10, p=0.25, bias=True, convention="llama")
    assert "p=0.25" in repr(partial)
    assert "convention='llama'" in repr(partial)
    assert list(partial.state_dict()) == ["weight", "bias"]


@pytest.mark.parametrize("name", ["torch", "gemma", "x_transformers_unit_offset"])
def test_it_starts_with_a_gain_of_1(name: str) -> None:
    norm = nn.RMSNorm(5, bias=True, convention=name)
    norm.weight.data.fill_(0.3)
    norm.bias.data.fill_(0.3)
    norm.reset_parameters()
    assert set((conventions.get(name).gain_offset + norm.weight).tolist()) == {1.0}
    assert set(norm.bias.tolist()) == {0.0}


def test_p_counts_the_features_of_all_axes() -> None:
    """⌈n·p⌉ of the flattened shape; int(n·p) for the conventions of 2019."""
    assert nn.RMSNorm((10, 10), p=0.29).k == 29
    assert nn.RMSNorm((10, 10), p=0.29, convention="paper_torch").k == 28
    norm, x = nn.RMSNorm((2, 3), p=0.5, dtype=torch.float64), uneven(4, 2, 3)
    norm.weight.data.copy_(gains(2, 3))
    first = x.reshape(4, 6)[:, :3].square().mean(-1).add(torch.finfo(x.dtype).eps)
    torch.testing.assert_close(norm(x), x / first.sqrt().view(4, 1, 1) * gains(2, 3))


def test_what_does_not_fit_is_an_error_that_says_the_fix() -> None:
    norm = nn.RMSNorm((3, 4))
    for x in (torch.ones(3), torch.ones(4, 3), torch.tensor(2.0), torch.ones(4)):
        with pytest.raises(ValueError, match=r"normalized_shape is \(3, 4\): give x"):
            norm(x)
    with pytest.raises(TypeError, match=r"dtype torch.int64; give floats"):
        norm(torch.ones(3, 4, dtype=torch.int64))
    with pytest.raises(TypeError, match="complex64; give floats"):
        norm(torch.ones(3, 4, dtype=torch.complex64))
    for x in (torch.ones(3, 4).to_sparse(), torch.ones(3, 4).to_mkldnn()):
        with pytest.raises(TypeError, match="give a strided tensor"):
            norm(x)
    with pytest.raises(TypeError, match="float8_e4m3fn; give floats"):
        norm(torch.ones(3, 4).to(torch.float8_e4m3fn))
    with pytest.raises(ValueError, match="weight is on meta, x on cpu: give both on one"):
        rms_norm(torch.ones(2, 4), torch.ones(4, device="meta"))
    with pytest.raises(TypeError, match="x is list; give a tensor"):
        norm([[1.0]])
    with pytest.raises(ValueError, match=r"weight has shape \(3,\), x \(2, 4\)"):
        rms_norm(torch.ones(2, 4), torch.ones(3))
    with pytest.raises(ValueError, match=r"k = 5 of n = 4"):
        rms_norm(torch.ones(2, 4), k=5)
    with pytest.raises(ValueError, match=r"x has shape \(2,\), ndim = 2"):
        rms_norm(torch.ones(2), ndim=2)
    with pytest.raises(ValueError, match=r"x has shape \(2, 0\)"):
        rms_norm(torch.ones(2, 0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": 0.1, "convention": "paper_torch"}, "ZeroDivisionError"),
        ({"p": 0.0}, "p = 0.0"),
        ({"eps": -1.0}, "eps = -1.0"),
        ({"convention": "lama"}, "convention = 'lama'; it is one of paper_torch"),
        ({"backend": "cuda"}, "backend = 'cuda'; there are auto, eager, numba, triton"),
        ({"bias": True, "elementwise_affine": False}, "bias=True without elementwise_affine"),
    ],
)
def test_construction_says_what_is_wrong(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nn.RMSNorm(4, **options)
    for shape in ((), 0, (3, 0), -1):
        with pytest.raises(ValueError, match="normalized_shape"):
            nn.RMSNorm(shape)


def test_copies_and_files(tmp_path) -> None:
    norm, x = nn.RMSNorm(8, p=0.5, bias=True, convention="gemma"), uneven(3, 8).float()
    norm.weight.data.copy_(gains(8))
    torch.save(norm.state_dict(), tmp_path / "norm.pt")
    loaded = nn.RMSNorm(8, p=0.5, bias=True, convention="gemma")
    loaded.load_state_dict(torch.load(tmp_path / "norm.pt", weights_only=True), strict=True)
    for twin in (copy.deepcopy(norm), pickle.loads(pickle.dumps(norm)), loaded):
        assert torch.equal(twin(x), norm(x))
        assert repr(twin) == repr(norm)


def test_meta_device_and_offsets_beyond_2_to_the_31() -> None:
    norm = nn.RMSNorm(4096, device="meta", dtype=torch.bfloat16)
    x = torch.empty(2**20 + 3, 4096, device="meta", dtype=torch.bfloat16, requires_grad=True)
    y = norm(x)
    y.backward(torch.empty_like(y))
    assert (y.shape, y.dtype, y.device.type) == (x.shape, x.dtype, "meta")
    assert (x.grad.shape, norm.weight.grad.shape) == (x.shape, (4096,))
    for name in ("x_transformers", "liger_none"):  # these round ε
        with torch.device("meta"):
            assert rms_norm(torch.empty(2, 8), torch.empty(8), convention=name).shape == (2, 8)
    norm.to_empty(device="cpu").reset_parameters()
    assert norm.weight.tolist() == [1.0] * 4096


def test_moves_between_types() -> None:
    norm = nn.RMSNorm(8).to(torch.bfloat16)
    assert norm.weight.dtype == norm(uneven(2, 8, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert nn.RMSNorm(8).double()(uneven(2, 8)).dtype == torch.float64


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmsnorm_edu.nn.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "rmsnorm_edu\[torch\]"'):
        nn.RMSNorm  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'Norm'; it has"):
        nn.Norm  # noqa: B018


def test_the_package_loads_without_torch() -> None:
    code = "import sys, rmsnorm_edu.nn; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert importlib.util.find_spec("torch")
