"""`conventions.apply` at sizes and inputs that no file records, against torch's own arithmetic.

The expressions say what the class in the record does, operation by operation.
"""

import numpy as np
import pytest
from dialects import differing, near, numpy_type, of

from rmsnorm_edu import conventions, reference

EPS = 1e-6


def xhat(x, eps=EPS):
    wide = x.float()
    return wide * (wide.pow(2).mean(-1, keepdim=True) + eps).rsqrt()


def as_t5(x, w):
    wide = xhat(x)
    return w * (wide.to(w.dtype) if w.dtype.itemsize == 2 else wide)


def floored(x, w):
    from torch.nn.functional import normalize

    return normalize(x, dim=-1) * x.shape[-1] ** 0.5 * w


def rstd_rounded(x, w):
    wide = x.float()
    return w * (x * (wide.pow(2).mean(-1, keepdim=True) + EPS).rsqrt().to(x.dtype))


PLAIN = {
    "llama": lambda x, w: w * xhat(x).to(x.dtype),
    "llama4": lambda x, w: w * xhat(x, 1e-5).to(x.dtype),
    "gemma": lambda x, w: (xhat(x) * (1 + w.float())).to(x.dtype),
    "olmo2": lambda x, w: (xhat(x) * w).to(x.dtype),
    "keras": lambda x, w: (xhat(x) * w.to(x.dtype)).to(x.dtype),
    "t5": as_t5,
    "x_transformers": floored,
    "x_transformers_unit_offset": lambda x, w: floored(x, w + 1),
    "deepseek_v4_unweighted": rstd_rounded,
    "gpt_neox": lambda x, w: (xhat(x, 1e-8) * w).to(x.dtype),
}


def silu(gate):
    return gate.float() * gate.float().sigmoid()


def over_groups(x, size=11):
    return xhat(x.reshape(*x.shape[:-1], -1, size)).reshape(x.shape)


GATED = {
    "mamba2_gated": lambda x, w, gate: w * over_groups(silu(gate) * x.float()).to(x.dtype),
    "falcon_h1_gated": lambda x, w, g: (w * over_groups(x) * silu(g)).to(x.dtype),
    "falcon_h1_gated_before": lambda x, w, g: (w * over_groups(silu(g) * x.float())).to(x.dtype),
    "qwen3_next_gated": lambda x, w, g: (w * over_groups(x).to(x.dtype) * silu(g)).to(x.dtype),
    "kimi_linear_gated": lambda x, w, g: (w * over_groups(x) * g.float().sigmoid()).to(x.dtype),
}
TYPES = ("float16", "bfloat16", "float32")
by_types = pytest.mark.parametrize("types", [(x, w) for x in TYPES for w in TYPES])


def inputs(types):
    """x, weight and gate as torch tensors: rows of many sizes, one of zeros, one with inf."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    x = rng.normal(0.3, 1.0, (9, 33)) * np.array([1, 1, 3, 30, 200, 1e-2, 1e-4, 0, 1])[:, None]
    x[8, 4] = np.inf
    w = rng.choice([-1, 1], 33) * rng.uniform(0.3, 2, 33)
    w[3] = 0
    gate = rng.normal(0, 2, x.shape)
    x_type, w_type = (getattr(torch, t) for t in types)
    return torch.tensor(x).to(x_type), torch.tensor(w).to(w_type), torch.tensor(gate).to(x_type)


def compare(y, expected):
    expected = of(expected)
    assert y.dtype == expected.dtype
    near(y, expected)
    assert differing(y, expected) <= 0.01 * y.size or y.dtype.itemsize > 2


@by_types
@pytest.mark.parametrize("name", PLAIN)
def test_plain(name, types):
    x, w, _ = inputs(types)
    compare(conventions.apply(name, of(x), of(w)), PLAIN[name](x, w))


@by_types
@pytest.mark.parametrize("name", GATED)
def test_gated_in_groups(name, types):
    x, w, gate = inputs(types)
    y = conventions.apply(name, of(x), of(w), gate=of(gate), group_size=11)
    compare(y, GATED[name](x, w, gate))


@pytest.mark.parametrize("name", [*conventions.NAMES, *conventions.LOOKALIKES])
@pytest.mark.parametrize("types", [("float16", "float16"), ("bfloat16", "float32")])
def test_a_row_has_the_same_bits_in_any_company(name, types):
    x, w = (of(a) for a in inputs(types)[:2])
    y = conventions.apply(name, x, w)
    assert y.shape == x.shape
    cube = np.repeat(x, 2, axis=-1)[::-1].reshape(3, 3, 66)[..., ::2]  # gaps, three axes
    again = conventions.apply(name, cube, w).reshape(9, 33)[::-1]
    assert y.tobytes() == np.ascontiguousarray(again).tobytes()
    alone = conventions.apply(name, x[2], w)
    assert alone.tobytes() == y[2].tobytes()
    assert conventions.apply(name, x[:0], w).dtype == y.dtype


def test_outputs_by_the_types_of_x_and_weight():
    half, bf16, wide = (np.ones(2, numpy_type(t)) for t in ("float16", "bfloat16", "float32"))
    said = {
        ("torch", "float16"): (half, wide),
        ("llama", "float32"): (half, wide),
        ("llama", "bfloat16"): (bf16, bf16),
        ("t5", "bfloat16"): (wide, bf16),
        ("transformer_engine", "bfloat16"): (wide, bf16),
        ("mlx", "float32"): (half, bf16),
        ("apex", "float32"): (half, None),
        ("diffusers", "float16"): (half, None),
    }
    for (name, output), (x, w) in said.items():
        assert conventions.apply(name, x, w).dtype.name == output, name


def test_keras_layer_and_its_op_differ_by_the_cast_of_the_weight():
    rng = np.random.default_rng(2)
    x = rng.normal(0.3, 1, (200, 64)).astype(numpy_type("bfloat16"))
    w = rng.uniform(0.5, 1.5, 64).astype(np.float32)
    layer, op = (conventions.apply(name, x, w, eps=EPS) for name in ("keras", "keras_ops"))
    assert 0.2 < differing(layer, op) / x.size < 0.3
    cast = w.astype(x.dtype)
    np.testing.assert_array_equal(layer, conventions.apply("keras_ops", x, cast, eps=EPS))


def test_below_the_floor_x_transformers_is_linear():
    x, w = np.array([3e-6, 4e-6]), np.array([2.0, -0.5])
    y = conventions.apply("x_transformers", x, w, eps=1e-5)  # the norm is 5e-6
    np.testing.assert_allclose(y, x * w * 2**0.5 / 1e-5, rtol=1e-14)
    np.testing.assert_allclose(conventions.exact("x_transformers", x, w, eps=1e-5), y, rtol=1e-14)
    above = conventions.exact("x_transformers", x, w, eps=1e-6)
    np.testing.assert_allclose(above, reference.rms_norm(x, w, eps=0.0), rtol=1e-14)


@pytest.mark.parametrize("name", ["torch", "gemma", "paper_torch", "x_transformers"])
@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_the_derivative_of_exact_is_that_of_its_formula(name, size):
    rng = np.random.default_rng(1)
    x, w, dy = size * rng.normal(0.3, 1, (2, 5)), rng.normal(0, 1, 5), rng.normal(0, 1, (2, 5))
    options = {"eps": 0.02}  # a floor above the rows of size 1e-3
    dx, dweight = conventions.exact_vjp(name, dy, x, w, **options)
    h = 1e-6 * size
    for got, point, argument in ((dx, x, 0), (dweight, w, 1)):
        for where in np.ndindex(point.shape):
            ends = []
            for sign in (1, -1):
                arguments = [x.copy(), w.copy()]
                arguments[argument][where] += sign * h
                ends.append(np.sum(dy * conventions.exact(name, *arguments, **options)))
            assert got[where] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-7)


def test_keras_rms_scaling_divides_by_the_standard_deviation():
    x, w = np.array([[10.0, 11.0, 12.0]]), np.array([2.0, -0.5, 1.5])
    y = conventions.apply("keras_rms_scaling", x, w)
    np.testing.assert_allclose(y, x / np.sqrt(2 / 3 + 1e-3) * w, rtol=1e-14)
    np.testing.assert_allclose(conventions.exact("keras_rms_scaling", x, w), y, rtol=1e-14)
    with pytest.raises(ValueError, match="convention = 'keras_rms_scaling'; it is one of"):
        conventions.exact_vjp("keras_rms_scaling", x, x, w)
    with pytest.raises(ValueError, match=r"exact_vjp needs a weight: give one, \(3,\)"):
        conventions.exact_vjp("torch", x, x, None)


def test_gates_and_groups_that_do_not_fit_are_refused():
    x, w = np.ones((2, 6)), np.ones(6)
    with pytest.raises(ValueError, match="llama has no gate; those that have one are mamba2_gated"):
        conventions.apply("llama", x, w, gate=x)
    with pytest.raises(ValueError, match=r"gate has shape \(6,\), x \(2, 6\)"):
        conventions.apply("mamba2_gated", x, w, gate=w)
    with pytest.raises(ValueError, match="group_size = 4 does not divide the 6 features"):
        conventions.apply("mamba2_gated", x, w, group_size=4)
    with pytest.raises(ValueError, match="group_size = 0"):
        conventions.apply("mamba2_gated", x, w, group_size=0)
