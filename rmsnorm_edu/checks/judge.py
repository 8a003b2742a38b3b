"""`Judge`: what is wrong with one call of a function that ought to be RMSNorm."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmsnorm_edu.checks import text
from rmsnorm_edu.checks.answers import answer
from rmsnorm_edu.checks.rules import RESULTS, Right, Rules
from rmsnorm_edu.checks.shrink import Arguments

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
    """Judges one call by `rules`."""

    rules: Rules

    def fault(self, function: str, call: Function, arguments: Arguments) -> Fault | None:
        """The first thing that is wrong with `call(*arguments)`; None when nothing is."""
        if self.rules.k(_x(function, arguments).shape[-1]) is None:  # nothing to take the RMS of
            return None
        results = self.results(function, call, arguments)
        if isinstance(results, Fault):
            return results
        faults = []
        for right in self.rules.right(function, arguments):
            fault = self._first_fault(function, results, right)
            if fault is None:
                return None
            faults.append(fault)
        return faults[0]

    def changes(self, function: str, call: Function, arguments: Arguments) -> bool:
        """Whether `call` gives other bits, or fails in another way, when it is called again."""
        first, second = (self.results(function, call, arguments) for _ in range(2))
        if isinstance(first, Fault) or isinstance(second, Fault):
            return getattr(first, "what", "") != getattr(second, "what", "")
        return any(a.tobytes() != b.tobytes() for a, b in zip(first, second, strict=True))

    def reuses(self, call: Function, arguments: Arguments) -> bool:
        """Whether what `call` gave has other bits once it is called with other arguments."""
        given = answer(call, arguments).value
        arrays = given if isinstance(given, tuple | list) else [given]
        before = [np.array(a) for a in arrays]
        answer(call, (-arguments[0], *arguments[1:]))
        return any(
            np.array(a).tobytes() != b.tobytes() for a, b in zip(arrays, before, strict=True)
        )

    def results(
        self, function: str, call: Function, arguments: Arguments
    ) -> tuple[Array, ...] | Fault:
        """What `call(*arguments)` gives, copied, if these are arrays of the right form."""
        found = answer(call, arguments)
        if found.error:
            return Fault("raised", f"it raised {found.error}.", found.error, "an array")
        if found.wrote:
            return Fault("written to", "it wrote into its argument.", "a changed argument")
        names = RESULTS[function]
        values = (found.value,) if len(names) == 1 else found.value
        if not isinstance(values, tuple | list) or len(values) != len(names):
            said = f"{function} returns two arrays, ({', '.join(names)})."
            return Fault("shape", said, text.shown(values))
        x, weight = _x(function, arguments), arguments[-2]
        for name, got in zip(names, values, strict=True):
            fault = self._form(name, got, weight.shape if name == "dweight" else x.shape)
            if fault:
                return fault
        return tuple(np.array(got) for got in values)

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
        if got.dtype != self.rules.dtype:
            wanted = self.rules.dtype
            said = f"{name} has dtype {got.dtype} where the input has {wanted}."
            return Fault("dtype", said, str(got.dtype), str(wanted))
        return None

    def _first_fault(
        self, function: str, results: tuple[Array, ...], right: tuple[Right, ...]
    ) -> Fault | None:
        named = zip(RESULTS[function], results, right, strict=True)
        return next(filter(None, (_numbers(*one) for one in named)), None)


def _numbers(name: str, got: Array, right: Right) -> Fault | None:
    wide = got.astype(np.float64)
    beyond = np.isinf(wide) & _overflows(right, got.dtype) & (np.sign(wide) == np.sign(right.truth))
    if not np.all(np.isfinite(wide) | beyond):
        said = f"{name} holds nan or inf where the result is a number."
        return Fault("nan", said, text.shown(got), text.shown(right.truth))
    error = np.abs(np.where(beyond, right.truth, wide) - right.truth)
    if np.all(error <= right.allowed):
        return None
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        times = float(np.max(np.where(error > right.allowed, error / right.allowed, 0.0)))
    said = f"{name} is off by {times:.2g} times what rounding explains."
    return Fault(name, said, text.shown(got), text.shown(right.truth))


def _overflows(right: Right, dtype: np.dtype[Any]) -> Array:
    """Where the result, rounded upwards as far as may be, is beyond the type."""
    with np.errstate(over="ignore"):
        largest = (np.abs(right.truth) + right.allowed).astype(dtype)
    return np.asarray(np.isinf(largest.astype(np.float64)))


def _x(function: str, arguments: Arguments) -> Array:
    """x among the arguments."""
    x: Array = arguments[-4 if function in ("add", "add_vjp") else -3]
    return x
