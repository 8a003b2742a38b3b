"""The invariance table: the paper's 30 cells, the rotation, negative factors, the laws."""

import contextlib
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rmsnorm_edu import invariance, reference

METHODS = ("batch_norm", "weight_norm", "layer_norm", "rms_norm", "partial_rms_norm")
CHANGES = (
    "weight_matrix_rescaling",
    "weight_matrix_recentering",
    "weight_vector_rescaling",
    "dataset_rescaling",
    "dataset_recentering",
    "single_case_rescaling",
    "rotation",
)
SHAPES = [{"cases": 8, "inputs": 6, "outputs": 7}, {"cases": 5, "inputs": 3, "outputs": 16},
          {"cases": 20, "inputs": 30, "outputs": 5}]  # fmt: skip


@cache
def cells(seed=0):
    return {(c["method"], c["transformation"]): c for c in invariance.measure(seed)}


def test_every_cell_is_measured_once_in_the_issues_words():
    listed = invariance.measure()
    names = [(c["method"], c["transformation"]) for c in listed]
    assert names == [(m, t) for m in METHODS for t in CHANGES]
    for cell in listed:
        assert list(cell) == [
            "method",
            "transformation",
            "invariant",
            "max_change",
            "negative_scale",
        ]
        assert type(cell["max_change"]) is float
        assert type(cell["invariant"]) is bool


def test_the_paper_has_these_thirty_cells():
    assert len(invariance.TABLE_ONE) == 30
    assert sum(invariance.TABLE_ONE.values()) == 16
    assert invariance.TABLE_ONE["layer_norm", "weight_matrix_recentering"]
    assert not invariance.TABLE_ONE["rms_norm", "weight_matrix_recentering"]


@pytest.mark.equation("weight-rescaling", "row-rescaling", "recentering")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_measuring_gives_table_one_on_any_layer(shape):
    for seed in range(20):
        layer = invariance.example(seed, **shape)
        for cell in invariance.measure(layer=layer):
            name = cell["method"], cell["transformation"]
            if name in invariance.TABLE_ONE:
                assert cell["invariant"] == invariance.TABLE_ONE[name], (name, seed, cell)


def test_nothing_lies_between_staying_and_moving():
    for cell in invariance.measure():
        assert cell["max_change"] <= 1e-13 or cell["max_change"] >= 0.01, cell


@pytest.mark.equation("rotation")
def test_only_rms_norm_turns_along_with_any_rotation():
    for seed in range(20):
        turned = {m: invariance.measure_one(m, "rotation", 40.0, seed=seed) for m in METHODS}
        assert turned.pop("rms_norm").max_change <= 1e-14
        assert all(change.max_change > 1e-3 for change in turned.values()), seed


@pytest.mark.parametrize("seed", range(5))
def test_equal_lengths_and_spreads_change_under_a_rotation_too(seed):
    layer = invariance.example(seed)
    lengths = np.linalg.norm(layer.weight, axis=1, keepdims=True)
    spreads = np.std(layer.x @ layer.weight.T, axis=0)[:, None]
    for method, sizes in (("weight_norm", lengths), ("batch_norm", spreads)):
        even = replace(layer, weight=layer.weight / sizes)
        assert invariance.measure_one(method, "rotation", 40.0, layer=even).max_change > 1e-3


def test_layer_norm_turns_along_with_a_rotation_that_keeps_the_mean():
    layer = invariance.example(3)
    ones_first = np.column_stack([np.ones(7), layer.basis[:, 1:]])
    q = np.linalg.qr(ones_first)[0]
    keeps_ones = replace(layer, basis=np.roll(q, -1, axis=1))  # 7 is odd: the last stays
    found = invariance.measure_one("layer_norm", "rotation", 70.0, layer=keeps_ones)
    assert found.max_change <= 1e-13
    assert np.max(np.abs(found.after - found.before)) > 0.1


def test_the_rotation_is_orthogonal_and_moves_the_mean():
    layer = invariance.example(1)
    unit = replace(layer, weight=np.eye(7), x=np.eye(7))
    q = invariance.TRANSFORMATIONS["rotation"].apply(unit, 50.0).weight
    np.testing.assert_allclose(q @ q.T, np.eye(7), atol=1e-14)
    assert np.max(np.abs(q @ np.ones(7) - 1)) > 0.1


@pytest.mark.equation("scale-invariance")
def test_a_negative_factor_flips_what_a_positive_one_leaves():
    for (_, transformation), cell in cells().items():
        scales = "rescaling" in transformation
        expected = ("flips" if cell["invariant"] else "changes") if scales else None
        assert cell["negative_scale"] == expected, cell


def test_same_is_said_of_a_norm_that_loses_the_sign(monkeypatch):
    def even(layer, eps):
        return np.abs(reference.rms_norm(layer.x @ layer.weight.T, layer.gain, eps=eps))

    monkeypatch.setitem(invariance.METHODS, "rms_norm", even)
    cell = next(
        c
        for c in invariance.measure()
        if c["method"] == "rms_norm" and c["transformation"] == "dataset_rescaling"
    )
    assert cell["negative_scale"] == "same"


@pytest.mark.equation("row-rescaling")
def test_scaled_rows_keep_their_factors_in_rms_norm():
    layer = invariance.example(5)
    found = invariance.measure_one("rms_norm", "weight_vector_rescaling", 3.0, seed=5)
    d = 3.0 ** np.linspace(0.5, 1.5, 7)
    a = layer.x @ layer.weight.T
    root = np.sqrt(np.mean((d * a) ** 2, axis=-1, keepdims=True))
    np.testing.assert_allclose(found.after, d * a / root * layer.gain, rtol=1e-12)


@pytest.mark.equation("recentering")
def test_recentred_weights_shift_each_case_by_one_number():
    layer = invariance.example(2)
    moved = invariance.TRANSFORMATIONS["weight_matrix_recentering"].apply(layer, 1.5)
    shift = layer.x @ (moved.weight - layer.weight).T
    expected = 1.5 * layer.x @ layer.gamma
    np.testing.assert_allclose(shift, np.tile(expected[:, None], 7), rtol=1e-10, atol=1e-13)


@pytest.mark.equation("weight-rescaling")
def test_eps_breaks_the_scale_invariance_and_its_size_is_known():
    for delta in (0.01, 100.0):
        found = invariance.measure_one("rms_norm", "dataset_rescaling", delta, eps=0.1)
        assert found.max_change > 1e-3
    assert (
        invariance.measure_one("rms_norm", "dataset_rescaling", 0.01).max_change <= invariance.EXACT
    )


def test_no_change_at_the_neutral_amounts():
    for name, change in invariance.TRANSFORMATIONS.items():
        neutral = 1.0 if change.scales else 0.0
        for method in METHODS:
            assert invariance.measure_one(method, name, neutral).max_change <= 1e-14


def test_every_cell_has_a_law():
    assert set(invariance.LAWS) == {(m, t) for m in METHODS for t in CHANGES}
    for law in invariance.LAWS.values():
        assert law.sentence.endswith(".")
        assert len(law.sentence) < 90
        assert law.latex.count("{") == law.latex.count("}")


def test_a_wrong_name_is_told_the_right_ones():
    with pytest.raises(ValueError, match=r"method = 'rms'; it is one of batch_norm, weight"):
        invariance.measure_one("rms", "rotation", 1.0)
    with pytest.raises(ValueError, match=r"transformation = 'turn'; it is one of weight_matrix"):
        invariance.measure_one("rms_norm", "turn", 1.0)
    with pytest.raises(ValueError, match=r"method = \['rms_norm'\]; it is one of batch_norm"):
        invariance.measure_one(["rms_norm"], "rotation", 1.0)


@pytest.mark.parametrize("transformation", CHANGES)
@pytest.mark.parametrize("method", METHODS)
def test_an_amount_is_measured_or_refused_but_never_nan(method, transformation):
    for amount in (0, 1e-300, 1e-200, 1e200, 1e308, -1e308):
        for eps in (0.0, 1e-6):
            with contextlib.suppress(ValueError):  # "... makes the outputs inf or nan"
                found = invariance.measure_one(method, transformation, amount, eps)
                assert np.isfinite(found.max_change)
    with pytest.raises(ValueError, match=r"amount = 0.0 makes the outputs of rms_norm inf or nan"):
        invariance.measure_one("rms_norm", "dataset_rescaling", 0)


@pytest.mark.parametrize("method", METHODS)
def test_amounts_and_eps_that_are_no_finite_numbers_are_refused(method):
    for amount in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match=r"amount = .*; give a finite number"):
            invariance.measure_one(method, "dataset_rescaling", amount)
    for amount in (None, "2", True, [2.0]):
        with pytest.raises(TypeError, match=r"amount = .*; give a number"):
            invariance.measure_one(method, "dataset_rescaling", amount)
    with pytest.raises(ValueError, match=r"eps = -1"):
        invariance.measure_one(method, "dataset_rescaling", 2.0, eps=-1)


def test_a_layer_without_outputs_to_compare_is_refused():
    with pytest.raises(ValueError, match=r"batch_norm for x \(1, 6\).* at least 2 cases"):
        invariance.measure(layer=invariance.example(0, cases=1))
    with pytest.raises(ValueError, match=r"layer_norm for x .* 2 outputs"):
        invariance.measure(layer=invariance.example(0, outputs=1))
    with pytest.raises(ValueError, match="cases = 0; give an integer >= 1"):
        invariance.example(0, cases=0)
