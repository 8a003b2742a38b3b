"""The exercises of the chapter "In every framework"."""

import numpy as np

from rmsnorm_edu.exercises.model import Array, Conviction, Exercise, Task, Wrong, row

_EPS_OF = Task(
    "eps_of(a, y)",
    lambda a, y: a**2 * (1 / y**2 - 1),
    cases=(
        (1.0, 0.5),
        (2.0, 0.5),
        (1e-3, 0.5**0.5),
        (1e-4, 0.1),
        (1e-3, 0.95),
    ),
    example=(1e-3, 0.5**0.5),
    wrongs=(
        Wrong(
            lambda a, y: a * (1 / y - 1),
            "that is the ε of y = a/(a + ε), outside the root. Here it is inside.",
        ),
        Wrong(
            lambda a, y: a**2 / y**2,
            "that is the whole of what stands under the root: subtract the mean square, a².",
        ),
        Wrong(lambda a, y: (a / y) ** 2 - a, "the mean square of the row is a², not a."),
        Wrong(
            lambda a, y: 1 / y**2 - 1,
            "that is ε in units of the mean square: multiply it by a².",
        ),
        Wrong(
            lambda a, y: a**2 * (y**2 - 1),
            "y is below 1, so this is negative: the inverse of y² is missing.",
        ),
    ),
)


def _root_vjp(dr: Array, m: Array) -> Array:
    slope: Array = np.where(m == 0, 0.0, 0.5 / np.sqrt(np.where(m == 0, 1.0, m)))
    return dr * slope


_ROOT_VJP = Task(
    "root_vjp(dr, m)",
    _root_vjp,
    cases=(
        (row(1.0), row(4.0)),
        (row(3.0), row(0.25)),
        (row(2.0), row(0.0)),
        (row(0.0, 5.0), row(0.0, 2.0)),
        (row(2.0, -3.0, 0.5), row(0.0, 9.0, 1e-12)),
    ),
    example=(row(2.0, -3.0), row(0.0, 9.0)),
    wrongs=(
        Wrong(
            lambda dr, m: dr * 0.5 / np.sqrt(np.where(m == 0, 1.0, m)),
            "where m is 0 the slope is to be 0; you left it at that of √1, one half.",
        ),
        Wrong(
            lambda dr, m: dr * 0.5 / np.sqrt(m + 1e-12),
            "an ε under the root makes the slope at 0 a million halves, and changes all others: "
            "choose by m == 0.",
        ),
        Wrong(
            lambda dr, m: dr * np.sqrt(m),
            "that multiplies by the root; its slope is 1 / (2√m).",
        ),
        Wrong(
            lambda dr, m: dr * np.where(m == 0, 0.0, 1 / np.sqrt(np.where(m == 0, 1.0, m))),
            "the one half is missing: the slope of √m is 1 / (2√m).",
        ),
    ),
)

_MOVED = Task(
    "moved(size, eps_from, eps_to)",
    lambda size, eps_from, eps_to: ((size**2 + eps_from) / (size**2 + eps_to)) ** 0.5,
    cases=(
        (1.0, 1.0, 0.0),
        (1.0, 0.0, 1.0),
        (1e-3, 1e-7, 1e-6),
        (1e-3, 1e-6, 1e-3),
        (3.0, 1e-5, 1e-6),
    ),
    example=(1e-3, 1e-7, 1e-6),
    wrongs=(
        Wrong(
            lambda size, eps_from, eps_to: ((size**2 + eps_to) / (size**2 + eps_from)) ** 0.5,
            "this is the inverse: the new output over the old one has the old divisor on top.",
        ),
        Wrong(
            lambda size, eps_from, eps_to: (size**2 + eps_from) / (size**2 + eps_to),
            "the divisors are roots: take the root of this.",
        ),
        Wrong(
            lambda size, eps_from, eps_to: (size + eps_from) / (size + eps_to),
            "that is ε outside the root. Here it is added to the mean square.",
        ),
        Wrong(
            lambda size, eps_from, eps_to: (eps_from / eps_to) ** 0.5 if eps_to else np.inf,
            "that holds for inputs far below √ε only: the mean square is missing.",
        ),
    ),
)


def _channel_norm(x: Array) -> Array:
    """Each channel of x (N, C, H, W) over its pixels."""
    mean_square = np.mean(np.square(x), axis=(2, 3), keepdims=True)
    xhat: Array = x / np.sqrt(mean_square + 1e-6)
    return xhat


def right_bias(x: Array) -> Array:
    """The channels' norm, and the bias 0, 0.5, 1, … along the channels."""
    xhat = _channel_norm(x)
    return xhat + 0.5 * np.arange(x.shape[1]).reshape(-1, 1, 1)


def guessed_bias(x: Array) -> Array:
    """Broken: the bias goes along the last axis when that is as long as there are channels."""
    xhat = _channel_norm(x)
    bias = 0.5 * np.arange(x.shape[1])
    return xhat + (bias if x.shape[3] == x.shape[1] else bias.reshape(-1, 1, 1))


_CONVICT_BIAS = Conviction(
    "evidence()",
    guessed_bias,
    right_bias,
    innocent=np.arange(1.0, 13.0).reshape(1, 2, 2, 3),
    hint="on this image it is right. When does a list of two numbers fit along the width as well "
    "as along the channels?",
)

EXERCISES: dict[str, Exercise] = {
    "eps_of": _EPS_OF,
    "root_vjp": _ROOT_VJP,
    "moved": _MOVED,
    "convict_bias": _CONVICT_BIAS,
}
