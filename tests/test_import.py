"""``import rmsnorm_edu`` costs NumPy and next to nothing more."""

import subprocess
import sys

import pytest

import rmsnorm_edu

HEAVY = ("torch", "triton", "numba", "matplotlib", "anywidget", "ipywidgets", "IPython", "pandas")


def child(code: str) -> str:
    """What a fresh Python prints for `code`; its errors fail the test."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("module", ["", *rmsnorm_edu.__all__])
def test_no_heavy_library_is_loaded(module: str) -> None:
    name = f"rmsnorm_edu.{module}".rstrip(".")
    loaded = child(f"import sys, {name}; print(*set({HEAVY!r}) & set(sys.modules))")
    assert loaded == "", f"import {name} loads {loaded}"


def test_it_takes_less_long_than_numpy() -> None:
    """It takes a third of it, some 30 ms; NumPy measures how slow the machine is."""
    code = """
import time
start = time.process_time()  # of the processor, so that a busy machine makes no difference
import numpy
middle = time.process_time()
import rmsnorm_edu
from rmsnorm_edu import recorded, reference
print((time.process_time() - middle) / (middle - start))
"""
    best = min(float(child(code)) for _ in range(4))
    assert best < 1


def test_every_public_name_loads_and_an_unknown_one_lists_them() -> None:
    for name in rmsnorm_edu.__all__:
        assert getattr(rmsnorm_edu, name).__name__ == f"rmsnorm_edu.{name}"
    assert set(rmsnorm_edu.__all__) <= set(dir(rmsnorm_edu))
    with pytest.raises(AttributeError, match="has no attribute 'kernel'; it has"):
        _ = rmsnorm_edu.kernel
