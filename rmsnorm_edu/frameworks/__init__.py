"""The same RMSNorm in three more frameworks: `keras`, `flax`, `pytensor`, one file each.

They load on first use; one whose framework is missing raises an ImportError that says what to
install. `rename` carries a layer's parameters from one library's names to another's.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

_FILES = ("flax", "keras", "pytensor")  # called as what they need
__all__ = ["NAMES", "flax", "keras", "pytensor", "rename"]

Value = TypeVar("Value")
NAMES: dict[str, tuple[str, str | None]] = {  # what each calls the weight and the bias
    "torch": ("weight", "bias"),
    "keras": ("scale", None),
    "flax": ("scale", None),
    "mlx": ("weight", None),
    "equinox": ("weight", "bias"),
    "burn": ("gamma", None),
    "paper_torch": ("scale", "offset"),
    "paper_tensorflow": ("scale", "offset"),
    "paper_theano": ("s", "b"),
    "paper_nematus": ("new_std", None),
    "paper_lasagne": ("g", "b"),
}


def rename(parameters: Mapping[str, Value], source: str, target: str) -> dict[str, Value]:
    """One norm's parameters under `target`'s names; both libraries in `NAMES`.

    A path before the name, ended by ``.`` or ``/``, stays. The values are
    handed on untouched: arrays of any framework, a gain stored as 1 + w as it
    is. "torch" names are also this package's own. ValueError for a library or
    a parameter that is not known, and for a bias where `target` has none.

    >>> rename({"layers.0.norm.scale": 2.0}, "flax", "torch")
    {'layers.0.norm.weight': 2.0}
    """
    pairs = dict(zip(_names(source), _names(target), strict=True))
    renamed: dict[str, Value] = {}
    for path, value in parameters.items():
        cut = max(path.rfind("."), path.rfind("/")) + 1
        if path[cut:] not in pairs:
            known = ", ".join(filter(None, pairs))
            raise ValueError(f"{path!r}: {source}'s norm has only {known}")
        new = pairs[path[cut:]]
        if new is None:
            raise ValueError(f"{target}'s norm has no bias: drop {path!r}")
        renamed[path[:cut] + new] = value
    return renamed


def _names(library: str) -> tuple[str, str | None]:
    if library not in NAMES:
        raise ValueError(f"no parameter names of {library!r}; there are: {', '.join(NAMES)}")
    return NAMES[library]


def _needed(module: str, extra: str) -> Any:
    """The framework, or an ImportError that says how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"rmsnorm_edu.frameworks needs {error.name}, which is not installed: "
            f'pip install "rmsnorm_edu[{extra}]"'
        ) from error


def __getattr__(name: str) -> Any:
    """Load a framework's module on first use."""
    if name in _FILES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {__all__}")


def __dir__() -> list[str]:
    """What can be had: `help` asks for each of these names."""
    return sorted({*globals(), *filter(find_spec, _FILES)})
