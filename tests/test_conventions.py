"""`conventions`: the 2019 code, torch itself where it is, the traps, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from dialects import of
from golden_cases import cases

from rmsnorm_edu import conventions, reference

TYPES = ("float16", "bfloat16", "float32", "float64")


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


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("name", ["torch", "llama", "paper_tensorflow"])
def test_the_order_of_the_bytes_does_not_count(name, dtype):
    x, w = np.array([[0.5, -1.5, 2.25]], dtype), np.array([1.5, -0.25, 0.75], dtype)
    other, turned = (a.astype(a.dtype.newbyteorder()) for a in (x, w))
    y = conventions.apply(name, x, w)
    for pair in ((other, turned), (other, w), (x, turned)):
        z = conventions.apply(name, *pair)
        assert (z.dtype, z.tobytes()) == (y.dtype, y.tobytes())
        assert conventions.exact(name, *pair).tolist() == conventions.exact(name, x, w).tolist()


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
    for hidden in (masked, [masked, masked], (masked,)):
        with pytest.raises(TypeError, match="x has masked values; fill them first"):
            conventions.apply("torch", hidden)
    with pytest.raises(ValueError, match="x is inhomogeneous; give rows of the same length"):
        conventions.apply("torch", [[1.5, 2.0], [3.0]])
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
