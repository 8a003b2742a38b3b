"""The pins install where the README says: on the Python 3.11.2 of Debian 12 as on 3.13."""

from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
LINES = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
PINS = [Requirement(line) for line in LINES if line and not line.startswith("#")]
HERE = [pin for pin in PINS if pin.marker is None or pin.marker.evaluate()]


@pytest.mark.parametrize("pin", HERE, ids=lambda pin: pin.name)
def test_a_pin_is_exact_installed_and_takes_every_python_we_promise(pin):
    [specifier] = pin.specifier
    assert specifier.operator == "=="
    installed = distribution(pin.name)
    assert specifier.contains(installed.version.partition("+")[0])
    pythons = SpecifierSet(installed.metadata.get("Requires-Python", ""))
    for python in ("3.11.2", "3.12.0", "3.13.0"):
        assert python in pythons, f"{pin} needs Python {pythons}"


def test_the_pins_of_the_other_frameworks_are_exact_and_agree_with_these() -> None:
    lines = (ROOT / "requirements-frameworks.txt").read_text(encoding="utf-8").splitlines()
    others = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert all(str(pin.specifier).startswith("==") for pin in others)
    shared = {"torch", "numpy", "pytest", "ml_dtypes"}
    ours = {pin.name: str(pin.specifier) for pin in PINS if pin.name in shared}
    assert ours == {pin.name: str(pin.specifier) for pin in others if pin.name in shared}
    assert {"keras", "flax", "jax", "pytensor", "tensorflow"} <= {pin.name for pin in others}
