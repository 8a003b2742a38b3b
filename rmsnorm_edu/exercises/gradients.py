"""The exercises of the chapter "Gradients"."""

import math

import numpy as np

from rmsnorm_edu import reference
from rmsnorm_edu.exercises.model import (
    CUBE,
    MATRIX,
    SQUARE,
    Array,
    Conviction,
    Exercise,
    Task,
    Wrong,
    mean_square,
    row,
)

_WEIGHT = row(2.0, -0.5, 3.0)


def _mean(a: Array) -> Array:
    mean: Array = np.mean(a, axis=-1, keepdims=True)
    return mean


def _dx(u: Array, x: Array, eps: float, along: Array) -> Array:
    """(u − x̂ · along) / D, with the `along` that a wrong answer has."""
    d = np.sqrt(mean_square(x) + eps)
    dx: Array = (u - x / d * along) / d
    return dx


def _projected(u: Array, x: Array, eps: float, times: float = 1.0) -> Array:
    """The right dx for u, or the one whose second term is so many times as large."""
    return _dx(u, x, eps, times * _mean(u * x / np.sqrt(mean_square(x) + eps)))


def _of_one_mean(dy: Array, x: Array, weight: Array, eps: float) -> Array:
    """The mean of u x̂ over the whole array."""
    u = dy * weight
    along: Array = np.mean(u * x / np.sqrt(mean_square(x) + eps), keepdims=True)
    return _dx(u, x, eps, along)


def _two_weights(dy: Array, x: Array, weight: Array, eps: float, power: int) -> Array:
    """weight once in the first term, to another power in the second."""
    xhat = x / np.sqrt(mean_square(x) + eps)
    return _dx(dy * weight, x, eps, _mean(dy * weight**power * xhat))


_RMS_NORM_BACKWARD = Task(
    "rms_norm_backward(dy, x, weight, eps)",
    lambda dy, x, weight, eps: reference.rms_norm_vjp(dy, x, weight, eps=eps)[0],
    cases=(
        (row(1.0), row(2.0), row(-1.5), 0.5),
        (row(1.0, 3.0), row(3.0, 4.0), row(2.0, -0.5), 0.5),
        (row(1.0, 3.0), row(3.0, 4.0), row(2.0, -0.5), 1e-6),
        (row(1.0, -1.0, 2.0), row(1e-3, -2e-3, 1e-3), _WEIGHT, 1e-5),
        (row(1.0, -1.0, 2.0), row(5.0, 5.0, 6.0), _WEIGHT, 1e-6),
        (row(1.0, -1.0, 2.0), row(0.0, 0.0, 0.0), _WEIGHT, 0.01),
        (np.array([[1.0, 2.0], [-1.0, 1.0]]), SQUARE, row(2.0, -0.5), 0.1),
        (np.array([[1.0, 2.0, -1.0], [3.0, -1.0, 1.0]]), MATRIX, _WEIGHT, 0.1),
        (np.cos(CUBE), CUBE, row(2.0, -0.5, 3.0, 0.7), 0.1),
    ),
    example=(row(1.0, 3.0), row(3.0, 4.0), row(2.0, -0.5), 0.5),
    wrongs=(
        Wrong(
            lambda dy, x, weight, eps: dy * weight / np.sqrt(mean_square(x) + eps),
            "the second term is missing: x moves y also through the root, which you held still.",
        ),
        Wrong(
            lambda dy, x, weight, eps: _projected(dy * weight, x, eps, -1.0),
            "the second term has the wrong sign: a larger x makes the root larger and y smaller.",
        ),
        Wrong(
            lambda dy, x, weight, eps: _projected(dy, x, eps),
            "the weight is missing: both terms are made of u = dy * weight.",
        ),
        Wrong(
            lambda dy, x, weight, eps: _two_weights(dy, x, weight, eps, 0),
            "the weight is missing in the second term: take the mean of dy * weight * x-hat.",
        ),
        Wrong(
            lambda dy, x, weight, eps: _two_weights(dy, x, weight, eps, 2),
            "the weight is there twice in the second term. It is in u already.",
        ),
        Wrong(
            lambda dy, x, weight, eps: weight_twice(np.stack([dy, x, weight + 0 * x]), eps),
            "you multiplied the second term by the weight again. It is in u already.",
        ),
        Wrong(
            lambda dy, x, weight, eps: weight * _projected(dy, x, eps),
            "you multiplied by the weight at the end: that is the Jacobian, not its transpose. "
            "Backwards, the weight comes first.",
        ),
        Wrong(
            lambda dy, x, weight, eps: _projected(dy * weight, x, eps, x.shape[-1]),
            "you summed u * x-hat: the 1/n of the mean square makes it a mean.",
        ),
        Wrong(
            _of_one_mean,
            "you averaged over the whole array: every row has its own mean, axis=-1.",
        ),
        Wrong(
            lambda dy, x, weight, eps: _projected(dy * weight, x, 0.0),
            "eps is not used: it is part of D, also backwards.",
        ),
        Wrong(
            lambda dy, x, weight, eps: (
                _projected(dy * weight, x, eps) * np.sqrt(mean_square(x) + eps)
            ),
            "the division by D is missing: u - x-hat * mean(u * x-hat) is D times dx.",
        ),
    ),
)


_OUTPUT_CHANGE = Task(
    "output_change(dx, x, weight, eps)",
    lambda dx, x, weight, eps: reference.rms_norm_jvp(dx, x, weight, eps=eps),
    cases=(
        (row(1.0), row(2.0), row(-1.5), 0.5),
        (row(1.0, 3.0), row(3.0, 4.0), row(2.0, -0.5), 0.5),
        (row(1.0, -1.0, 2.0), row(1e-3, -2e-3, 1e-3), _WEIGHT, 1e-5),
        (row(1.0, -1.0, 2.0), row(5.0, 5.0, 6.0), _WEIGHT, 1e-6),
        (np.array([[1.0, 2.0], [-1.0, 1.0]]), SQUARE, row(2.0, -0.5), 0.1),
        (np.array([[1.0, 2.0, -1.0], [3.0, -1.0, 1.0]]), MATRIX, _WEIGHT, 0.1),
        (np.cos(CUBE), CUBE, row(2.0, -0.5, 3.0, 0.7), 0.1),
    ),
    example=(row(1.0, 3.0), row(3.0, 4.0), row(2.0, -0.5), 0.5),
    wrongs=(
        Wrong(
            lambda dx, x, weight, eps: _projected(dx * weight, x, eps),
            "this is the way back: it multiplies by the weight first. Forwards, x moves x-hat, "
            "and the weight comes last.",
        ),
        Wrong(
            lambda dx, x, weight, eps: _projected(dx, x, eps),
            "this is the change of x-hat: multiply it by the weight.",
        ),
        Wrong(
            lambda dx, x, weight, eps: dx * weight / np.sqrt(mean_square(x) + eps),
            "the root moves, too: its part is missing.",
        ),
        Wrong(
            lambda dx, x, weight, eps: reference.rms_norm(dx, weight, eps=eps),
            "this normalises the change as if it were an input: the divisor is that of x.",
        ),
        Wrong(
            lambda dx, x, weight, eps: (
                reference.rms_norm(x + dx, weight, eps=eps) - reference.rms_norm(x, weight, eps=eps)
            ),
            "this is the change for a step as large as dx; asked is the rate, dx times the "
            "derivative at x.",
        ),
    ),
)


def _radial_part(u: Array, x: Array, eps: float) -> float:
    r = float(reference.rms(x))
    d = math.sqrt(r * r + eps)
    return float(np.sum(u * x)) / math.sqrt(x.size) / r * eps / d**3


def _without(u: Array, x: Array, eps: float, power: int) -> float:
    """The answer with ε/Dᵖ in the place of ε/D³."""
    d = math.sqrt(float(reference.rms(x)) ** 2 + eps)
    return _radial_part(u, x, eps) * d ** (3 - power)


_RADIAL_PART = Task(
    "radial_part(u, x, eps)",
    _radial_part,
    cases=(
        (row(1.0, 3.0), row(3.0, 4.0), 0.5),
        (row(1.0, 3.0), row(3.0, 4.0), 1e-12),
        (row(1.0, 3.0), row(-3e-3, 4e-3), 1e-6),
        (row(2.0, -1.0, 3.0), row(5.0, 5.0, 6.0), 0.1),
        (row(2.0, -1.0, 3.0), row(5e3, 5e3, 6e3), 1e-6),
    ),
    example=(row(1.0, 3.0), row(3.0, 4.0), 0.5),
    wrongs=(
        Wrong(
            lambda u, x, eps: _radial_part(u, x, eps) * math.sqrt(float(np.sum(x * x))),
            "this is the inner product with x: divide it by the length of x.",
        ),
        Wrong(
            lambda u, x, eps: _radial_part(u, x, eps) * math.sqrt(x.size),
            "you divided by RMS(x): the length of x is sqrt(n) times that.",
        ),
        Wrong(
            lambda u, x, eps: float(
                np.sum(_projected(u, x, eps) * x) / math.sqrt(float(np.sum(x * x)))
            ),
            "right on paper. But for a small eps it is a difference of two nearly equal numbers, "
            "and their last digits are all that is left: use the eigenvalue eps / D**3.",
        ),
        Wrong(
            lambda u, x, eps: float(np.sum(u * x)) / math.sqrt(float(np.sum(x * x))),
            "this is the radial part of u. Going back through the norm multiplies it by an "
            "eigenvalue.",
        ),
        Wrong(
            lambda u, x, eps: _without(u, x, eps, 2),
            "eps / D**2 compares the radial with the tangential part. The eigenvalue itself is "
            "eps / D**3.",
        ),
    ),
)


def _length_after(length: float, gradient: float, rate: float, decay: float) -> float:
    return math.hypot((1 - rate * decay) * length, rate * gradient)


_LENGTH_AFTER = Task(
    "length_after(length, gradient, rate, decay)",
    _length_after,
    cases=(
        (4.0, 3.0, 1.0, 0.0),
        (4.0, 3.0, 1.0, 0.5),
        (4.0, 3.0, 0.1, 0.5),
        (0.5, 7.0, 0.1, 0.01),
        (10.0, 0.2, 0.5, 0.1),
    ),
    example=(4.0, 3.0, 1.0, 0.0),
    wrongs=(
        Wrong(
            lambda length, gradient, rate, decay: math.hypot(length, rate * gradient),
            "decay is not used: it shortens W by the factor 1 - rate * decay.",
        ),
        Wrong(
            lambda length, gradient, rate, decay: (1 - rate * decay) * length + rate * gradient,
            "you added the lengths: the step stands at a right angle, so the squares add.",
        ),
        Wrong(
            lambda length, gradient, rate, decay: abs(
                (1 - rate * decay) * length - rate * gradient
            ),
            "a step against the gradient does not shorten W: the gradient stands at a right angle "
            "to it.",
        ),
        Wrong(
            lambda length, gradient, rate, decay: math.hypot((1 - decay) * length, rate * gradient),
            "the decay, too, is multiplied by the learning rate.",
        ),
        Wrong(
            lambda length, gradient, rate, decay: _length_after(length, gradient, rate, decay) ** 2,
            "this is the square of the length: take the root.",
        ),
        Wrong(
            lambda length, gradient, rate, decay: math.sqrt(
                ((1 - rate * decay) * length) ** 2 + rate * gradient**2
            ),
            "the step is rate * gradient long: square the rate with it.",
        ),
    ),
)


def weight_twice(rows: Array, eps: float = 1e-6) -> Array:
    """Broken: the second term, whose u has the weight, gets it again (Megatron-LM, PR 6859)."""
    dy, x, weight = rows
    u = dy * weight
    return _dx(u, x, eps, weight * _mean(u * x / np.sqrt(mean_square(x) + eps)))


def _weight_once(rows: Array, eps: float = 1e-6) -> Array:
    """The same steps with the weight once: where it is 1, the same bits."""
    dy, x, weight = rows
    u = dy * weight
    return _dx(u, x, eps, _mean(u * x / np.sqrt(mean_square(x) + eps)))


_CONVICT_WEIGHT_TWICE = Conviction(
    "evidence()",
    weight_twice,
    _weight_once,
    innocent=np.array([[1.0, -1.0, 1.0], [1.0, 2.0, 2.0], [1.0, 1.0, 1.0]]),
    hint="it has three rows, dy, x and weight. The weight stands twice in the second term, and "
    "1 · 1 = 1. The second term must not be 0 either.",
)

EXERCISES: dict[str, Exercise] = {
    "rms_norm_backward": _RMS_NORM_BACKWARD,
    "output_change": _OUTPUT_CHANGE,
    "radial_part": _RADIAL_PART,
    "length_after": _LENGTH_AFTER,
    "convict_weight_twice": _CONVICT_WEIGHT_TWICE,
}
