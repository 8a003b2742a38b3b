"""`conventions.apply` against the real implementations: recorded, and torch itself where it is."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from golden_cases import cases

from rmsnorm_edu import conventions, reference

FOLDER = Path(__file__).parent / "golden" / "conventions"
TYPES = ("float16", "bfloat16", "float32", "float64")
ULP = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133}
# float32: of the row's largest value, for the order of the sum (README there)
TOLERANCE = {**ULP, "float32": 3.1e-7, "float64": 1e-15}
IMPLEMENTATIONS = {
    "F.rms_norm(eps=None)": "torch",
    "F.rms_norm(no weight)": "torch",
    "nn.RMSNorm(eps=None)": "torch",
    "nn.RMSNorm(eps=1e-6)": "torch",
    "paper RMSNorm": "paper_torch",
    "LlamaRMSNorm": "llama",
    "Qwen3RMSNorm": "llama",
    "Zamba2RMSNorm": "llama",
    "Mamba2RMSNorm": "llama",
    "Glm4RMSNorm": "glm4",
    "DeepseekV3RMSNorm": "llama",
    "MistralRMSNorm": "llama",
    "Phi3RMSNorm": "llama",
    "Llama4TextRMSNorm": "llama4",
    "Llama4TextL2Norm": "llama4",
    "GemmaRMSNorm": "gemma",
    "Gemma2RMSNorm": "gemma",
    "Gemma3RMSNorm": "gemma",
    "T5GemmaRMSNorm": "gemma",
    "MiniMaxM3VLRMSNorm": "gemma",
    "Qwen3NextRMSNorm": "qwen3_next",
    "Qwen3_5RMSNorm": "qwen3_next",
    "Gemma3nRMSNorm": "gemma3n",
    "Gemma3nRMSNorm(with_scale=False)": "gemma3n",
    "Gemma4RMSNorm": "gemma3n",
    "Olmo2RMSNorm": "olmo2",
    "Olmo3RMSNorm": "olmo2",
    "GptOssRMSNorm": "olmo2",
    "NemotronHRMSNorm": "olmo2",
    "AfmoeRMSNorm": "olmo2",
    "DeepseekV4RMSNorm": "deepseek_v4",
    "T5LayerNorm": "t5",
    "MT5LayerNorm": "t5",
    "IdeficsRMSNorm": "idefics",
    "Zamba2RMSNormGated": "mamba2_gated",
    "MambaRMSNormGated": "mamba2_gated",
    "FalconH1RMSNormGated(norm_before_gate=True)": "falcon_h1_gated",
    "FalconH1RMSNormGated(norm_before_gate=False)": "falcon_h1_gated_before",
    "Qwen3NextRMSNormGated": "qwen3_next_gated",
    "KimiLinearRMSNormGated": "kimi_linear_gated",
    "ops.rms_normalization(epsilon=None)": "keras_ops",
    "ops.rms_normalization(no scale)": "keras_ops",
    "layers.RMSNormalization": "keras",
    "layers.LayerNormalization(rms_scaling=True)": "keras_rms_scaling",
    "RMSNorm(eps=1e-6)": "diffusers",
    "RMSNorm(eps=1e-6,elementwise_affine=False)": "diffusers",
    "RmsNorm(fast_norm=False, default)": "timm",
    "RmsNorm(fast_norm=True, no apex)": "timm",
    "torchtune RMSNorm": "torchtune",
    "x_transformers RMSNorm": "x_transformers",
    "RMSNorm(unit_offset=True)": "x_transformers_unit_offset",
    "SimpleRMSNorm": "x_transformers",
    "gpt-neox RMSNorm": "gpt_neox",
    "apex manual_rms_norm": "apex",
    "RMSNorm(use_bias=False)": "equinox",
    "nnx.RMSNorm": "flax",
    "linen.RMSNorm": "flax_linen",
    "linen.RMSNorm(dtype=x.dtype)": "flax_linen_dtype",
    "nnx.RMSNorm(dtype=x.dtype)": "flax_dtype",
    "linen.RMSNorm(use_scale=False)": "flax_linen",
    "gm.nn._layers.RMSNorm": "gemma_flax",
    "gm.nn.gemma4._layers.RMSNorm": "gemma4_flax",
    "mlx nn.RMSNorm": "mlx",
    "mx.fast.rms_norm(weight=None,eps=1e-5)": "mlx",
    "tinygrad nn.RMSNorm": "tinygrad",
    "nn.RMSNorm(elementwise_affine=False)": "tinygrad",
    "ggml_rms_norm+ggml_mul(fused), eps=1e-06": "ggml",
    "ggml_rms_norm+ggml_mul(r kept as output), eps=1e-06": "ggml",
    "ggml_rms_norm+ggml_mul(fused), eps=1e-05": "ggml",
    "ggml_rms_norm+ggml_mul(r kept as output), eps=1e-05": "ggml",
    "LigerRMSNormFunction(casting_mode=llama,offset=0)": "liger_llama",
    "LigerRMSNormFunction(casting_mode=gemma,offset=1)": "liger_gemma",
    "LigerRMSNormFunction(casting_mode=gemma,offset=0)": "torch",
    "LigerRMSNormFunction(casting_mode=none,offset=0)": "liger_none",
}
# A bias is added, or a part of the features alone is averaged: `apply` has neither.
NOT_HERE = {
    "equinox RMSNorm",
    "RMSNorm(eps=1e-6,bias=True)",
    "gpt-neox RMSNorm(bias=True)",
    "paper RMSNorm(p=0.25)",
}


def numpy_type(name):
    if name != "bfloat16":
        return np.dtype(name)
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)


@cache
def arrays(name):
    with np.load(FOLDER / name) as stored:
        return dict(stored)


def array(name, key, dtype):
    stored = arrays(name)[key]
    return stored.view(numpy_type(dtype)) if dtype == "bfloat16" else stored


def implementations():
    for one in json.loads((FOLDER / "cases.json").read_text("utf-8"))["impls"]:
        with_library = f"{one['lib']} {one['impl']}"
        name = next(n for n in (with_library, one["impl"]) if n in {*IMPLEMENTATIONS, *NOT_HERE})
        if name not in NOT_HERE:
            yield pytest.param(IMPLEMENTATIONS[name], one, id=with_library)


@pytest.mark.parametrize(("name", "implementation"), [*implementations()])
def test_recorded_outputs(name, implementation):
    pytest.importorskip("ml_dtypes")
    halves, off = 0, 0
    for x_type, w_type, shape, kind, y_type, key, *_ in implementation["cases"]:
        x = array("inputs.npz", f"x|{x_type}|{shape}|{kind}", x_type)
        w, gate = None, None
        if implementation["w_family"] is not None:
            w = array("inputs.npz", f"w{implementation['w_family']}|{w_type}|8", w_type)
        if implementation["gate"]:
            gate = array("inputs.npz", f"gate|{x_type}|{shape}", x_type)
        size = dict(implementation["group"] or [])[8] if implementation["group"] else None
        eps = implementation["eps"]
        y = conventions.apply(name, x, w, eps=eps, gate=gate, group_size=size)
        assert y.dtype.name == y_type, (x_type, w_type)
        expected = array("outputs.npz", key, y_type)
        near(y, expected)
        if y.dtype.itemsize == 2:
            halves, off = halves + y.size, off + differing(y, expected)
    assert off <= 0.001 * halves


def near(y, expected):
    """Within a last bit in half precision, within the sum's order otherwise; nan is nan."""
    narrow = y.dtype.name
    y, expected = y.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(expected))
    top = np.max(np.abs(expected), axis=-1, keepdims=True)
    if narrow in ULP:
        top = np.abs(expected) + SMALLEST[narrow] / ULP[narrow]
    assert np.all(~(np.abs(y - expected) > TOLERANCE[narrow] * top))


def differing(y, expected):
    y, expected = y.astype(np.float64), expected.astype(np.float64)
    return np.count_nonzero((y != expected) & ~np.isnan(expected))


@pytest.mark.parametrize("x_type", TYPES)
@pytest.mark.parametrize("w_type", [*TYPES, None])
@pytest.mark.parametrize("eps", [None, 1e-5])
@pytest.mark.filterwarnings("ignore:Mismatch dtype:UserWarning")  # torch's, about speed alone
def test_torch_itself(x_type, w_type, eps):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(7)
    x = torch.tensor(rng.normal(0.5, 2.0, (20, 33)) * 10.0 ** rng.integers(-6, 3, (20, 1)))
    x = x.to(getattr(torch, x_type))
    x[3] = 0
    w = torch.tensor(rng.choice([-1, 1], 33) * rng.uniform(0.3, 2, 33))
    w = None if w_type is None else w.to(getattr(torch, w_type))
    expected = torch.nn.functional.rms_norm(x, (33,), w, eps)
    y = conventions.apply("torch", of(x), None if w is None else of(w), eps=eps)
    assert y.dtype.name == str(expected.dtype).removeprefix("torch.")
    y, expected = y.astype(np.float64), of(expected).astype(np.float64)
    if x_type in ("float16", "bfloat16"):  # the order of the sum turns a rare last bit
        assert np.mean(y != expected) < 0.005
    ulp = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 4e-7, "float64": 1e-15}[x_type]
    top = np.max(np.abs(expected), axis=-1, keepdims=True)
    assert np.all(np.abs(y - expected) <= ulp * top)


def of(tensor):
    """A torch tensor as a NumPy array, bfloat16 too."""
    if tensor.dtype.itemsize > 2 or "bfloat16" not in str(tensor.dtype):
        return tensor.numpy()
    bits = np.ascontiguousarray(tensor.float().numpy()).view(np.uint32) >> 16
    return bits.astype(np.uint16).view(numpy_type("bfloat16"))


GROUPS = {
    "paper_torch": [c for c in cases("g1_torch_rmsnorm") if not c.crashes],
    "paper_tensorflow": [c for c in cases("g2_tf_rmsnorm") if not c.crashes],
    "paper_theano": [c for c in cases("g3_theano_rln_ln") if c.facts["unit"] == "rln"],
    "paper_lasagne": [
        c for c in cases("g7_lasagne") if c.facts["unit"] == "RMSNormLayer" and c.x.ndim == 2
    ],
}
SLOPE_BELOW_0 = {"relu": 0.0, "lrelu": 0.1, "identity": 1.0}  # Lasagne's layer ends in one


@pytest.mark.equation("eps-inside", "eps-outside")
@pytest.mark.parametrize("name", GROUPS)
def test_the_2019_code(name):
    whole = [case for case in GROUPS[name] if case.k == case.x.shape[-1]]
    assert conventions.NAMES[name].eps in {case.facts["eps"] for case in whole}
    for case in whole:
        y = conventions.apply(name, case.x, case.weight, eps=case.facts["eps"])
        assert y.dtype == case.x.dtype
        bias = 0 if case.bias is None else case.bias
        top = np.max(np.abs(y), axis=-1, keepdims=True) + np.max(np.abs(bias))
        tolerance = 1e-12 if case.facts["dtype"] == "float64" else 1e-6
        y = y + bias
        y = np.where(y < 0, SLOPE_BELOW_0[case.facts.get("nonlinearity", "identity")] * y, y)
        assert np.all(np.abs(y - case.y) <= tolerance * top), case.id


@pytest.mark.equation("eps-inside", "eps-outside")
def test_one_tiny_row_four_answers_in_one_repository():
    row = np.full(8, 1e-5)
    expected = {
        "paper_torch": 1 / 1.001,
        "paper_tensorflow": 1e-5 / np.sqrt(1e-10 + 1e-8),
        "paper_theano": 1e-5 / np.sqrt(1e-10 + 1e-5),
        "paper_lasagne": 1e-5 / np.sqrt(1e-10 + 1e-6),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(conventions.apply(name, row), value, rtol=1e-14)


@pytest.mark.parametrize("name", conventions.NAMES)
def test_float64_is_the_reference_with_the_conventions_eps(name):
    rng = np.random.default_rng(3)
    x = rng.normal(0.5, 1, (2, 3, 9)) * 10.0 ** rng.integers(-5, 3, (2, 3, 1))
    w = rng.choice([-1, 1], 9) * rng.uniform(0.3, 2, 9)
    expected = conventions.exact(name, x, w)
    np.testing.assert_allclose(conventions.apply(name, x, w), expected, rtol=2e-15)
    c = conventions.NAMES[name]
    if not c.eps_floor:
        eps = 2.0**-52 if c.eps is None else c.eps
        y = reference.rms_norm(x, c.gain_offset + w, eps=eps, eps_outside=c.eps_outside)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("name", conventions.NAMES)
def test_a_gain_offset_is_added_to_the_weight(name, monkeypatch):
    plain = replace(conventions.NAMES[name], gain_offset=0.0)
    x, w = np.array([[3.0, -4.0, 12.0]]), np.array([0.5, -2.0, 0.25])
    monkeypatch.setattr(conventions, "NAMES", {name: plain, "+1": replace(plain, gain_offset=1.0)})
    expected = conventions.apply(name, x, 1 + w)
    np.testing.assert_allclose(conventions.apply("+1", x, w), expected, rtol=1e-15)


def test_torchs_own_eps_is_that_of_the_computing_type():
    zero_but_for_one = np.array([1e-6, 0.0, 0.0, 0.0])
    for dtype, eps in (("float16", 2.0**-23), ("float32", 2.0**-23), ("float64", 2.0**-52)):
        x = zero_but_for_one.astype(dtype)
        y = conventions.apply("torch", x)
        expected = reference.rms_norm(x, eps=eps)
        np.testing.assert_allclose(y.astype(np.float64), expected, rtol=1e-3)


def test_traps_of_half_precision():
    zero = np.zeros((1, 4), np.float16)
    assert np.all(np.isnan(conventions.apply("paper_torch", zero)))  # 1e-8 is 0 in float16
    assert np.all(np.isnan(conventions.apply("paper_tensorflow", zero)))
    assert np.all(conventions.apply("torch", zero) == 0)
    big = np.full((1, 4), 300, np.float16)
    assert np.all(conventions.apply("paper_tensorflow", big) == 0)  # 300² is inf in float16
    assert np.all(conventions.apply("paper_torch", big) == 1)
    assert np.all(conventions.apply("torch", big) == 1)


def test_nothing_is_written_to_and_no_row_is_no_row():
    x, w = np.array([[3.0, -4.0]]), np.array([2.0, -0.5])
    for name in conventions.NAMES:
        conventions.apply(name, x, w)
        assert conventions.apply(name, np.empty((0, 2)), w).shape == (0, 2)
    np.testing.assert_array_equal(x, [[3.0, -4.0]])
    np.testing.assert_array_equal(w, [2.0, -0.5])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 3, 129, 5000])
def test_a_row_has_the_same_bits_in_any_batch_and_layout(n, dtype):
    rng = np.random.default_rng(n)
    x = rng.normal(0.4, 1.0, (17, n)).astype(dtype)
    w = rng.normal(-0.3, 1.0, n).astype(dtype)
    gaps = np.repeat(x, 2, axis=1)[:, ::2]
    for name in conventions.NAMES:
        y = conventions.apply(name, x, w)
        for same in (np.asfortranarray(x), gaps, x[::-1].copy()[::-1]):
            assert conventions.apply(name, same, w).tobytes() == y.tobytes(), name
        rows = [conventions.apply(name, row, w) for row in x]
        assert np.stack(rows).tobytes() == y.tobytes(), name


def test_wrong_input_is_told_the_fix():
    with pytest.raises(ValueError, match=r"convention = 'pytorch'; it is one of paper_torch"):
        conventions.apply("pytorch", [1.0])
    with pytest.raises(ValueError, match=r"convention = \['torch'\]; it is one of paper_torch"):
        conventions.apply(["torch"], [1.0])
    with pytest.raises(TypeError, match="x has dtype int64; give one of float16"):
        conventions.apply("torch", [1, 2])
    with pytest.raises(TypeError, match="weight has dtype complex128"):
        conventions.apply("torch", [1.0], [1j])
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    with pytest.raises(TypeError, match=r"x has masked values; fill them first, x\.filled"):
        conventions.apply("torch", masked)
    with pytest.raises(TypeError, match="weight has masked values"):
        conventions.apply("torch", [1.0, 2.0], masked)
    for x, w in ((1.0, None), (np.ones((2, 0)), None), (np.ones((2, 3)), np.ones(2))):
        with pytest.raises(ValueError, match=r"give x \(\.\.\., n\)"):
            conventions.apply("torch", x, w)
    with pytest.raises(ValueError, match=r"eps = -1\.0; give a finite number"):
        conventions.apply("torch", [1.0], eps=-1.0)


def test_every_convention_says_where_it_is_from():
    for name, c in conventions.NAMES.items():
        assert c.evidence in ("executed", "read")
        assert len(c.source) > 10
        assert (c.k_rounding == "floor") == (name in ("paper_torch", "paper_tensorflow"))
