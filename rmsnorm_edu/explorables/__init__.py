"""Interactive figures: each one Python class and one ES module of the same name.

They load on first use, because they need the extra ``widgets`` (anywidget).
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

if find_spec("anywidget") is None:
    raise ImportError(
        'the explorables need anywidget, which is not installed: pip install "rmsnorm_edu[widgets]"'
    )

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
    """Load the figure's module on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no figure {name!r}; it has {__all__}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
