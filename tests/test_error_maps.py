"""What the mutant detective shows: errors, their shape in words, and that they name the fault."""

import json

import numpy as np
import pytest

pytest.importorskip("anywidget")

from rmsnorm_edu.explorables import error_maps, error_words, mutant_detective
from rmsnorm_edu.explorables.error_maps import Fault
from rmsnorm_edu.mutants import MUTANTS, RMSNorm

INPUTS = {given.name: given for given in error_maps.inputs()}
NORMAL = INPUTS["Normal rows"]
WANT = np.array([[1.5, -2.0, 0.4], [0.3, 0.9, -1.1]])
X = np.array([[0.5, -1.0, 2.0], [3.0, 1.0, -0.5]])


def fault(got, what="y", x=X, want=WANT, rows=(0, 7)):
    got = np.asarray(got)
    return Fault(what, got, want, ~(np.abs(got - want) <= 1e-6), x, rows)


@pytest.mark.parametrize("given", INPUTS.values(), ids=INPUTS)
def test_the_right_one_is_right(given):
    assert error_maps.faults(RMSNorm(), given) == []
    assert not (given.weight == 1).any() or given.name == "Weight 1"


def test_errors_are_those_of_the_formula():
    (found,) = error_maps.faults(MUTANTS["n − 1"], NORMAL)
    assert found.what == "y"
    x = NORMAL.x.astype(float)
    square, n = np.mean(x**2, axis=1, keepdims=True), x.shape[1]
    factor = np.sqrt((square + 1e-5) / (square * n / (n - 1) + 1e-5))
    np.testing.assert_allclose(found.percent(), 100 * (factor - 1) * np.ones_like(x), rtol=1e-12)


def test_a_percentage_of_nothing_is_the_largest_and_nan_stays():
    got = [[1.5, -2.0, np.nan], [0.2, 0.9, np.inf]]
    found = fault(got, want=WANT * [[1, 1, 1], [0, 1, 1]]).percent()
    np.testing.assert_array_equal(found, [[0, 0, np.nan], [1e6, 0, -1e6]])


@pytest.mark.parametrize(
    ("got", "what", "said"),
    [
        (WANT * 1.1, "y", "y is 10% too large, by the same factor everywhere."),
        (WANT * 0.2, "y", "y is 80% too small, by the same factor everywhere."),
        (WANT * -3, "y", "y is −3 times what it should be, by the same factor everywhere."),
        (
            WANT * [[1.1], [0.7]],
            "y",
            "y is off by a factor of its own in each row, the farthest 30% too small.",
        ),
        (
            WANT * [1.1, 0.9, 4],
            "y",
            "y is off by a factor of its own in each column, the farthest 4 times what it should "
            "be.",
        ),
        (WANT - [[0.1], [0.2]], "y", "y is wrong, by no common factor."),
        (WANT * [[1], [0]], "y", "y is 0, but only in row 8."),
        (WANT * [0, 1, 0], "y", "y is 0, but only in columns 1 and 3."),
        (WANT * np.array([[1, 1, 1], [1, 0, 1]]), "y", "y is 0, but only in row 8 and column 2."),
        (WANT + X * [[0.2], [-0.5]], "dx", "dx is off by a multiple of x in each row."),
        (WANT + X * [[0.2], [-0.5]], "y", "y is wrong, by no common factor."),
        (WANT * [[np.nan], [1]], "y", "y is not a number in row 1."),
        (WANT * [[np.inf], [2]], "y", "y is infinite in row 1, and wrong elsewhere."),
    ],
)
def test_the_shape_in_words(got, what, said):
    assert error_words.sentence([fault(got, what)]) == said


def test_one_number_in_each_row_shows_no_common_factor_of_a_row():
    want = np.diag([1.0, -2.0, 0.5])
    found = fault(want * [[0.5], [0.8], [2]], want=want, x=want, rows=(0, 1, 2))
    assert error_words.how(found) == "off by different factors, the farthest 50% too small"


def test_each_fault_differs_from_the_other_five_names():
    for name in mutant_detective.CASES:
        names = mutant_detective.choices(name)
        assert name in names
        assert len(set(names)) == 6
        mine = mutant_detective.sentences()[name]
        assert all(mutant_detective.sentences()[other] != mine for other in names if other != name)


def test_the_data_are_what_a_page_can_hold():
    data = json.loads(json.dumps(mutant_detective.data(), allow_nan=False))
    assert len(data["cases"]) == len(mutant_detective.CASES)
    for number, case in enumerate(data["cases"]):
        for given, found, text in zip(
            data["inputs"], case["maps"], data["suspects"][number]["says"], strict=True
        ):
            is_right = data["sentences"][text] == error_words.NOTHING
            assert is_right == (found == {})
            assert is_right or found["worst"][0] in found
            for what in found.keys() - {"worst"}:
                rows = 1 if what == "dweight" else len(given["rows"])
                assert np.shape(found[what]) == (rows, given["width"])


def test_a_lost_number_and_a_whole_one():
    assert [mutant_detective._short(v, 2) for v in (np.nan, 6.458, 250.0)] == [None, 6.5, 250]
