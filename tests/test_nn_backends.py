"""The backends of `nn.RMSNorm`: the bits of plain operations on a CPU, one door to the kernels."""

import copy
import os
import pickle
import subprocess
import sys
import threading
from functools import partial

import pytest
import torch
from tensors import TYPES, gains, uneven
from torch.autograd import gradcheck, gradgradcheck
from torch.func import hessian, jacrev, jvp, vmap

from rmsnorm_edu import conventions, nn
from rmsnorm_edu.nn import _backends, _function, _numba
from rmsnorm_edu.nn._arithmetic import Rule
from rmsnorm_edu.nn.functional import rms_norm

# torch's forward mode loads what torch itself scripts in its deprecated way
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
WIDE = {"float32": torch.float32, "float64": torch.float64}
FAST = ("numba", "triton")
LIBRARIES = ("_numba", "_triton")


def derived(x, dy, vectors, **options) -> tuple[torch.Tensor, ...]:
    """y, dx and the gradients of weight and bias."""
    leaves = [None if t is None else t.detach().requires_grad_() for t in (x, *vectors)]
    y = rms_norm(*leaves, **options)
    return (y.detach(), *torch.autograd.grad(y, [t for t in leaves if t is not None], dy))


@pytest.fixture
def exact() -> None:
    if not all(_numba.has_torchs_bits(dtype) for dtype in WIDE.values()):
        pytest.skip("torch adds in another order on this processor, so auto leaves numba alone")


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("dtype", WIDE.values(), ids=WIDE)
@pytest.mark.parametrize("shape", [(5, 1), (3, 7), (1, 37), (70, 300), (2, 5, 1025), (0, 6)])
def test_numba_has_the_bits_of_eager(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """y and dx; dweight is summed in another order, and both are near the exact one."""
    x, dy = uneven(*shape, dtype=dtype), uneven(*shape, dtype=dtype, seed=1)
    w, b = gains(shape[-1], dtype=dtype), gains(shape[-1], dtype=dtype) - 0.7
    for convention, vectors in (("torch", (w, None)), ("gemma", (w, b)), ("olmo2", (None, None))):
        options = {"convention": convention, "eps": 1e-5}
        eager = derived(x, dy, vectors, backend="eager", **options)
        got = derived(x, dy, vectors, backend="numba", **options)
        assert torch.equal(got[0], eager[0])
        assert torch.equal(got[1], eager[1])
        xhat = x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
        terms = (dy * xhat).abs().reshape(-1, shape[-1]).sum(0)
        for one, other in zip(got[2:], eager[2:], strict=True):  # each errs by its own order
            assert torch.all((one - other).abs() <= 64 * torch.finfo(dtype).eps * (terms + 1))


@pytest.mark.usefixtures("exact")
def test_numba_in_any_layout_writes_nothing_of_the_callers() -> None:
    x, dy, w = uneven(6, 90).float(), uneven(6, 90, seed=1).float(), gains(90).float()
    wanted = derived(x, dy, (w,), backend="eager")
    for layout in (
        lambda t: torch.cat([t, t], -1).split(90, -1)[1],
        lambda t: t.mT.contiguous().mT,
        lambda t: torch.stack([t, t], -1)[..., 0],
    ):
        before = layout(x).clone()
        got = derived(layout(x), layout(dy), (layout(w[None])[0],), backend="numba")
        assert all(torch.equal(a, b) for a, b in zip(got[:2], wanted[:2], strict=True))
        assert torch.equal(layout(x), before)
    rows = x[:1].expand(8, 90).requires_grad_()
    rms_norm(rows, w, backend="numba").sum().backward()  # an upstream gradient of one number


@pytest.mark.parametrize("backend", FAST)
def test_a_minus_that_torch_keeps_in_mind_and_another_default_device(backend: str) -> None:
    """The imaginary part of a conjugate has the memory of its opposite."""
    x, dy, w = (
        torch.complex(torch.zeros(n, dtype=torch.double), t.reshape(n)).conj().imag.view(t.shape)
        for t in (uneven(3, 20), uneven(3, 20, seed=1), gains(20))
        for n in (t.numel(),)
    )
    assert x.is_neg()
    wanted = derived(*(t.resolve_neg() for t in (x, dy)), (w.resolve_neg(),), backend="eager")
    with torch.device("meta"):
        got = derived(x, dy, (w,), backend=backend)
        plain = derived(*(t.resolve_neg() for t in (x, dy)), (w.resolve_neg(),), backend=backend)
    for found in (got, plain):
        for a, b in zip(found, wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("exact")
def test_auto_takes_numba_for_large_rows_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = uneven(8, 100).float(), gains(100).float()
    rule = Rule(conventions.get("torch"), 1e-6, 100)

    def way(x=x, w=w, b=None, rule=rule, backend="auto") -> str:
        return _backends.chosen(backend, rule, x, w, b)

    assert way() == "eager"
    monkeypatch.setattr(_backends, "LARGE", 800)
    assert way() == way(w=None) == way(x.double(), w.double()) == "numba"
    assert way(x[:7]) == way(x.half()) == way(w=w.half()) == way(backend="eager") == "eager"
    assert way(rule=Rule(rule.convention, 1e-6, 50)) == "eager"
    assert way(rule=Rule(conventions.get("flax"), 1e-6, 100)) == "eager"
    assert way(x.to("meta"), w.to("meta")) == "eager"
    with monkeypatch.context() as patched:
        patched.setattr(_backends, "_is_exact", lambda dtype: False)
        assert way() == "eager"
    monkeypatch.setitem(_backends.INSTALLED, "numba", False)
    assert way() == "eager"


def test_small_rows_load_neither_numba_nor_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, names in ((_backends, ["_is_exact", "_interprets"]), (_function, LIBRARIES)):
        for name in names:
            monkeypatch.setattr(module, name, pytest.fail)
    nn.RMSNorm(64)(uneven(9, 64).float().requires_grad_()).sum().backward()


@pytest.mark.parametrize("backend", FAST)
def test_derivatives_of_any_order_and_way(backend: str) -> None:
    def norm(x, weight, bias):
        return rms_norm(x, weight, bias, eps=0.1, backend=backend)

    given = [t.requires_grad_() for t in (uneven(2, 3), gains(3), gains(3) - 0.4)]
    both = {"check_forward_ad": True, "check_batched_grad": True}
    assert gradcheck(norm, given, check_batched_forward_grad=True, **both)
    assert gradgradcheck(norm, given, check_fwd_over_rev=True)
    x, w, b = (t.detach() for t in given)

    def loss(x):
        return norm(x, w, b).pow(3).sum()

    assert torch.allclose(hessian(loss)(x), jacrev(jacrev(loss))(x))
    dx = uneven(2, 3, seed=4)
    moved = jvp(lambda x: norm(x, w, b), (x,), (dx,))[1]
    assert torch.allclose(moved, jvp(lambda x: rms_norm(x, w, b, eps=0.1), (x,), (dx,))[1])
    rows, weights = uneven(4, 2, 3, seed=5), uneven(4, 3, seed=6)
    assert torch.allclose(vmap(norm, (0, None, None))(rows, w, b), norm(rows, w, b))
    each = torch.stack([norm(x, weight, b) for weight in weights])
    assert torch.allclose(vmap(norm, (None, 0, None))(x, weights, b), each)


def test_the_kernels_compute_each_convention_that_they_know() -> None:
    """In every mix of types; half precision to its last bit, of which an offset may cost two."""
    known = set()
    for name in conventions.NAMES:
        for x_type in (torch.float16, torch.float32):
            for w_type in (None, torch.float16, torch.float32):
                x, w = uneven(2, 37, dtype=x_type), gains(37, dtype=w_type or x_type)
                w, c = (None if w_type is None else w), conventions.get(name)
                if _backends.casting(Rule(c, c.eps, 37), x, w, None) is None:
                    continue
                known.add(name)
                got = rms_norm(x, w, convention=name, backend="triton")
                wanted = rms_norm(x, w, convention=name, backend="eager")
                assert got.dtype == wanted.dtype
                ulp = torch.finfo(min(x_type, got.dtype, key=lambda t: t.itemsize)).eps
                torch.testing.assert_close(got, wanted, rtol=3 * ulp, atol=1e-6)
    gemma, x, w = Rule(conventions.get("gemma"), 1e-6, 37), uneven(2, 37), gains(37)
    assert _backends.casting(gemma, x, w.float(), None) is None  # 1 + weight is float32 in it
    assert {"torch", "llama", "gemma", "t5", "qwen3_next", "mlx", "keras", "vllm"} <= known
    assert not known & {"paper_torch", "paper_tensorflow", "flax", "ggml", "x_transformers"}


@pytest.mark.parametrize("dtype", TYPES.values(), ids=TYPES)
def test_gradients_of_the_kernels(dtype: torch.dtype) -> None:
    x, dy = uneven(5, 96, dtype=dtype), uneven(5, 96, dtype=dtype, seed=1)
    vectors = (gains(96, dtype=dtype), gains(96, dtype=dtype) - 0.7)
    got = derived(x, dy, vectors, backend="triton", eps=1e-5)
    wanted = derived(x.double(), dy.double(), [v.double() for v in vectors], eps=1e-5)
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == dtype
        allowed = 8 * torch.finfo(dtype).eps * float(b.abs().max())
        torch.testing.assert_close(a.double(), b, rtol=0, atol=max(allowed, 1e-14))


def test_auto_takes_the_kernels_on_a_gpu_where_they_know_the_norm(monkeypatch) -> None:
    """A CPU that says it is a GPU, whose kernels are interpreted."""
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    x, w = uneven(3, 40).half(), gains(40).half()
    c = conventions.get("llama")
    known, other = Rule(c, 1e-6, 40), Rule(c, 1e-6, 20)
    assert _backends.chosen("auto", known, x, w, None) == "eager"  # interpreted: a GPU is quicker
    monkeypatch.setattr(_backends, "_compiles", lambda: True)
    assert _backends.chosen("auto", known, x, w, None) == "triton"
    assert _backends.chosen("auto", other, x, w, None) == "eager"
    assert _backends.chosen("eager", known, x, w, None) == "eager"


@pytest.mark.parametrize("backend", FAST)
def test_compiled_whole_and_exported_as_plain_operations(backend: str) -> None:
    norm = nn.RMSNorm((2, 8), bias=True, backend=backend)
    norm.weight.data.copy_(gains(2, 8))
    norm.bias.data.copy_(gains(2, 8) - 0.7)
    x, dy = uneven(3, 2, 8).float(), uneven(3, 2, 8, seed=1).float()
    names = []

    def seen(graph, _):
        names.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    torch._dynamo.reset()
    for compiler in (seen, "aot_eager"):
        results = []
        for function in (norm, torch.compile(norm, fullgraph=True, backend=compiler)):
            rows = x.clone().requires_grad_()
            y = function(rows)
            results.append((y, *torch.autograd.grad(y, (rows, norm.weight, norm.bias), dy)))
        for a, b in zip(*results, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    assert any("rmsnorm_edu" in name for name in names)
    exported = torch.export.export(norm, (x,))
    assert "rmsnorm_edu" not in str(exported.graph)
    torch.testing.assert_close(exported.module()(x), norm(x), rtol=1e-5, atol=1e-6)


def test_operations_are_what_torch_expects() -> None:
    x, w, b = (t.requires_grad_() for t in (uneven(3, 5), gains(5), gains(5)))
    for given in ((x, w, b), (x.detach(), None, None), (x, None, b)):
        torch.library.opcheck(_numba._operation, (*given, 1e-5))


def test_what_watches_operations_sees_them() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    x, w = uneven(3, 5).float(), gains(5).float()
    for backend in ("numba", "auto"):
        graph = make_fx(partial(rms_norm, backend=backend))(x, w)
        assert torch.equal(graph(2 * x, w), rms_norm(2 * x, w))


def test_a_backend_that_cannot_says_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = uneven(2, 6).float(), gains(6).float()
    for given, options in (((x, w), {"k": 3}), ((x, w), {"convention": "paper_torch"})):
        for backend in FAST:
            with pytest.raises(ValueError, match=r"does not know this norm.*give backend='auto'"):
                rms_norm(*given, backend=backend, **options)
    with pytest.raises(ValueError, match=r"x, weight and bias of \['torch.float16'"):
        rms_norm(x.half(), w.half(), backend="numba")
    with monkeypatch.context() as patched:
        patched.setattr(_backends, "_interprets", lambda: False)
        with pytest.raises(ValueError, match=r"give x.to\('cuda'\), or start Python with TRITON"):
            rms_norm(x, w, backend="triton")
    for backend, extra in (("numba", "cpu"), ("triton", "triton")):
        monkeypatch.setitem(_backends.INSTALLED, backend, False)
        with pytest.raises(ImportError, match=rf'{backend}, .*install "rmsnorm_edu\[{extra}\]"'):
            nn.RMSNorm(6, backend=backend)


def test_copies_and_what_is_shown() -> None:
    norm, x = nn.RMSNorm(8, backend="numba"), uneven(3, 8).float()
    norm.weight.data.copy_(gains(8))
    assert "backend='numba'" in repr(norm)
    for twin in (copy.deepcopy(norm), pickle.loads(pickle.dumps(norm))):
        assert torch.equal(twin(x), norm(x))
        assert twin.backend == "numba"


def test_several_threads_at_once() -> None:
    x, dy, w = uneven(600, 900).float(), uneven(600, 900, seed=1).float(), gains(900).float()
    wanted, results = derived(x, dy, (w,), backend="numba"), []

    def work() -> None:
        results.extend(derived(x, dy, (w,), backend="numba") for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20
    for got in results:
        assert all(torch.equal(a, b) for a, b in zip(got, wanted, strict=True))


FORK = """
import os
import torch
from rmsnorm_edu.nn.functional import rms_norm

torch.set_num_threads(3)
x, w = torch.linspace(-1, 3, 600 * 900).view(600, 900), torch.linspace(-1.3, 2.1, 900)
wanted = rms_norm(x, w, backend="numba")
child = os.fork()
if child == 0:
    torch.set_num_threads(1)
    os._exit(not torch.equal(rms_norm(x, w, backend="numba"), wanted))
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_computes_too() -> None:
    """As a worker of a DataLoader is one."""
    subprocess.run([sys.executable, "-c", FORK], check=True)
