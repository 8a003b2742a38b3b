"""Which change of weights or data does a normalised layer not feel? Measured, with its laws.

The layer is a = W x, one row a case; its output y is a normalised and multiplied by the gain
(WeightNorm divides the rows of W instead). The seven changes act on W or x. The first six are
those of the paper's Table 1, with the definitions under which the table comes out; the seventh,
W' = QW, asks for y' = Qy with unit gain.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from rmsnorm_edu import reference
from rmsnorm_edu._inputs import Array, checked_eps, positive
from rmsnorm_edu._laws import LAWS, Law
from rmsnorm_edu._words import known

__all__ = [
    "EXACT",
    "LAWS",
    "METHODS",
    "TABLE_ONE",
    "TRANSFORMATIONS",
    "Change",
    "Law",
    "Layer",
    "Transformation",
    "example",
    "measure",
    "measure_one",
]

EXACT = 1e-12  # of the largest output: what rounding leaves of no change


@dataclass(frozen=True)
class Layer:
    """A linear layer and its data: all that the changes act on, float64.

    `x` (cases, inputs), `weight` W (outputs, inputs), `gain` (outputs,); `gamma` (inputs,) is
    what re-centring adds to every row of W, `basis` (outputs, outputs) holds the planes that a
    rotation turns.
    """

    x: Array
    weight: Array
    gain: Array
    gamma: Array
    basis: Array


@dataclass(frozen=True)
class Transformation:
    """A change of the layer: what it does, the amounts to try, and whether it is a scale."""

    does: str
    apply: Callable[[Layer, float], Layer]
    amounts: tuple[float, ...]
    scales: bool = False


@dataclass(frozen=True)
class Change:
    """The outputs (cases, outputs) `before` and `after` a change, and how far they are apart.

    `expected` is `before`, turned by Q for a rotation. `max_change` is max|after − expected|
    relative to max|before|.
    """

    before: Array
    after: Array
    expected: Array
    max_change: float


def example(seed: int = 0, *, cases: int = 8, inputs: int = 6, outputs: int = 7) -> Layer:
    """A random layer: inputs with a mean, gains of both signs and none near 0 or 1."""
    cases, inputs = positive(cases, "cases"), positive(inputs, "inputs")
    outputs = positive(outputs, "outputs")
    rng = np.random.default_rng(seed)
    gain = rng.choice([-1.0, 1.0], outputs) * rng.uniform(1.2, 2.5, outputs)
    return Layer(
        x=rng.normal(0.7, 1.0, (cases, inputs)),
        weight=rng.normal(0.2, 1.0, (outputs, inputs)),
        gain=gain,
        gamma=rng.normal(0.5, 1.0, inputs),
        basis=np.linalg.qr(rng.normal(size=(outputs, outputs)))[0],
    )


def _batch_norm(layer: Layer, eps: float) -> Array:
    return reference.batch_norm(_summed(layer), layer.gain, eps=eps)


def _weight_norm(layer: Layer, eps: float) -> Array:
    return layer.x @ reference.weight_norm(layer.weight, layer.gain).T  # it has no eps


def _layer_norm(layer: Layer, eps: float) -> Array:
    return reference.layer_norm(_summed(layer), layer.gain, eps=eps)


def _rms_norm(layer: Layer, eps: float) -> Array:
    return reference.rms_norm(_summed(layer), layer.gain, eps=eps)


def _partial_rms_norm(layer: Layer, eps: float) -> Array:
    k = reference.partial_size(len(layer.gain), 0.5)
    return reference.rms_norm(_summed(layer), layer.gain, eps=eps, k=k)


def _summed(layer: Layer) -> Array:
    return layer.x @ layer.weight.T


METHODS: dict[str, Callable[[Layer, float], Array]] = {
    "batch_norm": _batch_norm,
    "weight_norm": _weight_norm,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "partial_rms_norm": _partial_rms_norm,
}


def _scale_matrix(layer: Layer, delta: float) -> Layer:
    return replace(layer, weight=delta * layer.weight)


def _recentre_matrix(layer: Layer, c: float) -> Layer:
    return replace(layer, weight=layer.weight + c * layer.gamma)


def _scale_rows(layer: Layer, delta: float) -> Layer:
    """Row i times sign(δ)·|δ|^tᵢ: each row has a factor of its own, and δ = 1 changes none."""
    powers = np.linspace(0.5, 1.5, len(layer.gain))
    factors = np.sign(delta) * np.abs(delta) ** powers
    return replace(layer, weight=factors[:, np.newaxis] * layer.weight)


def _scale_data(layer: Layer, delta: float) -> Layer:
    return replace(layer, x=delta * layer.x)


def _recentre_data(layer: Layer, c: float) -> Layer:
    return replace(layer, x=layer.x + c)


def _scale_case(layer: Layer, delta: float) -> Layer:
    factors = np.ones((len(layer.x), 1))
    factors[0] = delta
    return replace(layer, x=factors * layer.x)


def _rotate(layer: Layer, degrees: float) -> Layer:
    return replace(layer, weight=_rotation(layer, degrees) @ layer.weight)


def _rotation(layer: Layer, degrees: float) -> Array:
    """Q: the columns of `basis` turned by one angle, two and two."""
    n = len(layer.basis)
    angle = math.radians(degrees)
    turn = np.eye(n)
    for i in range(0, n - 1, 2):
        c, s = math.cos(angle), math.sin(angle)
        turn[i : i + 2, i : i + 2] = [[c, -s], [s, c]]
    q: Array = layer.basis @ turn @ layer.basis.T
    return q


_SCALES = (0.3, 7.0)  # no powers of two: those would not even round
_SHIFTS = (0.7, 3.0)
_ANGLES = (50.0, 130.0)
TRANSFORMATIONS: dict[str, Transformation] = {
    "weight_matrix_rescaling": Transformation("W' = δW", _scale_matrix, _SCALES, scales=True),
    "weight_matrix_recentering": Transformation("W' = W + c 1γᵀ", _recentre_matrix, _SHIFTS),
    "weight_vector_rescaling": Transformation("wᵢ' = δᵢ wᵢ", _scale_rows, _SCALES, scales=True),
    "dataset_rescaling": Transformation("x' = δx, all cases", _scale_data, _SCALES, scales=True),
    "dataset_recentering": Transformation("x' = x + c, all cases", _recentre_data, _SHIFTS),
    "single_case_rescaling": Transformation("x₁' = δx₁", _scale_case, _SCALES, scales=True),
    "rotation": Transformation("W' = QW", _rotate, _ANGLES),
}

_YES_AND_NO = {  # in the order of TRANSFORMATIONS, without the rotation
    "batch_norm": "yes no yes yes yes no",
    "weight_norm": "yes no yes no no no",
    "layer_norm": "yes yes no yes no yes",
    "rms_norm": "yes no no yes no yes",
    "partial_rms_norm": "yes no no yes no yes",
}
# Zhang & Sennrich 2019, Table 1: does (method, transformation) leave the output as it was?
TABLE_ONE: dict[tuple[str, str], bool] = {
    (method, transformation): word == "yes"
    for method, words in _YES_AND_NO.items()
    for transformation, word in zip(list(TRANSFORMATIONS)[:6], words.split(), strict=True)
}


def measure_one(
    method: str,
    transformation: str,
    amount: float,
    eps: float = 0.0,
    seed: int = 0,
    *,
    layer: Layer | None = None,
) -> Change:
    """Apply one change to `example(seed)`, or to `layer`, and compare the outputs.

    `amount` is δ, c, or an angle in degrees. Raises ValueError for an unknown name, an eps or an
    amount that is not finite, and a layer or amount for which the outputs are no numbers or all
    0, so that no change can be measured; TypeError for an amount that is no number.
    """
    change = known(transformation, TRANSFORMATIONS, "transformation")
    norm = known(method, METHODS, "method")
    eps, amount = checked_eps(eps), _checked_amount(amount)
    layer = layer or example(seed)
    if transformation == "rotation":  # a gain has favourite directions: the axes
        layer = replace(layer, gain=np.ones_like(layer.gain))
    before = norm(layer, eps)
    if not (np.all(np.isfinite(before)) and np.any(before)):
        raise ValueError(
            f"the outputs of {method} for x {layer.x.shape}, W {layer.weight.shape} are nan or all "
            "0: nothing to compare with. Give a layer of at least 2 cases and 2 outputs"
        )
    with np.errstate(over="ignore", invalid="ignore"):  # it is refused below
        after = norm(change.apply(layer, amount), eps)
    if not np.all(np.isfinite(after)):
        raise ValueError(
            f"{transformation} by amount = {amount} makes the outputs of {method} inf or nan: "
            "give a smaller one, and no factor of 0 without eps"
        )
    expected = before
    if transformation == "rotation":
        expected = before @ _rotation(layer, amount).T
    return Change(before, after, expected, _apart(after, expected))


def _checked_amount(amount: float) -> float:
    if isinstance(amount, bool) or not isinstance(amount, Real):
        raise TypeError(f"amount = {amount!r} is {type(amount).__name__}; give a number, like 2.0")
    if not math.isfinite(amount):
        raise ValueError(f"amount = {amount}; give a finite number, like 2.0")
    return float(amount)


def measure(seed: int = 0, *, layer: Layer | None = None) -> list[dict[str, Any]]:
    """Measure all 35 cells in float64 with eps = 0, on `example(seed)` or on `layer`.

    One dict a cell: `method`, `transformation`, `invariant` (max_change ≤ 1e-12 for positive
    amounts), `max_change`, and `negative_scale`, what a factor δ < 0 does to the outputs that it
    scales: "flips" their sign, leaves the "same", "changes" their size; None without a factor.

    >>> cells = {(c["method"], c["transformation"]): c["invariant"] for c in measure()}
    >>> cells["layer_norm", "rotation"], cells["rms_norm", "rotation"]
    (False, True)
    """
    layer = layer or example(seed)
    return [_cell(method, name, layer) for method in METHODS for name in TRANSFORMATIONS]


def _cell(method: str, transformation: str, layer: Layer) -> dict[str, Any]:
    amounts = TRANSFORMATIONS[transformation].amounts
    changes = [measure_one(method, transformation, amount, layer=layer) for amount in amounts]
    max_change = max(change.max_change for change in changes)
    return {
        "method": method,
        "transformation": transformation,
        "invariant": max_change <= EXACT,
        "max_change": max_change,
        "negative_scale": _negative_scale(method, transformation, layer),
    }


def _negative_scale(method: str, transformation: str, layer: Layer) -> str | None:
    change = TRANSFORMATIONS[transformation]
    if not change.scales:
        return None
    found = [measure_one(method, transformation, -a, layer=layer) for a in change.amounts]
    if all(one.max_change <= EXACT for one in found):
        return "same"
    rows = 1 if transformation == "single_case_rescaling" else len(layer.x)
    return "flips" if all(_flips(one, rows) for one in found) else "changes"


def _flips(change: Change, rows: int) -> bool:
    """Whether the first `rows` cases are the negative of what they were, and no other moves."""
    signs = np.ones((len(change.before), 1))
    signs[:rows] = -1.0
    return _apart(change.after, signs * change.before) <= EXACT


def _apart(after: Array, expected: Array) -> float:
    return float(np.max(np.abs(after - expected)) / np.max(np.abs(expected)))
