"""The counted streams of the rungs against what NumPy is asked to do, and the memory it takes."""

import tracemalloc
from collections import Counter
from typing import ClassVar

import numpy as np
import pytest

from rmsnorm_edu import fused_cpu
from rmsnorm_edu.benchmarks.cpu_ladder import STREAMS

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
    parts = 4 if rung == "blocked" else 1
    monkeypatch.setattr(fused_cpu, "BLOCK", x.nbytes // parts)
    monkeypatch.setattr(Told, "seen", Counter())
    monkeypatch.setattr(Told, "large", x.size // parts)
    out = None if fresh else np.empty_like(x).view(Told)
    fused_cpu.RUNGS[rung](x.view(Told), weight, 1e-6, out=out)
    counted = Counter(stream.way for stream in STREAMS[rung])
    assert Told.seen == {way: parts * counted[way] for way in ("read", "write")}


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("rung", NUMPY)
def test_numpy_alone_makes_arrays_in_between(rung, fresh):
    x, weight = example()
    out = None if fresh else np.empty_like(x)
    tracemalloc.start()
    try:
        fused_cpu.RUNGS[rung](x, weight, 1e-6, out=out)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    own = {stream.array for stream in STREAMS[rung]} - {"x", "y"}
    # the rest is some 64 KiB
    assert peak / x.nbytes == pytest.approx(len(own) + fresh, abs=0.05)


def test_each_rung_reads_x_and_writes_y_and_touches_each_new_array_first_once():
    for rung, found in STREAMS.items():
        reached = {(s.way, s.array) for s in found if s.place == "memory"}
        assert {("read", "x"), ("write", "y")} <= reached, rung
        if rung == "streamed":  # what the stores past the cache are for
            assert len(reached) == 2
            continue
        first = [s.array for s in found if s.way == "allocate"]
        assert sorted(first) == sorted({s.array for s in found} - {"x"}), rung
    assert set(STREAMS) == {*fused_cpu.RUNGS, "copy"}
