"""The recordings of `kernels.trace`: as a hand counts, twice the same, of any kernel."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

import torch

from rmsnorm_edu import reference
from rmsnorm_edu.kernels import trace
from rmsnorm_edu.kernels._runtime import tl, triton

ROWS, D, BLOCK = 3, 6, 8


@triton.jit
def mean_square(x, d):
    return tl.sum(x * x, axis=0) / d


@triton.jit
def readers(x_ptr, y_ptr, d, eps, BLOCK: tl.constexpr):  # noqa: N803
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < d
    x = tl.load(x_ptr + row * d + columns, mask=inside, other=0.0)
    y = x / tl.sqrt(mean_square(x, d) + eps)
    tl.store(y_ptr + row * d + columns, y, mask=inside)


@triton.jit
def running(from_ptr, to_ptr, step, BLOCK: tl.constexpr):  # noqa: N803
    lanes = tl.arange(0, BLOCK)
    v = tl.load(from_ptr + lanes * step)
    top = tl.max(v, axis=0)
    total = tl.cumsum(v, axis=0)
    tl.store(to_ptr + lanes, total - top / 2)


@pytest.fixture(scope="module")
def recorded():
    """All of them in one child: to import torch takes longer than to record."""
    one_row = {"operation": "forward", "rows": ROWS, "d": D, "rung": "one_row"}
    many = {"operation": "forward", "rows": 8, "d": 100, "dtype": "float16", "keep": False}
    loop = {"rows": ROWS, "d": 100, "rung": "long_row", "constants": {"long_row": {"BLOCK": 32}}}
    found = trace.record_all([one_row, one_row, many, {"operation": "forward", **loop}])
    return dict(zip(("first", "again", "many", "loop"), found, strict=True))


@pytest.fixture
def one_row(recorded):
    return recorded["first"]


@pytest.fixture(scope="module")
def ran():
    x = trace.example(ROWS, D)["x"]
    y = torch.full((ROWS, D), 7.0)
    return x, y, trace.run(readers, (ROWS,), x, y, D, 1e-6, BLOCK=BLOCK)


def steps(found, kind, program=0):
    launch = found.launches[0]
    return [step for step in launch["programs"][program]["steps"] if step["kind"] == kind]


def test_bytes_and_masked_lanes_are_those_that_a_hand_counts(one_row):
    array, vector = ROWS * D * 4, D * 4
    assert one_row.count() == {
        "programs": ROWS,
        "masked": ROWS * 3 * (BLOCK - D),  # two loads and a store in each program
        "read x": array,
        "read weight": ROWS * vector,
        "write y": array,
        "write rstd": ROWS * 4,
    }
    assert one_row.count(once=True)["read weight"] == vector


def test_two_recordings_are_equal(recorded):
    assert recorded["first"] == recorded["again"]


def test_counts_alone_have_no_steps(recorded):
    found = recorded["many"]
    assert found.count(once=True)["read x"] == found.count()["write y"] == 8 * 100 * 2
    assert not any(p["steps"] for launch in found.launches for p in launch["programs"])


def test_offsets_count_from_the_array_and_masked_lanes_lie_beyond_the_row(one_row):
    for row in range(ROWS):
        x, weight = steps(one_row, "load", row)
        assert (x["array"], weight["array"]) == ("x", "weight")
        assert x["offsets"] == list(range(row * D, row * D + BLOCK))
        assert weight["offsets"] == list(range(BLOCK))
        assert x["mask"] == [True] * D + [False] * (BLOCK - D)
        assert x["values"][D:] == [0.0] * (BLOCK - D)


def test_the_steps_compute_the_norm(one_row):
    arrays = one_row.launches[0]["arrays"]
    x, weight = (np.array(arrays[k]["before"], np.float64) for k in ("x", "weight"))
    truth = reference.rms_norm(x.reshape(ROWS, D), weight, eps=trace.EPS)
    stored = [steps(one_row, "store", row)[0]["values"][:D] for row in range(ROWS)]
    np.testing.assert_allclose(stored, truth, rtol=1e-6)  # eight float32 roundings of 6e-8
    np.testing.assert_allclose(arrays["y"]["after"], truth.ravel(), rtol=1e-6)
    (total,) = steps(one_row, "reduce")
    assert np.sum(total["of"], dtype=np.float64) == pytest.approx(total["values"][0], rel=1e-6)


def test_a_readers_kernel_runs_on_the_readers_tensors(ran):
    x, y, found = ran
    truth = reference.rms_norm(x.double().numpy(), eps=1e-6)
    np.testing.assert_allclose(y.numpy(), truth, rtol=1e-6)
    assert found.count()["read x"] == found.count()["write y"] == ROWS * D * 4


def test_arguments_may_share_memory_have_strides_and_be_named():
    x = torch.arange(3.0, 11.0)
    found = trace.run(running, (2,), step=0, from_ptr=x[:1].expand(8), to_ptr=x, BLOCK=8)
    # the second program reads what the first has stored, 3 - 3/2
    assert x.tolist() == [1.5 * k - 0.75 for k in range(1, 9)]
    (*_, program) = found.launches[0]["programs"]
    named = {s.get("name"): (s["kind"], s["text"]) for s in program["steps"]}
    assert (named["top"], named["total"]) == (("reduce", "max(v)"), ("compute", "cumsum(v)"))


def test_a_step_names_its_line_its_formula_and_its_variable(ran):
    *_, found = ran
    launch = found.launches[0]
    named = {s["name"]: s for s in launch["programs"][1]["steps"] if "name" in s}
    assert named["row"]["values"] == [1]
    assert named["inside"]["text"] == "columns < d"
    assert named["y"]["text"] == "x ÷ √((sum(x × x) ÷ d) + eps)"
    for name, function in (("x", "readers"), ("y", "readers")):
        line = launch["sources"][function].splitlines()[named[name]["line"] - 1]
        assert line.strip().startswith(f"{name} = ")
    assert steps(found, "reduce")[0]["function"] == "mean_square"


def test_the_root_stands_on_the_kernels_line(one_row):
    """Its helper is no function of the reader's."""
    launch = one_row.launches[0]
    (rstd,) = (s for s in launch["programs"][0]["steps"] if s.get("name") == "rstd")
    assert rstd["text"] == "1 ÷ √((sum(x × x) ÷ d) + eps)"
    line = launch["sources"]["one_row"].splitlines()[rstd["line"] - 1]
    assert line.strip() == "rstd = rstd_of(tl.sum(x * x, axis=0), d, eps)"
    assert [*launch["sources"]] == [rstd["function"]]


def test_what_fails_in_the_child_is_said_here():
    x = torch.zeros(2, 4)
    with pytest.raises(RuntimeError, match=r"power of 2"):
        trace.run(readers, (2,), x, x.clone(), 4, 1e-6, BLOCK=6)
    with pytest.raises(TypeError, match="kernel is builtin_function_or_method; give a function"):
        trace.run(len, (1,), x)
    with pytest.raises(ValueError, match="sideways"):
        trace.record("sideways", rows=2, d=4)
    with pytest.raises(ValueError, match="dtype = float99; it is one of float16"):
        trace.record("forward", rows=2, d=4, dtype="float99")
    with pytest.raises(RuntimeError, match=r"many_rows has the constants \['BLOCK', 'ROWS'\]"):
        trace.record("forward", rows=2, d=4, constants={"many_rows": {"BLOKC": 4}})


def test_a_child_that_ends_without_a_word(monkeypatch):
    ended = trace.subprocess.CompletedProcess((), -11, b"", b"")
    monkeypatch.setattr(trace.subprocess, "run", lambda *a, **k: ended)
    with pytest.raises(RuntimeError, match=r"none. Exit status -11: a kernel that reaches far"):
        trace.record("forward", rows=1, d=2)


@pytest.mark.equation("long-row-bytes")
def test_a_loop_asks_for_its_rows_twice(recorded):
    found = recorded["loop"].count()
    moved = {item: size for item, size in found.items() if item.startswith(("read", "write"))}
    moved["read weight"] //= found["programs"]
    assert sum(moved.values()) == 3 * ROWS * 100 * 4 + 100 * 4 + ROWS * 4
