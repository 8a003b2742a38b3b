"""``import rmsnorm_edu`` costs NumPy and next to nothing more."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
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


def test_help_needs_numpy_alone(tmp_path) -> None:
    """`help` asks a module for each name that it lists: none may need what is not installed."""
    home = Path(np.__file__).parents[1]
    for folder in ("numpy", "numpy.libs"):  # the second where the wheel has one
        if (home / folder).is_dir():
            (tmp_path / folder).symlink_to(home / folder)
    code = """
import pydoc, sys
import rmsnorm_edu
for name in rmsnorm_edu.__all__:
    assert name in pydoc.render_doc(getattr(rmsnorm_edu, name)).splitlines()[0]
assert "checks" in pydoc.render_doc(rmsnorm_edu)
assert "torch" not in sys.modules
"""
    paths = os.pathsep.join(map(str, [Path(rmsnorm_edu.__file__).parents[1], tmp_path]))
    command = [sys.executable, "-S", "-c", code]  # without site-packages
    environment = os.environ | {"PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
