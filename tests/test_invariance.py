"""The invariance table: every cell against the paper, over many examples and amounts."""

import json

import numpy as np
import pytest

from rmsnorm_edu import invariance, reference
from rmsnorm_edu.invariance import LAWS, METHODS, TABLE_ONE, TRANSFORMATIONS, measure, measure_one

SHAPES = ((6, 5, 8), (4, 3, 5), (16, 32, 33))
FLIPS = {(m, t) for m, t in TABLE_ONE if TABLE_ONE[m, t] and TRANSFORMATIONS[t].kind == "scale"}


def cells(seed: int = 0, shape: tuple[int, int, int] = (6, 5, 8)) -> dict[tuple[str, str], dict]:
    return {(c["method"], c["transformation"]): c for c in measure(seed, shape)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.equation("table-one", "recentering", "row-rescaling", "weight-rescaling")
def test_measurement_is_table_one_of_the_paper(seed: int, shape: tuple[int, int, int]) -> None:
    found = cells(seed, shape)
    assert {cell: found[cell]["invariant"] for cell in TABLE_ONE} == TABLE_ONE
    moved = [found[cell]["max_change"] for cell, stays in TABLE_ONE.items() if not stays]
    assert min(moved) > 1e-3, "a cell that moves has to move visibly"


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.equation("rotation")
def test_only_rms_norm_turns_with_every_rotation(seed: int) -> None:
    found = cells(seed)
    assert [m for m in METHODS if found[m, "rotation"]["invariant"]] == ["rms_norm"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.equation("scale-invariance")
def test_a_negative_factor_leaves_its_sign_where_a_positive_one_leaves_nothing(shape) -> None:
    for (method, transformation), cell in cells(3, shape).items():
        if TRANSFORMATIONS[transformation].kind != "scale":
            assert cell["negative_scale"] is None
        elif (method, transformation) in FLIPS:
            assert cell["negative_scale"] == "flips"
        else:
            assert cell["negative_scale"] == "changes"


def test_35_cells_that_json_can_write() -> None:
    found = measure()
    assert json.loads(json.dumps(found)) == found
    assert len(found) == 35
    keys = ["method", "transformation", "invariant", "max_change", "negative_scale"]
    assert all(list(cell) == keys for cell in found)
    assert found == measure(seed=0)


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("method", METHODS)
def test_no_change_changes_nothing(method: str, transformation: str) -> None:
    nothing = 1.0 if TRANSFORMATIONS[transformation].kind == "scale" else 0.0
    assert measure_one(method, transformation, nothing).max_change < 1e-14


@pytest.mark.parametrize("amount", [1e-3, 0.3, 40.0, 1e4])
def test_what_stays_stays_for_every_positive_factor(amount: float) -> None:
    for cell in FLIPS:
        assert measure_one(*cell, amount).max_change < 1e-12


@pytest.mark.equation("eps-shrink")
def test_eps_breaks_the_invariance_by_its_formula() -> None:
    eps, factor = 0.1, 3.0
    outcome = measure_one("rms_norm", "dataset_rescaling", factor, eps=eps)
    e = invariance.example()
    size = reference.rms(e.x @ e.w.T)[:, np.newaxis]
    growth = np.sqrt((1 + eps / size**2) / (1 + eps / (factor * size) ** 2))
    np.testing.assert_allclose(outcome.after, outcome.before * growth, rtol=1e-13)
    assert outcome.max_change > 1e-3


@pytest.mark.equation("rotation")
def test_layer_norm_turns_with_a_rotation_that_fixes_the_ones() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(0.5, 1, (4, 7))
    fixed = np.hstack([np.ones((7, 1)), rng.normal(size=(7, 6))])
    basis = np.linalg.qr(fixed)[0]
    inner = np.eye(7)
    inner[1:, 1:] = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    q = basis @ inner @ basis.T
    turned = reference.layer_norm(x @ q.T, eps=0)
    np.testing.assert_allclose(turned, reference.layer_norm(x, eps=0) @ q.T, atol=1e-13)


def test_the_example_is_no_special_case() -> None:
    for seed in range(20):
        e = invariance.example(seed)
        assert (e.gain > 0).any()
        assert (e.gain < 0).any()
        assert np.min(np.abs(np.abs(e.gain) - 1)) > 1e-6
        assert abs(np.mean(e.x)) > 0.05
        q = invariance._rotation(e, 60.0)
        np.testing.assert_allclose(q @ q.T, np.eye(8), atol=1e-14)
        assert np.max(np.abs(q @ np.ones(8) - 1)) > 0.1, "it may not fix 1"


def test_every_cell_has_its_law() -> None:
    assert set(LAWS) == {(m, t) for m in METHODS for t in TRANSFORMATIONS}
    assert all(law.sentence and law.latex for law in LAWS.values())
    assert all(law.latex.count("{") == law.latex.count("}") for law in LAWS.values())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("rmsnorm", "rotation"), "method"), (("rms_norm", "turn"), "transformation")],
)
def test_an_unknown_name_is_an_error_that_lists_the_known(arguments, words: str) -> None:
    with pytest.raises(ValueError, match=f"{words} = .* one of .*_"):
        measure_one(*arguments, 1.0)
