"""The figure of the CPU chapter: its streams are the package's, its times those of the record."""

import pytest

pytest.importorskip("anywidget")

import traitlets

from rmsnorm_edu import explorables, recorded
from rmsnorm_edu.benchmarks.cpu_ladder import STREAMS
from rmsnorm_edu.explorables import where_bytes_go as figure


def test_the_steps_hold_all_streams_in_order():
    rungs = figure.data()["rungs"]
    assert set(rungs) == set(STREAMS)
    for rung, steps in rungs.items():
        found = [(step, *stream) for step, streams in steps for stream in streams]
        assert found == [tuple(stream) for stream in STREAMS[rung]]


def test_the_times_are_the_forward_medians_of_the_record_by_shape():
    found = recorded.load("cpu_ladder").data
    data = figure.data()
    assert data["shapes"] == found["shapes"]
    for rows, n in found["shapes"]:
        times = data["times"][f"{rows}x{n}"]
        assert {*figure.RUNGS, "copy (fresh)", "fused (fresh)"} <= set(times)
        for entry in found["entries"]:
            if entry["direction"] == "forward" and entry["shape"] == [rows, n]:
                expected = [entry["ms_median"], rows, entry["faults"]]
                assert times.get(entry["method"], expected) == expected
        assert times["loop"][1] < rows, "the loop is measured on fewer rows"


def test_a_loop_of_one_shape_is_not_taken_for_that_of_another():
    entry = {"direction": "forward", "faults": 0}
    entries = [
        entry | {"method": method, "shape": shape, "ms_median": ms}
        for shape, ms in (([64, 8], 1.0), ([32, 8], 2.0))
        for method, shape in (("copy", shape), ("loop", [4, 8]))
    ]
    entries[1]["ms_median"], entries[3]["ms_median"] = 5.0, 6.0
    assert figure._times(entries, [64, 8])["loop"] == [5.0, 4, 0]
    assert figure._times(entries, [32, 8])["loop"] == [6.0, 4, 0]


def test_it_begins_with_the_largest_shape_and_refuses_what_it_cannot_show():
    shown = explorables.WhereBytesGo()
    assert shown.shape == "8192x4096"
    for change in ({"rung": "magic"}, {"output": "old"}):
        with pytest.raises(traitlets.TraitError):
            explorables.WhereBytesGo(**change)


def test_a_shape_without_a_record_is_refused():
    shapes = ["x".join(map(str, shape)) for shape in figure.data()["shapes"]]
    assert explorables.WhereBytesGo(shape=shapes[0]).state()["shape"] == shapes[0]
    with pytest.raises(ValueError, match="shape = '3x3'; it is one of " + ", ".join(shapes)):
        explorables.WhereBytesGo(shape="3x3")
