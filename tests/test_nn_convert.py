"""Checkpoints in the names and the gains of others, and the groups of an optimiser."""

import pytest
import torch
from torch import nn

from rmsnorm_edu import conventions
from rmsnorm_edu.nn import ChannelRMSNorm, GroupRMSNorm, RMSNorm
from rmsnorm_edu.nn.convert import (
    decay_groups,
    from_one_plus,
    from_paper,
    to_one_plus,
    to_paper,
)


class Of2019(nn.Module):
    """The names that the 2019 torch class gives its parameters, and its arithmetic."""

    def __init__(self, d: int, bias: bool) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.linspace(-1.5, 2.5, d))
        if bias:
            self.offset = nn.Parameter(torch.linspace(0.5, -0.25, d))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x / (x.norm(dim=-1, keepdim=True) * x.shape[-1] ** -0.5 + 1e-8) * self.scale
        return y + self.offset if hasattr(self, "offset") else y


@pytest.mark.parametrize("bias", [False, True])
def test_the_authors_names_become_ours_at_any_depth(bias: bool) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(Of2019(4, bias)))
    stored = model.state_dict()
    ours = from_paper(stored)
    expected = ["0.bias", "0.weight", *(["1.0.bias"] if bias else []), "1.0.weight"]
    assert sorted(ours) == expected
    assert torch.equal(ours["1.0.weight"], stored["1.0.scale"])
    back = to_paper(ours, ["1.0"])
    assert back.keys() == stored.keys()
    assert all(torch.equal(back[key], stored[key]) for key in stored)


def test_a_norm_alone_needs_no_name() -> None:
    alone = Of2019(4, True).state_dict()
    assert to_paper(from_paper(alone)).keys() == alone.keys()
    norm = RMSNorm(4)
    norm.load_state_dict(from_paper(Of2019(4, False).state_dict()), strict=True)
    assert torch.equal(norm.weight, Of2019(4, False).scale)


def test_the_loaded_norm_computes_what_theirs_does() -> None:
    theirs = Of2019(5, False)
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(0)) + 1
    norm = RMSNorm(5, convention="paper_torch")
    norm.load_state_dict(from_paper(theirs.state_dict()))
    assert torch.allclose(norm(x), theirs(x), rtol=4 * torch.finfo(torch.float32).eps)


def test_names_that_are_taken_or_missing_are_errors() -> None:
    one = torch.ones(2)
    with pytest.raises(ValueError, match=r"a\.scale becomes a.weight, which is there already"):
        from_paper({"a.weight": one, "a.scale": one})
    with pytest.raises(ValueError, match="weight becomes scale, which is there already"):
        to_paper({"weight": one, "scale": one})
    with pytest.raises(ValueError, match=r"no b\.weight in the state_dict, which has a.weight"):
        to_paper({"a.weight": one}, ["b"])
    for convert in (from_one_plus, to_one_plus):
        with pytest.raises(ValueError, match="no b in the state_dict, which has a"):
            convert({"a": one}, ["a", "b"])
        with pytest.raises(ValueError, match="names has a key twice"):
            convert({"a": one}, ["a", "a"])
        with pytest.raises(TypeError, match=r"names is the string 'a'; give a list, \['a'\]"):
            convert({"a": one}, "a")
    with pytest.raises(TypeError, match=r"norms is the string 'a'; give a list, \['a'\]"):
        to_paper({"a.weight": one}, "a")


def bfloat16_weights() -> torch.Tensor:
    """Every sign and exponent from 2⁻¹⁶ to 4, eight fractions each."""
    positive = 2.0 ** torch.arange(-16, 3)[:, None] * (1 + torch.arange(8) / 8)
    return torch.cat([positive.flatten(), -positive.flatten()]).bfloat16()


def test_one_plus_comes_back_bit_for_bit() -> None:
    w = bfloat16_weights()
    state = {"norm.weight": w, "linear.weight": torch.ones(2, 2)}
    gains = from_one_plus(state, ["norm.weight"])
    assert gains["norm.weight"].dtype == torch.float32
    assert torch.equal(gains["norm.weight"].double(), 1 + w.double())
    back = to_one_plus(gains, ["norm.weight"], torch.bfloat16)
    assert torch.equal(back["norm.weight"], w)
    assert gains["linear.weight"] is state["linear.weight"]
    assert torch.equal(state["norm.weight"], w)  # the caller's is not written to


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_type_of_the_sum(dtype: torch.dtype) -> None:
    got = from_one_plus({"w": torch.tensor([2.0**-20], dtype=dtype)}, ["w"])["w"]
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    assert got.dtype == wide
    assert float(got[0]) == 1 + 2.0**-20  # lost in either half type


def test_the_plain_gain_computes_what_gemma_computes() -> None:
    generator = torch.Generator().manual_seed(1)
    x, w = (torch.randn(shape, generator=generator) for shape in ((4, 16), (16,)))
    gain = from_one_plus({"w": w}, ["w"])["w"]
    expected = conventions.apply("gemma", x.numpy(), w.numpy())
    four_ulp = 4 * torch.finfo(torch.float32).eps
    for norm, weight in ((RMSNorm(16, 1e-6), gain), (RMSNorm(16, convention="gemma"), w)):
        norm.load_state_dict({"weight": weight})
        assert torch.allclose(norm(x), torch.tensor(expected), rtol=four_ulp)


def test_one_plus_twice_is_wrong_and_no_number_tells() -> None:
    """The fault of the files that hold gains already: a gain of 8.69 in the model, 9.69 in them."""
    w = {"w": torch.tensor([8.6856])}
    once = from_one_plus(w, ["w"])
    assert float(from_one_plus(once, ["w"])["w"][0]) == pytest.approx(10.6856)
    assert torch.equal(to_one_plus(once, ["w"])["w"], w["w"])


class Custom(nn.Module):
    """A norm of nobody's class, with a gain of two axes."""

    def __init__(self) -> None:
        super().__init__()
        self.g = nn.Parameter(torch.ones(2, 3))


class Net(nn.Module):
    """One of each kind of parameter; the head is tied to the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.linear = nn.Linear(3, 3)
        self.conv = nn.Conv2d(3, 3, 1)
        self.norms = nn.ModuleList(
            [
                nn.LayerNorm((2, 3)),
                nn.RMSNorm((2, 3)),
                RMSNorm((2, 3), bias=True),
                ChannelRMSNorm(3),
                GroupRMSNorm(1, 3),
            ]
        )
        self.custom = Custom()
        self.head = nn.Linear(3, 5)
        self.head.weight = self.embedding.weight


def names_of(model: nn.Module, group: dict) -> set[str]:
    names = {id(p): name for name, p in model.named_parameters()}
    return {names[id(p)] for p in group["params"]}


def test_gains_and_biases_are_out_of_the_decay() -> None:
    model = Net()
    with_decay, without = decay_groups(model, 0.1)
    assert (with_decay["weight_decay"], without["weight_decay"]) == (0.1, 0.0)
    expected = {"embedding.weight", "linear.weight", "conv.weight", "custom.g"}
    assert names_of(model, with_decay) == expected
    total = [p for group in (with_decay, without) for p in group["params"]]
    assert len(total) == len({*map(id, total)}) == len(list(model.parameters()))


def test_a_predicate_knows_other_classes() -> None:
    model = Net()
    with_decay, without = decay_groups(model, 0.1, lambda m: isinstance(m, Custom))
    assert "custom.g" in names_of(model, without)
    assert "custom.g" not in names_of(model, with_decay)


def test_a_predicate_takes_no_children_along() -> None:
    """A block called a norm does not take its linear layers out of the decay."""
    model = nn.Sequential(nn.Linear(2, 2), nn.RMSNorm(2))
    with_decay, _ = decay_groups(model, 0.1, lambda m: isinstance(m, nn.Sequential))
    assert names_of(model, with_decay) == {"0.weight"}


def test_a_decay_that_is_no_size_is_an_error() -> None:
    for wrong in (-0.1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="give a finite number >= 0"):
            decay_groups(nn.Linear(2, 2), wrong)
    for wrong in ("0.1", None, True):
        with pytest.raises(TypeError, match=r"weight_decay = .*; give a number, like 0.1"):
            decay_groups(nn.Linear(2, 2), wrong)


def after_adamw(groups, steps: int = 20) -> None:
    """AdamW without a gradient to follow: what is left is the decay."""
    optimiser = torch.optim.AdamW(groups, lr=0.1, weight_decay=0.5)
    for _ in range(steps):
        for group in optimiser.param_groups:
            for p in group["params"]:
                p.grad = torch.zeros_like(p)
        optimiser.step()


def test_adamw_leaves_the_gains_alone() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.RMSNorm(3))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    after_adamw(decay_groups(model, 0.5))
    for name, p in model.named_parameters():
        kept = name in ("0.bias", "1.weight")
        assert torch.equal(p, before[name]) == kept
    expected = before["0.weight"] * (1 - 0.1 * 0.5) ** 20
    assert torch.allclose(model[0].weight, expected, rtol=1e-5)


def test_decay_pulls_a_plain_gain_to_0_and_one_plus_to_1() -> None:
    """Both start from the gain 1.8; the second stores w = 0.8."""
    plain, one_plus = (nn.Parameter(torch.tensor([v], dtype=torch.float64)) for v in (1.8, 0.8))
    after_adamw([plain, one_plus], 400)
    assert float(plain.detach()) < 1e-8
    assert abs(float(one_plus.detach())) < 1e-8
