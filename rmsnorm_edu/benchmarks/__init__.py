"""What is measured; ``python -m rmsnorm_edu record NAME`` writes it down for the book's pages."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

TASKS = {  # record → the module, seen from here, whose measure() makes it
    "compiled_norms": "compiled_norms",
    "cpu_ladder": "cpu_ladder",
    "forward_registers": "forward_registers",
    "hidden_statistics": ".experiments.hidden_statistics",
    "nn_speed": "nn_speed",
    "numpy_ladder": "numpy_ladder",
    "recurrent_steps": "recurrent_steps",
}


def measure_of(name: str) -> Callable[[], dict[str, Any]]:
    """The function that measures the record `name`; ValueError that lists the names if none."""
    if name not in TASKS:
        raise ValueError(f"nothing measures {name!r}; there are: {', '.join(sorted(TASKS))}")
    measure: Callable[[], dict[str, Any]] = import_module(f".{TASKS[name]}", __name__).measure
    return measure
