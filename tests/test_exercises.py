"""Exercises: truths pass, pages hold their stubs and suspects, wrong answers learn why."""

import re
from pathlib import Path

import numpy as np
import pytest

from rmsnorm_edu.checks import check
from rmsnorm_edu.checks.answers import answer
from rmsnorm_edu.exercises import EXERCISES, Conviction, Task, broken

PAGES = Path(__file__).parents[1] / "book"
TASKS = {name: e for name, e in EXERCISES.items() if isinstance(e, Task)}
CONVICTIONS = {name: e for name, e in EXERCISES.items() if isinstance(e, Conviction)}
WRONGS = [(name, wrong) for name, task in TASKS.items() for wrong in task.wrongs]


@pytest.mark.parametrize("name", TASKS)
def test_the_truth_passes(name: str) -> None:
    result = check(name, TASKS[name].truth)
    assert result.ok, result


def _centring(n: int):
    u = np.ones(n) / np.sqrt(n)
    return np.eye(n) - np.outer(u, u)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("centring_matrix", _centring),
        ("angle_between", lambda x: np.arctan2(np.abs(np.mean(x, -1)), np.std(x, -1))),
        ("angle_between", lambda x: np.arccos(np.std(x, -1) / np.sqrt(np.mean(x**2, -1)))),
        ("centred_weights", lambda w: _centring(len(w)) @ w),
        ("centred_weights", lambda w: w - np.ones((len(w), 1)) @ np.mean(w, 0)[np.newaxis]),
    ],
)
def test_another_right_answer_passes(name: str, function) -> None:
    result = check(name, function)
    assert result.ok, result


@pytest.mark.parametrize(
    ("name", "wrong"), WRONGS, ids=[f"{name}-{wrong.reason[:30]}" for name, wrong in WRONGS]
)
def test_a_wrong_answer_is_told_its_own_reason(name, wrong) -> None:
    result = check(name, wrong.answer)
    assert not result.ok
    assert wrong.reason in result.text
    assert "should be" in result.code


@pytest.mark.parametrize("name", CONVICTIONS)
def test_the_innocent_input_convicts_nobody_and_earns_the_hint(name: str) -> None:
    exercise = CONVICTIONS[name]
    result = check(name, lambda: exercise.innocent)
    assert not result.ok
    assert exercise.hint in result.text


EVIDENCE = {
    "convict_l2": ([3, 4], [[1.0, 1.0], [5.0, -2.0]], np.ones((2, 3, 4))),
    "convict_axis": ([[1.0, 2.0], [30.0, 40.0]], np.arange(1.0, 28.0).reshape(3, 3, 3)),
    "convict_std": ([10.0, 11.0, 12.0], [[1.0, 2.0, 4.0], [-5.0, -6.0, -5.5]], [5.0, 5.0]),
    "convict_half_sum": (np.full(4096, 3.0), np.ones((2, 3000)), np.linspace(0.5, 1, 9000)),
    "convict_prescaled_eps": ([1e-3, -1e-3, 1e-3], [[1e-9, 0.0]], [0.002, 0.002]),
    "convict_local_statistics": ([3.0, -1.0, 0.1, 0.2], [[1.0, 0.0]], np.arange(1.0, 25.0)),
    "convict_forgotten_stride": (
        [[3.0, -4.0, 1.0, 2.0], [5.0, 6.0, -1.0, 0.5]],
        [[1.0, 2.0], [3.0, 4.0], [5.0, -6.0]],
        np.cos(np.arange(24.0)).reshape(4, 6),
    ),
    "convict_stream_through_norm": (
        [[10.0, -10.0], [3.0, 1.0], [2.0, 2.0]],
        [[1.0, -1.0], [1.0, 1.0], [1.0, -1.0]],
        np.cos(np.arange(24.0)).reshape(3, 8),
    ),
    "convict_last_rows": (np.ones((5, 2)), [[1.0, 2.0]], np.arange(1.0, 15.0).reshape(7, 2)),
    "convict_weight_twice": (
        [[1.0, -1.0, 1.0], [1.0, 2.0, 2.0], [1.0, 2.0, 0.5]],
        [[1.0, 1.0], [3.0, -4.0], [-1.5, 2.0]],
        [[2.0], [1.0], [1.5]],
        np.cos(np.arange(24.0)).reshape(3, 2, 4),
    ),
}


@pytest.mark.parametrize(("name", "x"), [(name, x) for name in EVIDENCE for x in EVIDENCE[name]])
def test_evidence_convicts(name: str, x) -> None:
    result = check(name, lambda: x)
    assert result.ok, result
    assert re.search(r"off by ([\d.e+]+|inf)(%| times)", result.text)


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("convict_l2", [[1.0], [2.0], [-3.0]]),
        ("convict_axis", np.arange(1.0, 13.0).reshape(3, 4)),  # raises: nobody is misled
        ("convict_axis", [[3.0, 4.0], [4.0, -3.0]]),  # rows of one size
        ("convict_std", [1.0, 2.0, 3.0, -4.0]),  # an angle, but not one above 60 degrees
        ("convict_half_sum", np.linspace(-2e4, 1e4, 50)),
        ("convict_prescaled_eps", [0.5, 0.7]),
        ("convict_prescaled_eps", [300.0, -5.0]),
        ("convict_local_statistics", [1.0, 2.0, 3.0]),  # raises: nobody is misled
        ("convict_local_statistics", [[5.0, 1.0, 1.0, -5.0], [0.2, 0.2, -0.2, 0.2]]),
        ("convict_forgotten_stride", [1.0, 2.0, 3.0, 4.0]),  # raises: it wants a matrix
        ("convict_forgotten_stride", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),  # raises: odd
        ("convict_forgotten_stride", [[9.0, 8.0, 1.0, 2.0], [1.0, 2.0, -7.0, 6.0]]),  # key = query
        ("convict_stream_through_norm", [[1.0, 2.0], [1.0, 2.0]]),  # two rows: raises
        ("convict_padding", [[1.0, -2.0], [3.0, 0.5]]),
        ("convict_last_rows", np.arange(1.0, 17.0).reshape(8, 2)),
        ("convict_weight_twice", [[1.0, 2.0], [1.0, 2.0], [1.0, 1.0]]),  # a weight of 1, dx near 0
        ("convict_weight_twice", [[1.0, 1.0], [1.0, -1.0], [2.0, 2.0]]),  # dy across x
        ("convict_weight_twice", [1.0, 2.0, 3.0]),
        ("convict_weight_twice", [[1.0, 2.0, 3.0]]),
    ],
)
def test_no_evidence_no_conviction(name: str, x) -> None:
    assert not check(name, lambda: x).ok


@pytest.mark.parametrize("name", CONVICTIONS)
@pytest.mark.parametrize(
    ("x", "words"),
    [
        ([], "shape (0,)"),
        (3.0, "shape ()"),
        ([np.nan, 1.0], "nan or inf"),
        ([[1.0, 2.0], [0.0, 0.0]], "row of zeros"),
        ([1e200, 1.0], "another fault"),
        ([1e-300, 0.0], "another fault"),
        ("hello", "not take this input"),
        ([[1.0], [2.0, 3.0]], "not take this input"),
    ],
)
def test_an_invalid_input_is_not_taken(name: str, x, words: str) -> None:
    result = check(name, lambda: x)
    assert not result.ok
    assert words in result.text


def cells(kind: str) -> list[tuple[str, str]]:
    """(page, code) of the cells of every page that hold `kind`."""
    found = []
    for page in sorted(PAGES.rglob("*.md")):
        blocks = re.findall(r"```\{code-cell\} \w+\n(.*?)```", page.read_text("utf-8"), re.S)
        found += [(page.stem, code) for code in blocks if kind in code]
    return found


def test_the_stubs_of_the_pages_have_the_signatures() -> None:
    asked = set()
    for page, code in cells(":tags: [exercise"):
        name = re.search(r'check\("([^"]+)"', code)[1]
        assert f"def {EXERCISES[name].signature}:" in code, page
        asked.add(name)
    assert asked == set(EXERCISES), "every exercise stands on a page"


def test_the_suspects_of_the_pages_are_the_broken_norms() -> None:
    rng = np.random.default_rng(0)
    shapes = ((3,), (4, 4), (1, 5), (3, 4), (1, 2, 2, 2), (1, 2, 2, 3))
    inputs = [rng.normal(0.5, 1, s) * 10.0**e for s in shapes for e in (-4, 0, 3)]
    names = {"why_normalise": "convict_l2", "numpy": "convict_axis"}
    names["invariance"] = "convict_prescaled_eps"
    names["layernorm_to_rmsnorm"] = "convict_std"
    names["gradients"] = "convict_weight_twice"
    names["precision"] = "convict_half_sum"
    names["testing"] = "convict_padding"
    names["partial"] = "convict_local_statistics"
    names["frameworks"] = "convict_bias"
    names["cpu"] = "convict_last_rows"
    names["first_kernel"] = "convict_forgotten_stride"
    names["forward_kernel"] = "convict_pairs"
    names["backward_kernel"] = "convict_unwritten_partials"
    names["fusion"] = "convict_stream_through_norm"
    suspects = cells("def suspect(")
    assert {page for page, _ in suspects} == set(names)
    for page, code in suspects:
        scope = {"np": np}
        exec(code, scope)
        for x in inputs:
            ours, pages = (answer(f, (x,)) for f in (broken[names[page]], scope["suspect"]))
            assert ours.error == pages.error
            if not ours.error:
                np.testing.assert_allclose(pages.value, ours.value, rtol=1e-12)
                assert pages.value.shape == ours.value.shape


def test_the_cases_go_from_small_to_large_and_hide_nothing() -> None:
    for task in TASKS.values():
        sizes = [sum(np.size(a) for a in case if isinstance(a, np.ndarray)) for case in task.cases]
        assert sizes == sorted(sizes)
    weights = [case[1] for case in TASKS["rms_norm"].cases]
    assert all(np.all(weight != 1) for weight in weights)
    assert any(np.any(weight < 0) for weight in weights)
