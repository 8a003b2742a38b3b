"""The wheel, installed in an empty environment outside the repository, has all it needs."""

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[1]
USE = """
import pydoc
import sys
import rmsnorm_edu
from rmsnorm_edu import explorables, recorded
from rmsnorm_edu.experiments import data

assert rmsnorm_edu.__file__.startswith(sys.prefix), rmsnorm_edu.__file__
for name in rmsnorm_edu.__all__:
    getattr(rmsnorm_edu, name)
figures = sorted({*explorables.__all__} - {"Figure", "KernelStepper"})
assert "KernelStepper" in pydoc.render_doc(explorables)
try:
    explorables.KernelStepper()  # records kernels, for which torch and triton would be needed
    raise AssertionError("torch is in an empty environment")
except ImportError as error:
    assert 'pip install "rmsnorm_edu[torch,triton]"' in str(error), error
for name in figures:
    page = getattr(explorables, name)().to_html()
    assert 'class="rmsn-figure"' in page, name
for name in recorded.names():
    assert recorded.load(name).caption, name
assert len(data.pairs()) == 9775
print(len(recorded.names()), "records,", len(figures), "explorables")
"""


def run(*command, cwd):
    """The command's output; its errors fail the test. Nothing of this environment leaks in."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "RMSNORM_BOOK")}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    [found] = folder.glob("*.whl")
    return found


def test_numpy_is_the_only_hard_dependency(wheel):
    with ZipFile(wheel) as archive:
        [metadata] = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        lines = archive.read(metadata).decode().splitlines()
        assert not [n for n in archive.namelist() if n.startswith(("tests", "book", "tools"))]
        data = "rmsnorm_edu/experiments/data/"
        shipped = {n.removeprefix(data) for n in archive.namelist() if n.startswith(data)}
    assert {"README.md", "homeassistant-en-de.tsv.xz", "homeassistant_LICENSE.md"} <= shipped
    required = [line for line in lines if line.startswith("Requires-Dist") and "extra" not in line]
    assert required == ["Requires-Dist: numpy>=2.1"]


def test_it_works_in_an_empty_environment(wheel, tmp_path):
    """With the extras that the chapters ask for: import, every explorable, every record."""
    run(sys.executable, "-m", "venv", "--without-pip", "env", cwd=tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    options = ["-q", "--no-compile", "-c", ROOT / "requirements.txt"]
    options += os.environ.get("PIP_ARGS", "").split()  # what make was given
    pip = [sys.executable, "-m", "pip", "--python", python, "install", *options]
    run(*pip, f"{wheel}[widgets,precision]", cwd=tmp_path)
    said = run(python, "-W", "error", "-c", USE, cwd=tmp_path)
    assert said.endswith("explorables\n")
