"""The kernels move the bytes of the model: their loads and stores, counted in the interpreter."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rmsnorm_edu import cost
from rmsnorm_edu.kernels import trace

FORWARDS = [  # rung, rows, d, type; rows and columns that fill no block
    ("one_row", 3, 129, "float16"),
    ("one_row", 3, 129, "float32"),
    ("one_row", 3, 129, "float64"),
    ("many_rows", 37, 31, "float16"),
    ("pipelined", 19, 100, "float32"),
    ("long_row", 2, 5000, "float16"),
]


def counted(operation, launches):
    """For each launch the programs, the bytes of all requests, and with each byte counted once."""
    words = ("rung", "rows", "d", "dtype")
    fixed = {"operation": operation, "keep": False}
    for found in trace.record_all(
        [dict(zip(words, each, strict=True)) | fixed for each in launches]
    ):
        requests, once = found.count(), found.count(once=True)
        yield requests["programs"], bytes_alone(requests), bytes_alone(once)


def bytes_alone(count):
    return {name: size for name, size in count.items() if name.startswith(("read", "write"))}


@pytest.mark.equation("forward-bytes")
def test_the_forward_moves_what_the_model_says():
    counts = counted("forward", FORWARDS)
    for (rung, *shape, dtype), (programs, requests, once) in zip(FORWARDS, counts, strict=True):
        assert once == cost.traffic("forward", *shape, dtype)
        weight = programs * once["read weight"]  # each program asks the cache for it
        twice = 2 if rung == "long_row" else 1  # once to sum, once to scale
        assert requests == once | {"read weight": weight, "read x": twice * once["read x"]}


BACKWARDS = [
    ("partials", 9, 700, "float16"),
    ("partials", 9, 129, "float32"),
    ("many_rows", 37, 31, "float32"),
    ("dx_only", 3, 129, "float16"),
    ("dx_long", 3, 9000, "float16"),
]


@pytest.mark.equation("backward-bytes", "partials-share")
def test_the_backward_moves_what_the_model_says():
    counts = counted("backward", BACKWARDS)
    for (rung, *shape, dtype), (_, requests, once) in zip(BACKWARDS, counts, strict=True):
        sums = once.get("write partials", 0) // (4 * shape[1])
        model = cost.traffic("backward", *shape, dtype, programs=sums)
        if rung == "dx_only":  # no sum over the rows
            del model["write dweight"]
        if rung == "dx_long":  # a kernel for dx and one for dweight: each reads x, dy and rstd
            model |= {f"read {name}": 2 * model[f"read {name}"] for name in ("x", "dy", "rstd")}
        assert once == model
        assert requests["read x"] == once["read x"] * (1.5 if rung == "dx_long" else 1)
