"""Interactive figures: each one Python class and one ES module of the same name.

They load on first use, because they need the extra ``widgets`` (anywidget).
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

_HOME = {
    "Figure": "figure",
    "Hero": "hero",
    "InvarianceTable": "invariance_table",
    "Cell": "cell",
    "ConventionsAtlas": "conventions_atlas",
    "Depth": "depth",
    "Epsilons": "epsilons",
    "GradientPlane": "gradient_plane",
    "GrowingWeights": "growing_weights",
    "Sphere": "sphere",
    "RoundingCloud": "rounding_cloud",
    "KernelStepper": "kernel_stepper",
    "MutantDetective": "mutant_detective",
    "PartialEstimate": "partial_estimate",
    "Roofline": "roofline",
    "WhereBytesGo": "where_bytes_go",
}
__all__ = [
    "Cell",
    "ConventionsAtlas",
    "Depth",
    "Epsilons",
    "Figure",
    "GradientPlane",
    "GrowingWeights",
    "Hero",
    "InvarianceTable",
    "KernelStepper",
    "MutantDetective",
    "PartialEstimate",
    "Roofline",
    "RoundingCloud",
    "Sphere",
    "WhereBytesGo",
]


def __getattr__(name: str) -> Any:
    """Load the figure's module on first use; ImportError, with the remedy, without anywidget."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no figure {name!r}; it has {__all__}")
    if find_spec("anywidget") is None:
        raise ImportError(
            f"explorables.{name} needs anywidget, which is not installed: "
            'pip install "rmsnorm_edu[widgets]"'
        )
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """What can be had: `help` asks for each of these names."""
    return sorted({*globals(), *(() if find_spec("anywidget") is None else __all__)})
