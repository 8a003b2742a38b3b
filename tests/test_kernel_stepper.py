"""The figure of the kernels' chapters: what it steps through is what was recorded."""

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("triton")

from rmsnorm_edu import reference
from rmsnorm_edu.explorables import kernel_stepper as figure
from rmsnorm_edu.kernels import trace

FORWARD = ("one_row", "long_row", "many_rows")
DIGITS = 5e-4  # four significant digits


@pytest.fixture(scope="module")
def recorded():
    return figure.presets(*FORWARD, "backward")


@pytest.fixture(scope="module")
def scenes(recorded):
    return {scene["name"]: scene for scene in figure.data(recorded)}


def before(found, name, launch=0):
    array = found.launches[launch]["arrays"][name]
    return np.array(array["before"]).reshape(array["shape"])


def test_each_rung_reads_and_writes_what_a_hand_counts(recorded):
    bytes_of = {name: found.count() for name, found in recorded.items()}
    one, vector = 4, 6 * 4
    assert bytes_of["one_row"]["read x"] == bytes_of["one_row"]["write y"] == 3 * vector
    assert bytes_of["long_row"]["read x"] == 2 * 2 * vector, "two rows, each twice"
    assert recorded["long_row"].count(once=True)["read x"] == 2 * vector
    assert bytes_of["many_rows"]["read weight"] == 2 * vector, "once a tile, not once a row"
    assert bytes_of["backward"] == {
        "programs": 4 + 1,
        "masked": 2 * (4 + 3 * 5 + 4) + 4 * 2 + 2,  # weight, dy x dx, partials; the sum's two
        "read weight": 4 * vector,
        "read rstd": 5 * one,
        **{f"read {name}": 5 * vector for name in ("x", "dy")},
        "write dx": 5 * vector,
        "write partials": 4 * vector,
        "read partials": 4 * vector,
        "write dweight": vector,
    }


@pytest.mark.parametrize("name", FORWARD)
def test_the_forward_scenes_store_the_norm(recorded, name):
    found = recorded[name]
    truth = reference.rms_norm(before(found, "x"), before(found, "weight"), eps=trace.EPS)
    after = found.launches[0]["arrays"]["y"]["after"]
    np.testing.assert_allclose(after, truth.ravel(), rtol=1e-6)  # eight roundings of 6e-8


def test_the_backward_scene_stores_the_gradients(recorded):
    found = recorded["backward"]
    dy, x, weight = (before(found, name) for name in ("dy", "x", "weight"))
    dx, dweight = reference.rms_norm_vjp(dy, x, weight, eps=trace.EPS)
    first, second = (launch["arrays"] for launch in found.launches)
    close = {"rtol": 1e-5, "atol": 1e-6}  # differences of products near 1: a dozen roundings
    np.testing.assert_allclose(first["dx"]["after"], dx.ravel(), **close)
    np.testing.assert_allclose(second["dweight"]["after"], dweight, **close)
    idle = first["partials"]["after"][-6:]
    assert idle == [0.0] * 6, "the fourth program has no rows, and writes that its sum is 0"


def test_a_scene_is_the_recording_in_short(recorded, scenes):
    launch, scene = recorded["one_row"].launches[0], scenes["one_row"]
    for program, shown in zip(launch["programs"], scene["programs"], strict=True):
        loads = [step for step in program["steps"] if step["kind"] == "load"]
        short = [s for s in shown["steps"] if scene["notes"][s[0]][1] == "load"]
        for step, (note, shape, values, first, mask) in zip(loads, short, strict=True):
            assert scene["arrays"][scene["notes"][note][4]]["name"] == step["array"]
            assert (shape, first) == (step["shape"], step["offsets"][0])
            assert mask == "".join("01"[on] for on in step["mask"])
            np.testing.assert_allclose(values, step["values"], rtol=DIGITS)


def test_a_step_stands_on_its_line(scenes):
    for scene in scenes.values():
        for program in scene["programs"]:
            lines = scene["kernels"][program["kernel"]]["lines"]
            for note, *_ in program["steps"]:
                place, kind, _, name, _ = scene["notes"][note]
                line = " ".join(lines[place : place + 2])
                assert kind not in ("load", "store") or f"tl.{kind}(" in line
                assert name is None or name in line


def test_the_figure_takes_recordings_and_presets(recorded):
    one = figure.KernelStepper(recorded["long_row"])
    assert [scene["name"] for scene in one.scenes] == ["long_row"]
    both = figure.KernelStepper.of("one_row", "many_rows", program=1)
    assert [scene["name"] for scene in both.scenes] == ["one_row", "many_rows"]
    assert (both.program, both.moment) == (1, -1)
    for names in (FORWARD, ["backward"]):
        assert len(figure.KernelStepper.of(*names).to_html().encode()) < 120_000
    with pytest.raises(ValueError, match="sideways"):
        figure.KernelStepper.of("sideways")


def test_what_the_figure_cannot_show_and_what_it_shows_of_other_shapes():
    def launch(shape, strides, *ids):
        array = {"shape": shape, "strides": strides, "itemsize": 4, "dtype": "float32"}
        step = {"kind": "program", "text": "program_id(0)", "shape": [], "values": [0]}
        step |= {"function": "k", "line": 2}
        top = step | {
            "kind": "reduce",
            "text": "max(x)",
            "axis": 0,
            "from_shape": [4],
            "of": [0] * 4,
        }
        return {
            "kernel": "k",
            "sources": {"k": "def k(x_ptr):\n    tl.program_id(0)\n"},
            "arrays": {"x": array | {"before": [1.5] * 4}},
            "programs": [{"id": list(each), "steps": [step, top]} for each in ids],
        }

    def scene(*given):
        return figure.data({"k": trace.Trace((launch(*given),))})[0]

    several = scene([2, 1, 2], [2, 2, 1], (0, 0, 0), (0, 1, 0))
    assert [program["id"] for program in several["programs"]] == ["0, 0", "0, 1"]
    assert several["arrays"][0]["shape"] == [2, 2]
    assert [kind for _, kind, *_ in several["notes"]] == ["program", "compute"]  # it folds sums
    assert scene([], [], (0, 0, 0))["arrays"][0]["shape"] == [1, 1]
    with pytest.raises(ValueError, match=r"x has shape \[2, 2\] and strides \[1, 2\]; record"):
        scene([2, 2], [1, 2], (0, 0, 0))
    with pytest.raises(ValueError, match="k has no steps to show: record them, with keep=True"):
        scene([4], [1])
    with pytest.raises(ValueError, match="the recording has no steps to show"):
        figure.KernelStepper(trace.Trace(()))
