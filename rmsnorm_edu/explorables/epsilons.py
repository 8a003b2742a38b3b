"""The figure of the NumPy chapter: four files of 2019, one input, four answers."""

from typing import Any

import traitlets

from rmsnorm_edu import conventions
from rmsnorm_edu.explorables.figure import Figure

_LABELS = {
    "paper_torch": "PyTorch",
    "paper_tensorflow": "TensorFlow",
    "paper_lasagne": "Lasagne",
    "paper_theano": "Theano",
}


def _files() -> list[dict[str, Any]]:
    """Name, ε and its place in each of the four files, as `conventions` has them."""
    found = ((label, conventions.NAMES[name]) for name, label in _LABELS.items())
    return [{"name": n, "eps": c.eps, "outside": c.eps_outside} for n, c in found]


class Epsilons(Figure):
    r"""Size of the output against size of the input, for the four files of the 2019 repository.

    $\mathrm{RMS}(y) = s / \sqrt{s^2 + \varepsilon}$ with ε inside the root and
    $s / (s + \varepsilon)$ with ε outside, $s = \mathrm{RMS}(x)$. Trait: `exponent` in [-8, 2];
    the line that reads the four answers stands at s = 10**exponent.
    """

    name = "epsilons"
    label = "Drag the line: one input, and the answers of the four files of 2019"
    exponent = traitlets.Float(-5.0, min=-8, max=2).tag(sync=True)
    files = traitlets.List(traitlets.Dict()).tag(sync=True)

    @traitlets.default("files")
    def _default_files(self) -> list[dict[str, Any]]:
        return _files()
