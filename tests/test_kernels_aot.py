"""Every kernel compiles for GPUs that are not here, and spills nothing."""

import io
import json
import os
import subprocess

import pytest
import torch

from rmsnorm_edu import __main__ as cli
from rmsnorm_edu.kernels import _compile, aot, backward, forward
from rmsnorm_edu.kernels._choice import Flags

# what starts a kernel, and the longest row that it takes of at most 8192 columns
LONGEST = {
    "forward": 8192,
    "forward.long_row": 8192,
    "forward.many_rows": 512,
    "forward.pipelined": 8192,
    "backward": 8192,
    "backward.dx_only": 8192,
    "backward.dx_long": 8192,
    "backward.many_rows": 512,
    "add_forward": 8192,
    "add_backward": 8192,
}
LONG = {"add_forward": "add_long", "add_backward": "add_long_backward"}


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """All that this file compiles, in one process."""
    every = {"arches": [*aot.ARCHES], "dtypes": [*aot.DTYPES], "bias": True}
    orders = [{"d": d, "kernels": [name], **every} for name, d in LONGEST.items()]
    some = {"arches": [80], "dtypes": ["float16"], "bias": False}
    orders.append({"d": 1000, "kernels": ["forward"], **some})
    orders.append({"d": 16384, "kernels": ["forward", *LONG], **some, "arches": [75, 90]})
    return aot.compiled(orders, str(tmp_path_factory.mktemp("cache")))


def test_no_kernel_spills_at_its_longest_row(entries: list[dict]) -> None:
    spilled = [e for e in entries if e["spilled"]]
    assert not spilled, aot.table(spilled)
    every = {(arch, dtype) for arch in aot.ARCHES for dtype in aot.DTYPES}
    for name, d in LONGEST.items():
        kernel = name if "." in name else f"{name}.{chosen(name, d)}"
        found = [e for e in entries if e["kernel"] == kernel and e["d"] == d]
        assert {(e["arch"], e["dtype"]) for e in found} == every, (name, d)


def chosen(host: str, d: int) -> str:
    """The kernel that the host starts for rows of d columns."""
    if host == "forward":
        return forward.chosen(d, torch.float32, Flags()).kernel
    if host == "backward":
        return backward.chosen(d, torch.float32).kernel
    return {"add_forward": "add_rows", "add_backward": "add_rows_backward"}[host]


def test_it_is_compiled_for_every_rung() -> None:
    compiled = {name if "." in name else f"{name}.{chosen(name, d)}" for name, d in LONGEST.items()}
    rungs = {f"forward.{rung}" for rung in forward.RUNGS}
    rungs |= {f"backward.{rung}" for rung in backward.RUNGS}
    assert compiled == rungs | {"add_forward.add_rows", "add_backward.add_rows_backward"}


def test_long_rows_of_the_residual_add_are_compiled(entries: list[dict]) -> None:
    found = {e["kernel"] for e in entries if e["d"] == 16384}
    assert found > {f"{host}.{kernel}" for host, kernel in LONG.items()}


def test_what_a_program_may_take(entries: list[dict]) -> None:
    """A multiprocessor has 65536 registers; a program 48 KiB of shared memory without asking."""
    for e in entries:
        assert e["registers"] * 32 * e["warps"] <= 2**16
        assert e["shared"] <= 48 * 1024


def test_rows_move_in_128_bits_where_16_divides_all(entries: list[dict]) -> None:
    """Of a row of 1000 halves it is not known; 32 bits are rstd, 64 the weight of short rows."""
    for e in entries:
        if e["d"] % 16:
            assert set(e["loads"]) == {"16"}
        elif "reduce" in e["kernel"]:  # which sums many partial rows, and stores one
            assert set(e["loads"]) == {"128"}
        else:
            others = {"32", "64"} if "many_rows" in e["kernel"] else {"32"}
            assert set(e["loads"]) | set(e["stores"]) <= {"128", *others}, e
            assert e["loads"]["128"] * e["stores"]["128"]


def test_no_kernel_approximates(entries: list[dict]) -> None:
    """A GPU rounds as the interpreter does: what is tested there is what runs."""
    for e in entries:
        kernel, found = e["kernel"], set(e["arithmetic"])
        if kernel.endswith((".reduce", ".dweight_tiles")):
            assert found == set(), e
        elif "backward" in kernel:
            assert found == {"div.rn.f32"}, e
        else:
            assert found == {"div.rn.f32", "sqrt.rn.f32"}, e


def test_the_command_prints_a_table_or_json(entries, capsys, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(aot, "compiled", lambda orders, _: asked.extend(orders) or entries[:1])
    assert cli.main(["aot", "--json", "--d", "256", "--arch", "75,90", "--dtype", "float16"]) == 0
    assert json.loads(capsys.readouterr().out) == entries[:1]
    assert asked == [
        {"d": 256, "arches": [75, 90], "dtypes": ["float16"], "kernels": None, "bias": False}
    ]
    assert cli.main(["aot", "--kernel", "forward,backward.partials"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["kernel", "arch", "dtype", "warps"]
    assert line.split()[:3] == [entries[0]["kernel"], "sm_75", "float32"]
    assert (asked[1]["d"], asked[1]["arches"]) == (4096, [*aot.ARCHES])
    assert asked[1]["kernels"] == ["forward", "backward.partials"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"d": 0}, "d = 0; give an integer >= 1"),
        ({"arches": [86, 75]}, "arch = 86; there are 75, 80, 90, 100"),
        ({"dtypes": ["float64"]}, "dtype = 'float64'; there are float32, float16, bfloat16"),
    ],
)
def test_errors_say_what_there_is(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        aot.report(**arguments)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("sideways", "kernel = 'sideways'; it is one of forward"),
        ("forward.fast", "rung = 'fast'; it is one of one_row, long_row"),
    ],
)
def test_errors_of_the_child_reach_the_caller(kernel, message, monkeypatch, capsys) -> None:
    def child(command: list[str], *, input: str, env: dict, **_):
        assert (command[-1], env["TRITON_INTERPRET"]) == (_compile.__name__, "0")
        monkeypatch.setattr("sys.stdin", io.StringIO(input))
        _compile.main()
        return subprocess.CompletedProcess(command, 0, capsys.readouterr().out, "")

    monkeypatch.setattr(aot.subprocess, "run", child)
    with pytest.raises(ValueError, match=message):
        aot.report(kernels=[kernel])


def test_without_triton_or_its_assembler(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(_compile.triton, "__file__", str(tmp_path / "triton" / "__init__.py"))
    with pytest.raises(ImportError, match=r"no ptxas in .*install the published wheel"):
        _compile.tool("ptxas")
    monkeypatch.setattr(aot, "find_spec", lambda name: None if name == "triton" else os)
    with pytest.raises(ImportError, match=r'pip install "rmsnorm_edu\[triton\]"'):
        aot.report()


def test_the_compilers_failure_is_told(monkeypatch) -> None:
    monkeypatch.setattr(aot.sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="the compiler failed"):
        aot.report(8)


def test_widths_are_read_from_the_instructions() -> None:
    ptx = """
    @%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];
    ld.global.L1::evict_first.L2::cache_hint.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ], %rd9;
    ld.global.b16 { %rs1 }, [ %rd2 + 0 ];
    cp.async.cg.shared.global [ %r9 + 0 ], [ %rd3 + 0 ], 0x10, %r10;
    ld.shared.b32 %r5, [%r6];
    @%p2 st.global.v4.b32 [ %rd4 + 0 ], { %r1, %r2, %r3, %r4 };
    st.global.f32 [%rd5], %f1;
    """
    assert _compile.widths(ptx) == {
        "loads": {"128": 2, "64": 1, "16": 1},
        "stores": {"128": 1, "32": 1},
    }


def test_roundings_are_read_from_the_instructions() -> None:
    ptx = """
    div.full.f32 %r2, %r1, %r3;
    @%p1 rsqrt.approx.ftz.f32 %r4, %r2;
    sqrt.rn.f64 %rd1, %rd2;
    rcp.rn.f32 %r4, %r2;
    add.ftz.f32 %r1, %r2, %r3;
    fma.rn.f32 %r1, %r2, %r3, %r4;
    cvt.rn.f16x2.f32 %r1, %r2, %r3;
    div.s32 %r1, %r2, %r3;
    """
    found = ("add.ftz.f32", "div.full.f32", "rcp.rn.f32", "rsqrt.approx.ftz.f32", "sqrt.rn.f64")
    assert _compile.arithmetic(ptx) == dict.fromkeys(found, 1)
