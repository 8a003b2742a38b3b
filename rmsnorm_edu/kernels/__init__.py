"""RMSNorm in Triton: forward, backward, the residual add, on a GPU or in Triton's interpreter.

They load on first use, because they need the extras ``torch`` and ``triton``. The first use also
settles for the whole process whether Triton compiles or interprets: see `_runtime`.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

_HOME = {
    "add_rms_norm": "add_op",
    "aot": "",
    "backward": "",
    "forward": "",
    "fused_add": "",
    "rms_norm": "op",
    "trace": "",
    "tune": "tuning",
}
_LIBRARIES = {"torch": "PyTorch", "triton": "Triton"}
__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    """Load what `name` needs on first use; ImportError, with the remedy, without torch or triton.

    Triton has wheels for Linux alone.
    """
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {__all__}")
    if missing := _missing():
        titles = " and ".join(_LIBRARIES[library] for library in missing)
        verb = "is" if len(missing) == 1 else "are"
        raise ImportError(
            f"kernels.{name} needs {titles}, which {verb} not installed: "
            f'pip install "rmsnorm_edu[{",".join(missing)}]"'
        )
    module = import_module(f"{__name__}.{_HOME[name] or name}")
    return getattr(module, name) if _HOME[name] else module


def _missing() -> list[str]:
    return [library for library in _LIBRARIES if find_spec(library) is None]


def __dir__() -> list[str]:
    """What can be had: `help` asks for each of these names."""
    return sorted({*globals(), *(() if _missing() else __all__)})
