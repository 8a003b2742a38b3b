"""One layer through every framework: outputs and gradients, as NumPy arrays.

`differentiate(name, f, arrays, dy)` runs a function of one framework's tensors and its reverse
mode; `layer(name, …)` gives this package's RMSNorm as such a function. Names: ``torch``,
``keras`` on whatever backend Keras was imported with, ``flax``, ``pytensor``.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmsnorm_edu.reference import partial_size

Array = NDArray[Any]
Function = Callable[..., Any]
Backward = tuple[Array, list[Array]]
WITH_CHANNELS = ("torch", "keras", "pytensor")  # have the Lasagne layer, too


def installed() -> list[str]:
    """Which of the four can be imported here. Keras needs a backend besides itself."""
    needs = {"torch": ["torch"], "keras": ["keras"], "flax": ["flax", "jax"]}
    needs["pytensor"] = ["pytensor"]
    return [name for name, parts in needs.items() if all(map(find_spec, parts))]


def title(name: str) -> str:
    """What a reader calls it: "PyTorch", "Keras on TensorFlow", …; Keras is imported for that."""
    if name != "keras":
        return {"torch": "PyTorch", "flax": "Flax", "pytensor": "PyTensor"}[name]
    from rmsnorm_edu.frameworks.keras import keras

    names = {"tensorflow": "TensorFlow", "torch": "PyTorch", "jax": "JAX"}
    return f"Keras on {names[keras.backend.backend()]}"


def differentiate(name: str, f: Function, arrays: Sequence[Array], dy: Array) -> Backward:
    """y = f(*arrays) and the gradients of Σ dy·y with respect to each of the arrays."""
    if name == "keras":
        from rmsnorm_edu.frameworks.keras import keras

        name = keras.backend.backend()
    return _REVERSE[name](f, arrays, dy)


def layer(name: str, x: Array, given: Sequence[str], **options: Any) -> Function:
    """This package's norm for x, f(x, *parameters); `given` names them, "weight" and "bias".

    `options` are eps, eps_outside, p and rounding. float64 needs JAX's x64 switched on.
    """
    return _LAYERS[name](x, tuple(given), options)


def channel_layer(name: str, x: Array, given: Sequence[str], eps: float) -> Function:
    """The Lasagne layer of 2019, channels first, in a framework of `WITH_CHANNELS`."""
    if name == "torch":
        import torch

        from rmsnorm_edu import nn

        affine = "weight" in given
        norm = nn.ChannelRMSNorm(x.shape[1], eps, "bias" in given, elementwise_affine=affine)
        call = torch.func.functional_call
        return lambda x, *v: call(norm, dict(zip(given, v, strict=True)), (x,))
    if name == "keras":
        from rmsnorm_edu.frameworks import keras

        uses: dict[str, Any] = {f"use_{part}": part in given for part in ("weight", "bias")}
        kind = keras.ChannelRMSNorm(eps, data_format="channels_first", dtype=x.dtype.name, **uses)
        kind.build(x.shape)
        return stateless(kind)
    from rmsnorm_edu.frameworks import pytensor

    return lambda x, *v: pytensor.channel_rms_norm(x, eps=eps, **dict(zip(given, v, strict=True)))


def example() -> dict[str, Array]:
    """The one input that goes through all: 4 rows of 8 in float32, a weight, an upstream dy."""
    rng = np.random.default_rng(2019)
    return {
        "x": rng.normal(0.5, 1.0, (4, 8)).astype(np.float32),
        "weight": rng.uniform(-2.0, 2.0, 8).astype(np.float32),
        "dy": rng.normal(0.0, 1.0, (4, 8)).astype(np.float32),
    }


def one_input(name: str) -> dict[str, list[Any]]:
    """y, dx, dweight of `example` by this package's norm in the framework `name`, eps 1e-6."""
    given = example()
    f = layer(name, given["x"], ["weight"], eps=1e-6)
    y, (dx, dweight) = differentiate(name, f, [given["x"], given["weight"]], given["dy"])
    return {"y": y.tolist(), "dx": dx.tolist(), "dweight": dweight.tolist()}


def _torch_layer(x: Array, given: tuple[str, ...], options: dict[str, Any]) -> Function:
    from rmsnorm_edu import nn

    p = options.get("p")
    k = None if p is None else partial_size(x.shape[-1], p, options["rounding"])
    convention = "paper_torch" if options.get("eps_outside") else "torch"
    norm, chosen = nn.functional.rms_norm, {"eps": options["eps"], "convention": convention, "k": k}
    return lambda x, *v: norm(x, **dict(zip(given, v, strict=True)), **chosen)


def _keras_layer(x: Array, given: tuple[str, ...], options: dict[str, Any]) -> Function:
    from rmsnorm_edu.frameworks.keras import RMSNorm

    uses: dict[str, Any] = {f"use_{part}": part in given for part in ("weight", "bias")}
    norm = RMSNorm(dtype=x.dtype.name, **uses, **options)
    norm.build(x.shape)
    return stateless(norm)


def stateless(layer: Any) -> Function:
    """A built Keras layer as a function of x and of values for its variables.

    Not `stateless_call`, which runs `call` alone: casts and the check of x would be left out.
    """
    from rmsnorm_edu.frameworks.keras import keras

    def f(x: Any, *values: Any) -> Any:
        with keras.StatelessScope(state_mapping=list(zip(layer.variables, values, strict=True))):
            return layer(x)

    return f


def _flax_layer(x: Array, given: tuple[str, ...], options: dict[str, Any]) -> Function:
    from rmsnorm_edu.frameworks.flax import RMSNorm, nnx

    uses: dict[str, Any] = {f"use_{part}": part in given for part in ("weight", "bias")}

    def f(x: Any, *values: Any) -> Any:
        norm = RMSNorm(x.shape[-1], **uses, **options)
        for part, value in zip(given, values, strict=True):
            setattr(norm, part, nnx.Param(value))
        return norm(x)

    return f


def _pytensor_layer(x: Array, given: tuple[str, ...], options: dict[str, Any]) -> Function:
    from rmsnorm_edu.frameworks.pytensor import rms_norm

    return lambda x, *v: rms_norm(x, **dict(zip(given, v, strict=True)), **options)


def _torch(f: Function, arrays: Sequence[Array], dy: Array) -> Backward:
    import torch

    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    y = f(*tensors)
    gradients = torch.autograd.grad(y, tensors, torch.tensor(dy))
    return y.detach().numpy(), [g.numpy() for g in gradients]


def _tensorflow(f: Function, arrays: Sequence[Array], dy: Array) -> Backward:
    import tensorflow

    tensors = [tensorflow.constant(a) for a in arrays]
    with tensorflow.GradientTape() as tape:
        tape.watch(tensors)
        y = f(*tensors)
    gradients = tape.gradient(y, tensors, output_gradients=tensorflow.constant(dy))
    return y.numpy(), [g.numpy() for g in gradients]


def _jax(f: Function, arrays: Sequence[Array], dy: Array) -> Backward:
    import jax

    def both(arrays: Sequence[Any], dy: Any) -> Any:
        y, pull = jax.vjp(f, *arrays)
        return y, pull(dy)

    y, gradients = jax.jit(both)(list(arrays), dy)
    return np.asarray(y), [np.asarray(g) for g in gradients]


def _pytensor(f: Function, arrays: Sequence[Array], dy: Array) -> Backward:
    """Run by PyTensor's Python linker: no compiler is needed, and each graph is run only once."""
    import pytensor
    import pytensor.tensor as pt

    symbols = [pt.tensor(dtype=a.dtype.name, shape=a.shape) for a in arrays]
    y, upstream = f(*symbols), pt.tensor(dtype=dy.dtype.name, shape=dy.shape)
    gradients = pytensor.grad((y * upstream).sum(), symbols)
    mode = pytensor.compile.mode.Mode(linker="py", optimizer="fast_compile")
    run = pytensor.function([*symbols, upstream], [y, *gradients], mode=mode)
    y, *gradients = run(*arrays, dy)
    return y, gradients


_REVERSE = {
    "torch": _torch,
    "tensorflow": _tensorflow,
    "jax": _jax,
    "flax": _jax,
    "pytensor": _pytensor,
}
_LAYERS = {
    "torch": _torch_layer,
    "keras": _keras_layer,
    "flax": _flax_layer,
    "pytensor": _pytensor_layer,
}
