"""One process, one mode of Triton; what is missing or in the wrong place says the fix."""

import importlib.util
import math
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from tensors import gains, uneven

from rmsnorm_edu import kernels
from rmsnorm_edu.kernels import _choice, _runtime, forward, tuning


@pytest.mark.parametrize("library", ["torch", "triton"])
def test_missing_library(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = kernels.find_spec
    monkeypatch.setattr(kernels, "find_spec", lambda name: None if name == library else found(name))
    with pytest.raises(ImportError, match=rf'needs .*pip install "rmsnorm_edu\[{library}\]"'):
        kernels.__getattr__("rms_norm")


def test_missing_libraries_are_named_together_and_their_names_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernels, "find_spec", lambda name: None)
    remedy = (
        r'PyTorch and Triton, which are not installed: pip install "rmsnorm_edu\[torch,triton\]"'
    )
    with pytest.raises(ImportError, match=remedy):
        kernels.__getattr__("rms_norm")
    assert "rms_norm" not in dir(kernels)


def test_missing_triton_where_a_file_of_the_kernels_is_imported_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = importlib.util.spec_from_file_location("alone", _runtime.__file__)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'need Triton.*pip install "rmsnorm_edu\[triton\]"'):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_names() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'norm'; it has \[.*'rms_norm'"):
        _ = kernels.norm
    assert {*kernels.__all__} <= {*dir(kernels)}


@pytest.mark.parametrize(
    ("said", "gpu", "interpreted"),
    [
        (None, False, True),
        (None, True, False),
        ("1", True, True),
        ("0", False, False),
        ("", False, False),
        (" True ", True, True),
    ],
)
def test_mode_is_what_is_said_else_whether_there_is_a_gpu(
    said: str | None, gpu: bool, interpreted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    if said is not None:
        monkeypatch.setenv("TRITON_INTERPRET", said)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    assert _runtime._wanted() is interpreted


def test_triton_of_the_other_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", str(int(not _runtime.INTERPRETED)))
    modes = ["interpreting", "compiling"] if _runtime.INTERPRETED else ["compiling", "interpreting"]
    says = "triton was imported {}, and the kernels want it {}: .*Start a new one".format(*modes)
    spec = importlib.util.spec_from_file_location("late", _runtime.__file__)
    with pytest.raises(RuntimeError, match=says):  # the module again, which finds triton there
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_tensor_on_the_cpu_where_triton_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_runtime, "INTERPRETED", False)
    with pytest.raises(RuntimeError, match=r"x is on the CPU.*give x\.to\(\"cuda\"\)"):
        forward.forward(torch.ones(2, 3))


def test_tuning_keeps_the_fastest_for_all_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_choice, "TUNED", {})
    x, w = uneven(2, 300, dtype=torch.float32), gains(300, dtype=torch.float32)
    x, w = x.to(_runtime.default_device()), w.to(_runtime.default_device())
    times = iter([5.0] * 7 + [1.0] + [5.0] * 99)

    def seconds(call) -> float:
        call()
        return next(times)

    expected = forward.forward(x, w)[0]
    best = kernels.tune(x, w, seconds=seconds)
    assert best == [*tuning.candidates(300, torch.float32)][7]
    flags = _choice.Flags()
    assert forward.chosen(300, torch.float32, flags) == best
    assert forward.chosen(300, torch.float32, _choice.Flags(bias=True)) != best
    assert torch.allclose(forward.forward(x, w)[0], expected, rtol=1e-6, atol=0)


@pytest.mark.skipif(not _runtime.INTERPRETED, reason="there is a GPU to measure on")
def test_tuning_without_a_driver_is_the_table() -> None:
    plan = kernels.tune(uneven(2, 300, dtype=torch.float16))
    assert plan == forward.chosen(300, torch.float16, _choice.Flags(weight=False))
    assert not _choice.TUNED


@pytest.mark.parametrize("d", [1, 300, 8192, 65536])
def test_no_candidate_has_more_threads_than_a_program_may(d: int) -> None:
    found = [*tuning.candidates(d, torch.float32)]
    assert all(plan in found for plan in _choice.forward_table(d, torch.float32).values())
    assert all(1 <= plan.num_warps <= 32 for plan in found)
    assert len({str(plan) for plan in found}) == len(found)


def test_number_of_rows_is_never_compiled_in() -> None:
    for kernel in forward.RUNGS.values():
        parameters = getattr(kernel, "params", None)  # the interpreter keeps none
        if parameters is not None:
            assert all(p.do_not_specialize for p in parameters if p.name == "rows")


def test_threads_may_launch_at_the_same_time() -> None:
    x, w = uneven(24, 300).to(_runtime.default_device()), gains(300).to(_runtime.default_device())
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda _: kernels.rms_norm(x, w), range(4))]
    assert all(torch.equal(y, kernels.rms_norm(x, w)) for y in found)


def test_tuning_refuses_what_the_norm_refuses() -> None:
    x = torch.ones(2, 3, device=_runtime.default_device())
    for words in ({"eps": -1.0}, {"casting": "keras"}, {"weight_offset": math.nan}):
        with pytest.raises(ValueError, match=next(iter(words))):
            kernels.tune(x, **words)


def _doors():
    x, w, rstd = uneven(3, 5), gains(5), torch.ones(3)
    forth, back, add = forward.forward, kernels.backward.backward, kernels.fused_add
    return {
        "x has shape (3, 5, 1)": lambda: forth(x[..., None], w),
        "x has dtype torch.int32": lambda: forth(x.int(), w),
        "weight has shape (2,), x (3, 5): give weight the shape (5,)": lambda: forth(x, w[:2]),
        "bias has shape (4,)": lambda: forth(x, w, w[:4]),
        "dy has shape (2, 5)": lambda: back(x[:2], x, w, rstd),
        "rstd has shape (2,), x (3, 5): give rstd the shape (3,)": lambda: back(x, x, w, rstd[:2]),
        "residual has shape (3, 4)": lambda: add.forward(x, x[:, :4], w),
        "dh has shape (1, 5), h (3, 5)": lambda: add.backward(x, x[:1], x, w, rstd),
        "rstd has strides (0,); give": lambda: back(x, x, w, rstd[:1].expand(3)),
        "rstd has dtype torch.float16": lambda: add.backward(x, x, x, w, rstd.half()),
        "weight has a minus": lambda: forth(x, torch.complex(w, w).conj().imag),
        "eps = -1.0; give a finite number": lambda: forth(x, w, eps=-1.0),
        "eps = nan; give a finite number": lambda: add.forward(x, x, w, math.nan),
    }


@pytest.mark.parametrize("words", list(_doors()))
def test_a_host_reads_no_memory_beyond_its_arguments(words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        _doors()[words]()
