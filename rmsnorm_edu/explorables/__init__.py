"""Interactive figures: each one Python class and one ES module of the same name.

They load on first use, because they need the extra ``widgets`` (anywidget).
"""

from importlib import import_module
from typing import Any

_HOME = {
    "Figure": "figure",
    "Hero": "hero",
    "InvarianceTable": "invariance_table",
    "Depth": "depth",
    "Epsilons": "epsilons",
}
__all__ = ["Depth", "Epsilons", "Figure", "Hero", "InvarianceTable"]


def __getattr__(name: str) -> Any:
    """Load the figure's module on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no figure {name!r}; it has {__all__}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
