"""What a framework's RMSNorm does where the equation is silent, found out by asking it.

`ask(name)` puts the same questions to each norm of one framework, the library's own and this
package's. Every answer is observed, none is read from a documentation. JAX is asked in its
default setting, and about float64 with float64 switched on.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from rmsnorm_edu import precision, reference
from rmsnorm_edu.benchmarks.frameworks import Array, Function, differentiate, stateless, title

N = 8  # features of the norms that are asked
WEIGHT = np.linspace(-2.0, 1.7, N).astype(np.float32)
TINY = (1e-4, 1e-3)  # constant rows, small enough that each library's eps shows


@dataclass(frozen=True)
class Norm:
    """One layer: what it calls its gain, and ``make(policy)(x, gain)`` on N features."""

    framework: str
    parameter: str
    make: Callable[[str], Function]

    def __call__(self, x: Array, dtype: str = "float32", policy: str = "float32") -> Array:
        """y as a NumPy array of y's own dtype; the gain is WEIGHT in float32 (or float64)."""
        to, back = _CONVERT[self.framework]
        wide = "float64" if dtype == "float64" else "float32"
        f = self.make(policy)
        y: Array = back(f(to(x, dtype), to(WEIGHT, wide)))
        return y


def ask(name: str) -> dict[str, dict[str, Any]]:
    """{layer: {question: answer}} for ``torch``, ``keras``, ``flax`` or ``pytensor``."""
    with _every_warning(name):
        return {layer: _answers(norm) for layer, norm in _NORMS[name]().items()}


def _answers(norm: Norm) -> dict[str, Any]:
    eps, place = _eps(norm)
    return {
        "parameter": norm.parameter,
        "eps": eps,
        "place": place,
        "bfloat16": _outcome(lambda: _half(norm, "float32")),
        "bfloat16_mixed": _outcome(lambda: _half(norm, "mixed_bfloat16")),
        "float64_error": _outcome(lambda: _float64_error(norm)),
        "slope_at_zero_row": _outcome(lambda: _slope_at_zero(norm)),
        "row_of_1e20": _outcome(lambda: _text(norm(np.full((1, N), 1e20))[0, 0] / WEIGHT[0])),
        "integers": _outcome(lambda: norm(np.full((1, N), 3), "int32").dtype.name),
        "width_1": _outcome(lambda: "shape " + str(norm(np.full((2, 1), 3.0)).shape)),
        "width_4": _outcome(lambda: "shape " + str(norm(np.full((2, 4), 3.0)).shape)),
    }


def _outcome(question: Callable[[], Any]) -> Any:
    """The answer, or the name of the error: an error is an answer, and so is a warning to the user.

    (NumPy's deprecations, where Keras hands out an array, are none of the layer's.)
    """
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            answer = question()
        except Exception as error:  # each framework has its own
            return type(error).__name__
    warned = any(issubclass(each.category, UserWarning) for each in said)
    return f"{answer}, with a warning" if warned else answer


def _text(value: float) -> str:
    return "nan" if np.isnan(value) else f"{value:.3g}"


def eps_inside(a: float, y: float) -> float:
    """The ε of a norm, inside its root, that makes y of a constant row a: y = a / sqrt(a² + ε).

    >>> eps_inside(2.0, 0.5)
    12.0
    """
    return a**2 * (1 / y**2 - 1)


def _eps(norm: Norm) -> tuple[float, str]:
    """eps and its place: that for which two constant rows agree."""
    outputs = [float(norm(np.full((1, N), a))[0, 0]) / float(WEIGHT[0]) for a in TINY]
    pairs = list(zip(TINY, outputs, strict=True))
    guesses = {
        "inside": [eps_inside(a, y) for a, y in pairs],
        "outside": [a * (1 / y - 1) for a, y in pairs],
    }
    place = min(guesses, key=lambda place: abs(np.log(guesses[place][0] / guesses[place][1])))
    return float(f"{guesses[place][0]:.3g}"), place


def _half(norm: Norm, policy: str) -> str:
    """y's dtype for bfloat16 x and a float32 gain; for a bfloat16 y also what was rounded."""
    kind = precision.numpy_type("bfloat16")
    x = np.random.default_rng(0).normal(0.5, 1.0, (64, N)).astype(kind).astype(np.float32)
    y = norm(x, "bfloat16", policy)
    if y.dtype != kind:
        return y.dtype.name
    xhat = reference.rms_norm(x, eps=_eps(norm)[0])
    rules = {
        "rounded once": xhat * WEIGHT,
        "gain rounded first": xhat * WEIGHT.astype(kind).astype(np.float64),
        "x̂ rounded first": xhat.astype(kind).astype(np.float64) * WEIGHT,
    }
    wrong = {rule: np.mean(value.astype(kind) != y) for rule, value in rules.items()}
    best = min(wrong, key=lambda rule: wrong[rule])
    return f"bfloat16, {best if wrong[best] < 0.01 else 'rounded otherwise'}"


def _float64_error(norm: Norm) -> float:
    """The largest relative error of y for float64 x in a float64 layer."""
    x = np.random.default_rng(0).normal(0.5e6, 1e6, (64, N))  # so large that no eps shows
    with _float64(norm.framework):
        y = norm(x, "float64", "float64")
    truth = reference.rms_norm(x, WEIGHT)
    return float(np.max(np.abs(y / truth - 1)))


def _slope_at_zero(norm: Norm) -> str:
    """|dx| / |dy · gain| at a row of zeros: how much it amplifies the gradient there."""
    zeros, dy = np.zeros((1, N), np.float32), np.ones((1, N), np.float32)
    f, gain = norm.make("float32"), _CONVERT[norm.framework][0](WEIGHT, "float32")
    _, [dx] = differentiate(norm.framework, lambda x: f(x, gain), [zeros], dy)
    return _text(float(np.max(np.abs(dx / WEIGHT))))


@contextmanager
def _every_warning(framework: str) -> Iterator[None]:
    """PyTorch warns once a process; here each time, so that an answer does not depend on it."""
    if framework != "torch":
        yield
        return
    import torch

    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        yield
    finally:
        torch.set_warn_always(before)


@contextmanager
def _float64(framework: str) -> Iterator[None]:
    """JAX with float64 switched on; the others have it."""
    if title(framework) not in ("Flax", "Keras on JAX"):
        yield
        return
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def _torch_norms() -> dict[str, Norm]:
    import torch

    from rmsnorm_edu import nn

    def of(kind: Any) -> Norm:
        call = torch.func.functional_call
        return Norm(
            "torch", "weight", lambda policy: lambda x, gain: call(kind(N), {"weight": gain}, (x,))
        )

    return {"torch.nn.RMSNorm": of(torch.nn.RMSNorm), "ours, PyTorch": of(nn.RMSNorm)}


def _keras_norms() -> dict[str, Norm]:
    from rmsnorm_edu.frameworks.keras import RMSNorm, keras

    def of(kind: Any, parameter: str) -> Norm:
        def make(policy: str) -> Function:
            layer = kind(dtype=policy)
            layer.build((None, N))
            return stateless(layer)

        return Norm("keras", parameter, make)

    theirs = of(keras.layers.RMSNormalization, "scale")
    return {"keras.layers.RMSNormalization": theirs, "ours, Keras": of(RMSNorm, "weight")}


def _flax_norms() -> dict[str, Norm]:
    from rmsnorm_edu.frameworks.flax import LinenRMSNorm, RMSNorm, jax, linen, nnx

    def of_nnx(kind: Any, parameter: str) -> Norm:
        def make(policy: str) -> Function:
            layer = kind(N, dtype=_dtype(policy), rngs=nnx.Rngs(0))

            def f(x: Any, gain: Any) -> Any:
                held = nnx.clone(layer)
                setattr(held, parameter, nnx.Param(gain))
                return held(x)

            return f

        return Norm("flax", parameter, make)

    def of_linen(kind: Any, parameter: str) -> Norm:
        def make(policy: str) -> Function:
            layer = kind(dtype=_dtype(policy))
            return lambda x, gain: layer.apply({"params": {parameter: gain}}, x)

        return Norm("flax", parameter, make)

    def _dtype(policy: str) -> Any:
        return jax.numpy.bfloat16 if policy == "mixed_bfloat16" else None

    return {
        "flax.nnx.RMSNorm": of_nnx(nnx.RMSNorm, "scale"),
        "flax.linen.RMSNorm": of_linen(linen.RMSNorm, "scale"),
        "ours, Flax nnx": of_nnx(RMSNorm, "weight"),
        "ours, Flax linen": of_linen(LinenRMSNorm, "weight"),
    }


def _pytensor_norms() -> dict[str, Norm]:
    from rmsnorm_edu.frameworks.pytensor import rms_norm

    return {"ours, PyTensor": Norm("pytensor", "weight", lambda policy: rms_norm)}


def _to_torch(array: Array, dtype: str) -> Any:
    import torch

    return torch.tensor(array).to(getattr(torch, dtype))


def _from_torch(y: Any) -> Array:
    name = str(y.dtype).removeprefix("torch.")
    values = y.detach().float() if name == "bfloat16" else y.detach()
    return _typed(values.numpy(), name)


def _to_keras(array: Array, dtype: str) -> Any:
    from rmsnorm_edu.frameworks.keras import ops

    return ops.cast(ops.convert_to_tensor(array), dtype)


def _from_keras(y: Any) -> Array:
    from rmsnorm_edu.frameworks.keras import keras

    name = keras.backend.standardize_dtype(y.dtype)
    return _typed(keras.ops.convert_to_numpy(y), name)


def _to_jax(array: Array, dtype: str) -> Any:
    import jax

    return jax.numpy.asarray(array).astype(dtype)


def _to_pytensor(array: Array, dtype: str) -> Any:
    import pytensor.tensor as pt

    return pt.constant(array.astype(precision.numpy_type(dtype) if "float" in dtype else dtype))


def _from_pytensor(y: Any) -> Array:
    values: Array = y.eval(mode="FAST_COMPILE")
    return values


def _typed(values: Array, name: str) -> Array:
    return values.astype(precision.numpy_type(name)) if "float" in name else values


_NORMS = {
    "torch": _torch_norms,
    "keras": _keras_norms,
    "flax": _flax_norms,
    "pytensor": _pytensor_norms,
}
_CONVERT: dict[str, tuple[Function, Function]] = {
    "torch": (_to_torch, _from_torch),
    "keras": (_to_keras, _from_keras),
    "flax": (_to_jax, np.asarray),
    "pytensor": (_to_pytensor, _from_pytensor),
}
