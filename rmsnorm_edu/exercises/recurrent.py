"""The exercises of the chapter "In a recurrence"."""

from itertools import combinations

import numpy as np

from rmsnorm_edu.exercises.model import Array, Exercise, Task, Wrong, row


def _sigmoid(z: Array) -> Array:
    s: Array = 1 / (1 + np.exp(-z))
    return s


def _thirds(from_x: Array, from_h: Array) -> tuple[Array, Array, Array, Array]:
    """r, u, and the candidate's part of x and of h."""
    r, u, _ = np.split(_sigmoid(from_x + from_h), 3, axis=-1)
    return r, u, np.split(from_x, 3, axis=-1)[2], np.split(from_h, 3, axis=-1)[2]


def _gru_step(h: Array, from_x: Array, from_h: Array) -> Array:
    r, u, of_x, of_h = _thirds(from_x, from_h)
    return u * h + (1 - u) * np.tanh(of_x + r * of_h)


def _turned(h: Array, from_x: Array, from_h: Array) -> Array:
    r, u, of_x, of_h = _thirds(from_x, from_h)
    return (1 - u) * h + u * np.tanh(of_x + r * of_h)


def _swapped(h: Array, from_x: Array, from_h: Array) -> Array:
    u, r, of_x, of_h = _thirds(from_x, from_h)
    return u * h + (1 - u) * np.tanh(of_x + r * of_h)


def _reset_both(h: Array, from_x: Array, from_h: Array) -> Array:
    r, u, of_x, of_h = _thirds(from_x, from_h)
    return u * h + (1 - u) * np.tanh(r * (of_x + of_h))


def _no_reset(h: Array, from_x: Array, from_h: Array) -> Array:
    _, u, of_x, of_h = _thirds(from_x, from_h)
    return u * h + (1 - u) * np.tanh(of_x + of_h)


def _no_tanh(h: Array, from_x: Array, from_h: Array) -> Array:
    r, u, of_x, of_h = _thirds(from_x, from_h)
    return u * h + (1 - u) * (of_x + r * of_h)


_ONE = (row(0.5), row(1.0, -0.5, 2.0), row(-2.0, 0.25, 1.5))
_TWO = (
    np.array([[0.5, -1.0], [0.0, 0.25]]),
    np.array([[1.0, -1.0, 0.5, 2.0, -0.5, 1.0], [0.3, -2.0, 1.5, 0.1, 0.7, -0.2]]),
    np.array([[0.2, 1.5, -1.0, 0.4, 2.0, -1.5], [-0.6, 0.8, 0.5, -1.0, 1.0, 3.0]]),
)
_GRU_STEP = Task(
    "gru_step(h, from_x, from_h)",
    _gru_step,
    cases=(_ONE, _TWO, tuple(2.0 * part[::-1] for part in _TWO)),
    example=_ONE,
    wrongs=(
        Wrong(_turned, "u keeps: it multiplies the old state, and 1 - u the candidate."),
        Wrong(_swapped, "the first third is r and the second u."),
        Wrong(_reset_both, "r multiplies the part that comes from h, not the one that x brings."),
        Wrong(_no_reset, "r is missing: it multiplies the state's part of the candidate."),
        Wrong(_no_tanh, "the candidate is the tanh of that sum."),
        Wrong(
            lambda h, from_x, from_h: (
                _sigmoid(from_x + from_h)[..., h.shape[-1] : 2 * h.shape[-1]] * h
            ),
            "this is what u keeps: the candidate's share, (1 - u) * candidate, is not there.",
        ),
    ),
)


def _masked(mask: Array, new: Array, old: Array) -> Array:
    share = mask[:, np.newaxis]
    mixed: Array = share * new + (1 - share) * old
    return mixed


_NEW, _OLD = np.array([[4.0, -2.0], [1.0, 3.0]]), np.array([[1.0, 5.0], [-2.0, 0.5]])
_MASKED = Task(
    "masked(mask, new, old)",
    _masked,
    cases=(
        (row(1.0), row(4.0)[np.newaxis], row(1.0)[np.newaxis]),
        (row(0.0), row(4.0)[np.newaxis], row(1.0)[np.newaxis]),
        (row(0.25), row(4.0)[np.newaxis], row(1.0)[np.newaxis]),
        (row(1.0, 0.0), _NEW, _OLD),
        (row(0.25, 0.75), _NEW, _OLD),
        (row(0.5, 1.0, 0.0), np.arange(12.0).reshape(3, 4), -np.ones((3, 4))),
    ),
    example=(row(0.25, 0.75), _NEW, _OLD),
    wrongs=(
        Wrong(
            lambda mask, new, old: np.where(mask[:, np.newaxis] > 0, new, old),
            "for 0 and 1 this is right; a fraction mixes the two states.",
        ),
        Wrong(
            lambda mask, new, old: mask[:, np.newaxis] * new,
            "a masked step keeps the old state: this one forgets it.",
        ),
        Wrong(
            lambda mask, new, old: _masked(1 - mask, new, old),
            "turned over: a mask of 1 takes the new state.",
        ),
    ),
)


def _slope_at_zero(weight: Array, eps: float) -> Array:
    slope: Array = weight / np.sqrt(eps)
    return slope


_SLOPE_AT_ZERO = Task(
    "slope_at_zero(weight, eps)",
    _slope_at_zero,
    cases=((row(1.0), 0.25), (row(2.0, -0.5), 1.0), (row(2.0, -0.5, 3.0), 1e-5)),
    example=(row(2.0, -0.5, 3.0), 1e-5),
    wrongs=(
        Wrong(
            lambda weight, eps: weight / eps,
            "this is the slope for an eps outside the root: inside, its root divides.",
        ),
        Wrong(
            lambda weight, eps: weight * 0,
            "the output is 0 there, its slope is not: the norm of a small z is z / √eps.",
        ),
        Wrong(
            lambda weight, eps: np.full_like(weight, eps**-0.5),
            "the weight multiplies the output, and so its slope.",
        ),
        Wrong(
            lambda weight, eps: weight / np.sqrt(eps * len(weight)),
            "eps is added to the mean of the squares, so n has divided already.",
        ),
    ),
)


def _equal_gates(matrix: Array, gates: int) -> int:
    blocks = np.split(matrix, gates, axis=1)
    return sum(bool(np.array_equal(a, b)) for a, b in combinations(blocks, 2))


_BLOCK = np.array([[1.0, -2.0], [0.5, 3.0]])
_EQUAL_GATES = Task(
    "equal_gates(matrix, gates)",
    _equal_gates,
    cases=(
        (row(1.0, 2.0)[np.newaxis], 2),
        (row(2.0, 2.0)[np.newaxis], 2),
        (np.hstack([_BLOCK, _BLOCK[:, ::-1]]), 2),
        (np.hstack([_BLOCK, _BLOCK + np.array([[0.0, 0.0], [0.0, 1.0]])]), 2),
        (np.hstack([_BLOCK, -_BLOCK, _BLOCK]), 3),
        (np.hstack([_BLOCK] * 4), 4),
        (np.hstack([_BLOCK, _BLOCK, _BLOCK[::-1], _BLOCK[::-1]]), 4),
        (np.arange(24.0).reshape(2, 12), 4),
    ),
    example=(np.hstack([_BLOCK, -_BLOCK, _BLOCK]), 3),
    wrongs=(
        Wrong(
            lambda matrix, gates: sum(
                np.array_equal(a, b)
                for a, b in zip(
                    np.split(matrix, gates, axis=1)[:-1],
                    np.split(matrix, gates, axis=1)[1:],
                    strict=True,
                )
            ),
            "you compared neighbours: also the first block may equal the third.",
        ),
        Wrong(
            lambda matrix, gates: len(matrix[0]) - len(np.unique(matrix, axis=1).T),
            "you counted equal columns: count pairs of blocks.",
        ),
        Wrong(
            lambda matrix, gates: 2 * _equal_gates(matrix, gates),
            "each pair is counted twice, or a block with itself.",
        ),
        Wrong(
            lambda matrix, gates: 2 * _equal_gates(matrix, gates) + gates,
            "a block always equals itself: count pairs of two different places, once each.",
        ),
        Wrong(
            lambda matrix, gates: sum(
                a[0, 0] == b[0, 0] for a, b in combinations(np.split(matrix, gates, axis=1), 2)
            ),
            "compare all entries of two blocks, not the first alone.",
        ),
        Wrong(
            lambda matrix, gates: int(_equal_gates(matrix, gates) > 0),
            "that says whether there are any: count the pairs.",
        ),
    ),
)

EXERCISES: dict[str, Exercise] = {
    "gru_step": _GRU_STEP,
    "masked": _MASKED,
    "slope_at_zero": _SLOPE_AT_ZERO,
    "equal_gates": _EQUAL_GATES,
}
