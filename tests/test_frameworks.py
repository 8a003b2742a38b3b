"""What of `frameworks` needs no framework; its layers are tested by `make frameworks`."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from rmsnorm_edu import frameworks, recorded, reference
from rmsnorm_edu.benchmarks import framework_manners, keras_faults
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


def test_an_unknown_attribute_lists_what_there_is(monkeypatch) -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'mxnet'; it has .*keras"):
        frameworks.mxnet  # noqa: B018
    assert {"NAMES", "rename"} <= set(dir(frameworks))
    monkeypatch.setattr(frameworks, "find_spec", lambda name: name == "flax")
    for name in ("flax", "keras", "pytensor"):
        monkeypatch.delitem(vars(frameworks), name, raising=False)  # what is loaded already
    assert set(dir(frameworks)) & {"flax", "keras", "pytensor"} == {"flax"}


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
    with pytest.raises(ValueError, match=r"'scale': torch's norm has only weight, bias"):
        frameworks.rename({"scale": 2.0}, "torch", "flax")
    with pytest.raises(ValueError, match=r"flax's norm has no bias: drop 'norm.bias'"):
        frameworks.rename({"norm.bias": 0.5}, "torch", "flax")
    with pytest.raises(ValueError, match=r"no parameter names of 'mxnet'; there are: torch, keras"):
        frameworks.rename({}, "mxnet", "torch")


@pytest.mark.equation("eps-observed")
@pytest.mark.parametrize("eps", [1e-8, 1e-5, 0.3])
@pytest.mark.parametrize("a", [1e-3, 0.5])
def test_an_eps_is_read_off_one_output(eps: float, a: float) -> None:
    [y] = reference.rms_norm([a], eps=eps)
    found = framework_manners.eps_inside(a, y)
    assert found == pytest.approx(eps, rel=1e-12, abs=1e-15 * a**2)


RUNS = recorded.load("frameworks").data["frameworks"]


def test_the_record_holds_six_runs_without_a_failure() -> None:
    assert next(iter(RUNS)) == "PyTorch"
    assert len(RUNS) == 6
    for run in RUNS.values():
        assert run["failures"] == []
        assert sum(worst["cases"] for g in run["golden"].values() for worst in g.values()) > 300


@pytest.mark.parametrize("title", RUNS)
def test_one_input_gave_the_truth_in_each(title: str) -> None:
    given = runs.example()
    truth = reference.rms_norm(given["x"], given["weight"])
    dx, dweight = reference.rms_norm_vjp(given["dy"], given["x"], given["weight"])
    found = {key: np.array(value) for key, value in RUNS[title]["one_input"].items()}
    for key, expected in (("y", truth), ("dx", dx), ("dweight", dweight)):
        assert np.max(np.abs(found[key] - expected)) < 2**-21 * np.max(np.abs(expected))


def test_pytorch_still_answers_as_recorded() -> None:
    now = framework_manners.ask("torch")
    then = RUNS["PyTorch"]["manners"]
    assert now.keys() == then.keys()
    for norm, answers in now.items():
        assert answers.pop("float64_error") < 1e-15
        assert answers == {key: then[norm][key] for key in answers}
    assert runs.title("torch") == "PyTorch"


def test_the_faults_of_keras_are_those_that_the_book_tells() -> None:
    assert keras_faults.__doc__
    faults = {title: run["faults"] for title, run in RUNS.items() if run["faults"]}
    assert len(faults) == 3
    for title, found in faults.items():
        on_tensorflow = title.endswith("TensorFlow")
        assert (found["mean"] < 1e-15) == on_tensorflow
        assert (found["add"] != [1, 2, 3]) == on_tensorflow
        assert found["rms_scaling"] == [12.25, 13.47, 14.7]  # over the standard deviation
