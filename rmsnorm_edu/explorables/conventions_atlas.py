"""The figure of the PyTorch chapter: two families of RMSNorm, one input, where they differ."""

from functools import cache
from typing import Any

import numpy as np
import traitlets

from rmsnorm_edu import conventions, precision
from rmsnorm_edu._inputs import Array
from rmsnorm_edu.conventions import AnyFloat, Convention
from rmsnorm_edu.explorables.dialect_lines import ROLES, epsilon, lines, says
from rmsnorm_edu.explorables.figure import Figure

N = 256  # features of the row
SHOWN = 32  # of them are drawn, all are counted
PERIOD = 32  # features after which the gains begin again
GROUPS = {
    "The authors, 2019": {
        "paper_torch": "2019 PyTorch",
        "paper_tensorflow": "2019 TensorFlow",
    },
    "One rounding, at the end": {
        "torch": "torch",
        "olmo2": "OLMo 2",
        "gemma": "Gemma",
        "keras": "Keras",
        "gpt_neox": "GPT-NeoX",
        "flax": "Flax",
    },
    "x̂ is rounded, too": {
        "llama": "LLaMA",
        "t5": "T5",
        "mlx": "MLX",
        "apex": "Apex on a CPU",
    },
    "Every step is rounded": {
        "gemma_flax": "Gemma in Flax",
        "x_transformers": "x-transformers",
    },
}
NAMES = {name: label for group in GROUPS.values() for name, label in group.items()}
DTYPES = ("float16", "bfloat16", "float32")
WEIGHTS = ("same", "float32")
SCALES = (1e-8, 1e4)
# The types of x and the weight.
_KINDS = tuple((d, w) for d in DTYPES for w in dict.fromkeys((d, "float32")))
# What the arithmetic in the page needs of a record: all but who computes so, gates, and p.
_FIELDS = (
    "eps_outside",
    "eps_floor",
    "cast_first",
    "rounds",
    "xhat_as_weight",
    "divides",
    "gain_offset",
    "gain_first",
    "gain_with_rstd",
    "sums",
    "output",
)


def row(seed: int = 10) -> Array:
    """N numbers of RMS 1, to three decimals; their mean is not zero.

    With this seed the features that are drawn differ as often as all do.
    """
    z = np.random.default_rng(seed).normal(0.3, 1.0, N)
    found: Array = np.round(1e3 * z / np.sqrt(np.mean(z**2))) / 1e3
    return found


def gains(*, wide: bool = False, seed: int = 1) -> Array:
    """PERIOD gains of either sign, 1/2 to 2 in size: multiples of 2**-16 if `wide`, else of 1/64.

    They and they − 1 are exact numbers of float32, and of every type where not `wide`.
    """
    rng = np.random.default_rng(seed)
    found: Array = rng.integers(2**15, 2**17, PERIOD) * rng.choice([-1, 1], PERIOD) / 2**16
    short: Array = np.trunc(64 * found) / 64
    return found if wide else short


def inputs(name: str, dtype: str, weight: str, scale: float) -> tuple[AnyFloat, AnyFloat]:
    """x and the weight that the family gets, (N,) each: gain − 1 where it adds 1 to its weight.

    x is `row` times `scale` in `dtype`; the weight is in x's type ("same") or in float32.
    """
    x = (scale * row()).astype(precision.numpy_type(dtype))
    kind = x.dtype if weight == "same" else np.dtype(np.float32)
    offset = conventions.get(name).gain_offset
    gain = np.resize(gains(wide=kind == np.float32), N)
    return x, (gain - offset).astype(kind)


def outputs(name: str, dtype: str, weight: str, scale: float) -> AnyFloat:
    """What the family returns, (N,)."""
    return conventions.apply(name, *inputs(name, dtype, weight, scale))


@cache
def data() -> dict[str, Any]:
    """The input, the types, the families in their groups with their records and their lines."""
    texts = sorted({text for name in NAMES for kinds in _KINDS for text in _texts(name, *kinds)})
    return {
        "x": [round(1e3 * z) for z in row()],
        "gain": [int(gain) for gain in gains(wide=True) * 2**16],
        "shown": SHOWN,
        "types": {dtype: _type(dtype) for dtype in DTYPES},
        "groups": {group: list(names) for group, names in GROUPS.items()},
        "kinds": [" ".join(kinds) for kinds in _KINDS],
        "texts": texts,  # each once: the families refer to them by number
        "families": {name: _family(name, texts) for name in NAMES},
    }


def _type(dtype: str) -> dict[str, Any]:
    """How numbers of the type are rounded, and how many digits tell them apart."""
    u, least = precision.UNIT_ROUNDOFF[dtype], precision.subnormal(dtype)
    bits = round(-np.log2(u))
    normal = least / (2 * u)
    return {
        "bits": bits,
        "least": round(np.log2(normal)),  # the exponent of the smallest normal number
        "max": (2 - 2 * u) * 2 / normal,
        "digits": int(np.ceil(bits * np.log10(2)) + 1),
        "twice": dtype == "bfloat16",  # NumPy's way to it from float64 leads through float32
    }


def _family(name: str, texts: list[str]) -> dict[str, Any]:
    """Its label, its ε, the fields of its record that are not the default, its lines and words."""
    c = conventions.get(name)
    default = Convention(eps=None, source="")
    record = {f: getattr(c, f) for f in _FIELDS if getattr(c, f) != getattr(default, f)}
    eps = float(np.finfo(np.float32).eps) if c.eps is None else c.eps
    return {
        "label": NAMES[name],
        "eps": eps,
        "epsText": epsilon(eps),
        "record": {f: list(v) if f == "rounds" else v for f, v in record.items()},
        "code": [_code(c, kinds, texts) for kinds in _KINDS],
    }


def _code(c: Convention, kinds: tuple[str, str], texts: list[str]) -> list[list[int]]:
    """The numbers of its lines, in the order of `ROLES`, −1 for none; those of its words."""
    found = lines(c, *kinds)
    numbers = [texts.index(found[role]) if role in found else -1 for role in ROLES]
    return [numbers, [texts.index(text) for text in says(c, *kinds)]]


def _texts(name: str, dtype: str, weight: str) -> list[str]:
    c = conventions.get(name)
    return [*lines(c, dtype, weight).values(), *says(c, dtype, weight)]


class ConventionsAtlas(Figure):
    r"""Outputs of two families of RMSNorm beside each other, for one row of 256 features.

    The page does the arithmetic of `conventions.apply`, driven by the records themselves; the
    lines are those of `dialect_lines.lines`. Each family gets the same gains, as `inputs` says.
    Traits: `first` and `second`, names of `conventions`; `dtype` of x; `weight`, "same" or
    "float32"; `scale`, the RMS of x; `feature`, the one that is read, from 1.
    """

    name = "conventions_atlas"
    needs = ("dialect",)
    label = "Two families of RMSNorm beside each other: choose them, the type and the input's size"
    first = traitlets.Enum(list(NAMES), "llama").tag(sync=True)
    second = traitlets.Enum(list(NAMES), "torch").tag(sync=True)
    dtype = traitlets.Enum(DTYPES, "bfloat16").tag(sync=True)
    weight = traitlets.Enum(WEIGHTS, "same").tag(sync=True)
    scale = traitlets.Float(3.0, min=SCALES[0], max=SCALES[1]).tag(sync=True)
    feature = traitlets.Int(26, min=1, max=SHOWN).tag(sync=True)
    data = traitlets.Dict().tag(sync=True)

    @traitlets.default("data")
    def _default_data(self) -> dict[str, Any]:
        return data()
