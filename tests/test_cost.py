"""Bytes, arithmetic and time of each operation, against closed formulas and torch's own passes."""

import itertools
import math

import numpy as np
import pytest

from rmsnorm_edu import cost

SHAPES = [(1, 1), (3, 7), (5, 8), (127, 129), (4096, 1024), (1, 65536), (65536, 1)]
SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
GRID = [(*shape, dtype, size) for shape in SHAPES for dtype, size in SIZES.items()]

# Closed formulas: arrays of rows × n, vectors of n, numbers of the wide type for each row.
FUSED = {
    "forward": (2, 1, 1),
    "backward": (3, 2, 1),
    "add_forward": (4, 1, 1),
    "add_backward": (4, 2, 1),
    "add_then_forward": (5, 1, 1),
    "add_then_backward": (6, 2, 1),
    "layer_norm_forward": (2, 2, 2),
    "layer_norm_backward": (3, 3, 2),
}
# The passes in full arrays: of the type itself, of the wide type where a conversion is in between.
UNFUSED = {
    "forward_unfused": (7, (2, 9)),
    "backward_unfused": (23, (2, 25)),
    "add_forward_unfused": (10, (5, 9)),
    "add_backward_unfused": (26, (5, 25)),
    "layer_norm_forward_unfused": (12, (2, 14)),
    "layer_norm_backward_unfused": (31, (2, 33)),
}


@pytest.mark.equation("forward-bytes", "backward-bytes")
@pytest.mark.parametrize("operation", FUSED)
def test_fused_bytes_are_the_closed_formula(operation):
    full, vectors, per_row = FUSED[operation]
    for rows, n, dtype, s in GRID:
        expected = full * rows * n * s + vectors * n * s + per_row * rows * max(s, 4)
        assert cost.bytes_moved(operation, rows, n, dtype) == expected


@pytest.mark.equation("unfused-bytes")
@pytest.mark.parametrize("operation", UNFUSED)
def test_unfused_bytes_are_so_many_full_arrays_and_little_else(operation):
    alike, (own, wide) = UNFUSED[operation]
    for rows, n, dtype, s in GRID:
        full = rows * n * (alike * s if s >= 4 else own * s + wide * 4)
        rest = cost.bytes_moved(operation, rows, n, dtype) - full
        assert 0 < rest <= (14 * rows + 8 * n) * max(s, 4)


def test_every_operation_has_a_closed_formula_here():
    assert set(cost.OPERATIONS) == FUSED.keys() | UNFUSED.keys()


@pytest.mark.equation("partials-share")
@pytest.mark.parametrize(("operation", "vectors"), [("backward", 1), ("layer_norm_backward", 2)])
def test_partial_sums_are_written_once_and_read_once(operation, vectors):
    for rows, n, dtype, s in GRID:
        more = cost.traffic(operation, rows, n, dtype, programs=132)
        less = cost.traffic(operation, rows, n, dtype)
        each = vectors * 132 * n * max(s, 4)
        assert more == less | {"write partials": each, "read partials": each}


# kernels.md of the project computed these by hand, in µs: forward and backward, bfloat16.
BY_HAND = {
    "T4": [(52, 79), (420, 629), (1678, 2517)],
    "L4": [(56, 84), (448, 671), (1790, 2685)],
    "A100-40": [(11, 16), (86, 130), (345, 518)],
    "A100-80": [(8, 12), (66, 99), (263, 395)],
    "H100": [(5.0, 7.5), (40, 60), (160, 240)],
    "H200": [(3.5, 5.2), (28, 42), (112, 168)],
    "B200": [(2.1, 3.1), (17, 25), (67, 101)],
}


@pytest.mark.equation("time-floor")
@pytest.mark.parametrize("chip", cost.CHIPS)
def test_floors_by_hand(chip):
    shapes = [(4096, 1024), (8192, 4096), (32768, 4096)]
    for (rows, n), by_hand in zip(shapes, BY_HAND[chip], strict=True):
        for operation, micro in zip(("forward", "backward"), by_hand, strict=True):
            floor = 1e6 * cost.floor(operation, rows, n, "bfloat16", chip)
            assert floor == pytest.approx(micro, abs=0.06 if micro < 8 else 0.6)


def test_no_norm_of_many_features_is_bound_by_arithmetic():
    for operation, chip in itertools.product(cost.OPERATIONS, cost.CHIPS):
        for dtype in ("float16", "float32"):
            moved = cost.bytes_moved(operation, 4096, 4096, dtype) / cost.CHIPS[chip].bandwidth
            assert cost.floor(operation, 4096, 4096, dtype, chip) == moved


def test_slow_arithmetic_sets_the_floor_where_there_is_enough_of_it():
    slow = cost.Chip("slow", 1e9, {"float32": 1e6}, "")
    expected = cost.flops("forward", 8, 64) / 1e6
    assert cost.floor("forward", 8, 64, "bfloat16", slow) == pytest.approx(expected, rel=1e-15)


@pytest.mark.equation("roofline")
def test_the_roof_rises_to_the_ridge_and_is_flat_from_there():
    for name, chip in cost.CHIPS.items():
        for dtype, peak in chip.flops.items():
            ridge = cost.ridge(name, dtype)
            assert cost.roof(name, dtype, ridge / 2) == pytest.approx(peak / 2, rel=1e-15)
            assert cost.roof(chip, dtype, 2 * ridge) == peak
    assert cost.roof("B200", "float16", 1e9) == 8e21
    assert cost.ridge("B200", "float16") == math.inf


def test_no_published_time_beats_its_floor_and_large_ones_come_near():
    for report in cost.REPORTED:
        floor = cost.floor(*report[2:6], report.chip)
        assert floor < report.seconds
        if floor > 1e-4:  # hundred times the start of a kernel
            assert report.seconds < 1.35 * floor


class Counting(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that counts the floating-point operations done to it."""

    total = 0

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [a.values if isinstance(a, Counting) else a for a in inputs]
        result = getattr(ufunc, method)(*plain, **options)
        count = np.asarray(plain[0]).size if method == "reduce" else np.asarray(result).size
        Counting.total += count
        return Counting(result)

    def sum(self, axis):
        return np.add.reduce(self, axis=axis, keepdims=True)


def forward(x, weight):
    root = np.sqrt((x * x).sum(-1) / x.values.shape[-1] + 1e-6)
    return x * (1 / root) * weight


def backward(dy, x, rstd, weight):
    normalised = x * rstd
    u = dy * weight
    mean = (u * normalised).sum(-1) / x.values.shape[-1]
    return (u - normalised * mean) * rstd, (dy * normalised).sum(0)


def layer_norm(x, weight, bias):
    n = x.values.shape[-1]
    centred = x - x.sum(-1) / n
    root = np.sqrt((centred * centred).sum(-1) / n + 1e-6)
    return centred * (1 / root) * weight + bias


def layer_norm_backward(dy, x, mean, rstd, weight):
    n = x.values.shape[-1]
    normalised = (x - mean) * rstd
    u = dy * weight
    first, second = u.sum(-1) / n, (u * normalised).sum(-1) / n
    return (u - normalised * second - first) * rstd, (dy * normalised).sum(0), dy.sum(0)


@pytest.mark.equation("forward-flops", "backward-flops")
@pytest.mark.parametrize(("rows", "n"), [(1, 1), (3, 7), (5, 128)])
@pytest.mark.parametrize(
    ("operation", "function", "full", "per_row"),
    [
        ("forward", forward, 1, 0),
        ("backward", backward, 2, 1),
        ("layer_norm_forward", layer_norm, 1, 0),
        ("layer_norm_backward", layer_norm_backward, 2, 2),
    ],
)
def test_arithmetic_is_that_of_the_formula(operation, function, full, per_row, rows, n):
    rng = np.random.default_rng(0)
    arrays = [Counting(rng.uniform(1, 2, (rows, n))) for _ in range(full)]
    arrays += [Counting(rng.uniform(1, 2, (rows, 1))) for _ in range(per_row)]
    vectors = rng.uniform(1, 2, (2 if function is layer_norm else 1, n))
    Counting.total = 0
    function(*arrays, *vectors)
    reciprocal = rows if "forward" in operation else 0  # one over the root counts as one
    assert Counting.total - reciprocal == cost.flops(operation, rows, n)


def test_adding_up_partial_sums_is_arithmetic_too():
    more = cost.flops("backward", 64, 7, programs=4) - cost.flops("backward", 64, 7)
    assert more == 4 * 7
    assert cost.flops("add_forward", 5, 8) == cost.flops("forward", 5, 8) + 40


@pytest.mark.equation("arithmetic-intensity")
def test_intensity_tends_to_four_operations_for_two_arrays():
    assert cost.intensity("forward", 10**5, 10**5, "bfloat16") == pytest.approx(1, rel=1e-4)
    assert cost.intensity("backward", 10**5, 10**5, "float32") == pytest.approx(3 / 4, rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("forwards", 2, 3, "float32"), "operation = 'forwards'; it is one of forward, backward"),
        (("forward", 0, 3, "float32"), "rows = 0; give an integer >= 1"),
        (("forward", 2, 0, "float32"), "n = 0; give an integer >= 1"),
        (("forward", 2, 3, "int8"), "dtype = int8; it is one of float16"),
    ],
)
def test_bad_input_says_the_fix(arguments, words):
    for function in (cost.traffic, cost.bytes_moved, cost.intensity):
        with pytest.raises(ValueError, match=words):
            function(*arguments)


def test_programs_without_partial_sums_are_an_error():
    with pytest.raises(ValueError, match="programs = 4, but forward has no partial sums"):
        cost.traffic("forward", 2, 3, "float32", programs=4)
    with pytest.raises(ValueError, match="programs = 4, but backward_unfused has no"):
        cost.flops("backward_unfused", 2, 3, programs=4)
    with pytest.raises(ValueError, match="programs = -1; give an integer >= 0"):
        cost.bytes_moved("backward", 2, 3, "float32", programs=-1)
    with pytest.raises(ValueError, match="chip = 'V100'; it is one of T4, L4"):
        cost.floor("forward", 2, 3, "float32", "V100")
    with pytest.raises(ValueError, match="intensity = nan; give flop/byte"):
        cost.roof("T4", "float32", math.nan)
    with pytest.raises(TypeError, match="intensity = '3' is str; give flop/byte"):
        cost.roof("T4", "float32", "3")
    for rate in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="give positive numbers, in bytes/s and flop/s"):
            cost.floor("forward", 2, 3, "float32", cost.Chip("own", rate, {}, ""))


def test_a_roof_does_not_take_the_type_of_its_intensity():
    assert cost.roof("T4", "float32", np.float32(3)) == 3 * 320e9
