"""What a norm does not see: five methods, seven changes, measured in every combination.

One example has summed inputs a = W x, a row a case, which a method turns into outputs y. A change
is made to W or x, and the outputs are compared with those before. Source: Zhang & Sennrich 2019,
section 4 and Table 1; the rotation is this book's seventh column.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rmsnorm_edu.invariance_laws import LAWS, Law
from rmsnorm_edu.reference import batch_norm, layer_norm, partial_size, rms_norm, weight_norm

__all__ = [
    "LAWS",
    "METHODS",
    "TABLE_ONE",
    "TRANSFORMATIONS",
    "Law",
    "Outcome",
    "example",
    "measure",
    "measure_one",
]

Array = NDArray[np.float64]
T = TypeVar("T")
SHAPE = (6, 5, 8)  # cases, inputs, outputs
INVARIANT = 1e-12  # largest max_change of an output that stays; rounding makes about 1e-15


@dataclass(frozen=True)
class Example:
    """x (cases, inputs), w (outputs, inputs), gain (outputs,), and what the changes need.

    `gamma` (inputs,) is the row that re-centring adds, `powers` (outputs,) makes the rows' own
    factors, `basis` (outputs, outputs) is the orthogonal basis in whose planes a rotation turns.
    """

    x: Array
    w: Array
    gain: Array
    gamma: Array
    powers: Array
    basis: Array


def example(seed: int = 0, shape: tuple[int, int, int] = SHAPE) -> Example:
    """An example of `shape` (cases, inputs, outputs): mean not 0, gains ≠ 1 and of both signs."""
    rng = np.random.default_rng(seed)
    cases, inputs, outputs = shape
    signs = np.resize([1.0, -1.0], outputs)
    return Example(
        x=rng.normal(0.5, 1.0, (cases, inputs)),
        w=rng.normal(0.2, 1.0, (outputs, inputs)),
        gain=signs * rng.uniform(0.5, 2.0, outputs) + 0.1,
        gamma=rng.normal(0.3, 1.0, inputs),
        powers=np.linspace(1.0, 0.5, outputs),
        basis=np.linalg.qr(rng.normal(size=(outputs, outputs)))[0],
    )


def _of_summed_inputs(norm: Callable[..., Array]) -> Callable[[Example, float], Array]:
    return lambda e, eps: norm(e.x @ e.w.T, e.gain, eps=eps)


def _partial(e: Example, eps: float) -> Array:
    return rms_norm(e.x @ e.w.T, e.gain, eps=eps, k=partial_size(len(e.w), 0.5))


METHODS: dict[str, Callable[[Example, float], Array]] = {
    "batch_norm": _of_summed_inputs(batch_norm),
    "weight_norm": lambda e, eps: e.x @ weight_norm(e.w, e.gain).T,  # has no eps
    "layer_norm": _of_summed_inputs(layer_norm),
    "rms_norm": _of_summed_inputs(rms_norm),
    "partial_rms_norm": _partial,  # half of the outputs
}


def _scale_rows(e: Example, amount: float) -> Example:
    """Row i times a factor of its own, amount for the first, nearer to ±1 for the next ones."""
    factors = np.copysign(np.abs(amount) ** e.powers, amount)
    return replace(e, w=factors[:, np.newaxis] * e.w)


def _scale_one_case(e: Example, amount: float) -> Example:
    return replace(e, x=np.vstack([amount * e.x[:1], e.x[1:]]))


def _turn(e: Example, amount: float) -> Example:
    return replace(e, w=_rotation(e, amount) @ e.w)


def _rotation(e: Example, degrees: float) -> Array:
    """An orthogonal matrix: turns the planes spanned by pairs of the basis. It moves 1."""
    angle = np.deg2rad(degrees)
    turn = np.eye(len(e.w))
    for i in range(0, len(e.w) - 1, 2):
        turn[i : i + 2, i : i + 2] = [
            [np.cos(angle), -np.sin(angle)],
            [np.sin(angle), np.cos(angle)],
        ]
    rotation: Array = e.basis @ turn @ e.basis.T
    return rotation


@dataclass(frozen=True)
class Transformation:
    """A change of W or x by an amount: a factor ("scale"), a shift or an angle in degrees.

    `amount` is the one that `measure` makes; with `one_case` only the first case is changed.
    """

    kind: str
    apply: Callable[[Example, float], Example]
    amount: float
    one_case: bool = False


TRANSFORMATIONS: dict[str, Transformation] = {
    "weight_matrix_rescaling": Transformation("scale", lambda e, c: replace(e, w=c * e.w), 2.5),
    "weight_matrix_recentering": Transformation(
        "shift", lambda e, c: replace(e, w=e.w + c * e.gamma), 2.0
    ),
    "weight_vector_rescaling": Transformation("scale", _scale_rows, 2.5),
    "dataset_rescaling": Transformation("scale", lambda e, c: replace(e, x=c * e.x), 2.5),
    "dataset_recentering": Transformation("shift", lambda e, c: replace(e, x=e.x + c), 2.0),
    "single_case_rescaling": Transformation("scale", _scale_one_case, 2.5, one_case=True),
    "rotation": Transformation("angle", _turn, 60.0),
}

# Table 1 as the authors' README prints it (the glyphs of the PDF are lost in most copies):
# columns in the order of TRANSFORMATIONS, without the rotation, which the paper does not have.
_PRINTED = {
    "batch_norm": (True, False, True, True, True, False),
    "weight_norm": (True, False, True, False, False, False),
    "layer_norm": (True, True, False, True, False, True),
    "rms_norm": (True, False, False, True, False, True),
    "partial_rms_norm": (True, False, False, True, False, True),
}
TABLE_ONE: dict[tuple[str, str], bool] = {
    (method, transformation): says
    for method, row in _PRINTED.items()
    for transformation, says in zip(TRANSFORMATIONS, row, strict=False)  # six of seven
}


@dataclass(frozen=True)
class Outcome:
    """Outputs (cases, outputs) before and after a change, and how far they lie apart.

    `max_change` is max|after − before| / max|before|. For the rotation `before` is turned along:
    Q y is what an equivariant norm gives.
    """

    before: Array
    after: Array
    max_change: float


def measure_one(
    method: str,
    transformation: str,
    amount: float,
    eps: float = 0.0,
    seed: int = 0,
    shape: tuple[int, int, int] = SHAPE,
) -> Outcome:
    """Change the example of `seed` by `amount` and compare the outputs of `method`.

    The amount is a factor, a shift, or degrees for the rotation, whose gain is 1. Raises
    ValueError for an unknown method or transformation.
    """
    norm = _named(METHODS, method, "method")
    change = _named(TRANSFORMATIONS, transformation, "transformation")
    start = example(seed, shape)
    if change.kind == "angle":
        start = replace(start, gain=np.ones(shape[2]))
    before = norm(start, eps)
    if change.kind == "angle":
        before = before @ _rotation(start, amount).T
    after = norm(change.apply(start, amount), eps)
    return Outcome(before, after, _apart(after, before))


def measure(seed: int = 0, shape: tuple[int, int, int] = SHAPE) -> list[dict[str, Any]]:
    """All 35 cells in float64 with eps = 0, as dictionaries with these keys.

    "method", "transformation"; "max_change" for a positive amount, relative to the output's
    scale; "invariant": max_change ≤ 1e-12; "negative_scale": what a negative factor does to the
    scaled outputs: "flips" their sign, leaves them the "same", "changes" them, or None where
    nothing is scaled.

    >>> cells = {(c["method"], c["transformation"]): c for c in measure()}
    >>> cells["rms_norm", "rotation"]["invariant"], cells["layer_norm", "rotation"]["invariant"]
    (True, False)
    """
    return [_cell(m, t, seed, shape) for m in METHODS for t in TRANSFORMATIONS]


def _cell(
    method: str, transformation: str, seed: int, shape: tuple[int, int, int]
) -> dict[str, Any]:
    change = TRANSFORMATIONS[transformation]
    outcome = measure_one(method, transformation, change.amount, seed=seed, shape=shape)
    scaled = change.kind == "scale"
    return {
        "method": method,
        "transformation": transformation,
        "invariant": outcome.max_change <= INVARIANT,
        "max_change": outcome.max_change,
        "negative_scale": _sign(method, transformation, seed, shape) if scaled else None,
    }


def _sign(method: str, transformation: str, seed: int, shape: tuple[int, int, int]) -> str:
    """What a negative factor leaves of the outputs that it scales; the others must stay."""
    change = TRANSFORMATIONS[transformation]
    outcome = measure_one(method, transformation, -change.amount, seed=seed, shape=shape)
    if outcome.max_change <= INVARIANT:
        return "same"
    flipped = outcome.before.copy()
    flipped[: 1 if change.one_case else None] *= -1
    return "flips" if _apart(outcome.after, flipped) <= INVARIANT else "changes"


def _apart(after: Array, before: Array) -> float:
    return float(np.max(np.abs(after - before)) / np.max(np.abs(before)))


def _named(known: Mapping[str, T], name: str, what: str) -> T:
    if name not in known:
        raise ValueError(f"{what} = {name!r}; it is one of {', '.join(known)}")
    return known[name]
