"""`nn.functional.rms_norm` under autograd, torch.func, and what traces it."""

import importlib.util
import shutil

import pytest
import torch
from tensors import gains, uneven
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from rmsnorm_edu import nn
from rmsnorm_edu.nn.functional import rms_norm

# torch's forward mode and Inductor load what torch itself scripts in its deprecated way
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
KINDS = ["torch", "paper_torch", "paper_tensorflow", "gemma", "flax", "x_transformers"]


def inputs(rows: int = 3, n: int = 5) -> tuple[torch.Tensor, ...]:
    """x, weight, bias in float64, to be differentiated."""
    return tuple(t.requires_grad_() for t in (uneven(rows, n), gains(n), gains(n) - 0.4))


@pytest.mark.equation("dx-vector", "partial-dx")
@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("convention", KINDS)
def test_derivatives_agree_with_differences(convention: str, k: int | None) -> None:
    """First and second order, backward and forward mode, batches of both."""

    def norm(x, weight, bias):
        return rms_norm(x, weight, bias, k=k, convention=convention, eps=0.1)

    assert gradcheck(
        norm,
        inputs(),
        check_forward_ad=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
    )
    assert gradgradcheck(norm, inputs(2, 3), check_fwd_over_rev=True)


def test_derivatives_below_the_floor_of_x_transformers() -> None:
    def norm(x, weight):
        return rms_norm(x, weight, convention="x_transformers", eps=100.0)

    assert gradcheck(norm, inputs()[:2], check_forward_ad=True)
    assert gradgradcheck(norm, inputs(2, 3)[:2])


def test_derivatives_of_a_shape_of_two_axes_without_a_weight() -> None:
    norm = nn.RMSNorm((2, 3), elementwise_affine=False, p=0.5)
    assert gradcheck(norm, (uneven(3, 2, 3).requires_grad_(),), check_forward_ad=True)
    assert gradgradcheck(norm, (uneven(2, 2, 3).requires_grad_(),))


@pytest.mark.parametrize(("convention", "slope"), [("paper_torch", 1e8), ("paper_tensorflow", 1e4)])
def test_gradient_of_a_zero_row_is_finite(convention: str, slope: float) -> None:
    """dy·g/ε with ε outside the root, dy·g/sqrt(ε) inside."""
    x = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    rms_norm(x, gains(4), convention=convention).backward(torch.full_like(x, 0.5))
    torch.testing.assert_close(x.grad[0], 0.5 * slope * gains(4))


def test_transforms_of_torch_func() -> None:
    x, weight, bias = (t.detach() for t in inputs())

    def loss(x, weight):
        return rms_norm(x, weight, bias).pow(3).sum()

    assert torch.allclose(hessian(loss)(x, weight), jacrev(jacrev(loss))(x, weight))
    assert torch.allclose(jacfwd(loss, 1)(x, weight), grad(loss, 1)(x, weight))
    dx = uneven(3, 5, seed=4)
    moved = jvp(lambda x: rms_norm(x, weight), (x,), (dx,))[1]
    pulled = vjp(lambda x: rms_norm(x, weight), x)[1](dx)[0]
    assert torch.allclose((moved * dx).sum(), (pulled * dx).sum())
    both = torch.autograd.functional.hessian(lambda x: loss(x, weight), x, vectorize=True)
    assert torch.allclose(both, hessian(loss)(x, weight))


def test_vmap_over_x_weight_and_bias() -> None:
    x, weights, biases = uneven(4, 3, 5), uneven(4, 5, seed=1), uneven(5, 4, seed=2)
    for dims in ((0, None, None), (1, None, None), (0, 0, None), (None, 0, 1), (0, 0, 1)):
        given = [
            x,
            weights if dims[1] == 0 else weights[0],
            biases if dims[2] == 1 else biases[:, 0],
        ]
        got = vmap(rms_norm, in_dims=dims)(*given)
        picked = [
            [t if dim is None else t.select(dim, i) for t, dim in zip(given, dims, strict=True)]
            for i in range(got.shape[0])
        ]
        assert torch.allclose(got, torch.stack([rms_norm(*each) for each in picked]))


def test_gradients_of_each_example() -> None:
    x, weight = uneven(4, 3, 5), gains(5)

    def loss(weight, x):
        return rms_norm(x, weight).pow(3).sum()

    each = vmap(grad(loss), in_dims=(None, 0))(weight, x)
    assert torch.allclose(each, torch.stack([grad(loss)(weight, one) for one in x]))


def test_only_what_is_asked_for_has_a_gradient() -> None:
    for asked in ((True, False, False), (False, True, False), (False, False, True)):
        tensors = [t.detach().requires_grad_(on) for t, on in zip(inputs(), asked, strict=True)]
        rms_norm(*tensors).square().sum().backward()
        assert [t.grad is not None for t in tensors] == list(asked)
    x, weight, _ = inputs()
    assert not rms_norm(x.detach(), weight.detach()).requires_grad
    for off in (torch.no_grad, torch.inference_mode):
        with off():
            assert not rms_norm(x, weight).requires_grad


def test_input_changed_before_backward_is_an_error() -> None:
    x, weight, _ = inputs()
    for changed in (x, weight):
        rows = x * 1
        y = rms_norm(rows, weight)
        with torch.no_grad():
            (rows if changed is x else weight).mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_traced_without_a_break() -> None:
    """Dynamo takes the module whole, with a dynamic number of rows; eager's numbers come out."""
    norm = nn.RMSNorm(16, convention="x_transformers", bias=True, p=0.5, dtype=torch.float64)
    norm.weight.data.copy_(gains(16))
    torch._dynamo.reset()
    traced = torch.compile(norm, fullgraph=True, dynamic=True, backend="aot_eager")
    for rows in (6, 9):
        results = []
        for function in (norm, traced):
            x = uneven(rows, 16).requires_grad_()
            y = function(x)
            results.append((y, *torch.autograd.grad(y.pow(3).sum(), (x, norm.weight, norm.bias))))
        for a, b in zip(*results, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler")
def test_compiled_with_a_conventions_roundings() -> None:
    """Inductor drops roundings on the way, a last bit, unless told to keep them."""
    norm, x = nn.RMSNorm(64, convention="llama", dtype=torch.bfloat16), uneven(50, 64)
    norm.weight.data.copy_(gains(64))
    torch._dynamo.reset()
    options = {"emulate_precision_casts": True}
    compiled = torch.compile(norm, fullgraph=True, options=options)
    with torch.no_grad():
        assert torch.equal(compiled(x.bfloat16()), norm(x.bfloat16()))


def test_export_with_a_dynamic_batch() -> None:
    norm, x = nn.RMSNorm((2, 4), eps=1e-5), uneven(3, 2, 4).float()
    norm.weight.data.copy_(gains(2, 4))
    batch = torch.export.Dim("batch")
    program = torch.export.export(norm, (x,), dynamic_shapes=({0: batch},))
    longer = uneven(7, 2, 4).float()
    torch.testing.assert_close(program.module()(longer), norm(longer))


@pytest.mark.skipif(not importlib.util.find_spec("onnxscript"), reason="no ONNX exporter here")
def test_onnx(tmp_path) -> None:
    norm = nn.RMSNorm(8, eps=1e-5)
    torch.onnx.export(norm, (uneven(3, 8).float(),), tmp_path / "norm.onnx", dynamo=True)
    assert (tmp_path / "norm.onnx").stat().st_size > 0


def test_fake_tensors() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        norm, x = nn.RMSNorm(8), torch.empty(3, 8, requires_grad=True)
        norm(x).sum().backward()
        assert (x.grad.shape, norm.weight.grad.shape) == (x.shape, (8,))
    y = torch.nn.functional.rms_norm(x, (8,), norm.weight)  # outside of the mode
    assert rms_norm(x, norm.weight).shape == y.shape


def test_a_batch_pulled_back_under_no_grad() -> None:
    """The upstream gradient is one plain tensor, x or the weight is a batch."""
    x, weights, dy = uneven(4, 3, 5), uneven(4, 5, seed=1), uneven(3, 5, seed=2)

    def pulled(x, weight):
        return vjp(rms_norm, x, weight)[1](dy)

    for dims, given in (((0, None), (x, weights[0])), ((None, 0), (x[0], weights))):
        recorded = vmap(pulled, in_dims=dims)(*given)
        with torch.no_grad():
            for a, b in zip(vmap(pulled, in_dims=dims)(*given), recorded, strict=True):
                torch.testing.assert_close(a, b)


@pytest.mark.parametrize("shape", [(6,), (2, 6), (2, 3, 6)], ids=str)
def test_the_result_may_change_in_place(shape: tuple[int, ...]) -> None:
    """As torch's: it is no view, which autograd would guard."""
    factor = gains(6).requires_grad_()
    with torch.no_grad():
        y = rms_norm(uneven(*shape), gains(6))
    y.mul_(factor).sum().backward()
    assert factor.grad.shape == (6,)
    assert not rms_norm(uneven(*shape), factor).detach_().requires_grad
