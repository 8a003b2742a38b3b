"""`kernels.rms_norm` as an operation of torch: checks, autograd, compilation, vmap."""

import pytest
import torch
from dialects import of
from tensors import TYPES, gains, uneven

from rmsnorm_edu import checks, conventions, kernels
from rmsnorm_edu.kernels import _plain, op
from rmsnorm_edu.kernels._runtime import default_device

pytestmark = pytest.mark.equation("rms-norm", "dx-vector", "dweight")
DEVICE = default_device()


def inputs(*shape: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    """x, weight and bias, on the device, that want gradients."""
    d = shape[-1]
    parts = uneven(*shape, dtype=dtype), gains(d, dtype=dtype), gains(d, dtype=dtype).flip(0) + 0.3
    return [t.to(DEVICE).requires_grad_() for t in parts]


@pytest.mark.parametrize("shape", [(7,), (2, 7), (2, 3, 7), (2, 0, 7), (1, 1, 2, 7)])
def test_any_leading_shape(shape: tuple[int, ...]) -> None:
    x, w, b = inputs(*shape)
    y = kernels.rms_norm(x, w, 1e-5, bias=b)
    expected = conventions.exact("torch", of(x.detach().cpu()), of(w.detach().cpu()), eps=1e-5)
    assert y.shape == shape
    assert torch.allclose(y.cpu(), torch.from_numpy(expected) + b.cpu(), rtol=1e-14, atol=1e-14)
    y.sum().backward()
    assert [t.grad.shape for t in (x, w, b)] == [shape, (7,), (7,)]


def test_axes_that_are_no_view() -> None:
    x, w, _ = inputs(4, 3, 5, 6)
    for twisted in (x.permute(2, 0, 3, 1), x.transpose(1, 2), x[:, ::2], x[..., 1:5:2]):
        w_ = w[: twisted.shape[-1]]
        assert torch.equal(kernels.rms_norm(twisted, w_), kernels.rms_norm(twisted.clone(), w_))


@pytest.mark.parametrize("words", [{}, {"casting": "llama"}, {"weight_offset": 1.0}], ids=str)
def test_gradients_of_first_and_second_order(words: dict[str, object]) -> None:
    x, w, b = inputs(3, 5)

    def norm(x, w, b):
        return kernels.rms_norm(x, w, 1e-3, bias=b, **words)

    assert torch.autograd.gradcheck(norm, (x, w, b), fast_mode=True)
    assert torch.autograd.gradgradcheck(norm, (x, w, b), fast_mode=True)
    assert torch.autograd.gradcheck(lambda x: kernels.rms_norm(x, None, 1e-3), x, fast_mode=True)


def test_gradients_have_the_types_of_what_they_are_of() -> None:
    for x_type, w_type in zip(TYPES.values(), [*TYPES.values()][::-1], strict=True):
        x, w, b = inputs(2, 3, dtype=x_type)
        w, b = (t.detach().to(w_type).requires_grad_() for t in (w, b))
        kernels.rms_norm(x, w, bias=b, casting="llama").sum().backward()
        assert (x.grad.dtype, w.grad.dtype, b.grad.dtype) == (x_type, w_type, w_type)
        exact = conventions.exact("torch", of(x.detach().cpu()), eps=1e-6).sum(0)
        assert torch.allclose(w.grad.double().cpu(), torch.from_numpy(exact), rtol=2**-6, atol=1e-6)


def test_second_derivative_is_made_of_the_first_ones_types() -> None:
    x, w, _ = inputs(3, 4, dtype=torch.float16)
    first = torch.autograd.grad(kernels.rms_norm(x, w).square().sum(), (x, w), create_graph=True)
    kernel = torch.autograd.grad(kernels.rms_norm(x, w).square().sum(), (x, w))
    assert all(map(torch.allclose, first, kernel, [2e-3] * 2, [2e-3] * 2))
    assert torch.autograd.grad(first[0].float().sum(), x)[0].dtype == torch.float16


def test_opcheck() -> None:
    x, w, b = inputs(3, 20, dtype=torch.float16)
    torch.library.opcheck(op.forward_op, (x, w, b, 1e-6, "llama", 1.0))
    shapes = ("test_schema", "test_faketensor")  # all that the vectors that are not there change
    torch.library.opcheck(op.forward_op, (x, None, None, 1e-6, "torch", 0.0), test_utils=shapes)
    x, w = x.detach(), w.detach()
    rstd = torch.rand(3, device=DEVICE)
    torch.library.opcheck(op.backward_op, (x, x, w, rstd, True, 0.5))
    torch.library.opcheck(op.backward_op, (x, x, None, rstd, False, 0.0), test_utils=shapes)


def test_compiled_it_is_one_call_and_no_break() -> None:
    x, w, b = inputs(2, 3, 20, dtype=torch.float32)

    def layer(x, w, b):
        return kernels.rms_norm(2 * x, w, bias=b).tanh()

    graphs = []

    def backend(graph, inputs):
        graphs.append([str(n.target) for n in graph.graph.nodes if n.op == "call_function"])
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    whole = torch.compile(layer, fullgraph=True, backend=backend, dynamic=True)
    for part in (x, x[:1].detach().requires_grad_()):
        results = [f(part, w, b) for f in (whole, layer)]
        grads = [torch.autograd.grad(y.sum(), (part, w, b)) for y in results]
        assert torch.equal(*results)
        assert all(map(torch.equal, *grads))
    assert [name for name in graphs[0] if "rms_norm" in name] == ["rmsnorm_edu.rms_norm.default"]


def test_result_may_be_changed_in_place() -> None:
    x, w, _ = inputs(2, 3, 4)
    kernels.rms_norm(x, w).mul_(2).sum().backward()
    twice = x.grad
    once = torch.autograd.grad(kernels.rms_norm(x, w).sum(), x)[0]
    assert torch.equal(twice, 2 * once)


def test_vmap() -> None:
    x, w, _ = (t.detach() for t in inputs(4, 3, 5))
    norm = kernels.rms_norm(x, w)
    assert torch.equal(torch.vmap(lambda a: kernels.rms_norm(a, w))(x), norm)
    assert torch.equal(torch.vmap(lambda a: kernels.rms_norm(a, w), 1, 1)(x), norm)
    with pytest.raises(NotImplementedError, match=r"takes a batch of x, not of weight or bias"):
        torch.vmap(kernels.rms_norm, (None, 0))(x, torch.stack([w, w]))


def test_meta_tensors() -> None:
    x = torch.empty(2, 3, device="meta", dtype=torch.bfloat16)
    y = kernels.rms_norm(x, torch.empty(3, device="meta"), casting="llama")
    assert (y.shape, y.dtype, y.device.type) == ((2, 3), torch.float32, "meta")


# torch itself uses what it deprecates, at a process's first derivative in forward mode
@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("casting", ["torch", "llama"])
def test_derivatives_that_no_kernel_has(casting: str) -> None:
    x, w, b = (t.detach() for t in inputs(3, 5))
    weights = torch.arange(1.0, 6.0, dtype=x.dtype, device=DEVICE)

    def ours(x, w):
        return kernels.rms_norm(x, w, 1e-3, bias=b, casting=casting, weight_offset=1.0)

    def theirs(x, w):
        return torch.nn.functional.rms_norm(x, (5,), w + 1, 1e-3) + b

    def both(derivative):
        return [
            derivative(lambda x, w, f=f: (f(x, w) ** 2 * weights).sum()) for f in (ours, theirs)
        ]

    for where in (0, 1):
        assert torch.allclose(*both(lambda f, i=where: torch.func.grad(f, i)(x, w)))
    each = both(lambda f: torch.vmap(torch.func.grad(f, 1), (0, None))(x, w))
    assert torch.allclose(*each)
    assert torch.allclose(*both(lambda f: torch.func.hessian(f)(x[0], w)))
    tangents = [torch.func.jvp(lambda x, f=f: f(x, w), (x,), (b + x,))[1] for f in (ours, theirs)]
    assert torch.allclose(*tangents)
    with torch.autograd.forward_ad.dual_level():
        y = ours(torch.autograd.forward_ad.make_dual(x, b + x), w)
        assert torch.allclose(torch.autograd.forward_ad.unpack_dual(y).tangent, tangents[1])


@pytest.mark.parametrize("dtype", TYPES)
def test_plain_operations_round_where_the_kernel_does(dtype: str) -> None:
    x, w, b = (t.detach() for t in inputs(4, 33, dtype=getattr(torch, dtype)))
    for words in (1e-5, "torch", 0.0), (1e-5, "llama", 1.0):
        kernel, _ = op.forward_op(x, w.float(), b, *words)
        plain = _plain.rms_norm(x, w.float(), b, *words)
        assert plain.dtype == kernel.dtype
        # bfloat16: the interpreter cuts off, PyTorch rounds, at each of two stores
        unit = max(2 * torch.finfo(x.dtype).eps, 2.0**-21 if x.dtype != torch.float64 else 0)
        size = (kernel.abs() + 2 * b.abs()).double()
        assert bool(((kernel.double() - plain.double()).abs() <= unit * size).all())


def test_verify_accepts() -> None:
    def forward(x, weight, eps):
        x, weight = (torch.from_numpy(a).to(DEVICE) for a in (x, weight))
        return of(kernels.rms_norm(x, weight, eps, casting="llama").cpu())

    report = checks.verify(forward, convention="llama", dtype="float16", seeds=1)
    assert report.ok, report


def wrong(x=None, weight=None, **words):
    x = torch.ones(2, 3, device=DEVICE) if x is None else x
    return lambda: kernels.rms_norm(x, weight, **words)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (wrong([1.0]), TypeError, r"x is list; give a tensor, torch\.as_tensor\(x\)"),
        (wrong(torch.ones(3, dtype=torch.int64)), TypeError, r"torch\.int64.*x\.float\(\)"),
        (wrong(torch.ones(3, 0)), ValueError, r"x has shape \(3, 0\); give \(\.\.\., d\)"),
        (wrong(torch.tensor(1.0)), ValueError, r"x has shape \(\)"),
        (wrong(torch.ones(3).to_sparse()), TypeError, r"sparse.*x\.to_dense\(\)"),
        (wrong(weight=torch.ones(4)), ValueError, r"weight has shape \(4,\), x \(2, 3\)"),
        (wrong(weight=torch.ones(1, 3)), ValueError, r"give weight the shape \(3,\)"),
        (wrong(weight=torch.ones(3, device="meta")), ValueError, r"weight is on meta, x on"),
        (wrong(weight=torch.ones(3).int()), TypeError, r"weight has dtype torch\.int32"),
        (wrong(bias=torch.ones(2)), ValueError, r"bias has shape \(2,\), x \(2, 3\)"),
        (wrong(eps=-1e-6), ValueError, r"eps = -1e-06; give a finite number >= 0"),
        (wrong(eps=None), TypeError, r"eps = None is NoneType"),
        (wrong(casting="fp32"), ValueError, r"casting = 'fp32'; it is one of torch, llama, gemma"),
        (wrong(weight_offset=True), TypeError, r"weight_offset = True is bool"),
        (wrong(weight_offset=10**400), ValueError, r"weight_offset = inf; give a finite"),
        (wrong(weight_offset=float("nan")), ValueError, r"weight_offset = nan; give a finite"),
    ],
)
def test_what_does_not_fit_says_the_fix(call, error, says) -> None:
    with pytest.raises(error, match=says):
        call()
