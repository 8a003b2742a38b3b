"""`verify(forward, vjp)`: does a function compute RMSNorm, up to what rounding explains?"""

from itertools import chain

import numpy as np
from numpy.typing import DTypeLike

from rmsnorm_edu import conventions, precision, reference
from rmsnorm_edu._inputs import positive
from rmsnorm_edu.checks import batch, suspects, text
from rmsnorm_edu.checks.inputs import Case, cases, long_cases, miscounted
from rmsnorm_edu.checks.judge import Fault, Function, Judge
from rmsnorm_edu.checks.report import Failure, Report
from rmsnorm_edu.checks.rules import Rules
from rmsnorm_edu.checks.shrink import Arguments, shrink

_SURE = 10  # faults that are tried again: after so many the function is wrong, not fickle
_CHANGING = Fault(
    "changing",
    "it gives different results for one and the same input.",
    "one result, then another",
    "the same result every time",
)
_REUSED = "it writes a later result over an earlier one: give a new array each time."
_BATCH = "it gives a row other bits when other rows stand beside it."


def verify(
    forward: Function | None = None,
    vjp: Function | None = None,
    *,
    add: Function | None = None,
    add_vjp: Function | None = None,
    convention: str = "torch",
    dtype: DTypeLike = "float32",
    p: float | None = None,
    seeds: int = 20,
) -> Report:
    """Judge ``forward(x, weight, eps)`` and ``vjp(dy, x, weight, eps) -> (dx, dweight)``.

    They get NumPy arrays of `dtype` (bfloat16 is ml_dtypes'), x and dy (rows, n), weight (n,),
    and must return arrays of that type. `convention`, a key of `conventions.NAMES`, says whose
    RMSNorm it has to be: the place of ε, 1 + weight, what is rounded on the way. Returns a
    `Report`: it prints as the verdict, its `ok` is True or False, `failures` say why.

    The inputs, `seeds` of each kind, have rows and features of many numbers, huge and tiny sizes,
    rows of zeros, eps = 0, weights of both signs and 0; some arrays lie by columns or with gaps in
    memory, which a function may refuse by raising.
    Results may be off by `precision.bound` and no more. Also noticed: a raise, a wrong type or
    shape, nan, an argument written to, another result for the same input, and (in float32 and
    float64) a row of y or dx whose bits depend on how many rows stand beside it. What is right
    on all of them gets 65,600 rows, unless its memory grows with their square.

    `p`: a partial norm, whose RMS is that of the first `reference.partial_size(n, p)` features,
    rounded as the convention rounds, up where it says nothing; if there is a number of features
    of which n · p in floating point is rounded to another number, one of the inputs has so many.

    The norm fused with a residual sum is ``add(x, residual, weight, eps) -> (y, new_residual)``,
    new_residual = x + residual and y its norm, before or after that was rounded; its gradient is
    ``add_vjp(dy, dnew_residual, x, residual, weight, eps) -> (dx, dweight)``, where dx is that of
    x and of the residual alike.

    Raises TypeError for what cannot be called and for seeds that are no integer, ValueError
    without a function, for seeds < 1, for an unknown word, and for p outside 0 < p <= 1.

    >>> verify(lambda x, weight, eps: x * weight).ok
    False
    >>> def norm(x, weight, eps):
    ...     mean = np.mean(x * x, axis=-1, keepdims=True)
    ...     return x / np.sqrt(mean + x.dtype.type(eps)) * weight
    >>> verify(norm).ok
    True
    """
    functions = _given(forward=forward, vjp=vjp, add=add, add_vjp=add_vjp)
    judge = Judge(Rules(convention, precision.numpy_type(dtype), _part(p)))
    inputs = _inputs(judge.rules, positive(seeds, "seeds"))
    failures = [f for name, call in functions.items() for f in _failures(judge, name, call, inputs)]
    part = "" if p is None else f", p = {p}"
    return Report(
        tuple(failures),
        " and ".join(functions),
        f"convention {convention}, {judge.rules.dtype.name}{part}",
        len(inputs),
        len({case.kind for case in inputs}),
    )


def _inputs(rules: Rules, seeds: int) -> list[Case]:
    stored = {*conventions.get(rules.convention).rounds} - {"xhat"}  # what is large or tiny there
    narrow = bool(stored) and rules.dtype == np.float16  # bfloat16 reaches as far as float32
    sets = [cases(i, rules.dtype, narrow=narrow) for i in range(seeds)]
    found = [*chain(*sets), *long_cases(rules.dtype, narrow=narrow)]
    if n := rules.miscounted():
        found.append(miscounted(n, rules.dtype))
    taken = [case for case in found if rules.k(case.x.shape[-1]) is not None]
    if not taken:
        wide = max(case.x.shape[-1] for case in found)
        raise ValueError(f"p = {rules.p} of {wide} features is none, rounded down; give a larger p")
    return taken


def _part(p: float | None) -> float | None:
    if p is not None:
        reference.partial_size(1, p)  # raises, unless it is a share
    return p


def _given(**functions: Function | None) -> dict[str, Function]:
    given = {name: f for name, f in functions.items() if f is not None}
    for name, f in given.items():
        if not callable(f):
            raise TypeError(f"{name} = {text.shown(f)} cannot be called; give the function itself")
    if not given:
        raise ValueError(
            "nothing to judge: give forward(x, weight, eps), vjp(dy, x, weight, eps) or both, "
            "or add and add_vjp"
        )
    return given


def _failures(judge: Judge, name: str, call: Function, inputs: list[Case]) -> list[Failure]:
    """One failure for each way of failing, with the first input that fails so made smaller."""
    found: dict[str, list[tuple[Case, Fault]]] = {}
    kinds, faults = set[str](), 0
    for case in inputs:
        fault = judge.fault(name, call, case.arguments(name))
        again = faults < _SURE if fault else case.kind not in kinds
        if again and _changes(judge, name, call, case, fault):
            return [_failure(judge, name, call, _CHANGING.what, [(case, _CHANGING)])]
        if fault and not _refused(judge, name, call, case, fault):
            found.setdefault(fault.what, []).append((case, fault))
        kinds.add(case.kind)
        faults += fault is not None
    if not found:
        last = _reuses(judge, name, call, inputs[0]) or _depends_on_the_batch(judge, name, call)
        return last or _fails_beyond_a_grid(judge, name, call)
    return [_failure(judge, name, call, what, failing) for what, failing in found.items()]


def _reuses(judge: Judge, name: str, call: Function, case: Case) -> list[Failure]:
    arguments = case.arguments(name)
    if not judge.reuses(call, arguments):
        return []
    head = f"{text.call(name, arguments)}, and then another input"
    code = text.lines(head, "the first result changed", "two arrays")
    return [Failure(name, "reused", _REUSED, code, (case.kind,), 1)]


def _depends_on_the_batch(judge: Judge, name: str, call: Function) -> list[Failure]:
    """A failure if rows of y or dx have other bits in a large batch than in small ones."""
    if judge.rules.dtype.itemsize == 2:  # there the last bits of the sum are rounded away
        return []
    large = batch.large_batch(judge.rules.dtype)
    many = judge.results(name, call, large.arguments(name))
    for size in batch.GROUPS:
        cases = batch.small_batches(large, size)
        few = [judge.results(name, call, case.arguments(name)) for case in cases]
        arrays = [a[0] for a in few if isinstance(a, tuple)]
        if isinstance(many, Fault) or len(arrays) < len(few) or not batch.depends(many[0], arrays):
            continue
        head = f"{name} of {batch.ROWS} rows of {batch.FEATURES}, and of {size} of them at a time"
        code = text.lines(head, "other bits", "the same bits")
        return [Failure(name, "batch", _BATCH, code, (large.kind,), 1)]
    return []


def _fails_beyond_a_grid(judge: Judge, name: str, call: Function) -> list[Failure]:
    """The failure on more rows than 65,535, which is as far as some grids reach."""

    def fault(case: Case) -> Fault | None:
        return judge.fault(name, call, case.arguments(name))

    if batch.takes_the_square(fault, judge.rules.dtype):
        return []
    tall = batch.tall(judge.rules.dtype)
    wrong = fault(tall)
    if wrong is None:
        return []
    return [_failure(judge, name, call, wrong.what, [(tall, wrong)])]


def _changes(judge: Judge, name: str, call: Function, case: Case, fault: Fault | None) -> bool:
    arguments = case.arguments(name)
    if fault is None:
        return judge.changes(name, call, arguments)
    again = judge.fault(name, call, arguments)
    return again is None or again.what != fault.what


def _refused(judge: Judge, name: str, call: Function, case: Case, fault: Fault) -> bool:
    """Whether the fault is no more than an error that says no to strides."""
    if fault.what != "raised" or not case.strided:
        return False
    dense = (a.copy() if isinstance(a, np.ndarray) else a for a in case.arguments(name))
    again = judge.fault(name, call, tuple(dense))
    return again is None or again.what != "raised"


def _failure(
    judge: Judge, name: str, call: Function, what: str, failing: list[tuple[Case, Fault]]
) -> Failure:
    case, fault = min(failing, key=lambda pair: pair[0].x.size)
    smallest, known = case.arguments(name), ""
    if fault != _CHANGING:
        smallest, fault = _smallest(judge, name, call, smallest, fault)
        examples = [case.arguments(name) for case, _ in failing[:15]]
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
