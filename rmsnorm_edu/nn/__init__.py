"""RMSNorm in PyTorch: layers, one function, and what loads old checkpoints.

They load on first use, because they need the extra ``torch``.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

_HOME = {
    "ChannelRMSNorm": "channel",
    "GroupRMSNorm": "channel",
    "NormGRU": "recurrent",
    "NormLSTM": "recurrent",
    "RMSNorm": "modules",
    "convert": "",
    "functional": "",
    "norm_after": "channel",
}
__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    """Load the layer's module on first use; ImportError, with the remedy, without torch."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {__all__}")
    if find_spec("torch") is None:
        raise ImportError(
            f'nn.{name} needs PyTorch, which is not installed: pip install "rmsnorm_edu[torch]"'
        )
    module = import_module(f"{__name__}.{_HOME[name] or name}")
    return getattr(module, name) if _HOME[name] else module


def __dir__() -> list[str]:
    """What can be had: `help` asks for each of these names."""
    return sorted({*globals(), *(() if find_spec("torch") is None else __all__)})
