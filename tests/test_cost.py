"""Bytes, arithmetic and time of each operation, against closed formulas and torch's own passes."""

import itertools
import math

import numpy as np
import pytest

from rmsnorm_edu import cost

SHAPES = [(1, 1), (3, 7), (5, 8), (127, 129), (4096, 1024), (1, 65536), (65536, 1)]
SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
GRID = list(itertools.product(SHAPES, SIZES))

# Closed formulas: (arrays of rows × n, vectors of n, numbers of the wide type for each row).
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


@pytest.mark.equation("forward-bytes", "backward-bytes")
@pytest.mark.parametrize("operation", FUSED)
def test_fused_bytes_are_the_closed_formula(operation):
    full, vectors, per_row = FUSED[operation]
    for (rows, n), dtype in GRID:
        s = SIZES[dtype]
        expected = full * rows * n * s + vectors * n * s + per_row * rows * max(s, 4)
        assert cost.bytes_moved(operation, rows, n, dtype) == expected
