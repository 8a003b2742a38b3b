"""These tests run in `make frameworks`, each where its framework is installed; elsewhere not."""

from importlib.util import find_spec

NEEDS = {"keras": "keras", "flax": "flax", "pytensor": "pytensor"}
collect_ignore = [f"test_{name}.py" for name, need in NEEDS.items() if find_spec(need) is None]
