"""`mutants`: each is wrong where it says, right elsewhere, and `verify` kills it."""

import re

import numpy as np
import pytest

from rmsnorm_edu import conventions
from rmsnorm_edu.checks import verify
from rmsnorm_edu.checks.inputs import cases
from rmsnorm_edu.checks.judge import Judge
from rmsnorm_edu.checks.rules import Rules
from rmsnorm_edu.mutants import MUTANTS, Mutant, RMSNorm

ml_dtypes = pytest.importorskip("ml_dtypes")
PATHS = {"forward", "dx", "dweight", "partial", "residual", "cast", "memory", "batch"}


@pytest.mark.parametrize("name", MUTANTS)
def test_verify_kills_every_mutant(name: str) -> None:
    report = verify(**MUTANTS[name].judged(), seeds=1)
    assert not report.ok
    assert {failure.function for failure in report.failures} == set(MUTANTS[name].wrong)


def test_a_mutant_of_the_gradient_is_right_in_y() -> None:
    judge = Judge(Rules("torch", np.dtype(np.float32)))
    backward = [m for m in MUTANTS.values() if m.path in ("dx", "dweight")]
    backward.remove(MUTANTS["rstd saved in half precision"])  # y has the same divisor
    assert len(backward) > 15
    for mutant in backward:
        for case in cases(0, judge.rules.dtype):
            assert judge.fault("forward", mutant.forward, case.arguments("forward")) is None


def test_the_zoo_has_every_path_and_each_says_where_it_was_seen() -> None:
    assert len(MUTANTS) >= 32
    assert {mutant.path for mutant in MUTANTS.values()} == PATHS
    for name, mutant in MUTANTS.items():
        assert mutant.name == name
        assert mutant.what.endswith(".")
        assert mutant.convention in conventions.NAMES
        known = re.search(r"#\d+|at [0-9a-f]{7}|at 5.24.0|bzhangGo/rmsnorm", mutant.reported)
        assert known or mutant.reported == "no public report found"


def test_each_replaces_a_step_of_the_right_one_and_no_more_than_two() -> None:
    steps = {name for name in vars(RMSNorm) if not name.startswith("_")}
    for mutant in MUTANTS.values():
        own = [c for c in type(mutant).__mro__ if c.__module__ != "rmsnorm_edu.mutants.base"]
        replaced = set(vars(own[0])) & (steps | {"k"})
        assert 1 <= len(replaced) <= 2, mutant.name


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_right_one_passes_with_all_its_functions(dtype: str) -> None:
    right = RMSNorm()
    report = verify(
        right.forward, right.vjp, add=right.add, add_vjp=right.add_vjp, dtype=dtype, seeds=1
    )
    assert report.ok, report
    assert report.judged == "forward and vjp and add and add_vjp"


@pytest.mark.parametrize(
    ("p", "dtype"), [(0.07, "float16"), (0.3, "bfloat16"), (0.5, "float32"), (1.0, "float64")]
)
def test_the_right_partial_one_passes(p: float, dtype: str) -> None:
    from rmsnorm_edu.mutants.paths import Partial

    class Right(Partial):
        pass

    Right.p = p
    right = Right()
    report = verify(
        right.forward, right.vjp, add=right.add, add_vjp=right.add_vjp, p=p, dtype=dtype, seeds=1
    )
    assert report.ok, report
    assert f"p = {p}" in repr(report)


def test_mutants_do_not_change_their_arguments_unless_that_is_the_fault() -> None:
    rng = np.random.default_rng(0)
    x, residual, dy = rng.normal(0.5, 1.0, (3, 5, 7)).astype(np.float32)
    weight = rng.uniform(1.2, 2.0, 7).astype(np.float32)
    before = [a.copy() for a in (x, residual, dy, weight)]
    for mutant in MUTANTS.values():
        if "overwritten" in mutant.name and mutant.name != "next row overwritten":
            continue
        mutant.forward(x, weight, 1e-5)
        mutant.vjp(dy, x, weight, 1e-5)
        mutant.add(x, residual, weight, 1e-5)
        mutant.add_vjp(dy, dy, x, residual, weight, 1e-5)
    for a, b in zip((x, residual, dy, weight), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_mutant_has_no_state() -> None:
    assert all(isinstance(m, Mutant) and not vars(m) for m in MUTANTS.values())
