"""`kernels.add_rms_norm` as an operation of torch: checks, autograd, compilation, vmap."""

import pytest
from tensors import gains, uneven

pytest.importorskip("triton", reason="Triton has wheels for Linux alone")
import torch

from rmsnorm_edu import kernels
from rmsnorm_edu.kernels import add_op
from rmsnorm_edu.kernels._runtime import default_device

pytestmark = pytest.mark.equation("rms-norm", "dx-vector", "dweight")


def inputs(*shape: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    """x, residual and weight, on the device, that want gradients."""
    parts = uneven(*shape), 0.5 - uneven(*shape, seed=1), gains(shape[-1])
    return [t.to(default_device(), dtype).requires_grad_() for t in parts]


@pytest.mark.parametrize("shape", [(7,), (2, 3, 7), (2, 0, 7)])
def test_any_leading_shape_and_what_it_stands_for(shape: tuple[int, ...]) -> None:
    x, residual, w = inputs(*shape)
    y, h = kernels.add_rms_norm(x, residual, w, 1e-5, casting="llama", weight_offset=1.0)
    plain = kernels.rms_norm(x + residual, w, 1e-5, casting="llama", weight_offset=1.0)
    assert y.shape == h.shape == shape
    assert torch.equal(h, x + residual)
    assert torch.allclose(y, plain, rtol=1e-14, atol=0)
    (y.square().sum() + 2 * h.sum()).backward()
    assert torch.equal(x.grad, residual.grad)
    assert x.grad.data_ptr() != residual.grad.data_ptr() or not x.numel()
    grads = torch.autograd.grad(plain.square().sum() + 2 * (x + residual).sum(), (x, w))
    assert all(map(torch.allclose, (x.grad, w.grad), grads))


@pytest.mark.parametrize("words", [{}, {"weight_offset": 1.0}], ids=str)
def test_gradients_of_first_and_second_order(words: dict[str, float]) -> None:
    def norm(x, residual, w):
        return kernels.add_rms_norm(x, residual, w, 1e-3, **words)

    assert torch.autograd.gradcheck(norm, inputs(3, 5), fast_mode=True)
    assert torch.autograd.gradgradcheck(norm, inputs(3, 5), fast_mode=True)
    assert torch.autograd.gradcheck(lambda x, r: norm(x, r, None), inputs(3, 5)[:2], fast_mode=True)


@pytest.mark.parametrize("used", [0, 1])
def test_either_result_may_be_left_unused(used: int) -> None:
    x, residual, w = inputs(2, 5)
    kernels.add_rms_norm(x, residual, w)[used].sum().backward()
    assert torch.equal(x.grad, residual.grad)
    assert torch.equal(w.grad, torch.zeros_like(w)) is bool(used)
    assert torch.equal(x.grad, torch.ones_like(x)) is bool(used)


def test_opcheck() -> None:
    x, residual, w = inputs(3, 20, dtype=torch.float16)
    torch.library.opcheck(add_op.forward_op, (x, residual, w, 1e-6, "llama", 1.0))
    x, residual = x.detach(), residual.detach()
    rstd = torch.rand(3, device=x.device)
    torch.library.opcheck(add_op.backward_op, (x, x, residual, None, rstd, 0.5))


def test_compiled_it_is_one_call_and_no_break() -> None:
    x, residual, w = inputs(2, 3, 20, dtype=torch.float32)

    def block(x, residual):
        y, h = kernels.add_rms_norm(torch.tanh(x), residual, w)
        return y + h

    whole = torch.compile(block, fullgraph=True, backend="aot_eager")
    plain, compiled = block(x, residual), whole(x, residual)
    assert torch.equal(plain, compiled)
    gradients = [torch.autograd.grad(y.sum(), (x, residual, w)) for y in (plain, compiled)]
    assert all(map(torch.equal, *gradients))


def test_vmap_over_either() -> None:
    x, residual, w = (t.detach() for t in inputs(4, 3, 5))
    both = torch.vmap(lambda a, b: kernels.add_rms_norm(a, b, w))(x, residual)
    assert all(map(torch.equal, both, kernels.add_rms_norm(x, residual, w)))
    one = torch.vmap(lambda a: kernels.add_rms_norm(a, residual[0], w))(x)
    assert torch.equal(one[1], x + residual[:1])
    with pytest.raises(NotImplementedError, match="not of weight"):
        torch.vmap(lambda v: kernels.add_rms_norm(x, residual, v))(w.expand(2, -1))


def test_results_may_be_changed_in_place() -> None:
    x, residual, w = inputs(2, 3, 5)
    y, h = kernels.add_rms_norm(x, residual, w)
    y.mul_(2)
    doubled = torch.autograd.grad(y.sum(), (x, residual, w), retain_graph=True)
    plain, _ = kernels.add_rms_norm(x, residual, w)
    for found, once in zip(
        doubled, torch.autograd.grad(plain.sum(), (x, residual, w)), strict=True
    ):
        assert torch.allclose(found, 2 * once)
    h += 1  # the backward needs it
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# torch itself uses what it deprecates, at a process's first derivative in forward mode
@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
def test_derivatives_that_no_kernel_has() -> None:
    x, residual, w = (t.detach() for t in inputs(3, 5))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(residual, x)
        found = [torch.autograd.forward_ad.unpack_dual(t) for t in kernels.add_rms_norm(x, dual, w)]
    both = torch.func.jvp(lambda r: kernels.rms_norm(x + r, w), (residual,), (x,))
    assert torch.allclose(found[0].primal, both[0])
    assert torch.allclose(found[0].tangent, both[1])
    assert torch.equal(found[1].tangent, x)


def test_inputs_that_do_not_fit() -> None:
    x, residual, w = (t.detach() for t in inputs(2, 5))
    with pytest.raises(TypeError, match=r"residual has dtype torch.float16, x torch.float64"):
        kernels.add_rms_norm(x, residual.half(), w)
    with pytest.raises(ValueError, match=r"residual has shape \(5,\), x \(2, 5\)"):
        kernels.add_rms_norm(x, residual[0], w)
    with pytest.raises(ValueError, match=r"weight has shape \(2,\)"):
        kernels.add_rms_norm(x, residual, w[:2])
    with pytest.raises(ValueError, match="casting = 'keras'; it is one of torch, llama, gemma"):
        kernels.add_rms_norm(x, residual, w, casting="keras")
