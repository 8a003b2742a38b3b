"""The figure of recurrent: its numbers, and the 2019 code's steps that its script is held to."""

import importlib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("anywidget")

import traitlets

from rmsnorm_edu import explorables, recorded
from rmsnorm_edu.explorables import cell

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def vectors(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("cell_vectors")


def test_the_matrices_are_what_the_figure_says():
    found = cell.arrays()
    blocks = np.split(found["U"], 4, axis=1)
    for u in blocks:  # each entry is rounded to 1/128: an error of at most 1/256, 24 in a product
        np.testing.assert_allclose(u.T @ u, np.eye(24), atol=2 * 24**0.5 / 256)
    assert not np.allclose(blocks[0], blocks[1]), "not one block four times"
    loud = np.sqrt(np.mean(found["x"] ** 2, axis=(1, 2)))
    assert loud[10:15].min() > 2 > 1.3 > np.delete(loud, range(10, 15)).max()


def test_a_byte_holds_every_number():
    for name, drawn in cell.draws().items():
        assert drawn.dtype == np.int8
        assert 40 < abs(drawn.astype(int)).max() <= 127, name
    assert cell.draws() is cell.draws()


def test_the_gain_goes_out_where_both_sides_are_normed(vectors):
    """Exactly so at ε = 0; here the mean square of what is normed is above 0.01 at gain 1."""
    for name, places in vectors.PLACES.items():
        one, four = (
            vectors.RUN[name](
                cell.arrays()["x"], vectors.own_parameters(name, gain), ["rms"] * len(places)
            )
            for gain in (1.0, 4.0)
        )
        np.testing.assert_allclose(one["h"], four["h"], atol=0.02)


@pytest.mark.parametrize("norm", ["none", "rms", "layer"])
@pytest.mark.parametrize("name", ["gru", "lstm"])
def test_the_steps_are_those_of_the_torch_cells(vectors, name, norm):
    """The transcription that writes the vectors, beside nn.NormGRU and nn.NormLSTM."""
    nn = pytest.importorskip("rmsnorm_edu.nn")
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(3).normal(0.3, 1, (5, 2, 8))
    p = vectors.parameters(name, 8, 4, seed=4)
    given = {k: v for k, v in p.items() if norm == "layer" or k[:1] not in "bs" or k in ("b", "bx")}
    given |= {k: v for k, v in p.items() if norm == "rms" and k[0] == "s"}
    module = {"gru": nn.NormGRU, "lstm": nn.NormLSTM}[name]
    layer = module.from_original(given, norm=None if norm == "none" else norm)
    with torch.no_grad():
        h = layer(torch.from_numpy(x))
    found = vectors.RUN[name](x, p, [norm] * len(vectors.PLACES[name]))
    if name == "lstm":
        h, c = h
        np.testing.assert_allclose(c, found["c"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(h, found["h"], rtol=0, atol=1e-12)


def test_the_state_is_what_a_link_can_send():
    state = explorables.Cell(cell="lstm", places=[1, 0, 1, 0]).state()
    assert set(state) == {"cell", "norm", "places", "gain", "step", "data", "times"}
    assert state["data"]["sizes"] == [30, 6, 8, 24]


def line(**medians):
    return {"eager": {name: {"median_ms": value} for name, value in medians.items()}}


def test_the_recorded_times_are_those_of_the_smallest_size(monkeypatch):
    sizes = {"1024": line(none=9.0, rms=10.0), "128": line(none=1.0, rms=2.5, partial=2.75)}
    record = recorded.Record("recurrent_steps", {"cells": {"GRU": sizes}}, {})
    monkeypatch.setattr(recorded, "names", lambda: ["recurrent_steps"])
    monkeypatch.setattr(recorded, "load", {"recurrent_steps": record}.get)
    times = explorables.Cell().times
    assert times == {
        "gru": {"none": 1.0, "rms": 2.5},
        "what": "128 units, a step forward and backward",
    }
    monkeypatch.setattr(recorded, "names", lambda: [])
    assert explorables.Cell().times == {}


WRONG = [{"cell": "rnn"}, {"norm": "batch"}, {"places": [1, 1]}, {"places": [2, 0, 0, 0]}]


@pytest.mark.parametrize("change", [*WRONG, {"gain": 0.4}, {"gain": 4.1}, {"step": 0}])
def test_the_figure_refuses_what_it_cannot_show(change):
    with pytest.raises(traitlets.TraitError):
        explorables.Cell(**change)
