"""`verify(forward, vjp)`: does a function compute RMSNorm, up to what rounding explains?"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rmsnorm_edu import conventions, precision, reference
from rmsnorm_edu._inputs import positive
from rmsnorm_edu.checks import suspects, text
from rmsnorm_edu.checks.answers import answer
from rmsnorm_edu.checks.inputs import Case, cases, long_cases
from rmsnorm_edu.checks.report import Failure, Report
from rmsnorm_edu.checks.shrink import Arguments, shrink

Array = NDArray[Any]
Function = Callable[..., Any]
_SURE = 10  # faults that are tried again: after so many the function is wrong, not fickle
_RESULTS = {"forward": ("y",), "vjp": ("dx", "dweight")}


@dataclass(frozen=True)
class Fault:
    """What is wrong with one result, in words; `got` and `expected` as printed."""

    what: str
    reason: str
    got: str
    expected: str = ""


_CHANGING = Fault(
    "changing",
    "it gives different results for one and the same input.",
    "one result, then another",
    "the same result every time",
)


@dataclass(frozen=True)
class Judge:
    """The rules: whose RMSNorm, in which type."""

    convention: str
    dtype: np.dtype[Any]

    def fault(self, function: str, call: Function, arguments: Arguments) -> Fault | None:
        """The first thing that is wrong with `call(*arguments)`; None when nothing is."""
        results = self.results(function, call, arguments)
        if isinstance(results, Fault):
            return results
        truths = self.truth(function, arguments)
        for name, got, truth in zip(_RESULTS[function], results, truths, strict=True):
            fault = self._numbers(name, got, truth, arguments)
            if fault:
                return fault
        return None

    def changes(self, function: str, call: Function, arguments: Arguments) -> bool:
        """Whether `call` gives other bits, or fails in another way, when it is called again."""
        first, second = (self.results(function, call, arguments) for _ in range(2))
        if isinstance(first, Fault) or isinstance(second, Fault):
            return getattr(first, "what", "") != getattr(second, "what", "")
        return any(a.tobytes() != b.tobytes() for a, b in zip(first, second, strict=True))

    def results(
        self, function: str, call: Function, arguments: Arguments
    ) -> tuple[Array, ...] | Fault:
        """What `call(*arguments)` gives, copied, if these are arrays of the right form."""
        found = answer(call, arguments)
        if found.error:
            return Fault("raised", f"it raised {found.error}.", found.error, "an array")
        if found.wrote:
            return Fault("written to", "it wrote into its argument.", "a changed argument")
        names = _RESULTS[function]
        values = (found.value,) if function == "forward" else found.value
        if not isinstance(values, tuple | list) or len(values) != len(names):
            return Fault("shape", "vjp returns two arrays, (dx, dweight).", text.shown(values))
        *_, x, weight, _ = arguments
        for name, got in zip(names, values, strict=True):
            fault = self._form(name, got, weight.shape if name == "dweight" else x.shape)
            if fault:
                return fault
        return tuple(np.array(got) for got in values)

    def truth(self, function: str, arguments: Arguments) -> tuple[Array, ...]:
        """The results in float64."""
        *dys, x, weight, eps = arguments
        if function == "forward":
            return (conventions.exact(self.convention, x, weight, eps=eps),)
        return conventions.exact_vjp(self.convention, dys[0], x, weight, eps=eps)

    def _form(self, name: str, got: Any, shape: tuple[int, ...]) -> Fault | None:
        if not isinstance(got, np.ndarray):
            got_type = type(got).__name__
            return Fault("dtype", f"{name} is no array but {got_type}.", got_type, "numpy.ndarray")
        if np.ma.is_masked(got):
            return Fault("nan", f"{name} has masked values.", "masked values", "numbers")
        got = np.asarray(got)  # of a subclass, whose methods may do anything, the plain array
        if got.shape != shape:
            said = f"{name} has shape {got.shape}; it should have {shape}."
            return Fault("shape", said, str(got.shape), str(shape))
        if got.dtype != self.dtype:
            said = f"{name} has dtype {got.dtype} where the input has {self.dtype}."
            return Fault("dtype", said, str(got.dtype), str(self.dtype))
        return None

    def _numbers(self, name: str, got: Array, truth: Array, arguments: Arguments) -> Fault | None:
        wide = got.astype(np.float64)
        if not np.all(np.isfinite(wide)):
            said = f"{name} holds nan or inf where the result is a number."
            return Fault("nan", said, text.shown(got), text.shown(truth))
        error, allowed = np.abs(wide - truth), self.allowed(name, arguments)
        if np.all(error <= allowed):
            return None
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            times = float(np.max(np.where(error > allowed, error / allowed, 0.0)))
        said = f"{name} is off by {times:.2g} times what rounding explains."
        return Fault(name, said, text.shown(got), text.shown(truth))

    def allowed(self, name: str, arguments: Arguments) -> Array:
        """The largest error that rounding explains, of the shape of the rows or of dweight.

        float64 twice, since the truth is of that type, too.
        """
        rule = conventions.get(self.convention)
        *dy, x, weight, eps = arguments
        bound = precision.bound(
            self.dtype, x.shape[-1], len(x), what=name, convention=self.convention
        )
        gain = weight.astype(np.float64) + rule.gain_offset
        if rule.eps_floor:
            scale = _floored_scale(name, x.astype(np.float64), gain, *dy, eps=eps)
        else:
            scale = precision.scale(name, x, gain, *dy, eps=eps, eps_outside=rule.eps_outside)
        twice = 2.0 if self.dtype == np.float64 else 1.0
        allowed: Array = twice * bound * scale + precision.subnormal(self.dtype)
        return allowed


def _floored_scale(
    name: str, x: Array, gain: Array, dy: Array | None = None, *, eps: float
) -> Array:
    """`precision.scale` where ε is a floor under ‖x‖: D = max(‖x‖, ε)/√n."""
    divisor = np.maximum(reference.rms(x), eps / x.shape[-1] ** 0.5)[..., np.newaxis]
    xhat = np.abs(x / divisor)
    if dy is None:
        return np.asarray(np.max(xhat * np.abs(gain), axis=-1, keepdims=True))
    dy = np.abs(dy.astype(np.float64))
    if name == "dweight":
        return np.asarray(np.sum(dy * xhat, axis=0))
    u = dy * np.abs(gain)
    along = np.mean(u * xhat, axis=-1, keepdims=True)
    top, largest = (np.max(a, axis=-1, keepdims=True) for a in (u, xhat))
    return np.asarray((top + largest * along) / divisor)


def verify(
    forward: Function | None = None,
    vjp: Function | None = None,
    *,
    convention: str = "torch",
    dtype: DTypeLike = "float32",
    seeds: int = 20,
) -> Report:
    """Judge ``forward(x, weight, eps)`` and ``vjp(dy, x, weight, eps) -> (dx, dweight)``.

    They get NumPy arrays of `dtype` (bfloat16 is ml_dtypes'), x and dy (rows, n), weight (n,),
    and must return arrays of that type. The inputs, `seeds` of each kind, have rows and features
    of many numbers, huge and tiny sizes, rows of zeros, eps = 0, weights of both signs and 0;
    some arrays lie by columns or with gaps in memory, which a function may refuse by raising.
    Results may be off by `precision.bound` and no more. Also noticed: a raise, a wrong type or
    shape, nan, an argument written to, another result for the same input. Raises TypeError for
    what cannot be called and for seeds that are no integer, ValueError without a function, for
    seeds < 1 and for an unknown word.

    >>> verify(lambda x, weight, eps: x * weight).ok
    False
    """
    functions = _given(forward=forward, vjp=vjp)
    judge = Judge(convention, _dtype(dtype))
    narrow = bool(conventions.get(convention).rounds) and judge.dtype.itemsize == 2
    sets = [cases(i, judge.dtype, narrow=narrow) for i in range(positive(seeds, "seeds"))]
    inputs = [*chain(*sets), *long_cases(judge.dtype, narrow=narrow)]
    failures = [f for name, call in functions.items() for f in _failures(judge, name, call, inputs)]
    return Report(
        tuple(failures),
        " and ".join(functions),
        f"convention {convention}, {judge.dtype.name}",
        len(inputs),
        len({case.kind for case in inputs}),
    )


def _given(**functions: Function | None) -> dict[str, Function]:
    given = {name: f for name, f in functions.items() if f is not None}
    for name, f in given.items():
        if not callable(f):
            raise TypeError(f"{name} = {text.shown(f)} cannot be called; give the function itself")
    if not given:
        raise ValueError(
            "nothing to judge: give forward(x, weight, eps), vjp(dy, x, weight, eps) or both"
        )
    return given


def _failures(judge: Judge, name: str, call: Function, inputs: list[Case]) -> list[Failure]:
    """One failure for each way of failing, with the first input that fails so made smaller."""
    found: dict[str, list[tuple[Case, Fault]]] = {}
    kinds, faults = set[str](), 0
    for case in inputs:
        fault = judge.fault(name, call, _arguments(name, case))
        again = faults < _SURE if fault else case.kind not in kinds
        if again and _changes(judge, name, call, case, fault):
            return [_failure(judge, name, call, _CHANGING.what, [(case, _CHANGING)])]
        if fault and not _refused(judge, name, call, case, fault):
            found.setdefault(fault.what, []).append((case, fault))
        kinds.add(case.kind)
        faults += fault is not None
    return [_failure(judge, name, call, what, failing) for what, failing in found.items()]


def _changes(judge: Judge, name: str, call: Function, case: Case, fault: Fault | None) -> bool:
    arguments = _arguments(name, case)
    if fault is None:
        return judge.changes(name, call, arguments)
    again = judge.fault(name, call, arguments)
    return again is None or again.what != fault.what


def _refused(judge: Judge, name: str, call: Function, case: Case, fault: Fault) -> bool:
    """Whether the fault is no more than an error that says no to strides."""
    if fault.what != "raised" or not case.strided:
        return False
    dense = (a.copy() if isinstance(a, np.ndarray) else a for a in _arguments(name, case))
    again = judge.fault(name, call, tuple(dense))
    return again is None or again.what != "raised"


def _failure(
    judge: Judge, name: str, call: Function, what: str, failing: list[tuple[Case, Fault]]
) -> Failure:
    case, fault = min(failing, key=lambda pair: pair[0].x.size)
    smallest, known = _arguments(name, case), ""
    if fault != _CHANGING:
        smallest, fault = _smallest(judge, name, call, smallest, fault)
        examples = [_arguments(name, case) for case, _ in failing[:15]]
        known = suspects.reason(judge, name, what, call, examples)
    kinds = tuple(dict.fromkeys(case.kind for case, _ in failing))
    code = text.lines(text.call(name, smallest), fault.got, fault.expected)
    return Failure(name, fault.what, known or fault.reason, code, kinds, len(failing))


def _smallest(
    judge: Judge, name: str, call: Function, arguments: Arguments, fault: Fault
) -> tuple[Arguments, Fault]:
    """The smallest input found on which `call` fails in the same way, and its fault there."""

    def fails(arguments: Arguments) -> bool:
        again = judge.fault(name, call, arguments)
        return again is not None and again.what == fault.what

    smallest = shrink(arguments, fails, lowest_rank=2, tries=120)
    again = judge.fault(name, call, smallest)
    if again is None or again.what != fault.what:
        return arguments, _CHANGING
    return smallest, again


def _arguments(function: str, case: Case) -> Arguments:
    arguments = (case.x, case.weight, case.eps)
    return arguments if function == "forward" else (case.dy, *arguments)


def _dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """The type itself, in the machine's byte order."""
    name = precision.dtype_name(dtype)
    if name != "bfloat16":
        return np.dtype(name)
    try:
        from ml_dtypes import bfloat16
    except ImportError as error:
        raise ImportError('bfloat16 needs ml_dtypes: pip install "ml-dtypes"') from error
    found: np.dtype[Any] = np.dtype(bfloat16)
    return found
