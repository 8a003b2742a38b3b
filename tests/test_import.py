"""``import rmsnorm_edu`` costs NumPy and next to nothing more."""

import subprocess
import sys

import pytest

import rmsnorm_edu

HEAVY = ("torch", "triton", "numba", "matplotlib", "anywidget", "ipywidgets", "IPython", "pandas")


def child(code: str) -> str:
    """What a fresh Python prints for `code`; its errors fail the test."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("module", ["", *rmsnorm_edu.__all__])
def test_no_heavy_library_is_loaded(module: str) -> None:
    name = f"rmsnorm_edu.{module}".rstrip(".")
    loaded = child(f"import sys, {name}; print(*set({HEAVY!r}) & set(sys.modules))")
    assert loaded == "", f"import {name} loads {loaded}"


def test_it_takes_at_most_150_ms_beyond_numpy() -> None:
    code = """
import time, numpy
start = time.process_time()  # of the processor, so that a busy machine makes no difference
import rmsnorm_edu
from rmsnorm_edu import recorded, reference
print(time.process_time() - start)
"""
    best = min(float(child(code)) for _ in range(4))
    assert best <= 0.15


def test_every_public_name_loads_and_an_unknown_one_lists_them() -> None:
    for name in rmsnorm_edu.__all__:
        assert getattr(rmsnorm_edu, name).__name__ == f"rmsnorm_edu.{name}"
    assert set(rmsnorm_edu.__all__) <= set(dir(rmsnorm_edu))
    with pytest.raises(AttributeError, match="has no attribute 'kernel'; it has"):
        _ = rmsnorm_edu.kernel
