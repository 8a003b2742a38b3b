"""The figure of the PyTorch chapter: its lines, its input, what it tells the page of a record."""

import dataclasses

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("ml_dtypes")

import ml_dtypes
import traitlets

from rmsnorm_edu import conventions, explorables, precision
from rmsnorm_edu.explorables import conventions_atlas as atlas
from rmsnorm_edu.explorables.dialect_lines import ROLES, epsilon, lines, says

KINDS = [(d, w) for d in atlas.DTYPES for w in atlas.DTYPES]
PLAIN = [name for name, c in conventions.NAMES.items() if c.gate is None]


def code(name, dtype, weight):
    return list(lines(conventions.get(name), dtype, weight).values())


def told(name, dtype, weight):
    return says(conventions.get(name), dtype, weight)


def test_the_lines_of_the_chapters_two_families():
    assert code("torch", "bfloat16", "bfloat16") == [
        "m = mean(x²)",
        "D = √(m + 1.19\u00a0×\u00a010⁻⁷)",
        "x̂ = x · (1/D)",
        "return x̂ · w → bfloat16",
    ]
    assert code("llama", "bfloat16", "bfloat16")[2:] == [
        "x̂ = x · (1/D) → bfloat16",
        "return x̂ · w → bfloat16",
    ]
    assert code("llama", "bfloat16", "float32")[-1] == "return x̂ · w → float32"


def test_the_lines_of_a_family_that_rounds_every_step():
    assert code("gemma_flax", "float16", "float16") == [
        "m = mean(x² → float16) → float16",
        "D = √(m + (10⁻⁶ → float16) → float16)",
        "x̂ = x · (1/D → float16) → float16",
        "return x̂ · (1 + w → float16) → float16",
    ]
    assert code("paper_torch", "float16", "float16")[:3] == [
        "N = √(Σx²) → float16",
        "D = (N/√n → float16) + 10⁻⁸ → float16",
        "x̂ = x / D → float16",
    ]


def test_what_is_done_first_has_its_line():
    assert code("keras", "bfloat16", "float32")[0] == "w → bfloat16"
    assert code("mlx", "bfloat16", "float32")[:2] == ["x → float32", "m = mean(x²), one by one"]
    assert code("paper_tensorflow", "float16", "float32")[2:] == [
        "a = x · w",
        "return a · (1/D → float16) → float32",
    ]
    assert code("flax", "float16", "float16")[2:] == ["s = w · (1/D)", "return x · s → float16"]


@pytest.mark.parametrize(("dtype", "weight"), KINDS)
def test_what_has_the_same_lines_has_the_same_bits(dtype, weight):
    rng = np.random.default_rng(4)
    z = rng.normal(0.3, 1.0, (6, 40)) * 10.0 ** np.array([-4, -2, -1, 0, 1, 2])[:, np.newaxis]
    x = z.astype(precision.numpy_type(dtype))
    w = (rng.uniform(0.5, 2, 40) * rng.choice([-1, 1], 40)).astype(precision.numpy_type(weight))
    seen = {}
    for name in PLAIN:
        y = conventions.apply(name, x, w)
        first = seen.setdefault(tuple(code(name, dtype, weight)), y)
        assert first.dtype == y.dtype
        assert first.tobytes() == y.tobytes(), name
    assert len(seen) > 10


@pytest.mark.parametrize(("dtype", "weight"), KINDS)
def test_lines_are_few_short_and_in_order(dtype, weight):
    for name in PLAIN:
        found = lines(conventions.get(name), dtype, weight)
        assert 4 <= len(found) <= 5
        assert list(found) == [role for role in ROLES if role in found]
        assert max(map(len, found.values())) <= 64


def test_the_words_are_about_what_the_types_make_of_it():
    rounds = "rounds x̂ to bfloat16 before it multiplies"
    assert told("llama", "bfloat16", "float32") == [rounds]
    assert told("t5", "bfloat16", "bfloat16") == [rounds]
    assert told("t5", "bfloat16", "float32") == told("llama", "float32", "float32") == []
    assert told("keras", "float16", "float32") == ["rounds w to float16 first"]
    assert told("gemma_flax", "float16", "float16")[0] == "stores x² and what follows in float16"
    assert told("paper_torch", "float32", "float32") == [
        "divides by D where others multiply by 1/D"
    ]


def test_epsilon_as_a_power_of_ten():
    assert [epsilon(v) for v in (1e-5, 1.5625e-7)] == ["10⁻⁵", "1.56\u00a0×\u00a010⁻⁷"]


def test_the_page_is_told_all_that_a_record_holds():
    default = conventions.Convention(eps=None, source="")
    aside = {"eps", "source", "same", "evidence", "k_rounding", "wide_without_weight"}
    for name in atlas.NAMES:
        c = conventions.NAMES[name]
        kept = {f.name: getattr(c, f.name) for f in dataclasses.fields(c) if f.name not in aside}
        told = atlas.data()["families"][name]["record"]
        kept = {k: v for k, v in kept.items() if v != getattr(default, k)}
        assert told == {k: list(v) if k == "rounds" else v for k, v in kept.items()}
        assert "total" not in c.rounds, "the page does not know this place"
        assert c.sums in ("float32", "float32 in sequence")


def test_the_input_is_of_the_size_that_the_slider_says():
    z = atlas.row()
    assert np.sqrt(np.mean(z**2)) == pytest.approx(1, abs=1e-4)
    assert abs(np.mean(z)) > 0.05
    x, _ = atlas.inputs("llama", "float16", "same", 1e4)
    assert np.all(np.isfinite(x))


@pytest.mark.parametrize(("dtype", "weight"), [(d, w) for d in atlas.DTYPES for w in atlas.WEIGHTS])
def test_every_family_gets_the_same_gains(dtype, weight):
    _, w = atlas.inputs("llama", dtype, weight, 1.0)
    _, less = atlas.inputs("gemma", dtype, weight, 1.0)
    np.testing.assert_array_equal(1 + less.astype(np.float64), w.astype(np.float64))
    sizes = np.abs(w.astype(np.float64))
    assert np.min(w) < 0 < np.max(w)
    assert 0.5 <= np.min(sizes) < np.max(sizes) <= 2


@pytest.mark.parametrize("dtype", atlas.DTYPES)
def test_the_page_knows_the_types(dtype):
    info, known = ml_dtypes.finfo(precision.numpy_type(dtype)), atlas.data()["types"][dtype]
    assert known["bits"] == info.nmant + 1
    assert known["least"] == info.minexp
    assert known["max"] == float(info.max)
    digits = known["digits"]
    steps = np.unique((1 + np.arange(2000) * float(info.eps)).astype(info.dtype)).astype(float)
    assert len({f"{v:.{digits - 1}e}" for v in steps}) == len(steps), "they tell numbers apart"


def test_llama_and_torch_differ_in_a_quarter_of_the_outputs():
    for scale in (3.0, 300.0):
        pair = [atlas.outputs(name, "bfloat16", "same", scale) for name in ("llama", "torch")]
        apart = precision.ulps_apart(*pair)
        assert 0.2 < np.mean(apart > 0) < 0.3
        assert np.max(apart) == 1
    shown = np.mean(apart[: atlas.SHOWN] > 0)
    assert 0.15 < shown < 0.35, "what is drawn is like the rest"


def test_the_figure_is_made_once_and_is_equal_each_time():
    assert atlas.data() is atlas.data()
    assert explorables.ConventionsAtlas().data == atlas.data()


@pytest.mark.parametrize(
    "change", [{"first": "batch"}, {"dtype": "float64"}, {"scale": 1e5}, {"feature": 33}]
)
def test_the_figure_refuses_what_it_cannot_show(change):
    with pytest.raises(traitlets.TraitError):
        explorables.ConventionsAtlas(**change)
