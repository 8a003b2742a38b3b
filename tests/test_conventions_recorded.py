"""`conventions.apply` against recorded outputs of the real classes (tests/golden/conventions)."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from dialects import differing, near, numpy_type

from rmsnorm_edu import conventions

FOLDER = Path(__file__).parent / "golden" / "conventions"
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
