"""`verify(forward, vjp)`: does a function compute RMSNorm, up to what rounding explains?"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rmsnorm_edu import conventions, precision, reference
from rmsnorm_edu.checks import suspects, text
from rmsnorm_edu.checks.answers import answer
from rmsnorm_edu.checks.inputs import Case, cases
from rmsnorm_edu.checks.report import Failure, Report
from rmsnorm_edu.checks.shrink import Arguments, shrink

Array = NDArray[Any]
Function = Callable[..., Any]


@dataclass(frozen=True)
class Fault:
    """What is wrong with one result, in words; `got` and `expected` as printed."""

    what: str
    reason: str
    got: str
    expected: str = ""


@dataclass(frozen=True)
class Judge:
    """The rules: whose RMSNorm, in which type."""

    convention: str
    dtype: np.dtype[Any]

    def fault(self, function: str, call: Function, arguments: Arguments) -> Fault | None:
        """The first thing that is wrong with `call(*arguments)`; None when nothing is."""
        found = answer(call, arguments)
        if found.error:
            return Fault("raised", f"it raised {found.error}", found.error, "an array")
        if found.wrote:
            return Fault("written to", "it wrote into its argument.", "a changed argument")
        names = ("y",) if function == "forward" else ("dx", "dweight")
        results = (found.value,) if function == "forward" else found.value
        if not isinstance(results, tuple | list) or len(results) != len(names):
            return Fault("shape", "vjp returns two arrays, (dx, dweight).", text.shown(results))
        truths = self.truth(function, arguments)
        for name, got, truth in zip(names, results, truths, strict=True):
            fault = self._form(name, got, truth) or self._numbers(name, got, truth, arguments)
            if fault:
                return fault
        return None

    def truth(self, function: str, arguments: Arguments) -> tuple[Array, ...]:
        """The results in float64."""
        rule = conventions.get(self.convention)
        *dy, x, weight, eps = (np.asarray(a, dtype=np.float64) for a in arguments)
        gain = weight + rule.gain_offset
        if function == "forward":
            return (reference.rms_norm(x, gain, eps=float(eps), eps_outside=rule.eps_outside),)
        dx, dweight = reference.rms_norm_vjp(
            dy[0], x, gain, eps=float(eps), eps_outside=rule.eps_outside
        )
        assert dweight is not None  # a weight was given
        return dx, dweight

    def _form(self, name: str, got: Any, truth: Array) -> Fault | None:
        if not isinstance(got, np.ndarray):
            got_type = type(got).__name__
            return Fault("dtype", f"{name} is no array but {got_type}.", got_type, "numpy.ndarray")
        if got.shape != truth.shape:
            said = f"{name} has shape {got.shape}; it should have {truth.shape}."
            return Fault("shape", said, str(got.shape), str(truth.shape))
        if got.dtype != self.dtype:
            said = f"{name} has dtype {got.dtype} where the input has {self.dtype}."
            return Fault("dtype", said, str(got.dtype), str(self.dtype))
        if not np.all(np.isfinite(got.astype(np.float64))):
            said = f"{name} holds nan or inf where the result is a number."
            return Fault("nan", said, text.shown(got), text.shown(truth))
        return None

    def _numbers(self, name: str, got: Array, truth: Array, arguments: Arguments) -> Fault | None:
        error = np.abs(got.astype(np.float64) - truth)
        allowed = self.allowed(name, arguments)
        if np.all(error <= allowed):
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
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
        scale = precision.scale(name, x, gain, *dy, eps=eps, eps_outside=rule.eps_outside)
        twice = 2.0 if self.dtype == np.float64 else 1.0
        allowed: Array = twice * bound * scale + precision.subnormal(self.dtype)
        return allowed


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
    of many numbers, huge and tiny sizes, rows of zeros, weights of both signs; results may be off
    by `precision.bound` and no more. Also noticed: a raise, a wrong type or shape, nan, an
    argument written to. Raises ValueError without a function, or for an unknown word.

    >>> verify(lambda x, weight, eps: x * weight).ok
    False
    """
    functions = {name: f for name, f in (("forward", forward), ("vjp", vjp)) if f is not None}
    if not functions or seeds < 1:
        raise ValueError(f"nothing to judge: functions {list(functions)}, seeds = {seeds}")
    judge = Judge(convention, _dtype(dtype))
    narrow = bool(conventions.get(convention).rounds) and judge.dtype.itemsize == 2
    inputs = [case for seed in range(seeds) for case in cases(seed, judge.dtype, narrow=narrow)]
    failures = [f for name, call in functions.items() for f in _failures(judge, name, call, inputs)]
    return Report(
        tuple(failures),
        " and ".join(functions),
        f"{convention}, {judge.dtype.name}",
        len(inputs),
        len({case.kind for case in inputs}),
    )


def _failures(judge: Judge, name: str, call: Function, inputs: list[Case]) -> list[Failure]:
    """One failure for each way of failing, with the first input that fails so made smaller."""
    found: dict[str, list[tuple[Case, Fault]]] = {}
    for case in inputs:
        fault = judge.fault(name, call, _arguments(name, case))
        if fault:
            found.setdefault(fault.what, []).append((case, fault))
    return [_failure(judge, name, call, what, failing) for what, failing in found.items()]


def _failure(
    judge: Judge, name: str, call: Function, what: str, failing: list[tuple[Case, Fault]]
) -> Failure:
    case, fault = min(failing, key=lambda pair: pair[0].x.size)

    def fails(arguments: Arguments) -> bool:
        again = judge.fault(name, call, arguments)
        return again is not None and again.what == what

    smallest = shrink(_arguments(name, case), fails, lowest_rank=2, tries=120)
    fault = judge.fault(name, call, smallest) or fault
    examples = [_arguments(name, case) for case, _ in failing[:15]]
    known = suspects.reason(judge, name, what, call, examples)
    kinds = tuple(dict.fromkeys(case.kind for case, _ in failing))
    code = text.lines(text.call(name, smallest), fault.got, fault.expected)
    return Failure(name, what, known or fault.reason, code, kinds, len(failing))


def _arguments(function: str, case: Case) -> Arguments:
    arguments = (case.x, case.weight, case.eps)
    return arguments if function == "forward" else (case.dy, *arguments)


def _dtype(dtype: DTypeLike) -> np.dtype[Any]:
    if str(dtype) == "bfloat16":
        try:
            from ml_dtypes import bfloat16
        except ImportError as error:
            raise ImportError('bfloat16 needs ml_dtypes: pip install "ml-dtypes"') from error
        dtype = bfloat16
    found: np.dtype[Any] = np.dtype(dtype)
    if found.name not in precision.UNIT_ROUNDOFF:
        raise ValueError(f"dtype = {found}; it is one of {', '.join(precision.UNIT_ROUNDOFF)}")
    return found
