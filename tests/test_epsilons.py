"""The figure of the NumPy chapter: the four files it shows, and what they answer."""

import math

import numpy as np
import pytest

pytest.importorskip("anywidget")

import traitlets

from rmsnorm_edu import conventions, explorables, reference
from rmsnorm_edu.explorables import epsilons

FILES = {file["name"]: file for file in explorables.Epsilons().files}
X = np.array([0.3, -1.7, 2.0, 0.9, -0.2])
UNIT = X / np.sqrt(np.mean(X**2))
TINY = 1e-12  # float64, five terms and three operations


def size(s, file):
    """RMS of the reference's output for a row of RMS s."""
    y = reference.rms_norm(s * UNIT, eps=file["eps"], eps_outside=file["outside"])
    return float(reference.rms(y))


def test_the_files_are_those_of_2019():
    found = {name: (file["eps"], file["outside"]) for name, file in FILES.items()}
    assert found == {
        "PyTorch": (1e-8, True),
        "TensorFlow": (1e-8, False),
        "Lasagne": (1e-6, False),
        "Theano": (1e-5, False),
    }


@pytest.mark.equation("eps-inside", "eps-outside")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("exponent", [-8, -5, -2, 0, 2])
def test_the_law_of_the_figure_is_what_the_file_computes(name, exponent):
    file, s = FILES[name], 10.0**exponent
    eps = file["eps"]
    law = s / (s + eps) if file["outside"] else s / math.sqrt(s * s + eps)
    assert size(s, file) == pytest.approx(law, rel=TINY)
    convention = next(key for key, label in epsilons._LABELS.items() if label == name)
    applied = conventions.apply(convention, s * UNIT)
    assert float(reference.rms(applied)) == pytest.approx(law, rel=TINY)


def test_an_input_of_a_hundred_thousandth_has_four_answers():
    answers = {name: f"{size(1e-5, file):#.3g}" for name, file in FILES.items()}
    assert answers == {
        "PyTorch": "0.999",
        "TensorFlow": "0.0995",
        "Lasagne": "0.0100",
        "Theano": "0.00316",
    }


@pytest.mark.parametrize("change", [{"exponent": -8.1}, {"exponent": 2.5}])
def test_the_figure_refuses_what_it_cannot_show(change):
    with pytest.raises(traitlets.TraitError):
        explorables.Epsilons(**change)
