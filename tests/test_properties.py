"""What holds for every input: properties of `reference`, tried on inputs that Hypothesis picks."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rmsnorm_edu import precision, reference

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, max_examples=60
)
settings.load_profile("repeatable")

U = 2.0**-53  # unit roundoff of float64
FLOATS = (np.float16, np.float32, np.float64)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 5e-324, -1e-310, 1e-160, 1e160, -1e300)

ordinary = st.floats(2.0**-10, 2.0**10) | st.floats(-(2.0**10), -(2.0**-10))
finite = st.sampled_from(SPECIAL) | ordinary
anything = finite | st.sampled_from([np.nan, np.inf, -np.inf])
shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)


def rows(elements: st.SearchStrategy[float] = finite) -> st.SearchStrategy[np.ndarray]:
    return shapes.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=elements))


@st.composite
def problems(draw: st.DrawFn, elements: st.SearchStrategy[float] = finite):
    """(x, dy, weight, options): everything that `rms_norm_vjp` takes."""
    x = draw(rows(elements))
    n = x.shape[-1]
    dy = draw(hnp.arrays(np.float64, x.shape, elements=ordinary))
    weight = draw(hnp.arrays(np.float64, (n,), elements=ordinary))
    options = {
        "eps": draw(st.sampled_from([1e-12, 1e-6, 1e-2, 10.0])),
        "k": draw(st.none() | st.integers(1, n)),
        "eps_outside": draw(st.booleans()),
    }
    return x, dy, weight, options


def divisor(x: np.ndarray, options: dict) -> np.ndarray:
    """D as it is written in the book; real or complex x."""
    mean_square = np.mean(x[..., : options["k"]] ** 2, axis=-1, keepdims=True)
    if options["eps_outside"]:
        return np.sqrt(mean_square) + options["eps"]
    return np.sqrt(mean_square + options["eps"])


@pytest.mark.equation("rms-norm", "rms")
@given(problems())
def test_finite_input_gives_finite_output_on_or_in_the_sphere(problem) -> None:
    x, _, _, options = problem
    options |= {"k": None}
    y = reference.rms_norm(x, **options)
    assert y.shape == x.shape
    assert np.isfinite(y).all()
    assert (reference.rms(y) <= 1 + 16 * U).all()  # with eps inside the sphere of radius √n
    assert (np.sign(y) * np.sign(x) >= 0).all()


@given(problems(anything), st.data())
def test_a_row_has_the_same_bits_whatever_the_batch(problem, data) -> None:
    x, dy, weight, options = problem
    index = tuple(data.draw(st.integers(0, size - 1)) for size in x.shape[:-1])
    dx, _ = reference.rms_norm_vjp(dy, x, weight, **options)
    for whole, alone in (
        (reference.rms(x), reference.rms(x[index])),
        (reference.rms_norm(x, weight, **options), reference.rms_norm(x[index], weight, **options)),
        (dx, reference.rms_norm_vjp(dy[index], x[index], weight, **options)[0]),
        (reference.layer_norm(x, weight), reference.layer_norm(x[index], weight)),
    ):
        np.testing.assert_array_equal(whole[index], alone)


@given(problems(anything), st.integers(2, 300))
def test_long_rows_and_many_rows_have_the_same_bits(problem, times: int) -> None:
    """Beyond 128 features NumPy sums in blocks; the blocks must not depend on the batch."""
    x, dy, weight, _ = problem
    x, dy = (np.tile(a.reshape(-1, a.shape[-1]), (3, times)) for a in (x, dy))
    weight = np.tile(weight, times)
    dx, _ = reference.rms_norm_vjp(dy, x, weight, k=times)
    np.testing.assert_array_equal(dx[-1], reference.rms_norm_vjp(dy[-1], x[-1], weight, k=times)[0])
    y = reference.rms_norm(x, weight)
    np.testing.assert_array_equal(y[-1], reference.rms_norm(x[-1], weight))


@given(problems(anything))
def test_strides_do_not_matter_and_nothing_is_written(problem) -> None:
    x, dy, weight, options = problem
    layouts = [np.asfortranarray(x), np.repeat(x, 2, axis=-1)[..., ::2], x[..., ::-1][..., ::-1]]
    y, (dx, dweight) = (
        reference.rms_norm(x, weight, **options),
        reference.rms_norm_vjp(dy, x, weight, **options),
    )
    for view in layouts:
        view.flags.writeable = False
        other = np.asfortranarray(dy)
        other.flags.writeable = False
        np.testing.assert_array_equal(reference.rms_norm(view, weight, **options), y)
        again, dweight_again = reference.rms_norm_vjp(other, view, weight, **options)
        np.testing.assert_array_equal(again, dx)
        np.testing.assert_array_equal(dweight_again, dweight)
        np.testing.assert_array_equal(view, x)
        assert not np.shares_memory(again, other)


@given(rows(anything))
def test_without_a_weight_the_result_is_still_new(x: np.ndarray) -> None:
    for got in (reference.rms_norm(x), reference.rms_norm_vjp(x, x)[0], reference.layer_norm(x)):
        assert not np.shares_memory(got, x)
        assert got.dtype == np.float64


@given(problems(anything))
def test_nan_and_inf_stay_in_their_row(problem) -> None:
    x, _, weight, options = problem
    options |= {"k": None}
    y = reference.rms_norm(x, weight, **options)
    nan, inf = np.isnan(x).any(-1, keepdims=True), np.isinf(x)
    spoilt = ~nan & inf.any(-1, keepdims=True)
    assert np.isnan(y[np.broadcast_to(nan, y.shape)]).all()
    assert np.isnan(y[spoilt & inf]).all()
    assert (y[spoilt & ~inf] == 0).all()
    assert np.isfinite(y[np.broadcast_to(~nan & ~spoilt, y.shape)]).all()


@pytest.mark.equation("scale-invariance")
@given(problems(ordinary), st.sampled_from([-1.0, 2.0, -0.5, 2.0**900, -(2.0**-900)]))
def test_scaling_by_a_power_of_two_changes_no_bit_but_the_sign(problem, alpha: float) -> None:
    x, dy, weight, options = problem
    options |= {"eps": 0.0}
    assume((reference.rms(x[..., : options["k"]]) > 0).all())
    sign = np.sign(alpha)
    y = reference.rms_norm(x, weight, **options)
    np.testing.assert_array_equal(reference.rms_norm(alpha * x, weight, **options), sign * y)
    dx, dweight = reference.rms_norm_vjp(dy, x, weight, **options)
    after, dweight_after = reference.rms_norm_vjp(dy, alpha * x, weight, **options)
    np.testing.assert_array_equal(after, dx / abs(alpha))  # the gradient shrinks as x grows
    np.testing.assert_array_equal(dweight_after, sign * dweight)


@given(problems(ordinary))
def test_gradient_is_orthogonal_to_x_without_eps(problem) -> None:
    x, dy, weight, options = problem
    options |= {"eps": 0.0, "k": None}
    dx, _ = reference.rms_norm_vjp(dy, x, weight, **options)
    n = x.shape[-1]
    size = np.linalg.norm(dy * weight, axis=-1) * np.linalg.norm(x, axis=-1) / reference.rms(x)
    assert (np.abs(np.sum(dx * x, axis=-1)) <= (4 * n + 32) * U * size).all()


@given(problems(ordinary), st.data())
def test_vjp_and_jvp_are_adjoint_in_x_and_weight(problem, data) -> None:
    """⟨dy, J(dx, dweight)⟩ = ⟨Jᵀdy, (dx, dweight)⟩, relative to the terms that are summed."""
    x, dy, weight, options = problem
    step = data.draw(hnp.arrays(np.float64, x.shape, elements=ordinary))
    dweight = data.draw(hnp.arrays(np.float64, weight.shape, elements=ordinary))
    jvp = reference.rms_norm_jvp(step, x, weight, dweight, **options)
    gradient_x, gradient_weight = reference.rms_norm_vjp(dy, x, weight, **options)
    d = divisor(x, options)
    slope = (
        np.linalg.norm(x, axis=-1, keepdims=True)
        * np.sqrt(x.shape[-1])
        / reference.rms(x[..., : options["k"]])[..., np.newaxis]
    )
    length = np.linalg.norm(dy * weight, axis=-1, keepdims=True)
    terms = np.sum(length * np.linalg.norm(step, axis=-1, keepdims=True) * (1 + slope) / d)
    terms += np.sum(np.abs(dy * x / d * dweight))
    difference = np.sum(dy * jvp) - np.sum(gradient_x * step) - np.sum(gradient_weight * dweight)
    assert abs(difference) <= (x.size + 32) * U * terms


@given(problems(ordinary))
def test_vjp_is_the_derivative_by_complex_step(problem) -> None:
    """Im L(x + ih)/h of the equation as it is written: exact to rounding, nothing is subtracted."""
    x, dy, weight, options = problem
    dx, dweight = reference.rms_norm_vjp(dy, x, weight, **options)
    n, d = x.shape[-1], divisor(x, options)
    along = np.sum(np.abs(dy * weight * x), axis=-1, keepdims=True) / d
    unit = np.max(np.abs(x[..., : options["k"]]), axis=-1, keepdims=True) / d
    if options["eps_outside"]:
        unit = np.sqrt(n)
    terms = (np.max(np.abs(dy * weight), axis=-1, keepdims=True) + unit * along) / d
    for i in range(n):
        moved = x + 1e-30j * (np.arange(n) == i)
        loss = np.sum(dy * weight * moved / divisor(moved, options), axis=-1)
        wrong = np.abs(dx[..., i] - loss.imag / 1e-30)
        assert (wrong <= 2 * precision.bound("float64", n, what="dx") * terms[..., 0]).all()
    expected = np.sum((dy * x / d).reshape(-1, n), axis=0)
    size = np.sum(np.abs(dy * x / d).reshape(-1, n), axis=0)
    apart = 2 * precision.bound("float64", n, x.size // n, what="dweight")
    assert (np.abs(dweight - expected) <= apart * size).all()


@given(problems(ordinary), st.data())
def test_jvp_is_the_derivative_by_complex_step(problem, data) -> None:
    x, step, weight, options = problem
    dweight = data.draw(hnp.arrays(np.float64, weight.shape, elements=ordinary))
    got = reference.rms_norm_jvp(step, x, weight, dweight, **options)
    moved = x + 1e-30j * step
    y = moved / divisor(moved, options) * (weight + 1e-30j * dweight)
    d, n = divisor(x, options), x.shape[-1]
    length = np.linalg.norm(step, axis=-1, keepdims=True)
    growth = (
        length if options["eps_outside"] else length * np.linalg.norm(x, axis=-1)[..., None] / d
    )
    terms = np.abs(weight) * (np.abs(step) + np.abs(x) / d * growth) / d + np.abs(x / d * dweight)
    assert (np.abs(got - y.imag / 1e-30) <= (4 * n + 48) * U * terms).all()


@pytest.mark.equation("layer-norm")
@given(problems(ordinary), st.floats(-100, 100))
def test_layer_norm_does_not_see_a_shift_and_rms_norm_of_a_centred_row_is_it(problem, c) -> None:
    """A shift by c rounds each x by u·(|x| + |c|), against a spread that eps = 1 keeps off 0."""
    x, _, weight, _ = problem
    before = reference.layer_norm(x, weight, eps=1.0)
    after = reference.layer_norm(x + c, weight, eps=1.0)
    size = np.max(np.abs(x), axis=-1, keepdims=True) + abs(c)
    atol = 32 * U * size * np.abs(weight) + 32 * U * np.abs(before)
    assert (np.abs(before - after) <= atol * (1 + np.abs(before / weight))).all()
    assert (np.abs(reference.layer_norm(x).mean(-1)) <= 32 * U).all()


@given(hnp.arrays(st.sampled_from(FLOATS), shapes, elements=st.floats(-8, 8, width=16)))
def test_the_width_of_the_input_does_not_change_the_output(x: np.ndarray) -> None:
    y = reference.rms_norm(x)
    assert y.dtype == np.float64
    np.testing.assert_array_equal(y, reference.rms_norm(x.astype(np.float64)))


@given(
    hnp.arrays(
        hnp.integer_dtypes() | hnp.boolean_dtypes() | hnp.complex_number_dtypes(sizes=(64, 128)),
        shapes,
    )
)
def test_other_types_are_errors(x: np.ndarray) -> None:
    for call in (reference.rms, reference.rms_norm, reference.layer_norm, reference.batch_norm):
        with pytest.raises(TypeError, match=r"x has dtype .*; give float16, float32 or float64"):
            call(x)


@given(rows(ordinary), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6))
def test_wrong_shapes_are_errors_that_name_both(x: np.ndarray, shape: tuple[int, ...]) -> None:
    other = np.full(shape, 0.5)
    if shape != x.shape[-1:]:
        with pytest.raises(ValueError, match=r"weight has shape .* x has shape"):
            reference.rms_norm(x, other)
    if shape != x.shape:
        with pytest.raises(ValueError, match=r"dy has shape .*, x "):
            reference.rms_norm_vjp(other, x)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=3), st.integers(1, 6))
def test_empty_batches(batch: list[int], n: int) -> None:
    assume(0 in batch)
    x, weight = np.zeros((*batch, n)), np.full(n, -2.0)
    assert reference.rms_norm(x, weight, weight).shape == x.shape
    dx, dweight = reference.rms_norm_vjp(x, x, weight)
    assert dx.shape == x.shape
    np.testing.assert_array_equal(dweight, np.zeros(n))


@given(st.integers(1, 10**6), st.integers(1, 10**4))
def test_partial_size_is_the_ceiling_of_the_decimal(n: int, ten_thousandths: int) -> None:
    k = reference.partial_size(n, ten_thousandths / 10**4)
    assert k == -(-n * ten_thousandths // 10**4)
    assert 1 <= k <= n
