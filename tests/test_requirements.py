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
