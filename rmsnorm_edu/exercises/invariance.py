"""The exercises of the chapter "What a norm does not see"."""

import numpy as np

from rmsnorm_edu import reference
from rmsnorm_edu.exercises.model import Array, Conviction, Exercise, Norm, Task, Wrong, row


def _rms_after_shift(rms: float, mean: float, c: float) -> float:
    return float(np.sqrt(rms**2 + 2 * c * mean + c**2))


_RMS_AFTER_SHIFT = Task(
    "rms_after_shift(rms, mean, c)",
    _rms_after_shift,
    cases=((1.0, 0.0, 0.0), (5.0, 3.0, 2.0), (5.0, 3.0, -4.0), (2.0, -1.5, 1.0), (0.5, 0.5, 10.0)),
    example=(5.0, 3.0, 2.0),
    wrongs=(
        Wrong(
            lambda rms, mean, c: np.sqrt(rms**2 + c**2),
            "this holds for mean 0 only: squaring (x + c) out has a cross term, 2 c x.",
        ),
        Wrong(lambda rms, mean, c: rms + c, "the mean shifts by c, the RMS does not: use squares."),
        Wrong(
            lambda rms, mean, c: rms**2 + 2 * c * mean + c**2,
            "this is the square of the RMS: take the root.",
        ),
        Wrong(
            lambda rms, mean, c: np.sqrt(rms**2 + c * mean + c**2),
            "the cross term is there twice: (x + c)² = x² + 2 c x + c².",
        ),
        Wrong(
            lambda rms, mean, c: np.sqrt(np.abs(rms**2 - 2 * c * mean + c**2)),
            "this is the RMS of x - c: look at the sign of the cross term.",
        ),
    ),
)


def layer_norm(x: Array) -> Array:
    """LayerNorm, eps = 0."""
    return reference.layer_norm(x, eps=0.0)


def rms_norm(x: Array) -> Array:
    """RMSNorm with a gain and eps = 0.1."""
    return reference.rms_norm(x, np.resize([2.0, -0.5], x.shape[-1]), eps=0.1)


def keep(x: Array) -> Array:
    """No transformation."""
    return x


def flip(x: Array) -> Array:
    """The sign changed."""
    return -x


def add_one(x: Array) -> Array:
    """Shifted."""
    return x + 1.0


def triple(x: Array) -> Array:
    """Scaled."""
    return 3.0 * x


def _largest(a: Array) -> float:
    return float(np.max(np.abs(a)))


def _max_change(norm: Norm, x: Array, transform: Norm) -> float:
    before = norm(x)
    return _largest(norm(transform(x)) - before) / _largest(before)


def _relative_to_after(norm: Norm, x: Array, transform: Norm) -> float:
    after = norm(transform(x))
    return _largest(after - norm(x)) / _largest(after)


_ROWS = np.array([[1.0, -2.0, 4.0], [0.5, 3.0, 1.0]])
_MAX_CHANGE = Task(
    "max_change(norm, x, transform)",
    _max_change,
    cases=(
        (rms_norm, row(1.0, -2.0), keep),
        (rms_norm, row(1.0, -2.0), flip),
        (rms_norm, row(1.0, -2.0, 4.0), add_one),
        (layer_norm, row(1.0, -2.0, 4.0), flip),
        (rms_norm, row(0.1, -0.2, 0.4), triple),
        (rms_norm, _ROWS, add_one),
        (layer_norm, _ROWS[:, ::-1], flip),
        (triple, _ROWS, flip),
    ),
    example=(rms_norm, row(1.0, -2.0), flip),
    wrongs=(
        Wrong(
            lambda norm, x, transform: _largest(norm(transform(x)) - norm(x)),
            "the difference is right: divide it by the largest output before the change.",
        ),
        Wrong(
            _relative_to_after,
            "you divided by the largest output after the change: take the one before it.",
        ),
        Wrong(
            lambda norm, x, transform: (
                float(np.max(norm(transform(x)) - norm(x))) / _largest(norm(x))
            ),
            "an output that falls has moved, too: take np.abs of the difference.",
        ),
        Wrong(
            lambda norm, x, transform: _largest(norm(transform(x)) - norm(x)) / _largest(x),
            "you divided by the largest input: divide by the largest output, norm(x).",
        ),
        Wrong(
            lambda norm, x, transform: (
                _largest(norm(transform(x)) - transform(norm(x))) / _largest(norm(x))
            ),
            "you compared with transform(norm(x)). That asks whether the norm turns along; "
            "here the question is whether it moves: compare with norm(x).",
        ),
        Wrong(
            lambda norm, x, transform: (
                float(np.mean(np.abs(norm(transform(x)) - norm(x)))) / _largest(norm(x))
            ),
            "you took the mean of the differences: take the largest.",
        ),
    ),
)


def _smallest_size(eps: float, tolerance: float) -> float:
    return float((eps / ((1 - tolerance) ** -2 - 1)) ** 0.5)


_SMALLEST_SIZE = Task(
    "smallest_size(eps, tolerance)",
    _smallest_size,
    cases=((0.03, 0.5), (1.0, 0.5), (1e-6, 0.1), (1e-5, 0.01), (1e-6, 0.001)),
    example=(1e-5, 0.01),
    wrongs=(
        Wrong(
            lambda eps, tolerance: eps / ((1 - tolerance) ** -2 - 1),
            "this is the square of the size: take the root.",
        ),
        Wrong(
            lambda eps, tolerance: (eps / (2 * tolerance)) ** 0.5,
            "this is the first order in tolerance. It is near for a small one; solve exactly.",
        ),
        Wrong(
            lambda eps, tolerance: eps * (1 - tolerance) / tolerance,
            "this is the size for eps outside the root.",
        ),
        Wrong(
            lambda eps, tolerance: (eps / (tolerance**-2 - 1)) ** 0.5,
            "tolerance is the share that is lost; what remains is 1 - tolerance.",
        ),
        Wrong(
            lambda eps, tolerance: (eps * ((1 - tolerance) ** -2 - 1)) ** 0.5,
            "turned over: eps / size² equals (1 - tolerance)⁻² - 1, so divide by it.",
        ),
    ),
)


def prescaled(x: Array, eps: float = 1e-6) -> Array:
    """Broken: divides by max|x| and then adds eps, not eps/m² (apple/coremltools, issue 2821)."""
    x = x / np.max(np.abs(x), axis=-1, keepdims=True)
    y: Array = x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + eps)
    return y


def _with_eps(x: Array) -> Array:
    return reference.rms_norm(x, eps=1e-6)


_CONVICT_PRESCALED_EPS = Conviction(
    "evidence()",
    prescaled,
    _with_eps,
    innocent=row(0.5, 1.0, -0.8),
    hint="it adds eps to numbers that were divided by the largest magnitude m, so it matters "
    "where eps and eps/m² are far apart and not small: try an m far below 1.",
)

EXERCISES: dict[str, Exercise] = {
    "rms_after_shift": _RMS_AFTER_SHIFT,
    "max_change": _MAX_CHANGE,
    "smallest_size": _SMALLEST_SIZE,
    "convict_prescaled_eps": _CONVICT_PRESCALED_EPS,
}
