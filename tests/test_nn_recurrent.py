"""`NormGRU` and `NormLSTM`: shapes, types, masks, first states, first values, and the 2019 door."""

import copy
import io
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

from rmsnorm_edu import reference
from rmsnorm_edu.nn import NormGRU, NormLSTM, _cell

KINDS = [NormGRU, NormLSTM]
NORMS = ["rms", "layer", None]
each_kind = pytest.mark.parametrize("kind", KINDS)
each_norm = pytest.mark.parametrize("norm", NORMS)
T, B, INPUT, HIDDEN = 4, 3, 5, 6


def made(kind, norm="rms", *, dtype=torch.float64, seed=0, **options):
    """A cell with weights and biases that are neither 1 nor 0."""
    cell = kind(INPUT, HIDDEN, norm, dtype=dtype, **options)
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in cell.parameters():
            drawn = rng.normal(0.3, 0.6, parameter.shape)
            parameter.copy_(torch.tensor(drawn))
    return cell


def sequence(*, dtype=torch.float64, seed=1, steps=T, examples=B):
    rng = np.random.default_rng(seed)
    return torch.tensor(rng.normal(0.5, 1.0, (steps, examples, INPUT))).to(dtype)


def states(cell, *args, **options):
    """h alone, for a cell of either kind."""
    out = cell(*args, **options)
    return out[0] if isinstance(out, tuple) else out


# --- What it computes


def test_without_a_norm_the_gru_is_torchs_with_the_product_before_r() -> None:
    """torch.nn.GRU has a second bias inside r · (…); at 0 the two are one function."""
    ours, theirs = made(NormGRU, None), nn.GRU(INPUT, HIDDEN, dtype=torch.float64)
    old = ours.to_original()
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(torch.cat([old["W"], old["Wx"]], 1).T)
        theirs.weight_hh_l0.copy_(torch.cat([old["U"], old["Ux"]], 1).T)
        theirs.bias_ih_l0.copy_(torch.cat([old["b"], old["bx"]]))
        theirs.bias_hh_l0.zero_()
    x, h0 = sequence(), torch.full((B, HIDDEN), 0.3, dtype=torch.float64)
    torch.testing.assert_close(ours(x, None, h0), theirs(x, h0[None])[0], rtol=0, atol=1e-14)


def test_without_a_norm_the_lstm_is_torchs_with_the_bias_doubled() -> None:
    ours, theirs = made(NormLSTM, None), nn.LSTM(INPUT, HIDDEN, dtype=torch.float64)
    blocks = torch.arange(4 * HIDDEN).reshape(4, HIDDEN)[[0, 1, 3, 2]].reshape(-1)  # i, f, g, o
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(ours.weight_ih[:, blocks].T)
        theirs.weight_hh_l0.copy_(ours.weight_hh[:, blocks].T)
        theirs.bias_ih_l0.copy_(ours.bias[blocks])
        theirs.bias_hh_l0.copy_(ours.bias[blocks])
    (h, c), (their_h, (_, their_c)) = ours(sequence()), theirs(sequence())
    torch.testing.assert_close(h, their_h, rtol=0, atol=1e-14)
    torch.testing.assert_close(c[-1:], their_c, rtol=0, atol=1e-14)


@each_kind
@pytest.mark.parametrize(("norm", "p"), [("rms", None), ("rms", 0.29), ("layer", None)])
def test_a_cells_norm_is_the_references(kind, norm, p) -> None:
    cell, x = made(kind, norm, p=p), torch.tensor(np.random.default_rng(3).normal(1, 2, (2, 6)))
    inner = cell.norm_hh_candidate if kind is NormGRU else cell.norm_cell
    weight = inner.weight.detach().numpy()
    if norm == "layer":
        expected = reference.layer_norm(x.numpy(), weight, inner.bias.detach().numpy(), eps=1e-5)
    else:
        k = 6 if p is None else 1  # int(6 · 0.29); rounded up it would be 2
        expected = reference.rms_norm(x.numpy(), weight, eps=1e-5, k=k)
    np.testing.assert_allclose(inner(x).detach().numpy(), expected, rtol=0, atol=1e-14)


def test_p_counts_the_features_of_each_normalised_vector() -> None:
    gru, lstm = NormGRU(3, 50, p=0.58), NormLSTM(3, 50, p=0.58)
    assert [gru.norm_ih_gates.k, gru.norm_hh_candidate.k] == [
        57,
        28,
    ]  # 100 * 0.58 < 58, 50 * 0.58 < 29
    assert [lstm.norm_ih.k, lstm.norm_hh.k, lstm.norm_cell.k] == [115, 115, 28]


@each_kind
@each_norm
def test_the_gradients_are_right(kind, norm) -> None:
    cell, x = kind(2, 3, norm, dtype=torch.float64), sequence(steps=2, examples=1)[..., :2]
    mask = torch.tensor([[0.4], [1.0]], dtype=torch.float64)
    h0 = torch.tensor([0.2, -0.1, 0.4], dtype=torch.float64)
    names = list(dict(cell.named_parameters()))

    def loss(x, h0, *parameters):
        given = dict(zip(names, parameters, strict=True))
        return states(_called(cell, given), x, mask, h0)

    inputs = [t.detach().requires_grad_() for t in (x, h0, *cell.parameters())]
    assert torch.autograd.gradcheck(loss, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(loss, inputs, fast_mode=True)


def _called(cell, parameters):
    return lambda *args: torch.func.functional_call(cell, parameters, args)


@pytest.mark.equation("joint-rms")
def test_two_gates_share_one_rms() -> None:
    """RMS([a | c])² is the mean of the two: so one gate's growth makes the other smaller."""
    a, c = np.random.default_rng(0).normal(0.5, [[1.0], [3.0]], (2, 6))
    joint = reference.rms(np.concatenate([a, c]))
    np.testing.assert_allclose(joint**2, (reference.rms(a) ** 2 + reference.rms(c) ** 2) / 2)
    norm = made(NormGRU).norm_hh_gates
    before, after = (norm(torch.tensor(np.concatenate([f * a, c]))) for f in (1, 10))
    shrunk = after[6:] / before[6:]
    expected = joint / reference.rms(np.concatenate([10 * a, c]))
    torch.testing.assert_close(
        shrunk, torch.full((6,), float(expected)).double(), rtol=1e-5, atol=0
    )


@pytest.mark.equation("norm-at-zero")
def test_the_slope_of_a_norm_at_zero() -> None:
    """At 0 the Jacobian is diag(weight) / √eps; a row far below √eps is multiplied by it."""
    norm = made(NormGRU).norm_hh_candidate
    slope = norm.weight.detach() / 1e-5**0.5
    zero = torch.zeros(HIDDEN, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(norm, zero)
    torch.testing.assert_close(jacobian, torch.diag(slope), rtol=1e-14, atol=0)
    exact = reference.rms_norm_jvp(np.eye(HIDDEN), np.zeros((HIDDEN, HIDDEN)),
                                   norm.weight.detach().numpy(), eps=1e-5)  # fmt: skip
    np.testing.assert_allclose(jacobian.numpy(), exact, rtol=1e-14)
    small = torch.linspace(-1e-6, 2e-6, HIDDEN, dtype=torch.float64)
    torch.testing.assert_close(norm(small), slope * small, rtol=1e-6, atol=0)


@each_kind
def test_a_first_state_of_zero_is_amplified(kind) -> None:
    """At h = 0 the norm of h U is h U / √eps: the gradient grows with 1/√eps, until eps counts."""
    sizes = []
    for eps in (1e-5, 1e-7):
        cell = made(kind, eps=eps)
        h0 = torch.zeros(B, HIDDEN, dtype=torch.float64, requires_grad=True)
        states(cell, sequence(steps=1), None, h0).sum().backward()
        sizes.append(h0.grad.norm())
    assert 9 < sizes[1] / sizes[0] < 10.001  # √100, less what reaches h without a norm


# --- Masks and first states


@each_kind
@each_norm
def test_a_mask_of_ones_is_no_mask_and_zero_keeps_the_state(kind, norm) -> None:
    cell, x = made(kind, norm), sequence()
    ones = torch.ones(T, B, dtype=torch.float64)
    assert torch.equal(states(cell, x, ones), states(cell, x))
    half = ones.clone()
    half[2:, 1] = 0
    h = states(cell, x, half)
    assert torch.equal(h[2:, 1], h[1, 1].expand(2, -1))
    assert torch.equal(h[:, 0], states(cell, x)[:, 0])


@each_kind
def test_a_fraction_mixes_the_new_state_with_the_old(kind) -> None:
    cell, x = made(kind, "rms"), sequence(steps=1)
    h0 = torch.full((B, HIDDEN), 0.7, dtype=torch.float64)
    new, mask = states(cell, x, None, h0), torch.full((1, B), 0.25, dtype=torch.float64)
    if kind is NormGRU:
        torch.testing.assert_close(cell(x, mask, h0), 0.25 * new + 0.75 * h0, rtol=0, atol=1e-15)
    else:
        c0 = torch.full((B, HIDDEN), 0.3, dtype=torch.float64)
        new_c, mixed_c = cell(x, None, h0, c0)[1], cell(x, mask, h0, c0)[1]
        torch.testing.assert_close(mixed_c, 0.25 * new_c + 0.75 * c0, rtol=0, atol=1e-15)


@each_kind
def test_masks_of_other_types_and_with_a_last_axis(kind) -> None:
    cell, x = made(kind), sequence()
    mask = torch.tensor([[1, 1, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]])
    expected = states(cell, x, mask.double())
    for same in (mask, mask.bool(), mask.float(), mask.double()[..., None], mask.T.contiguous().T):
        assert torch.equal(states(cell, x, same), expected)


@each_kind
def test_one_first_state_for_all_examples(kind) -> None:
    cell, x = made(kind), sequence()
    h0 = torch.linspace(-0.5, 0.7, HIDDEN, dtype=torch.float64, requires_grad=True)
    repeated = h0.detach().repeat(B, 1).requires_grad_()
    for state in (h0, repeated):
        states(cell, x, None, state).square().sum().backward()
    assert torch.equal(states(cell, x, None, h0), states(cell, x, None, repeated))
    torch.testing.assert_close(h0.grad, repeated.grad.sum(0))


@each_kind
def test_two_halves_of_a_sequence_make_the_whole(kind) -> None:
    cell, x = made(kind), sequence()
    whole, first = cell(x), cell(x[:2])
    whole, first = (o if isinstance(o, tuple) else (o,) for o in (whole, first))
    second = cell(x[2:], None, *(state[-1] for state in first))
    second = second if isinstance(second, tuple) else (second,)
    for a, b in zip(whole, second, strict=True):
        torch.testing.assert_close(a[2:], b, rtol=0, atol=1e-14)


# --- Shapes, types, layouts


@each_kind
@each_norm
@pytest.mark.parametrize(("steps", "examples"), [(0, 2), (2, 0), (0, 0), (1, 1)])
def test_no_steps_and_no_examples(kind, norm, steps, examples) -> None:
    cell = made(kind, norm)
    h = states(cell, sequence(steps=steps, examples=examples))
    assert h.shape == (steps, examples, HIDDEN)
    h.sum().backward()
    assert torch.isfinite(next(cell.parameters()).grad).all()


@each_kind
def test_strides_do_not_matter(kind) -> None:
    cell, x = made(kind), sequence()
    turned = x.transpose(0, 1).contiguous().transpose(0, 1)
    wide = torch.zeros(T, B, 2 * INPUT, dtype=torch.float64)
    wide[..., ::2] = x
    for same in (turned, wide[..., ::2]):
        torch.testing.assert_close(states(cell, same), states(cell, x), rtol=0, atol=1e-15)


@each_kind
@pytest.mark.parametrize(("dtype", "off"), [(torch.float16, 2e-3), (torch.bfloat16, 2e-2)])
def test_half_types(kind, dtype, off) -> None:
    """The state is stored in the type; statistics are not: a mean of squares of 400² is finite."""
    cell, x = made(kind, dtype=dtype), sequence(dtype=dtype)
    h = states(cell, x)
    assert h.dtype == dtype
    torch.testing.assert_close(
        h.double(), states(copy.deepcopy(cell).double(), x.double()), rtol=0, atol=off
    )
    h.sum().backward()
    assert all(p.grad.dtype == dtype for p in cell.parameters())
    large = torch.full((1, HIDDEN), 400.0, dtype=dtype)
    inner = cell.norm_hh_candidate if kind is NormGRU else cell.norm_cell
    torch.testing.assert_close(inner(large)[0], inner.weight.detach(), rtol=1e-2, atol=0)


@each_kind
@pytest.mark.parametrize("x_type", [torch.float32, torch.bfloat16])
def test_autocast_keeps_the_type_of_x(kind, x_type) -> None:
    """Matrix products run in bfloat16, statistics in float32; the states are of x's type."""
    cell, x = made(kind, dtype=torch.float32), sequence(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        h = states(cell, x.to(x_type))
    assert h.dtype == x_type
    torch.testing.assert_close(h.float(), states(cell, x), rtol=0, atol=3e-2)
    h.sum().backward()
    assert all(p.grad.dtype == torch.float32 for p in cell.parameters())


# --- What is refused


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (ValueError, r"2-D, \(3, 5\).*one step of B examples is x\[None\]", lambda c: c(_o(3, 5))),
        (ValueError, r"shape \(4, 3, 7\); give \(T, B, 5\)", lambda c: c(_o(4, 3, 7))),
        (ValueError, r"shape \(5,\); give \(T, B, 5\)", lambda c: c(_o(5))),
        (TypeError, "x is ndarray; give a torch tensor", lambda c: c(np.ones((4, 3, 5)))),
        (TypeError, "int64; .*embedding", lambda c: c(torch.ones(4, 3, 5, dtype=torch.long))),
        (TypeError, r"x is torch.float32, the weights are torch.float64; give x\.to\(torch.float64",
         lambda c: c(_o(4, 3, 5).float())),
        (ValueError, r"mask has the shape \(3, 4\); .*take mask.T",
         lambda c: c(_o(4, 3, 5), _o(3, 4))),
        (ValueError, r"mask has the shape \(4,\); give \(T, B\) = \(4, 3\)",
         lambda c: c(_o(4, 3, 5), _o(4))),
        (TypeError, "mask is torch.complex", lambda c: c(_o(4, 3, 5), _o(4, 3) * 1j)),
        (TypeError, "mask is ndarray; give a tensor", lambda c: c(_o(4, 3, 5), np.ones((4, 3)))),
        (TypeError, "h0 is list; give a tensor", lambda c: c(_o(4, 3, 5), None, [0.0] * 6)),
        (ValueError, r"h0 has the shape \(1, 3, 6\); .*take h0\[0\]",
         lambda c: c(_o(4, 3, 5), None, _o(1, 3, 6))),
        (ValueError, r"h0 has the shape \(1, 6\); .*\(3, 6\)",
         lambda c: c(_o(4, 3, 5), None, _o(1, 6))),
        (TypeError, r"h0 is torch.float32, x is torch.float64; give h0\.to",
         lambda c: c(_o(4, 3, 5), None, _o(3, 6).float())),
    ],
)  # fmt: skip
@each_kind
def test_wrong_inputs_say_the_fix(kind, error, message, call) -> None:
    with pytest.raises(error, match=message):
        call(made(kind))


def _o(*shape):
    return torch.ones(*shape, dtype=torch.float64)


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (ValueError, 'norm is \'RMS\'; give "rms", "layer" or None', {"norm": "RMS"}),
        (ValueError, r"p=0.5 is a share for norm=\"rms\"", {"norm": "layer", "p": 0.5}),
        (ValueError, r"int\(12 \* 0.01\) = 0 features", {"p": 0.01}),
        (ValueError, "eps = -1.0", {"eps": -1.0}),
        (ValueError, "hidden_size = 0", {"hidden_size": 0}),
        (TypeError, "input_size = 2.0 is float", {"input_size": 2.0}),
    ],
)
def test_wrong_settings_say_the_fix(error, message, options) -> None:
    with pytest.raises(error, match=message):
        NormGRU(**({"input_size": 5, "hidden_size": 6} | options))


# --- First values


@each_kind
@each_norm
def test_first_values(kind, norm) -> None:
    torch.manual_seed(0)
    cell = kind(INPUT, 32, norm)
    old = cell.to_original()
    for name, value in old.items():
        if name[0] == "U":
            for block in value.split(32, dim=1):
                torch.testing.assert_close(block.T @ block, torch.eye(32), rtol=0, atol=1e-5)
        elif name[0] == "W":
            limit = 0.1 if kind is NormGRU else (6 / (INPUT + 32)) ** 0.5
            assert 0.9 * limit < value.abs().max() <= limit
        else:
            assert torch.equal(value, torch.full_like(value, float(name[0] == "s")))


@each_kind
def test_each_gate_starts_with_weights_of_its_own(kind) -> None:
    """The helpers of the 2019 LSTM reseed NumPy at each call: its four blocks were identical."""
    torch.manual_seed(0)
    np.random.seed(7)
    expected = np.random.RandomState(7).random(3)
    square = kind(16, 16)
    assert np.array_equal(np.random.random(3), expected)
    blocks = [b for n in "WU" for b in square.to_original()[n].split(16, dim=1)]
    for at, block in enumerate(blocks):
        torch.testing.assert_close(block.T @ block, torch.eye(16), rtol=0, atol=1e-5)
        assert all((block - other).norm() > 1 for other in blocks[at + 1 :])


@each_kind
def test_the_seed_decides(kind) -> None:
    drawn = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        drawn.append(kind(INPUT, HIDDEN).to_original()["U"])
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


# --- The door to the 2019 names


@each_kind
@each_norm
def test_there_and_back(kind, norm) -> None:
    cell = made(kind, norm)
    old = {name: p.detach().numpy() for name, p in cell.to_original().items()}
    before = torch.random.get_rng_state()
    again = kind.from_original(old, norm, eps=1e-4)
    assert torch.equal(torch.random.get_rng_state(), before), "nothing is drawn"
    assert again.eps == 1e-4
    assert list(again.to_original()) == list(old)
    assert all(
        torch.equal(a, b) for a, b in zip(again.parameters(), cell.parameters(), strict=True)
    )
    with torch.no_grad():
        again.to_original()["W"].zero_()
    assert np.all(old["W"] != 0), "copied"
    assert torch.equal(next(again.parameters()), torch.zeros(INPUT, old["W"].shape[1]).double())


@each_kind
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_tensors_keep_their_type(kind, dtype) -> None:
    old = made(kind, dtype=dtype).to_original()
    again = kind.from_original(old)
    assert {p.dtype for p in again.parameters()} == {dtype}
    assert all(p.requires_grad and p.is_leaf for p in again.parameters())


def test_arrays_in_another_byte_order_are_read() -> None:
    """Files of numbers are big-endian on some machines; torch takes the machine's order alone."""
    old = made(NormLSTM).to_original()
    again = NormLSTM.from_original(
        {name: p.detach().numpy().astype(">f8") for name, p in old.items()}
    )
    assert all(torch.equal(again.to_original()[name], p) for name, p in old.items())


@pytest.mark.parametrize(
    ("error", "message", "norm", "change"),
    [
        (ValueError, "missing: s2, s4; unknown: none", "rms", {"s2": None, "s4": None}),
        (ValueError, "missing: none; unknown: b1, lngru_W", "rms", {"b1": 1, "lngru_W": 1}),
        (ValueError, "unknown: s1, s2, s3, s4", None, {}),
        (ValueError, "missing: b1, b2, b3, b4", "layer", {}),
        (ValueError, r"U is \(6, 9\), must be \(6, 12\); s4 is \(12,\), must be \(6,\)", "rms",
         {"U": np.ones((6, 9)), "s4": np.ones(12)}),
        (ValueError, r"W has the shape \(5,\); give a matrix", "rms", {"W": np.ones(5)}),
        (TypeError, "several types.*'b': 'torch.float32'", "rms", {"b": np.ones(12, np.float32)}),
        (TypeError, "bx is torch.int64; give floats", "rms", {"bx": np.ones(6, np.int64)}),
        (TypeError, "bx is str; give an array of floats", "rms", {"bx": "zeros"}),
        (TypeError, "bx is list; give an array of floats", "rms", {"bx": [1.0, [2.0]]}),
    ],
)  # fmt: skip
def test_wrong_parameters_are_listed(error, message, norm, change) -> None:
    old = {name: p.detach().numpy() for name, p in made(NormGRU).to_original().items()}
    changed = {name: value for name, value in (old | change).items() if value is not None}
    with pytest.raises(error, match=message):
        NormGRU.from_original(changed, norm)


# --- In the house of torch


@each_kind
@each_norm
def test_copies_and_stored_states(kind, norm) -> None:
    cell, x = made(kind, norm), sequence()
    stored = io.BytesIO()
    torch.save(cell.state_dict(), stored)
    stored.seek(0)
    loaded = kind(INPUT, HIDDEN, norm, dtype=torch.float64)
    loaded.load_state_dict(torch.load(stored, weights_only=True))
    for same in (copy.deepcopy(cell), pickle.loads(pickle.dumps(cell)), loaded):
        assert torch.equal(states(same, x), states(cell, x))


def test_print_and_meta() -> None:
    assert "5, 6, 'rms', p=0.5, eps=1e-05" in repr(NormGRU(5, 6, p=0.5))
    assert "12, 'rms', k=6, eps=1e-05" in repr(NormGRU(5, 6, p=0.5))
    cell = NormLSTM(5, 6, "layer", device="meta")
    assert cell(torch.ones(4, 3, 5, device="meta"))[1].shape == (4, 3, 6)


@pytest.mark.parametrize("compiled", [False, True])
@each_kind
def test_the_whole_layer_traces_without_a_break(kind, compiled) -> None:
    cell, x = made(kind, compiled=compiled), sequence(steps=2)
    traced = torch.compile(cell, backend="eager", fullgraph=True)
    cell.compiled = False
    assert torch.equal(states(traced, x), states(cell, x))
    torch.compiler.reset()


@torch.no_grad()
def test_the_compiler_keeps_a_graph_for_every_kind_of_cell(monkeypatch) -> None:
    """More than the eight of one code, after which it would compile no more and say nothing."""
    _cell._compiled.cache_clear()  # of what other tests have compiled
    torch.compiler.reset()
    graphs = CompileCounter()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=graphs))
    for size in range(1, 11):
        NormGRU(INPUT, size, compiled=True)(sequence(dtype=torch.float32, steps=1))
    assert graphs.frame_count == 10
    _cell._compiled.cache_clear()
    torch.compiler.reset()


@pytest.mark.filterwarnings(  # the compiler's own: what it imports, and how it looks at a state
    "ignore:.*script_method:DeprecationWarning",
    "ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning",
)
def test_the_compiled_step_is_the_step() -> None:
    """float32: the compiler may sum in another order and join multiplication with addition."""
    cell = made(NormGRU, dtype=torch.float32)
    compiled, x = copy.deepcopy(cell), sequence(dtype=torch.float32)
    compiled.compiled = True
    h0 = torch.full((B, HIDDEN), 0.2, requires_grad=True)  # so that all steps have one graph
    h, expected = compiled(x, None, h0), cell(x, None, h0)
    torch.testing.assert_close(h, expected, rtol=0, atol=1e-5)
    h.sum().backward()
    expected.sum().backward()
    for got, wanted in zip(compiled.parameters(), cell.parameters(), strict=True):
        torch.testing.assert_close(got.grad, wanted.grad, rtol=1e-4, atol=1e-4)
    torch.compiler.reset()
