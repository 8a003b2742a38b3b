"""The exercises of the chapter "The backward kernel"."""

import numpy as np

from rmsnorm_edu.exercises.model import Array, Conviction, Exercise, Task, Wrong


def _up(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def _dx_of_a_row(dy: Array, x: Array, weight: Array, rstd: float) -> Array:
    xhat, u = x * rstd, dy * weight
    dx: Array = (u - xhat * np.mean(u * xhat)) * rstd
    return dx


def _saved(*values: float) -> float:
    return float(1 / np.sqrt(np.mean(np.square(values)) + 1e-6))


_DX_CASES = (
    (np.array([0.5]), np.array([-2.0]), np.array([3.0]), _saved(-2.0)),
    (np.array([1.0, 0.0]), np.array([3.0, 4.0]), np.array([2.0, 0.5]), _saved(3.0, 4.0)),
    (
        np.array([100.0, 200.0, -50.0]),
        np.array([1e-3, 2e-3, -1e-3]),
        np.array([1.5, -0.5, 2.0]),
        _saved(1e-3, 2e-3, -1e-3),
    ),
    (
        np.array([0.5, -1.0, 2.0, 0.25]),
        np.array([3.0, -4.0, 0.5, 7.0]),
        np.array([0.5, 2.0, -1.5, 0.75]),
        _saved(3.0, -4.0, 0.5, 7.0),
    ),
)
_DX_OF_A_ROW = Task(
    "dx_of_a_row(dy, x, weight, rstd)",
    _dx_of_a_row,
    cases=_DX_CASES,
    example=_DX_CASES[1],
    wrongs=(
        Wrong(
            lambda dy, x, weight, rstd: dy * weight * rstd,
            "the second term is missing: rstd depends on x, too.",
        ),
        Wrong(
            lambda dy, x, weight, rstd: _dx_of_a_row(dy, x, np.ones_like(x), rstd),
            "the weight is missing: u = dy * weight.",
        ),
        Wrong(
            lambda dy, x, weight, rstd: weight * _dx_of_a_row(dy, x, np.ones_like(x), rstd),
            "on the way back the weight comes first: multiply dy by it, before the mean.",
        ),
        Wrong(
            lambda dy, x, weight, rstd: dy * weight - x * rstd * np.mean(dy * weight * x * rstd),
            "the last factor rstd is missing.",
        ),
        Wrong(
            lambda dy, x, weight, rstd: (dy * weight - x * np.mean(dy * weight * x)) * rstd,
            "the second term takes xhat twice, where you have x.",
        ),
        Wrong(
            lambda dy, x, weight, rstd: (
                (dy * weight - x * rstd * np.sum(dy * weight * x * rstd)) * rstd
            ),
            "it is the mean of u * xhat, not the sum.",
        ),
        Wrong(
            lambda dy, x, weight, rstd: (
                (dy * weight + x * rstd * np.mean(dy * weight * x * rstd)) * rstd
            ),
            "the second term is taken away.",
        ),
    ),
)


def _chunked(terms: Array, programs: int, chunk: int) -> Array:
    return np.array(
        [terms[p * chunk : (p + 1) * chunk].sum(axis=0) for p in range(programs)], dtype=np.float64
    )


def _partial_sums(terms: Array, programs: int) -> Array:
    return _chunked(terms, programs, _up(len(terms), programs))


def _dealt(terms: Array, programs: int) -> Array:
    return np.array([terms[p::programs].sum(axis=0) for p in range(programs)])


_TERMS = np.arange(1.0, 27.0).reshape(13, 2) * np.array([1.0, -0.5])
_PARTIAL_SUMS = Task(
    "partial_sums(terms, programs)",
    _partial_sums,
    cases=(
        (_TERMS[:1], 1),
        (_TERMS[:1], 3),
        (_TERMS[:2], 2),
        (_TERMS[:3], 2),
        (_TERMS[:5], 4),
        (_TERMS, 4),
    ),
    example=(_TERMS[:3], 2),
    wrongs=(
        Wrong(_dealt, "a chunk is rows that follow each other; you dealt them out like cards."),
        Wrong(
            lambda terms, programs: _chunked(terms, programs, len(terms) // programs),
            "round the chunk up: rounded down, the last rows belong to nobody.",
        ),
        Wrong(
            lambda terms, programs: terms.sum(axis=0),
            "one sum for each program: the result has `programs` rows.",
        ),
        Wrong(
            lambda terms, programs: _partial_sums(terms, programs)[
                : programs - _idle_programs(len(terms), programs)
            ],
            "a program without rows has a row of zeros.",
        ),
    ),
)


def _idle_programs(rows: int, programs: int) -> int:
    return programs - _up(rows, _up(rows, programs)) if rows else programs


_IDLE_PROGRAMS = Task(
    "idle_programs(rows, programs)",
    _idle_programs,
    cases=((1, 1), (1, 4), (4, 4), (5, 4), (9, 4), (13, 4), (200, 132), (4096, 132), (0, 4)),
    example=(9, 4),
    wrongs=(
        Wrong(
            lambda rows, programs: max(0, programs - rows),
            "a chunk may have several rows: then fewer programs are enough for all.",
        ),
        Wrong(
            lambda rows, programs: programs - rows // max(1, _up(rows, programs)),
            "a program with the rest of the rows is not idle: round up.",
        ),
        Wrong(
            lambda rows, programs: programs - _idle_programs(rows, programs),
            "these are the programs that have rows.",
        ),
    ),
)


def unwritten_partials(terms: Array) -> Array:
    """Broken: of four programs, those without rows leave what was in the buffer, 7 here.

    Sums the rows of `terms` (rows, n). The fault is that of Dao-AILab/flash-attention, issue 781.
    """
    rows, d = terms.shape
    programs, chunk = 4, _up(rows, 4)
    buffer = np.full((programs, d), 7.0)
    for p in range(programs):
        if p * chunk < rows:
            buffer[p] = terms[p * chunk : (p + 1) * chunk].sum(axis=0)
    total: Array = buffer.sum(axis=0)
    return total


def _summed(terms: Array) -> Array:
    total: Array = terms.sum(axis=0)
    return total


_CONVICT_UNWRITTEN_PARTIALS = Conviction(
    "evidence()",
    unwritten_partials,
    _summed,
    innocent=np.ones((8, 3)),
    hint="every program had rows. Find a number of rows for which ceil(rows / 4) rows each are "
    "used up before the fourth program.",
)

EXERCISES: dict[str, Exercise] = {
    "dx_of_a_row": _DX_OF_A_ROW,
    "partial_sums": _PARTIAL_SUMS,
    "idle_programs": _IDLE_PROGRAMS,
    "convict_unwritten_partials": _CONVICT_UNWRITTEN_PARTIALS,
}
