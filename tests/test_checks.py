"""`check`: it never raises, shrinks to the smallest input, and says what is wrong."""

import html.parser
import sys

import numpy as np
import pytest

from rmsnorm_edu import checks
from rmsnorm_edu.checks import check
from rmsnorm_edu.checks.answers import Answer, _equal, answer
from rmsnorm_edu.checks.shrink import shrink


def right(x):
    return np.sqrt(np.mean(np.square(x), axis=-1))


def in_place(x):
    x *= 1.0 / 3.0
    return 3.0 * right(x)


class Hostile:
    def __array__(self, dtype=None, copy=None):
        raise KeyError("array")

    def __repr__(self) -> str:
        raise KeyError("repr")


class HostileError(Exception):
    def __str__(self) -> str:
        raise KeyError("str")


def hostile_error(x):
    raise HostileError


def leaves(x):
    sys.exit(0)


def stops(x):
    raise GeneratorExit


def interrupts(x):
    raise KeyboardInterrupt


def not_begun(*arguments):
    raise NotImplementedError("your code")


def only_wrong_for_three_features(x):
    return right(x) + (x.shape[-1] == 3)


@pytest.mark.parametrize(
    "empty", [lambda x: None, lambda x: ..., lambda x: print(end=""), not_begun]
)
def test_an_empty_stub_is_told_so_with_a_case_worth_looking_at(empty) -> None:
    result = check("rms", empty)
    assert not result.ok
    assert "still empty" in result.text
    assert result.code == "rms([3, 4])  should be  3.53553"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: 1 / 0, "raised an error"),
        (lambda x, y: x, "raised an error"),
        (lambda x: "seven", "something else than numbers"),
        (lambda x: object(), "something else than numbers"),
        (lambda x: Hostile(), "something else than numbers"),
        (lambda x: right(x) + 0j, "something else than numbers"),
        (lambda x: np.ma.masked_array(right(x), right(x) > 0), "something else than numbers"),
        (lambda x: 10**400, "something else than numbers"),
        (hostile_error, "raised an error"),
        (leaves, "raised an error"),
        (stops, "raised an error"),
        (lambda x: [[1.0], [2.0, 3.0]], "something else than numbers"),
        (lambda x: None if x.ndim > 1 else right(x), "returned nothing for this"),
        (lambda x: np.nan * right(x), "nan"),
        (lambda x: right(x) / 0.0, "inf"),
        (lambda x: -right(x), "sign"),
        (lambda x: right(x)[..., None, None], "has shape"),
        (in_place, "changed its argument"),
        (lambda x: right(x) * (1 + 1e-6), "not right yet"),
        (np.linalg.norm, "not right yet"),
    ],
)
def test_it_never_raises_and_says_what_it_can(function, words: str) -> None:
    result = check("rms", function)
    assert not result.ok
    assert words in result.text


def test_what_is_no_function_or_no_exercise_is_explained() -> None:
    assert 'check("rms", rms)' in check("rms", 3.0).text
    assert "critical_gain" in check("rsm", right).text
    assert not check("convict_l2", np.array([3.0, 4.0])).ok
    assert "No evidence yet" in check("convict_l2", not_begun).text
    assert not check(["rms"], right).ok
    assert "a Hostile" in check(Hostile(), len).text
    assert not check("rms", Hostile()).ok


def test_whoever_presses_the_stop_button_is_let_out() -> None:
    with pytest.raises(KeyboardInterrupt):
        check("rms", interrupts)


def test_arguments_are_handed_over_as_they_lie_in_memory() -> None:
    x = np.arange(12.0).reshape(3, 4)
    for laid in (x, np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2], x[0], x[:, 1]):
        flags = answer(lambda a: (a.flags.c_contiguous, a.flags.f_contiguous), (laid,)).value
        assert flags == (laid.flags.c_contiguous, laid.flags.f_contiguous)
        assert not np.shares_memory(answer(lambda a: a, (laid,)).value, laid)
        np.testing.assert_array_equal(answer(lambda a: a, (laid,)).value, laid)


def test_the_smallest_input_is_shown() -> None:
    result = check("rms", only_wrong_for_three_features)
    assert "rms([1, 2, 2])" in result.code or "rms([-4, 0, 3])" in result.code, result
    wrong_axis = check("rms", lambda x: np.sqrt(np.mean(np.square(x), axis=0)))
    assert "wrong axis" in wrong_axis.text


def test_lists_and_scalars_are_answers_too() -> None:
    assert check("rms", lambda x: right(x).tolist()).ok
    assert check("rms", lambda x: np.asarray(right(x), np.longdouble)).ok
    assert check("critical_gain", lambda size, depth: np.float64(size) ** (-1 / depth)).ok


def test_verdicts_are_kept_for_the_tests_of_pages() -> None:
    before = len(checks.results)
    check("rms", right)
    check("rms", np.abs)
    assert checks.results[before:] == [("rms", True), ("rms", False)]


def test_a_verdict_reads_well_as_text_and_as_html() -> None:
    good, bad = check("rms", right), check("rms", lambda x: "<b>&")
    assert repr(good) == "✓ rms is right on all 7 inputs."
    assert repr(bad).startswith("○ rms is not right yet")
    assert 'class="check is-right"' in good._repr_html_()
    assert 'class="check"' in bad._repr_html_()
    assert "&lt;b&gt;&amp;" in bad._repr_html_()
    html.parser.HTMLParser().feed(bad._repr_html_())


def test_shrinking_drops_rows_features_and_digits() -> None:
    x = np.random.default_rng(0).normal(size=(3, 5, 40))
    weight = np.linspace(1.3, 2.7, 40)
    x[1, 3, 17] = 100.123

    def fails(arguments) -> bool:
        x, weight, _ = arguments
        assert x.shape[-1] == weight.size
        return bool(np.any(x > 90))

    x, weight, eps = shrink((x, weight, 1e-6), fails)
    assert x.tolist() == [100.0]
    assert weight.shape == (1,)
    assert eps == 1e-6


def test_shrinking_stops_where_nothing_smaller_fails() -> None:
    x = np.array([[3.0, 4.0], [1.0, 2.0]])
    (same,) = shrink((x,), lambda a: a[0].shape == (2, 2))
    assert same.shape == (2, 2)
    assert shrink((2.0, "a"), lambda a: True) == (2.0, "a")


def test_a_rounding_residue_in_place_of_a_zero_is_right_and_a_wrong_row_is_not() -> None:
    right = Answer(np.array([[0.0, 2.0], [1e-12, 3e-12]]))
    residue = Answer(np.array([[1e-16, 2.0], [1e-12, 3e-12]]))
    wrong = Answer(np.array([[0.0, 2.0], [1e-12, 4e-12]]))
    assert _equal(residue, right, 1e-9)
    assert not _equal(wrong, right, 1e-9)
