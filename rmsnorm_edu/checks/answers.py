"""`check("name", function)`: right, or the smallest input that shows what is wrong, and why."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmsnorm_edu.checks import text
from rmsnorm_edu.checks.shrink import Arguments, shrink
from rmsnorm_edu.exercises import EXERCISES, Conviction, Task

results: list[tuple[str, bool]] = []  # all verdicts in order, for the tests of the pages
_LARGEST = 1e100  # beyond it squares overflow in any norm, which is another fault


@dataclass(frozen=True)
class Result:
    """A verdict: `ok`, a sentence, and the calls that show it."""

    ok: bool
    text: str
    code: str = ""

    def __repr__(self) -> str:
        return text.plain(self.ok, self.text, self.code)

    def _repr_html_(self) -> str:
        return text.boxed(self.ok, self.text, self.code)


@dataclass(frozen=True)
class Answer:
    """What a function did with an input: a `value` or an `error`; whether it `wrote` into it."""

    value: Any = None
    error: str = ""
    wrote: bool = False

    @property
    def empty(self) -> bool:
        """Nothing was written yet: None, the dots of the stub, or NotImplementedError."""
        if self.error:
            return self.error.startswith("NotImplementedError")
        return self.value is None or self.value is Ellipsis

    @property
    def numbers(self) -> NDArray[np.float64] | None:
        """The value in float64; None where it is no array of numbers, or some are masked."""
        if self.error or self.empty or np.ma.is_masked(self.value):
            return None
        try:
            a = np.asarray(self.value)
            return a.astype(np.float64) if a.dtype.kind in "fiubVO" else None
        except Exception:  # the reader's object: its __array__ may do anything
            return None

    @property
    def shown(self) -> str:
        """As it is printed."""
        return self.error or text.shown(self.value)


def check(name: str, function: Callable[..., Any]) -> Result:
    """Judge the reader's `function` for the exercise `name`, a key of `exercises.EXERCISES`.

    Returns a `Result`, which prints as the verdict; its `ok` is True or False. Raises nothing,
    whatever the function does.

    >>> check("rms", lambda x: np.linalg.norm(x, axis=-1)).ok
    False
    """
    result = _verdict(name, function)
    results.append((name, result.ok))
    return result


def _verdict(name: str, function: Callable[..., Any]) -> Result:
    exercise = EXERCISES.get(name) if isinstance(name, str) else None
    if exercise is None:
        there = ", ".join(EXERCISES)
        return Result(False, f"There is no exercise {text.shown(name)}. There are: {there}.")
    if not callable(function):
        call = f'check("{name}", {exercise.signature.split("(")[0]})'
        return Result(False, f"Give the function itself, without calling it: {call}.")
    if isinstance(exercise, Conviction):
        return _trial(exercise, function)
    return _examination(name, exercise, function)


def answer(function: Callable[..., Any], arguments: Arguments) -> Answer:
    """Call `function` on copies. Its overflows and divisions by 0 show in its value."""
    copies = tuple(_copy(a) if isinstance(a, np.ndarray) else a for a in arguments)
    try:
        with np.errstate(all="ignore"):
            value = function(*copies)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the reader's own code: any error is an answer, and exit()
        return Answer(error=text.of_error(error))
    pairs = zip(copies, arguments, strict=True)
    wrote = any(isinstance(a, np.ndarray) and not np.array_equal(a, b) for a, b in pairs)
    return Answer(value, wrote=wrote)


def _copy(a: NDArray[Any]) -> NDArray[Any]:
    """A copy laid out as `a` is: by rows, by columns, or with gaps between its numbers."""
    if a.flags.forc:
        return a.copy(order="K")
    copy: NDArray[Any] = np.zeros((*a.shape, 2), a.dtype)[..., 0]
    copy[...] = a
    return copy


def _examination(name: str, task: Task, function: Callable[..., Any]) -> Result:
    first = answer(function, task.example)
    truth = answer(task.truth, task.example).shown
    if first.empty:
        code = f"{text.call(name, task.example)}  should be  {truth}"
        return Result(False, f"{name} is still empty: it returned nothing.", code)
    answers = [answer(function, case) for case in task.cases]

    def fails(arguments: Arguments) -> bool:
        return not _right(answer(function, arguments), answer(task.truth, arguments), task)

    failing = next((case for case in task.cases if fails(case)), None)
    if failing is None:
        inputs = f"all {len(task.cases)} inputs" if len(task.cases) > 1 else "its one input"
        return Result(True, f"{name} is right on {inputs}.")
    smallest = shrink(failing, fails)
    got, want = answer(function, smallest), answer(task.truth, smallest)
    reason = _known_reason(task, answers) or _reason(got, want)
    said = f"{name} is not right yet: {reason}" if reason else f"{name} is not right yet."
    gave = got.shown if not got.wrote else f"{got.shown}, and wrote into its input"
    return Result(False, said, text.lines(text.call(name, smallest), gave, want.shown))


def _right(got: Answer, want: Answer, task: Task) -> bool:
    return not got.wrote and _equal(got, want, task.tolerance)


def _equal(a: Answer, b: Answer, tolerance: float) -> bool:
    """Both raise, or both give the same numbers in the same shape.

    Each number up to `tolerance` of itself. Where b's terms cancel to an exact 0, another right
    answer leaves a rounding error: there, up to `tolerance` of b's largest number.
    """
    if a.error or b.error:
        return bool(a.error and b.error)
    x, y = a.numbers, b.numbers
    if x is None or y is None or x.shape != y.shape:
        return False
    largest = np.max(np.abs(y), initial=0.0, where=np.isfinite(y))
    residue = np.where(y == 0, tolerance * largest, 0.0)
    return bool(np.allclose(x, y, rtol=tolerance, atol=residue, equal_nan=True))


def _known_reason(task: Task, answers: list[Answer]) -> str:
    """The reason of the wrong answer that the reader's equals on every case."""
    for wrong in task.wrongs:
        theirs = (answer(wrong.answer, case) for case in task.cases)
        if all(_equal(a, b, task.tolerance) for a, b in zip(answers, theirs, strict=True)):
            return wrong.reason
    return ""


def _reason(got: Answer, want: Answer) -> str:
    """What can be said without knowing the fault."""
    if got.empty:
        return "it returned nothing for this input."
    if got.error:
        return "it raised an error on this input."
    if got.wrote:
        return "it changed its argument. Work on a copy: the caller still needs the input."
    found, right = got.numbers, want.numbers
    if found is None or right is None:
        return "it returned something else than numbers."
    if found.shape != right.shape:
        return f"the result has shape {found.shape}; it should have {right.shape}."
    return _numbers_reason(found, right)


def _numbers_reason(found: NDArray[np.float64], right: NDArray[np.float64]) -> str:
    if np.any(np.isnan(found) & ~np.isnan(right)):
        return "nan: somewhere it divides 0 by 0, or inf by inf."
    if np.any(np.isinf(found) & ~np.isinf(right)):
        return "inf: something overflowed, or was divided by 0."
    if right.size and np.allclose(found, -right, rtol=1e-9, atol=0.0):
        return "the sign is turned."
    return ""


def _trial(exercise: Conviction, function: Callable[..., Any]) -> Result:
    evidence = answer(function, ())
    right = text.shown(exercise.broken(exercise.innocent))
    if evidence.empty:
        code = f"suspect({text.shown(exercise.innocent)})  gave  {right}, and that is right"
        return Result(False, "No evidence yet: return an input x.", code)
    if evidence.error:
        return Result(False, f"Your function raised {evidence.error}")
    x = evidence.numbers
    fault = "it holds something else than numbers" if x is None else _invalid(x)
    if x is None or fault:
        return Result(False, f"The court does not take this input: {fault}.", evidence.shown)
    return _sentence(exercise, x)


def _invalid(x: NDArray[np.float64]) -> str:
    if x.ndim == 0 or x.size == 0:
        return f"it has shape {x.shape}; give at least one row with one feature"
    if not np.all(np.isfinite(x)):
        return "it holds nan or inf, and no norm has an answer to that"
    top = np.max(np.abs(x), axis=-1)
    if np.any(top == 0):
        return "it has a row of zeros, which every norm would have to divide by 0"
    if np.any((top > _LARGEST) | (top < 1 / _LARGEST)):
        return "its squares leave float64's range, and that is another fault: stay within 1e±100"
    return ""


def _sentence(exercise: Conviction, x: NDArray[np.float64]) -> Result:
    got, want = answer(exercise.broken, (x,)), answer(exercise.truth, (x,))
    code = text.lines(text.call("suspect", (x,)), got.shown, want.shown)
    if got.error:
        loud = "It raises an error there, so nobody is misled. Find an input where it is silent."
        return Result(False, f"Not convicted. {loud} Hint: {exercise.hint}", code)
    found, right = got.numbers, want.numbers
    assert found is not None
    assert right is not None
    off = float(np.max(np.abs(found - right)) / np.max(np.abs(right)))
    if off > exercise.threshold:
        return Result(True, f"Convicted: it is off by {_share(off)}.", code)
    return Result(False, f"Not convicted: {_innocent(off)}. Hint: {exercise.hint}", code)


def _innocent(off: float) -> str:
    return "it is right there" if off < 1e-12 else f"it is off there by only {_share(off)}"


def _share(off: float) -> str:
    much = f"{100 * off:.2g}% of" if off < 1 else f"{off:.3g} times"
    return f"{much} the largest right output"
