"""The Keras layers on the backend that this process was started with."""

import numpy as np
import pytest

from rmsnorm_edu import reference
from rmsnorm_edu.benchmarks import keras_faults
from rmsnorm_edu.benchmarks.frameworks import differentiate, stateless
from rmsnorm_edu.frameworks.keras import ChannelRMSNorm, RMSNorm, keras, ops

# Keras 3.15 itself, where it hands out an array under NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
RNG = np.random.default_rng(16)
X = RNG.normal(0.5, 1.0, (3, 5, 8)).astype(np.float32)
WEIGHT = RNG.uniform(-2.0, 2.0, 8).astype(np.float32)
BIAS = RNG.normal(0.3, 1.0, 8).astype(np.float32)
TWO_ROUNDINGS = 2.0**-7  # of bfloat16, relative: one of y, one to spare


def filled(layer: keras.layers.Layer, *values: np.ndarray) -> keras.layers.Layer:
    if not layer.built:
        layer.build(X.shape)
    for variable, value in zip(layer.weights, values, strict=True):
        variable.assign(value)
    return layer


def numbers(y) -> np.ndarray:
    return np.asarray(ops.convert_to_numpy(ops.cast(y, "float32")), np.float64)


@pytest.mark.parametrize("options", [
    {"eps": 0.1}, {"p": 0.3}, {"p": 0.3, "rounding": "floor"}, {"eps": 0.1, "eps_outside": True},
], ids=str)  # fmt: skip
def test_the_options_are_the_references(options: dict) -> None:
    layer = filled(RMSNorm(use_bias=True, **options), WEIGHT, BIAS)
    facts = {key: value for key, value in options.items() if key.startswith("eps")}
    if "p" in options:
        facts["k"] = reference.partial_size(8, options["p"], options.get("rounding", "ceil"))
    truth = reference.rms_norm(X, WEIGHT, BIAS, **facts)
    np.testing.assert_allclose(numbers(layer(X)), truth, rtol=0, atol=1e-6 * np.abs(truth).max())


def test_a_saved_layer_comes_back() -> None:
    options = {"eps": 0.1, "eps_outside": True, "p": 0.5, "rounding": "floor", "use_bias": True}
    layer = filled(RMSNorm(dtype="mixed_bfloat16", name="mine", **options), WEIGHT, BIAS)
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    assert again.get_config() == layer.get_config()
    again = filled(again, *layer.get_weights())
    np.testing.assert_array_equal(numbers(again(X)), numbers(layer(X)))


def test_a_model_is_saved_and_loaded(tmp_path) -> None:
    model = keras.Sequential([keras.Input((5, 8)), RMSNorm(eps=0.1), keras.layers.Dense(2)])
    model.layers[0].set_weights([WEIGHT])
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(numbers(again(X)), numbers(model(X)))


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_half_precision_is_rounded_once_from_float32(kind: str) -> None:
    layer = filled(RMSNorm(dtype=f"mixed_{kind}"), WEIGHT)
    assert keras.backend.standardize_dtype(layer.weight.dtype) == "float32"
    x = X * (300 if kind == "float16" else 1)  # its square is beyond float16
    y = layer(x)
    assert keras.backend.standardize_dtype(y.dtype) == kind
    rounded = numbers(ops.cast(ops.convert_to_tensor(x), kind))
    truth = reference.rms_norm(rounded, WEIGHT)
    np.testing.assert_allclose(numbers(y), truth, rtol=TWO_ROUNDINGS)


def test_without_parameters_it_is_the_bare_norm() -> None:
    layer = filled(RMSNorm(use_weight=False))
    truth = reference.rms_norm(X)
    np.testing.assert_allclose(numbers(layer(X)), truth, rtol=1e-6, atol=1e-7)


def test_a_mask_passes_through() -> None:
    words = np.array([[3, 1, 0], [2, 0, 0]])
    embedded = keras.layers.Embedding(5, 8, mask_zero=True)(words)
    y = RMSNorm()(embedded)
    mask = ops.convert_to_numpy(keras.src.backend.get_keras_mask(y))
    np.testing.assert_array_equal(mask, words != 0)


def test_a_zero_row_with_eps_outside_has_a_gradient() -> None:
    norm = filled(RMSNorm(eps=1e-3, eps_outside=True), WEIGHT)
    zeros, dy = np.zeros((1, 8), np.float32), np.ones((1, 8), np.float32)
    y, (dx, _) = differentiate("keras", stateless(norm), [zeros, WEIGHT], dy)
    np.testing.assert_array_equal(y, zeros)
    np.testing.assert_allclose(dx, [WEIGHT / np.float32(1e-3)], rtol=1e-6)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(TypeError, match="dtype int32: cast it to a float type"):
        RMSNorm()(np.ones((2, 8), np.int32))
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 8"):
        filled(RMSNorm(), WEIGHT)(np.ones((2, 1), np.float32))
    with pytest.raises(ValueError, match="last axis needs a static size"):
        RMSNorm().build((3, None))
    with pytest.raises(ValueError, match="0 features"):
        RMSNorm(p=0.01, rounding="floor").build((3, 8))
    with pytest.raises(ValueError, match=r"give \(N, C\) or channels_first images"):
        ChannelRMSNorm(data_format="channels_first").build((2, 3, 4))
    with pytest.raises(ValueError, match="data_format = 'NCHW'"):
        ChannelRMSNorm(data_format="NCHW")


@pytest.mark.parametrize("data_format", ["channels_first", "channels_last"])
def test_channels_as_wide_as_the_image(data_format: str) -> None:
    """3 channels, 3 pixels wide: where Keras' own `ops.add` lays the bias along the width."""
    x = RNG.normal(0.5, 1.0, (2, 3, 4, 3)).astype(np.float32)
    axes, spread = ((2, 3), (3, 1, 1)) if data_format == "channels_first" else ((1, 2), (3,))
    layer = ChannelRMSNorm(eps=1e-3, data_format=data_format)
    layer.build(x.shape)
    layer.set_weights([WEIGHT[:3], BIAS[:3]])
    wide = x.astype(np.float64)
    xhat = wide / np.sqrt(np.mean(wide**2, axis=axes, keepdims=True) + 1e-3)
    truth = xhat * WEIGHT[:3].reshape(spread) + BIAS[:3].reshape(spread)
    np.testing.assert_allclose(numbers(layer(x)), truth, rtol=1e-5, atol=1e-6)
    assert layer.compute_output_shape(x.shape) == x.shape
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    assert again.data_format == data_format


@pytest.mark.parametrize("floatx", ["float32", "float64"])
def test_keras_mean_of_float64_does_not_ask_floatx(floatx: str) -> None:
    before, backend = keras.config.floatx(), keras.backend.backend()
    keras.config.set_floatx(floatx)
    try:
        error = keras_faults.ask()["mean"]
    finally:
        keras.config.set_floatx(before)
    assert error == 0.0 if backend == "tensorflow" else error > 1e-8
