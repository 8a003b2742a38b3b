"""What of `frameworks` needs no framework; its layers are tested by `make frameworks`."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from rmsnorm_edu import frameworks
from rmsnorm_edu.benchmarks import frameworks as runs

LAZY = {"keras": "tensorflow", "flax": "jax", "pytensor": "pytensor"}


def test_importing_the_package_loads_no_framework() -> None:
    code = (
        "import sys, rmsnorm_edu.frameworks, rmsnorm_edu.benchmarks.framework_manners\n"
        "print({'keras', 'jax', 'flax', 'pytensor', 'torch', 'tensorflow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("name", [name for name in LAZY if find_spec(name) is None])
def test_a_missing_framework_says_what_to_install(name: str) -> None:
    words = rf'not installed: pip install "rmsnorm_edu\[{LAZY[name]}\]"'
    with pytest.raises(ImportError, match=words):
        getattr(frameworks, name)
    assert name not in runs.installed()


def test_an_unknown_attribute_lists_what_there_is() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'mxnet'; it has .*keras"):
        frameworks.mxnet  # noqa: B018
    assert set(frameworks.__all__) <= set(dir(frameworks))


@pytest.mark.parametrize("source", frameworks.NAMES)
@pytest.mark.parametrize("target", frameworks.NAMES)
def test_parameters_go_there_and_come_back(source: str, target: str) -> None:
    weight, bias = frameworks.NAMES[source]
    values = {f"layers.3.{weight}": 2.5, weight: -1.5, f"a/b/{weight}": 0.5}
    if bias and frameworks.NAMES[target][1]:
        values |= {f"layers.3.{bias}": 0.25}
    there = frameworks.rename(values, source, target)
    assert list(there.values()) == list(values.values())
    assert f"layers.3.{frameworks.NAMES[target][0]}" in there
    assert frameworks.rename(there, target, source) == values


def test_what_cannot_be_renamed_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'scale' is no parameter of torch's norm; it has weight"):
        frameworks.rename({"scale": 2.0}, "torch", "flax")
    with pytest.raises(ValueError, match=r"flax's norm has no bias, so 'norm.bias' would"):
        frameworks.rename({"norm.bias": 0.5}, "torch", "flax")
    with pytest.raises(ValueError, match=r"no parameter names of 'mxnet'; there are: torch, keras"):
        frameworks.rename({}, "mxnet", "torch")
