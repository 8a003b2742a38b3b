"""The records of `conventions`: what each library computes, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True)
class Convention:
    """What one implementation computes: y = x / D · (gain_offset + weight), in which roundings.

    `eps` is the default, None for finfo of the computing type, and D = sqrt(mean(x²) + eps). With
    `eps_outside` D = ‖x‖·n^-½ + eps, and with `eps_floor`, too, D = max(‖x‖, eps)·n^-½. With
    `about_mean` the mean of (x − mean(x))² stands in place of mean(x²).

    `cast_first` is what happens before all else: "common", x and weight go to their common type;
    "x", x goes to the weight's type; "weight", the weight goes to x's. x's type means the one
    after that. `rounds` names the intermediate results that are stored in x's type:

    - "square", "total" (their sum), "mean", "eps" and "sum" (mean + eps) under the root, or
      "norm" (‖x‖), "rms" and "divisor" with eps outside, "unit" (x/‖x‖) with the floor;
    - "rstd" (1/D); "xhat" (x/D); "gain" (gain_offset + weight, in the weight's type).

    What is not named is kept in float32, or in float64 for float64 input. `xhat_as_weight`: "xhat"
    takes the weight's type, and only if that is a half one. `keeps_float16`: "xhat" is not rounded
    to float16 where a wider weight follows. `divides`: x / D, otherwise x · (1/D). `gain_first`:
    (weight · x) · (1/D). `gain_with_rstd`: x · (weight · (1/D)). `sums`: how the squares are added
    up, "float32" in some good order, "float32 in sequence" one after the other, or in "float64".

    `gate`: an activation ("silu" or "sigmoid") of a second input, in float32, multiplies the
    result, or x itself with `gate_before`. `output` is "x", x's type; "promoted", the common type
    of x and weight; or "product", the type that x̂ · weight has. Without a weight the output is of
    x's type, or of the computing type with `wide_without_weight`.

    `k_rounding` is the `rounding` of `reference.partial_size`, None where no part can be chosen.
    `source` names library, version and class, `same` others that compute the same; `evidence`
    says whether it was "executed" or "read".
    """

    eps: float | None
    source: str
    same: str = ""
    evidence: str = "executed"
    eps_outside: bool = False
    eps_floor: bool = False
    about_mean: bool = False
    cast_first: str | None = None
    rounds: tuple[str, ...] = ()
    xhat_as_weight: bool = False
    keeps_float16: bool = False
    divides: bool = False
    gain_offset: float = 0.0
    gain_first: bool = False
    gain_with_rstd: bool = False
    sums: str = "float32"
    gate: str | None = None
    gate_before: bool = False
    output: str = "promoted"
    wide_without_weight: bool = False
    k_rounding: str | None = None


_PAPER = "bzhangGo/rmsnorm at 2e726f1, "
_HF = "transformers 5.24.0, "
_KERAS = "keras 3.15.1, "
_FLAX = "flax 0.12.8, "
_LIGER = "liger-kernel 0.8.5 (its Triton source, in a patched interpreter), "

# Four orders that many share. Multiply, then cast: nothing is rounded but the result.
_ONCE = Convention(eps=1e-6, output="x", source=_HF + "Olmo2RMSNorm")
_ONE_PLUS = replace(_ONCE, gain_offset=1.0, source=_HF + "GemmaRMSNorm")
# Cast, then multiply: x̂ is rounded, then the product, in whatever type it has.
_CAST_FIRST = Convention(eps=1e-6, rounds=("xhat",), source=_HF + "LlamaRMSNorm")
# The rule of T5: x̂ is rounded to the weight's type if that is a half one.
_T5 = Convention(
    eps=1e-6, rounds=("xhat",), xhat_as_weight=True, output="product", source=_HF + "T5LayerNorm"
)
_EVERY_STEP = ("square", "mean", "eps", "sum", "rstd", "xhat")

_OF_2019 = {
    "paper_torch": Convention(
        eps=1e-8,
        eps_outside=True,
        divides=True,
        rounds=("norm", "rms", "divisor", "xhat"),
        k_rounding="floor",
        source=_PAPER + "rmsnorm_torch.py",
    ),
    "paper_tensorflow": Convention(
        eps=1e-8,
        gain_first=True,
        rounds=("square", "mean", "eps", "sum", "rstd"),
        k_rounding="floor",
        source=_PAPER + "rmsnorm_tensorflow.py",
    ),
    "paper_theano": Convention(
        eps=1e-5,
        divides=True,
        source=_PAPER + "layers.py, rln (float32 and float64 only)",
    ),
    "paper_lasagne": Convention(
        eps=1e-6,
        divides=True,
        source=_PAPER + "README.md, RMSNormLayer of rows (float32 and float64 only)",
    ),
}

_MULTIPLY_THEN_CAST = {
    "torch": replace(_ONCE, eps=None, source="torch 2.13.0, nn.functional.rms_norm on a CPU"),
    "olmo2": replace(_ONCE, same="OLMo 3, GPT-OSS, AFMoE, Nemotron-H, Helium"),
    "gemma": replace(_ONE_PLUS, same="Gemma 2 and 3, T5Gemma, RecurrentGemma, MiniMax-M3-VL"),
    "gemma3n": replace(_ONCE, source=_HF + "Gemma3nRMSNorm", same="Gemma 4"),
    "qwen3_next": replace(_ONE_PLUS, source=_HF + "Qwen3NextRMSNorm", same="Qwen 3.5"),
    "deepseek_v4": replace(_ONCE, source=_HF + "DeepseekV4RMSNorm"),
    "keras": replace(_ONCE, cast_first="weight", source=_KERAS + "layers.RMSNormalization"),
    "keras_ops": replace(_ONCE, eps=1e-7, source=_KERAS + "ops.rms_normalization"),
    "equinox": replace(_ONCE, eps=1e-5, source="equinox 0.13.8, RMSNorm(use_bias=False)"),
    "timm": replace(_ONCE, source="timm 1.0.31, RmsNorm"),
    "torchtune": replace(_ONCE, source="torchtune 0.6.1, RMSNorm"),
    "gpt_neox": replace(_ONCE, eps=1e-8, source="EleutherAI/gpt-neox at ea7aefd, RMSNorm"),
    "ggml": replace(
        _ONCE, sums="float64", source="ggml 0.21.0, ggml_rms_norm (float32 only; asks for ε)"
    ),
    "liger_gemma": replace(_ONE_PLUS, source=_LIGER + "casting_mode gemma"),
    "apex_cuda": replace(
        _ONCE, eps=1e-5, evidence="read", source="apex at 6424da3, FusedRMSNorm on a GPU"
    ),
    "vllm_gemma": replace(_ONE_PLUS, evidence="read", source="vLLM of August 2026, GemmaRMSNorm"),
    "deepseek_v3_reference": replace(
        _ONCE, evidence="read", source="deepseek-ai/DeepSeek-V3, inference/model.py"
    ),
    "transformer_engine": replace(
        _ONCE,
        eps=1e-5,
        cast_first="x",
        evidence="read",
        source="TransformerEngine of August 2026, pytorch.RMSNorm",
    ),
}

_CAST_THEN_MULTIPLY = {
    "llama": replace(
        _CAST_FIRST, same="Mistral, Qwen 3, DeepSeek-V3, Phi-3, Zamba 2, Mamba 2 and 130 more"
    ),
    "llama4": replace(_CAST_FIRST, eps=1e-5, source=_HF + "Llama4TextRMSNorm"),
    "glm4": replace(_CAST_FIRST, eps=1.5625e-7, source=_HF + "Glm4RMSNorm with Glm4Config's ε"),
    "meta_llama": replace(
        _CAST_FIRST, eps=1e-5, evidence="read", source="meta-llama/llama at 0504cf4, llama/model.py"
    ),
    "vllm": replace(_CAST_FIRST, evidence="read", source="vLLM of August 2026, RMSNorm"),
    "mlx": replace(
        _CAST_FIRST,
        eps=1e-5,
        cast_first="common",
        sums="float32 in sequence",
        source="mlx 0.32.4, nn.RMSNorm on a CPU",
    ),
    "tinygrad": replace(
        _CAST_FIRST, divides=True, keeps_float16=True, source="tinygrad 0.14.0, nn.RMSNorm on a CPU"
    ),
    "liger_llama": replace(_CAST_FIRST, output="x", source=_LIGER + "casting_mode llama"),
}

_AS_THE_WEIGHT = {
    "t5": replace(_T5, same="mT5, LongT5"),
    "idefics": replace(_T5, source=_HF + "IdeficsRMSNorm"),
    "diffusers": replace(_T5, source="diffusers 0.42.1, RMSNorm (asks for ε)"),
    "apex": replace(
        _T5,
        eps=1e-5,
        wide_without_weight=True,
        source="apex at 6424da3, manual_rms_norm, its way on a CPU",
    ),
}

_GAIN_WITH_RSTD = {
    "flax": Convention(
        eps=1e-6, gain_with_rstd=True, cast_first="common", source=_FLAX + "nnx.RMSNorm"
    ),
    "flax_dtype": Convention(
        eps=1e-6,
        gain_with_rstd=True,
        cast_first="weight",
        output="x",
        source=_FLAX + "nnx.RMSNorm(dtype=x.dtype)",
    ),
    "flax_linen": Convention(eps=1e-6, gain_with_rstd=True, source=_FLAX + "linen.RMSNorm"),
    "flax_linen_dtype": Convention(
        eps=1e-6, gain_with_rstd=True, output="x", source=_FLAX + "linen.RMSNorm(dtype=x.dtype)"
    ),
}

_NARROW = {
    "gemma_flax": Convention(
        eps=1e-6,
        gain_offset=1.0,
        rounds=(*_EVERY_STEP, "gain"),
        source="gemma 4.0.1, gm.nn RMSNorm, step by step (eager)",
    ),
    "gemma4_flax": Convention(
        eps=1e-6,
        rounds=_EVERY_STEP,
        source="gemma 4.0.1, gm.nn.gemma4 RMSNorm, step by step (eager)",
    ),
    "x_transformers": Convention(
        eps=1e-12,
        eps_outside=True,
        eps_floor=True,
        divides=True,
        rounds=("norm", "eps", "unit", "xhat"),
        source="x-transformers 2.31.10, RMSNorm",
    ),
    "deepseek_v4_unweighted": Convention(
        eps=1e-6,
        rounds=("rstd", "xhat"),
        source=_HF + "DeepseekV4UnweightedRMSNorm (has no weight)",
    ),
    "liger_none": Convention(
        eps=1e-6,
        rounds=("square", "total", "eps"),
        output="x",
        source=_LIGER + "casting_mode none",
    ),
}
_NARROW["x_transformers_unit_offset"] = replace(
    _NARROW["x_transformers"],
    gain_offset=1.0,
    rounds=(*_NARROW["x_transformers"].rounds, "gain"),
    source="x-transformers 2.31.10, RMSNorm(unit_offset=True)",
)

_GATED = {
    "mamba2_gated": replace(
        _CAST_FIRST,
        gate="silu",
        gate_before=True,
        source=_HF + "MambaRMSNormGated",
        same="Zamba 2, Bamba, GraniteMoeHybrid, Nemotron-H",
    ),
    "falcon_h1_gated": replace(
        _ONCE, gate="silu", source=_HF + "FalconH1RMSNormGated(norm_before_gate=True)"
    ),
    "falcon_h1_gated_before": replace(
        _ONCE,
        gate="silu",
        gate_before=True,
        source=_HF + "FalconH1RMSNormGated(norm_before_gate=False)",
    ),
    "qwen3_next_gated": replace(
        _CAST_FIRST, gate="silu", output="x", source=_HF + "Qwen3NextRMSNormGated"
    ),
    "kimi_linear_gated": replace(_ONCE, gate="sigmoid", source=_HF + "KimiLinearRMSNormGated"),
}

NAMES: Mapping[str, Convention] = MappingProxyType(
    _OF_2019
    | _MULTIPLY_THEN_CAST
    | _CAST_THEN_MULTIPLY
    | _AS_THE_WEIGHT
    | _GAIN_WITH_RSTD
    | _NARROW
    | _GATED
)

# Said to be an RMSNorm, and none: no bound on the error of RMSNorm holds for these.
LOOKALIKES: Mapping[str, Convention] = MappingProxyType(
    {
        "keras_rms_scaling": replace(
            _ONCE,
            eps=1e-3,
            about_mean=True,
            source=_KERAS + "layers.LayerNormalization(rms_scaling=True)",
        ),
    }
)
