"""Counted streams against what NumPy is asked to do, and how much memory it takes meanwhile."""

import tracemalloc
from collections import Counter
from typing import ClassVar

import numpy as np
import pytest

from rmsnorm_edu import fused_cpu, streams

ROWS, N = 512, 1024
NUMPY = ["numpy", "einsum", "blocked"]


class Told(np.ndarray):
    """An array that counts each operation's reads and writes of arrays of `large` numbers."""

    seen: ClassVar[Counter] = Counter()
    large: ClassVar[int] = 0

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **kwargs):
        target = {"out": tuple(map(np.asarray, out))} if out else {}
        return self.told(getattr(ufunc, method), inputs, out, kwargs | target)

    def __array_function__(self, function, types, args, kwargs):
        if function is np.einsum:  # the others are made of ufuncs, or move nothing
            return self.told(function, args, (), kwargs)
        return super().__array_function__(function, types, args, kwargs)

    @classmethod
    def told(cls, call, inputs, out, kwargs):
        plain = [np.asarray(a) if isinstance(a, np.ndarray) else a for a in inputs]
        result = np.asarray(call(*plain, **kwargs))
        # einsum reads the one array x at both its places: it streams once
        arrays = {id(a): a for a in inputs if isinstance(a, np.ndarray)}.values()
        cls.seen["read"] += sum(a.size == cls.large for a in arrays)
        cls.seen["write"] += result.size == cls.large
        return out[0] if out else result.view(cls)

    def __setitem__(self, key, value):
        if value.size == self.large and not np.shares_memory(np.asarray(self), np.asarray(value)):
            self.seen.update(read=1, write=1)
        np.asarray(self)[key] = np.asarray(value)


def example():
    rng = np.random.default_rng(5)
    x = rng.normal(0.5, 2, (ROWS, N)).astype(np.float32)
    return x, rng.uniform(-2, 2, N).astype(np.float32)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("rung", NUMPY)
def test_the_reads_and_writes_are_those_that_numpy_is_asked_for(rung, fresh, monkeypatch):
    x, weight = example()
    monkeypatch.setattr(fused_cpu, "BLOCK", x.nbytes // 4)
    parts = 4 if rung == "blocked" else 1
    monkeypatch.setattr(Told, "seen", Counter())
    monkeypatch.setattr(Told, "large", x.size // parts)
    out = None if fresh else np.empty_like(x).view(Told)
    fused_cpu.RUNGS[rung](x.view(Told), weight, 1e-6, out=out)
    counted = Counter(s.verb for step in streams.steps(rung, fresh) for s in step.streams)
    assert Told.seen == {verb: parts * counted[verb] for verb in ("read", "write")}


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("rung", NUMPY)
def test_zeros_are_counted_for_each_array_that_is_made(rung, fresh):
    x, weight = example()
    out = None if fresh else np.empty_like(x)
    tracemalloc.start()
    try:
        fused_cpu.RUNGS[rung](x, weight, 1e-6, out=out)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    zeros = sum(s.verb == "zero" for step in streams.steps(rung, fresh) for s in step.streams)
    alive = 2 if rung == "numpy" else zeros  # of its three arrays two live at a time
    assert peak / x.nbytes == pytest.approx(alive, abs=0.05)  # the rest is some 64 KiB


def test_every_rung_reads_x_and_writes_y_once_at_least_and_touches_new_lines_once():
    for method in streams.METHODS:
        for fresh in (False, True):
            found = [s for step in streams.steps(method, fresh) for s in step.streams]
            reached = {(s.verb, s.array) for s in found if s.level == "memory"}
            assert {("read", "x"), ("write", "y"), ("zero" if fresh else "fetch", "y")} <= reached
            firsts = [s.array for s in found if s.verb in ("zero", "fetch")]
            assert len(firsts) == len(set(firsts))
            assert set(firsts) == {s.array for s in found} - {"x"}


def test_what_a_copy_moves_no_rung_moves_less():
    counts = {method: streams.arrays(method) for method in streams.METHODS}
    assert counts == {"copy": 3, "loop": 3, "numpy": 13, "einsum": 6, "blocked": 3, "fused": 3}
    assert streams.arrays("numpy", fresh=True) == 10
    assert set(fused_cpu.RUNGS) | {"copy"} == set(streams.METHODS)


def test_bytes_follow_shape_and_type():
    assert streams.bytes_moved("einsum", 3, 5, "float64") == 6 * 15 * 8
    assert streams.bytes_moved("numpy", 3, 5, np.float16, fresh=True) == 10 * 15 * 2


def test_what_it_does_not_know_is_an_error():
    with pytest.raises(ValueError, match="method"):
        streams.steps("sum")
    with pytest.raises(ValueError, match="rows"):
        streams.bytes_moved("copy", 0, 4, "float32")
