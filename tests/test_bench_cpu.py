"""`rmsnorm_edu bench cpu` and the record of the ladder: what they say, not how fast it is."""

import json
import mmap
import subprocess
import sys

import numpy as np
import pytest

from rmsnorm_edu.__main__ import main
from rmsnorm_edu.benchmarks import cpu, cpu_ladder, cpu_methods

pytest.importorskip("torch")
pytest.importorskip("numba")
pytestmark = pytest.mark.usefixtures("own_threads")
QUICK = [method for method in cpu.METHODS if method != "torch.compile"]  # which takes seconds
PLAN = {"shape": [6, 33], "dtype": "float32", "repeats": 3, "threads": 1, "methods": QUICK}


def test_the_command_gives_the_list(capfd) -> None:
    methods = ["--methods", "fused, torch.nn.LayerNorm"]
    assert main(["bench", "cpu", "--json", "--shape", "6x33", "--repeats", "3", *methods]) == 0
    entries = json.loads(capfd.readouterr().out)
    assert all(tuple(entry) == cpu.FIELDS for entry in entries)
    found = [(entry["method"], entry["direction"]) for entry in entries]
    both = [(method, way) for method in ("fused", "torch.nn.LayerNorm") for way in cpu.DIRECTIONS]
    assert found == [("copy", "forward"), *both]
    copy = entries[0]["ms_median"]
    for entry in entries:
        assert entry["shape"] == [6, 33]
        assert entry["dtype"] == "float32"
        assert 0 < entry["ms_min"] <= entry["ms_median"]
        # the ratio is rounded to 1e-3, each time to 1e-4 ms
        rounding = 1e-3 + 1e-4 * (1 + entry["ratio_to_copy"]) / copy
        assert entry["ratio_to_copy"] == pytest.approx(entry["ms_median"] / copy, abs=rounding)


def test_every_method_computes_the_norm() -> None:
    arrays = cpu_methods.Arrays(PLAN["shape"], "float64")
    seen = []
    for (method, direction), shape, call in cpu_methods.calls(PLAN | {"dtype": "float64"}):
        seen.append(method)
        if "copy" in method or "Layer" in method or direction != "forward":
            continue
        y = np.asarray(call())
        mean_square = np.mean(arrays.x**2, axis=1, keepdims=True)
        truth = arrays.x / np.sqrt(mean_square + cpu.EPS) * arrays.weight
        np.testing.assert_allclose(y, truth[: shape[0]], rtol=1e-14)  # some 60 roundings
    assert list(dict.fromkeys(seen)) == QUICK


def test_all_but_the_compiler_are_measured() -> None:
    entries = cpu._measure(PLAN)
    assert {entry["method"] for entry in entries} == set(QUICK)
    assert all(entry["ms_min"] >= 0 and entry["faults"] >= 0 for entry in entries)
    text = cpu.table(entries)
    assert len(text.splitlines()) == 2 + len(entries)
    assert "6 x 33 float32" in text


def test_new_memory_is_counted_in_pages() -> None:
    """Memory of the system itself: the C library may hand out again what was freed."""
    pytest.importorskip("resource", reason="Windows counts no page faults")
    before = cpu._faults()
    with mmap.mmap(-1, 40 * 2**20) as fresh:
        fresh.write(bytes(len(fresh)))
    assert cpu._faults() - before >= 20  # a page has 2 MiB at most


def test_each_method_has_the_faults_of_its_own_calls(monkeypatch) -> None:
    pages: list[int] = []
    calls = {"copy": lambda: None, "copy (fresh)": lambda: pages.extend(range(7))}
    found = [((name, "forward"), [6, 33], call) for name, call in calls.items()]
    monkeypatch.setattr(cpu_methods, "calls", lambda plan: found)
    monkeypatch.setattr(cpu, "_faults", lambda: len(pages))
    faults = {entry["method"]: entry["faults"] for entry in cpu._measure(PLAN)}
    assert faults == {"copy": 0, "copy (fresh)": 7}


def test_a_copy_goes_to_the_same_place_and_a_fresh_one_to_another() -> None:
    plan = PLAN | {"methods": ["copy", "copy (fresh)", "fused", "fused (fresh)"]}
    for (method, direction), _, call in cpu_methods.calls(plan):
        if direction == "forward":
            one, two = np.asarray(call()), np.asarray(call())
            assert np.shares_memory(one, two) is ("fresh" not in method), method


def test_a_loop_is_measured_on_fewer_rows_and_compared_row_by_row() -> None:
    plan = PLAN | {"shape": [4, cpu.LOOP // 2], "methods": ["copy", "loop"], "repeats": 1}
    copy, loop = cpu._measure(plan)
    assert loop["shape"] == [2, cpu.LOOP // 2]
    assert loop["ratio_to_copy"] == pytest.approx(2 * loop["ms_median"] / copy["ms_median"], 0.01)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--methods", "magic"], "no method 'magic'; there are: copy, "),
        (["--shape", "12"], "shape '12': give ROWSxFEATURES, like 8192x4096"),
        (["--shape", "0x4"], "rows or features of the shape = 0; give an integer >= 1"),
        (["--dtype", "int8"], "dtype 'int8': give float32 or float64"),
        (["--repeats", "0"], "repeats = 0; give an integer >= 1"),
        (["--shape", "1073741824x1048576"], "shape 1073741824x1048576 in float32 needs about"),
    ],
)
def test_what_cannot_be_measured_is_said(arguments: list[str], text: str, capsys) -> None:
    assert main(["bench", "cpu", *arguments]) == 1
    assert text in capsys.readouterr().err


def test_what_a_compiler_prints_is_passed_over(monkeypatch) -> None:
    said = subprocess.CompletedProcess([], 0, 'a warning\n[{"method": "copy"}]\n')
    monkeypatch.setattr(cpu.subprocess, "run", lambda *_, **__: said)
    assert cpu.measured((3, 4)) == [{"method": "copy"}]


@pytest.mark.parametrize("error", [RuntimeError, PermissionError])
def test_a_method_that_fails_is_left_out(error: type, capsys) -> None:
    def broken() -> None:
        raise error("no compiler\nsecond line")

    assert not cpu._works("torch.compile", broken)
    assert capsys.readouterr().err == "torch.compile is left out: no compiler\n"


def test_what_is_left_out_is_told_once(monkeypatch, capsys) -> None:
    monkeypatch.delitem(sys.modules, "rmsnorm_edu._fused_kernels", raising=False)
    monkeypatch.delattr("rmsnorm_edu._fused_kernels", raising=False)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    [copy] = cpu._measure(PLAN | {"methods": ["copy", "fused"]})
    assert copy["method"] == "copy"
    assert capsys.readouterr().err.count("fused is left out: the fused rung needs numba") == 1


def test_the_record_has_every_shape(monkeypatch) -> None:
    # in a process of its own it is measured by test_the_command_gives_the_list
    monkeypatch.setattr(cpu, "measured", lambda *plan: cpu._measure(cpu._plan(*plan)))
    found = cpu_ladder.measure([(4, 8), (2, 16)], repeats=1, methods=["copy", "fused"])
    assert found["shapes"] == [[4, 8], [2, 16]]
    methods = [(entry["shape"], entry["method"]) for entry in found["entries"]]
    assert methods[:3] == [([4, 8], "copy"), ([4, 8], "fused"), ([4, 8], "fused")]
    assert methods[3][0] == [2, 16]
    assert found["page"] >= 4096


@pytest.mark.equation("ladder-bytes")
def test_bytes_of_the_rungs() -> None:
    size = 3 * 5 * 8
    assert cpu_ladder.traffic("copy", 3, 5, "float64") == {
        "read": size,
        "allocate": size,
        "write": size,
    }
    total = {rung: sum(cpu_ladder.traffic(rung, 3, 5).values()) for rung in cpu_ladder.STREAMS}
    assert total["fused"] == total["blocked"] == total["loop"] == total["copy"]
    assert total["streamed"] == 2 * 60  # no line of y is read
    assert total["numpy"] == 10 * 60  # 4 reads, 3 writes, and 3 reads before them
    assert total["einsum"] == 6 * 60  # 3 reads, 2 writes, the second into what was read
    with pytest.raises(ValueError, match="no rung 'magic'; there are: copy, loop"):
        cpu_ladder.traffic("magic", 1, 1)


def test_what_python_is_asked_for_is_checked_here(monkeypatch) -> None:
    """Before a process is started, which would end in a traceback."""
    with pytest.raises(ValueError, match=r"give \(rows, features\), like \(8192, 4096\)"):
        cpu.bench((3, 4, 5), repeats=1)
    monkeypatch.setattr(cpu, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "rmsnorm_edu\[torch\]"'):
        cpu.bench((3, 4), repeats=1)
