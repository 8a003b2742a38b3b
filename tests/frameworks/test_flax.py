"""The Flax layers, under JAX's transformations."""

import numpy as np
import pytest

from rmsnorm_edu import reference
from rmsnorm_edu.frameworks.flax import LinenRMSNorm, RMSNorm, jax, jnp, nnx, rms_norm

RNG = np.random.default_rng(16)
X = RNG.normal(0.5, 1.0, (3, 5, 8)).astype(np.float32)
WEIGHT = RNG.uniform(-2.0, 2.0, 8).astype(np.float32)
BIAS = RNG.normal(0.3, 1.0, 8).astype(np.float32)
TRUTH = reference.rms_norm(X, WEIGHT, BIAS)
CLOSE = {"rtol": 0, "atol": 1e-6 * np.abs(TRUTH).max()}


def filled(**options) -> RMSNorm:
    norm = RMSNorm(8, use_bias=True, **options)
    norm.weight, norm.bias = nnx.Param(jnp.asarray(WEIGHT)), nnx.Param(jnp.asarray(BIAS))
    return norm


def test_both_styles_and_the_function_are_one_norm() -> None:
    linen = LinenRMSNorm(use_bias=True)
    fresh = linen.init(jax.random.key(0), X)
    assert jax.tree.map(jnp.shape, fresh) == {"params": {"weight": (8,), "bias": (8,)}}
    params = {"params": {"weight": jnp.asarray(WEIGHT), "bias": jnp.asarray(BIAS)}}
    y = rms_norm(jnp.asarray(X), WEIGHT, BIAS)
    np.testing.assert_allclose(y, TRUTH, **CLOSE)
    np.testing.assert_array_equal(filled()(X), y)
    np.testing.assert_array_equal(linen.apply(params, X), y)


@pytest.mark.parametrize("options", [
    {"eps": 0.1}, {"p": 0.3}, {"p": 0.3, "rounding": "floor"}, {"eps": 0.1, "eps_outside": True},
], ids=str)  # fmt: skip
def test_the_options_are_the_references(options: dict) -> None:
    facts = {key: value for key, value in options.items() if key.startswith("eps")}
    if "p" in options:
        facts["k"] = reference.partial_size(8, options["p"], options.get("rounding", "ceil"))
    truth = reference.rms_norm(X, WEIGHT, BIAS, **facts)
    np.testing.assert_allclose(filled(**options)(X), truth, rtol=0, atol=1e-6 * np.abs(truth).max())


def test_jit_and_vmap_give_the_same() -> None:
    norm = filled()
    np.testing.assert_allclose(nnx.jit(lambda norm, x: norm(x))(norm, X), TRUTH, **CLOSE)
    np.testing.assert_allclose(jax.vmap(norm)(X), TRUTH, **CLOSE)


def test_grad_is_the_references() -> None:
    dy = RNG.normal(0.0, 1.0, X.shape).astype(np.float32)
    loss, gradients = nnx.value_and_grad(lambda norm, x: jnp.sum(norm(x) * dy))(filled(), X)
    dx, dweight = reference.rms_norm_vjp(dy, X, WEIGHT)
    assert loss == pytest.approx(np.sum(TRUTH * dy), rel=1e-5)
    np.testing.assert_allclose(gradients.weight[...], dweight, rtol=0, atol=1e-5)
    got = jax.grad(lambda x: jnp.sum(filled()(x) * dy))(X)
    np.testing.assert_allclose(got, dx, rtol=0, atol=2e-6 * np.abs(dx).max())


@pytest.mark.parametrize("kind", [jnp.bfloat16, jnp.float16])
def test_half_precision_is_rounded_once_from_float32(kind) -> None:
    x = jnp.asarray(X * (300 if kind == jnp.float16 else 1)).astype(kind)
    truth = reference.rms_norm(np.asarray(x, np.float64), WEIGHT, BIAS)
    for y in (filled()(x), filled(dtype=kind)(x.astype(jnp.float32))):
        assert y.dtype == kind
        size = np.abs(truth).max()
        np.testing.assert_allclose(np.asarray(y, np.float64), truth, rtol=2**-7, atol=1e-6 * size)
    held = RMSNorm(8, param_dtype=jnp.bfloat16, rngs=nnx.Rngs(0))
    assert held.weight[...].dtype == jnp.bfloat16


def test_a_zero_row_with_eps_outside_has_a_gradient() -> None:
    def total(x):
        return jnp.sum(rms_norm(x, WEIGHT, eps=1e-3, eps_outside=True))

    dx = jax.grad(total)(jnp.zeros((1, 8)))
    np.testing.assert_allclose(dx, [WEIGHT / np.float32(1e-3)], rtol=1e-6)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(TypeError, match="dtype int32: cast it to a float type"):
        filled()(jnp.ones((2, 8), jnp.int32))
    with pytest.raises(ValueError, match=r"x has shape \(2, 1\): give \(\.\.\., 8\)"):
        filled()(jnp.ones((2, 1)))
    with pytest.raises(ValueError, match=r"weight has shape \(8,\) and x \(2, 1\): give \(1,\)"):
        rms_norm(jnp.ones((2, 1)), WEIGHT)
    with pytest.raises(ValueError, match="0 features"):
        rms_norm(jnp.ones((2, 8)), p=0.01, rounding="floor")


@pytest.mark.parametrize("eps", [-1.0, float("nan")])
def test_an_eps_that_is_none_is_an_error(eps: float) -> None:
    with pytest.raises(ValueError, match="give a finite number >= 0"):
        rms_norm(jnp.ones((2, 4)), eps=eps)
    with pytest.raises(ValueError, match="x is 0-dimensional"):
        rms_norm(jnp.float32(2.0))
