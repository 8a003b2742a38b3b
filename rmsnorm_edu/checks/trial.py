"""Which mutants live on when a test sees other inputs than `verify`'s."""

from collections.abc import Callable
from itertools import chain

from rmsnorm_edu._rounding import numpy_type
from rmsnorm_edu.checks.inputs import Case, cases, long_cases
from rmsnorm_edu.checks.judge import Judge
from rmsnorm_edu.checks.rules import RESULTS, Rules
from rmsnorm_edu.mutants import Mutant

Change = Callable[[Case], Case | None]


def survives(mutant: Mutant, change: Change | None = None, *, seeds: int = 3) -> bool:
    """Whether `mutant` passes on the inputs of `verify`, each as `change` leaves it.

    `change` returns another `Case`, or None to leave the input out. The tolerances are those of
    `verify`; the order of the sums in a large batch is not looked at.
    """
    keywords = mutant.judged()
    dtype = numpy_type(mutant.dtype)
    judge = Judge(Rules(mutant.convention, dtype, mutant.p))
    inputs = chain(*(cases(seed, dtype) for seed in range(seeds)), long_cases(dtype))
    changed = (case if change is None else change(case) for case in inputs)
    left = [case for case in changed if case is not None]
    functions = [name for name in RESULTS if name in keywords]
    return not any(
        judge.fault(name, keywords[name], case.arguments(name))
        for name in functions
        for case in left
    )
