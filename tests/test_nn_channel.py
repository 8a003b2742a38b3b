"""The norms of channels and groups: the 2019 Lasagne layer's numbers, Mamba's, every layout."""

import copy
import pickle

import numpy as np
import pytest
import torch
from golden_cases import Case, cases
from torch import nn

from rmsnorm_edu import conventions
from rmsnorm_edu.nn import ChannelRMSNorm, GroupRMSNorm, norm_after

LAYERS = [case for case in cases("g7_lasagne") if "inner" not in case.facts]
HELPERS = [case for case in cases("g7_lasagne") if "inner" in case.facts]
by_id = {"ids": lambda case: f"{case.id}-{case.facts.get('kind', case.facts.get('inner'))}"}
TOLERANCE = {"float64": 1e-12, "float32": 2e-6}
GRADIENT_TOLERANCE = {"float64": 1e-12, "float32": 4e-6}


class Theanos(nn.Module):
    """max(x, slope·x) as Theano differentiates it: slope 1 at an exact tie, where torch has ½."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.slope = {"identity": 1.0, "relu": 0.0, "lrelu": 0.1}[name]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x < 0, self.slope * x, x)


def given(case: Case, name: str) -> torch.Tensor:
    return torch.tensor(case.arrays[name])


def loaded(module: nn.Module, case: Case, weight: str) -> nn.Module:
    """The norm with the recorded gain and bias; `weight` is the gain's name in the case."""
    stored = {"weight": case.arrays.get(weight), "bias": case.bias}
    module.load_state_dict({k: torch.tensor(v) for k, v in stored.items() if v is not None})
    return module


def channel_norm(case: Case) -> nn.Module:
    layer = ChannelRMSNorm(
        case.x.shape[1],
        case.facts["eps"],
        case.bias is not None,
        elementwise_affine=case.weight is not None,
        dtype=getattr(torch, case.facts["dtype"]),
    )
    return loaded(layer, case, "weight")


def assert_close(got: torch.Tensor, expected: np.ndarray, tolerance: float, terms=0.0) -> None:
    """|got − expected| relative to the largest recorded value, or to the terms that cancel."""
    assert got.shape == expected.shape
    wrong = np.abs(got.detach().numpy() - expected)
    assert np.max(wrong / np.maximum(np.max(np.abs(expected)), np.maximum(terms, 1e-300))) <= (
        tolerance
    )


@pytest.mark.parametrize("case", LAYERS, **by_id)
def test_lasagne_layer_and_its_gradients(case: Case) -> None:
    layer, x = channel_norm(case), given(case, "x").requires_grad_()
    y = Theanos(case.facts["nonlinearity"])(layer(x))
    y.backward(given(case, "dy"))
    dtype = case.facts["dtype"]
    assert_close(y, case.y, TOLERANCE[dtype])
    scale = np.asarray(case.facts["dx_scale"])[..., np.newaxis]
    assert_close(x.grad, case.dx, GRADIENT_TOLERANCE[dtype], scale)
    for parameter, expected in ((layer.weight, case.dweight), (layer.bias, case.dbias)):
        assert (parameter is None) == (expected is None)
        if parameter is not None:
            terms = np.abs(case.dy).sum(axis=tuple(set(range(case.x.ndim)) - {1}))
            assert_close(parameter.grad, expected, GRADIENT_TOLERANCE[dtype], terms)


def helper(case: Case) -> nn.Sequential:
    """`norm_after` round the case's own layer, whose W Lasagne stores the other way round."""
    w = given(case, "W")
    if case.facts["inner"] == "conv":  # trap 39: Lasagne flips its filters
        inner: nn.Module = nn.Conv2d(w.shape[1], w.shape[0], w.shape[2:], padding=1)
        w = w.flip(-2, -1)
    elif case.facts["inner"] == "nin":
        inner, w = nn.Conv2d(*w.shape, 1), w.T[..., None, None]
    else:
        inner, w = nn.Linear(*w.shape), w.T
    inner = inner.double()
    inner.weight.data = w.clone()
    model = norm_after(nn.Sequential(inner, Theanos(case.facts["nonlinearity"])))
    loaded(model[1], case, "weight")
    return model


@pytest.mark.parametrize("case", HELPERS, **by_id)
def test_lasagne_helper_and_its_gradients(case: Case) -> None:
    model, x = helper(case), given(case, "x").requires_grad_()
    y = model(x)
    y.backward(given(case, "dy"))
    dw = model[0].weight.grad
    theirs = {
        "conv": lambda: dw.flip(-2, -1),
        "nin": lambda: dw[..., 0, 0].T,
        "dense": lambda: dw.T,
    }
    expected = (case.y, case.dx, case.dW, case.dweight, case.dbias)
    got = (y, x.grad, theirs[case.facts["inner"]](), model[1].weight.grad, model[1].bias.grad)
    for ours, recorded in zip(got, expected, strict=True):
        assert_close(ours, recorded, 1e-9)


def seeded(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Values whose mean is not 0."""
    generator = torch.Generator().manual_seed(7)
    return (0.3 + torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype)


def scaled(layer: nn.Module) -> nn.Module:
    """The layer with a gain of both signs and a bias, if it has them."""
    with torch.no_grad():
        for i, p in enumerate(layer.parameters()):
            p.copy_(seeded(*p.shape) * (1.5 - i))
    return layer


def test_only_a_map_of_its_own_counts() -> None:
    """Not over the channels, not over the samples; no mean is subtracted."""
    x = seeded(3, 4, 5, 6)
    y = ChannelRMSNorm(4, eps=0.0, dtype=torch.float64)(x)
    assert torch.allclose(y.square().mean((2, 3)), torch.ones(3, 4, dtype=torch.float64))
    scale = seeded(3, 4, 1, 1).abs()
    assert torch.allclose(y, ChannelRMSNorm(4, eps=0.0, dtype=torch.float64)(x * scale))
    assert float(y.detach().mean().abs()) > 0.1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_have_float32_statistics(dtype: torch.dtype) -> None:
    layer = scaled(ChannelRMSNorm(3))
    x = seeded(2, 3, 4, 5, dtype=dtype) * 300  # the square overflows float16
    y = layer(x)
    assert y.dtype == dtype
    truth = layer.double()(x.double())
    assert torch.allclose(y.double(), truth, rtol=torch.finfo(dtype).eps, atol=1e-6)


@pytest.mark.parametrize("layout", ["channels_last", "transposed", "strided", "expanded"])
def test_any_memory_layout(layout: str) -> None:
    layer = scaled(ChannelRMSNorm(6, dtype=torch.float64))
    x = {
        "channels_last": seeded(2, 6, 4, 5).contiguous(memory_format=torch.channels_last),
        "transposed": seeded(2, 6, 5, 4).transpose(2, 3),
        "strided": seeded(2, 12, 4, 10)[:, ::2, :, ::2],
        "expanded": seeded(2, 6, 1, 5).expand(2, 6, 4, 5),
    }[layout]
    before = x.clone()
    assert torch.allclose(layer(x), layer(x.contiguous()), rtol=1e-13)
    assert torch.equal(x, before)
    if layout == "channels_last":
        assert layer(x).is_contiguous(memory_format=torch.channels_last)


def test_no_samples_give_no_rows() -> None:
    layer = scaled(ChannelRMSNorm(3))
    for shape in ((0, 3, 4, 5), (0, 3)):
        x = torch.empty(shape, requires_grad=True)
        y = layer(x)
        y.sum().backward()
        assert y.shape == shape
        assert x.grad.shape == shape
    assert torch.equal(layer.weight.grad, torch.zeros(3))


def test_a_zero_map_has_the_gradient_gain_over_root_eps() -> None:
    layer = scaled(ChannelRMSNorm(2, dtype=torch.float64))
    x = torch.zeros(1, 2, 3, 3, dtype=torch.float64, requires_grad=True)
    layer(x).sum().backward()
    assert torch.allclose(x.grad[0, :, 0, 0], layer.weight / 1e-3)


@pytest.mark.parametrize("make", [lambda: ChannelRMSNorm(4), lambda: GroupRMSNorm(2, 4)])
def test_gradients_of_both_orders(make) -> None:
    layer = scaled(make().double())
    names = [name for name, _ in layer.named_parameters()]

    def call(x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(layer, dict(zip(names, parameters, strict=True)), (x,))

    inputs = [p.detach().requires_grad_() for p in (seeded(3, 4), *layer.parameters())]
    assert torch.autograd.gradcheck(call, inputs)
    assert torch.autograd.gradgradcheck(call, inputs)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("groups", [1, 2, 8])
def test_groups_are_those_of_the_conventions(dtype: str, groups: int) -> None:
    kind = getattr(torch, dtype)
    layer = scaled(GroupRMSNorm(groups, 48, dtype=kind))
    x = seeded(5, 3, 48, dtype=kind)
    numpy_type = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype
    as_numpy = [t.detach().float().numpy().astype(numpy_type) for t in (x, layer.weight)]
    if dtype == "float64":
        as_numpy = [t.detach().numpy() for t in (x, layer.weight)]
    expected = conventions.apply("olmo2", *as_numpy, group_size=48 // groups)
    y = layer(x)
    assert y.dtype == kind
    wrong = (y.double() - torch.tensor(expected.astype(np.float64))).abs()
    ulp = torch.finfo(kind).eps * torch.tensor(np.abs(expected.astype(np.float64)))
    assert bool((wrong <= (4 * ulp if dtype[-2:] in ("32", "64") else ulp)).all())
    if dtype in ("float16", "bfloat16"):
        assert float((wrong > 0).double().mean()) <= 0.01


def test_group_norm_of_torch_is_another_norm() -> None:
    x = seeded(3, 8, dtype=torch.float32)
    ours = GroupRMSNorm(2, 8, elementwise_affine=False)(x)
    theirs = nn.GroupNorm(2, 8, affine=False)(x)
    assert not torch.allclose(ours, theirs, atol=0.05)
    centred = (x.view(3, 2, 4) - x.view(3, 2, 4).mean(-1, keepdim=True)).view(3, 8)
    uncentred = GroupRMSNorm(2, 8, 1e-5, elementwise_affine=False)(centred)
    assert torch.allclose(uncentred, theirs, atol=1e-5)


def test_the_helper_drops_the_bias_and_moves_the_activation() -> None:
    inner, relu = nn.Linear(3, 5), nn.ReLU()
    model = norm_after(nn.Sequential(inner, relu))
    assert [*model] == [inner, model[1], relu]
    assert inner.bias is None
    assert sorted(model.state_dict()) == ["0.weight", "1.bias", "1.weight"]
    own = nn.RMSNorm(5)
    assert norm_after(nn.Linear(3, 5), own)[1] is own


@pytest.mark.parametrize("activation", [[], [nn.ReLU()]])
def test_what_failed_in_2019_works(activation: list[nn.Module]) -> None:
    """A layer built without a bias was a KeyError, one without an activation a TypeError."""
    inner = nn.Conv2d(2, 3, 1, bias=False, dtype=torch.float64)
    model = norm_after(nn.Sequential(inner, *activation) if activation else inner)
    x = seeded(2, 2, 3, 3)
    scaled(model[1])
    assert torch.equal(model(x), nn.Sequential(*activation)(model[1](inner(x))))


def test_the_bias_that_is_dropped_would_have_counted() -> None:
    """A norm that subtracts the mean cancels the layer's bias; this one does not."""
    x, shift = seeded(2, 3, 4, 4), torch.tensor([0.5, -1.0, 2.0]).double().view(3, 1, 1)
    norm, centred = ChannelRMSNorm(3, dtype=torch.float64), nn.InstanceNorm2d(3)
    assert torch.allclose(centred(x), centred(x + shift))
    assert not torch.allclose(norm(x), norm(x + shift), atol=0.1)


WRONG_SHAPES = [(2, 3, 4), (3,), (2, 3, 4, 5, 6), (2, 4), (2, 4, 3, 3)]


@pytest.mark.parametrize("shape", WRONG_SHAPES)
def test_other_shapes_are_errors_that_restate_them(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"give \(N, 3, H, W\) or \(N, 3\)") as error:
        ChannelRMSNorm(3)(torch.ones(shape))
    assert str(shape) in str(error.value)
    assert ("silently wrong" in str(error.value)) == (len(shape) == 3)


def test_other_arguments_are_errors_that_say_the_fix() -> None:
    with pytest.raises(TypeError, match=r"x has dtype torch.int64; give floats"):
        ChannelRMSNorm(3)(torch.ones(2, 3, dtype=torch.int64))
    with pytest.raises(TypeError, match=r"x has dtype torch.int64; give floats"):
        GroupRMSNorm(1, 3)(torch.ones(2, 3, dtype=torch.int64))
    for wrong, error in ((0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match=r"num_channels = .*give an integer"):
            ChannelRMSNorm(wrong)
    for eps in (-1e-6, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="give a finite number >= 0"):
            ChannelRMSNorm(3, eps)
    with pytest.raises(ValueError, match="num_groups = 3 does not divide num_channels = 4"):
        GroupRMSNorm(3, 4)
    with pytest.raises(ValueError, match=r"shape \(2, 3\); give \(..., 4\)"):
        GroupRMSNorm(2, 4)(torch.ones(2, 3))
    with pytest.raises(TypeError, match="layer is a Conv1d; give a Linear or a Conv2d"):
        norm_after(nn.Conv1d(2, 3, 1))
    with pytest.raises(ValueError, match=r"3 modules; give Sequential\(layer, activation\)"):
        norm_after(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.ReLU()))
    with pytest.raises(ValueError, match=r"0 modules; give Sequential\(layer, activation\)"):
        norm_after(nn.Sequential())


def test_a_helper_that_fails_leaves_the_bias() -> None:
    layer = nn.Linear(2, 3)
    with pytest.raises(TypeError, match="float is not a Module"):
        norm_after(layer, 1e-6)
    assert layer.bias is not None


@pytest.mark.parametrize("layer", [ChannelRMSNorm(4, 1e-5), GroupRMSNorm(2, 4)])
def test_a_module_as_any_other(layer: nn.Module) -> None:
    x = seeded(2, 4, dtype=torch.float32)
    scaled(layer)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(x), layer(x))
        assert repr(twin) == repr(layer)
    with torch.device("meta"):
        assert layer.to("meta")(x.to("meta")).shape == x.shape
    fresh = type(layer)(*((4,) if isinstance(layer, ChannelRMSNorm) else (2, 4)), device="meta")
    fresh = fresh.to_empty(device="cpu")
    fresh.reset_parameters()
    assert torch.equal(fresh.weight, torch.ones(4))
