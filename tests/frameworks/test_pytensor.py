"""The PyTensor graphs: what they compute when compiled, and what they refuse to be."""

import numpy as np
import pytest

from rmsnorm_edu import reference
from rmsnorm_edu.frameworks.pytensor import channel_rms_norm, pt, pytensor, rms_norm

RNG = np.random.default_rng(16)
X = RNG.normal(0.5, 1.0, (3, 5, 8))
WEIGHT = RNG.uniform(-2.0, 2.0, 8)
BIAS = RNG.normal(0.3, 1.0, 8)
MODE = pytensor.compile.mode.Mode(linker="py", optimizer="fast_compile")


def run(y, *pairs):
    symbols, values = zip(*pairs, strict=True)
    return pytensor.function(list(symbols), y, mode=MODE)(*values)


@pytest.mark.parametrize("options", [
    {"eps": 0.1}, {"p": 0.3}, {"p": 0.3, "rounding": "floor"}, {"eps": 0.1, "eps_outside": True},
], ids=str)  # fmt: skip
def test_the_options_are_the_references(options: dict) -> None:
    facts = {key: value for key, value in options.items() if key.startswith("eps")}
    if "p" in options:
        facts["k"] = reference.partial_size(8, options["p"], options.get("rounding", "ceil"))
    x = pt.tensor("x", dtype="float64", shape=(None, None, 8))
    weight, bias = pt.dvector("weight"), pt.dvector("bias")
    y = run(rms_norm(x, weight, bias, **options), (x, X), (weight, WEIGHT), (bias, BIAS))
    np.testing.assert_allclose(y, reference.rms_norm(X, WEIGHT, BIAS, **facts), rtol=1e-13)


def test_one_graph_serves_every_width() -> None:
    x, weight = pt.dmatrix("x"), pt.dvector("weight")
    f = pytensor.function([x, weight], rms_norm(x, weight), mode=MODE)
    for n in (1, 5, 8):
        truth = reference.rms_norm(X[0, :, :n], WEIGHT[:n])
        np.testing.assert_allclose(f(X[0, :, :n], WEIGHT[:n]), truth, rtol=1e-14)
    with pytest.raises(ValueError, match=r"[Ss]hape|[Bb]roadcast|[Ss]ize|[Dd]imension"):
        f(X[0], WEIGHT[:1])  # a 1 that no type announced does not broadcast


def test_the_compiled_function_and_its_gradient() -> None:
    """In PyTensor's default mode, the one that users run."""
    x, weight, dy = pt.dmatrix("x"), pt.dvector("weight"), pt.dmatrix("dy")
    y = rms_norm(x, weight)
    gradients = pytensor.grad((y * dy).sum(), [x, weight])
    upstream = RNG.normal(0.0, 1.0, (5, 8))
    got, dx, dweight = pytensor.function([x, weight, dy], [y, *gradients])(X[0], WEIGHT, upstream)
    expected = reference.rms_norm_vjp(upstream, X[0], WEIGHT)
    np.testing.assert_allclose(got, reference.rms_norm(X[0], WEIGHT), rtol=1e-13)
    np.testing.assert_allclose(dx, expected[0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(dweight, expected[1], rtol=0, atol=1e-13)


def test_half_precision_is_rounded_once_from_float32() -> None:
    x = pt.tensor("x", dtype="float16", shape=(None, None, None))
    half = (300 * X).astype(np.float16)  # its square is beyond float16
    y = run(rms_norm(x), (x, half))
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, reference.rms_norm(half), rtol=2**-10, atol=2**-20)


def test_a_zero_row_with_eps_outside_has_a_gradient() -> None:
    x = pt.dmatrix("x")
    dx = pytensor.grad(rms_norm(x, eps=1e-3, eps_outside=True).sum(), x)
    np.testing.assert_allclose(run(dx, (x, np.zeros((1, 8)))), np.full((1, 8), 1e3), rtol=1e-12)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(TypeError, match="dtype int64: cast it to a float type"):
        rms_norm(pt.lmatrix("x"))
    with pytest.raises(ValueError, match=r"give it a static last axis, pt.tensor"):
        rms_norm(pt.dmatrix("x"), p=0.5)
    with pytest.raises(
        ValueError, match=r"a parameter of shape \(8,\) for 1 features; give \(1,\)"
    ):
        rms_norm(pt.constant(X[..., :1]), pt.constant(WEIGHT))
    with pytest.raises(ValueError, match="0-dimensional"):
        rms_norm(pt.dscalar("x"))
    with pytest.raises(ValueError, match=r"x is 3-dimensional; give \(N, C\) or"):
        channel_rms_norm(pt.dtensor3("x"))
    with pytest.raises(ValueError, match="0 features"):
        rms_norm(pt.constant(X), p=0.01, rounding="floor")


def test_channels_as_wide_as_the_image() -> None:
    x = RNG.normal(0.5, 1.0, (2, 3, 4, 3))
    xhat = x / np.sqrt(np.mean(x**2, axis=(2, 3), keepdims=True) + 1e-6)
    truth = xhat * WEIGHT[:3, None, None] + BIAS[:3, None, None]
    y = channel_rms_norm(pt.constant(x), pt.constant(WEIGHT[:3]), pt.constant(BIAS[:3]))
    np.testing.assert_allclose(y.eval(mode=MODE), truth, rtol=1e-13)


def test_the_line_of_2019_takes_a_third_dimension_and_norms_the_wrong_axis() -> None:
    x = pt.constant(X)
    y = (x / pt.sqrt(pt.square(x).mean(1)[:, None] + 1e-5)).eval(mode=MODE)
    axis_1 = X / np.sqrt(np.mean(X**2, axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, axis_1, rtol=1e-14)
    assert not np.allclose(y, reference.rms_norm(X, eps=1e-5))
