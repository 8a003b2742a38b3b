"""Where and how a wrong RMSNorm is wrong: error maps of small arrays, and their shape in words."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rmsnorm_edu import precision, reference
from rmsnorm_edu.mutants import Mutant, RMSNorm
from rmsnorm_edu.mutants.base import Array

EPS = 1e-5
RESULTS = ("y", "dx", "dweight")
WEIGHT = np.array([0.6, 1.4, -0.9, 1.8, 0.7, 1.2, 0.5, 1.6], np.float32)


@dataclass(frozen=True)
class Input:
    """What a suspect is fed with: float32 x and dy (rows, n), weight (n,); the rows to show."""

    name: str
    about: str
    x: Array
    weight: Array
    dy: Array
    rows: tuple[int, ...] = (0, 1, 2)


def _spread(a: Array) -> Array:
    """`a` to one decimal, each value moved away from 0: a zero would hide an error."""
    return np.asarray(np.round(a + np.copysign(0.1, a), 1))


def _input(name: str, about: str, x: Array, weight: Array = WEIGHT, **more: Any) -> Input:
    x = x.astype(np.float32)
    dy = _spread(np.random.default_rng(5).standard_normal(x.shape)).astype(np.float32)
    return Input(name, about, x, weight[: x.shape[1]], dy, **more)


def inputs() -> list[Input]:
    """The inputs of the figure, in the order of its buttons."""
    rng = np.random.default_rng(4)
    x = _spread(rng.normal(0.3, 1.0, (3, 8)))
    equal = np.repeat([[0.5], [-2.0], [4.0]], 8, axis=1)
    many = _spread(rng.normal(0.3, 1.0, (2048, 8)))
    zero = np.where(np.arange(3)[:, np.newaxis] == 1, 0.0, x)
    one_hot = np.zeros((3, 8))
    one_hot[range(3), [1, 4, 6]] = [1.0, -2.0, 3.0]
    return [
        _input("Normal rows", "Three rows of eight normal numbers of mean 0.3.", x),
        _input("Equal numbers", "Rows of equal numbers: 0.5, −2 and 4.", equal),
        _input("One number a row", "Zeros, but for one number in each row.", one_hot),
        _input("Seven features", "Normal rows without their last column.", x[:, :7]),
        _input("Tiny rows", "Normal rows times 0.001: the mean square is less than ε.", x * 1e-3),
        _input("Large mean", "Normal rows plus 20.", x + 20),
        _input("A zero row", "Normal rows, the second one zero.", zero),
        _input("Weight 1", "Normal rows, each weight 1.", x, np.ones(8, np.float32)),
        _input("2048 rows", "2048 normal rows, of which three are shown.", many,
               rows=(0, 1023, 1024)),
    ]  # fmt: skip


def results(suspect: RMSNorm, given: Input) -> dict[str, Array]:
    """What a suspect returns for these numbers in float64, without rounding; dweight as (1, n).

    Only the methods that a mutant names in `wrong` are its own, the others are right.
    """
    right = RMSNorm()
    wrong = suspect.wrong if isinstance(suspect, Mutant) else ()
    x, weight, dy = (a.astype(np.float64) for a in (given.x, given.weight, given.dy))
    with np.errstate(all="ignore"):  # 0 / 0 is what some of them do
        y = (suspect if "forward" in wrong else right).forward(x.copy(), weight, EPS)
        dx, dweight = (suspect if "vjp" in wrong else right).vjp(dy.copy(), x.copy(), weight, EPS)
    return {"y": y, "dx": dx, "dweight": dweight[np.newaxis]}


def truth(given: Input) -> dict[str, Array]:
    """The right results in float64, of the same shapes."""
    dx, dweight = reference.rms_norm_vjp(given.dy, given.x, given.weight, eps=EPS)
    assert dweight is not None
    y = reference.rms_norm(given.x, given.weight, eps=EPS)
    return {"y": y, "dx": dx, "dweight": dweight[np.newaxis]}


@dataclass(frozen=True)
class Fault:
    """One result that is wrong somewhere: got, want, where they differ, and x, all (rows, n).

    `rows` are the numbers of these rows, from 0.
    """

    what: str
    got: Array
    want: Array
    wrong: Array
    x: Array
    rows: tuple[int, ...]

    def percent(self) -> Array:
        """The error in % of the true value, within ±1e6; 0 where right, nan for what is no number.

        Negative is too small, or of the wrong sign. Where the truth is 0, an error is ±1e6.
        """
        with np.errstate(all="ignore"):
            share = np.where(self.wrong, 100 * (self.got - self.want) / self.want, 0.0)
        return np.clip(np.where(np.isnan(self.got), np.nan, share), -1e6, 1e6)


def faults(suspect: RMSNorm, given: Input) -> list[Fault]:
    """The results that are wrong by more than rounding in float32 explains, in the rows shown."""
    found, wants = results(suspect, given), truth(given)
    return [
        fault
        for what in found
        if (fault := _compare(what, found[what], wants[what], given)).wrong.any()
    ]


def _compare(what: str, got: Array, want: Array, given: Input) -> Fault:
    dy = None if what == "y" else given.dy
    most = precision.allowed(what, given.x, given.weight, dy, eps=EPS)
    wrong = ~(np.abs(got - want) <= most)  # nan is wrong
    rows = (0,) if what == "dweight" else given.rows
    x = given.x.astype(np.float64)
    return Fault(what, got[rows, :], want[rows, :], wrong[rows, :], x[rows, :], rows)
