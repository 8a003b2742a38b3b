"""The kernels move the bytes of the model: their loads and stores, counted in the interpreter."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rmsnorm_edu import cost
from rmsnorm_edu.kernels import trace

SIZES = {"float16": 4, "float32": 4, "float64": 8}  # of the sums
LAUNCHES = [  # operation, rung, rows, d, type; rows and columns that fill no block
    ("forward", "one_row", 3, 129, "float16"),
    ("forward", "one_row", 3, 129, "float32"),
    ("forward", "one_row", 3, 129, "float64"),
    ("forward", "many_rows", 37, 31, "float16"),
    ("forward", "pipelined", 19, 100, "float32"),
    ("forward", "long_row", 2, 5000, "float16"),
    ("backward", "partials", 9, 700, "float16"),
    ("backward", "partials", 9, 129, "float64"),
    ("backward", "many_rows", 37, 31, "float32"),
    ("backward", "dx_only", 3, 129, "float16"),
    ("backward", "dx_long", 3, 9000, "float16"),
    ("add_forward", None, 5, 700, "float16"),
    ("add_forward", None, 37, 31, "float32"),
    ("add_backward", None, 5, 700, "float16"),
    ("add_backward", None, 37, 31, "float32"),
]


@pytest.fixture(scope="module")
def counts():
    """All of them in one child: to import torch takes longer than to count."""
    words = ("operation", "rung", "rows", "d", "dtype")
    wanted = [dict(zip(words, each, strict=True)) | {"keep": False} for each in LAUNCHES]
    return dict(zip(LAUNCHES, trace.record_all(wanted), strict=True))


def bytes_alone(count):
    return {name: size for name, size in count.items() if name.startswith(("read", "write"))}


@pytest.mark.equation("forward-bytes", "backward-bytes", "partials-share")
@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda each: "-".join(map(str, each)))
def test_a_kernel_moves_what_the_model_says(counts, launch):
    operation, rung, rows, d, dtype = launch
    once = bytes_alone(counts[launch].count(once=True))
    sums = once.get("write partials", 0) // (d * SIZES[dtype])
    model = cost.traffic(operation, rows, d, dtype, programs=sums)
    if rung == "dx_only":  # no sum over the rows
        del model["write dweight"]
    if rung == "dx_long":  # a kernel for dx and one for dweight: each reads x, dy and rstd
        model |= {f"read {name}": 2 * model[f"read {name}"] for name in ("x", "dy", "rstd")}
    assert once == model


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda each: "-".join(map(str, each)))
def test_what_is_asked_for_again(counts, launch):
    rung = launch[1]
    once = bytes_alone(counts[launch].count(once=True))
    asked = bytes_alone(counts[launch].count())
    programs = len(counts[launch].launches[0]["programs"])
    again = {name for name in asked if asked[name] != once[name]}
    if rung == "long_row":  # once to sum, once to scale
        assert asked["read x"] == 2 * once["read x"]
    if rung == "dx_long":  # twice for dx, once for dweight
        assert asked["read x"] == 1.5 * once["read x"]
    if "long" not in str(rung):  # each program asks the cache for the weight, for nothing else
        assert again <= {"read weight"}
        assert asked["read weight"] == programs * once["read weight"]
