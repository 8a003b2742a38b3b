"""Run the layer in Keras, Flax and PyTensor against the golden vectors: `frameworks.py [--record]`.

Each framework gets a process of its own, Keras one for each backend. A case outside its tolerance,
a failed test, or an answer other than the recorded one is an error. With ``--record`` the
outcome becomes the record `frameworks`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

# below the path, which golden_cases and an installation without this package need
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from golden_cases import (  # noqa: E402
    GRADIENT_TOLERANCE,
    GROUPS,
    Y_TOLERANCE,
    Case,
    cases,
    dweight_error,
    dx_error,
    row_error,
    y_error,
)

from rmsnorm_edu import recorded, reference  # noqa: E402
from rmsnorm_edu.benchmarks import framework_manners, frameworks, keras_faults  # noqa: E402

RUNS = {  # what a reader calls it: the module here, and Keras' backend
    "PyTorch": ("torch", ""),
    "Keras on TensorFlow": ("keras", "tensorflow"),
    "Keras on PyTorch": ("keras", "torch"),
    "Keras on JAX": ("keras", "jax"),
    "Flax": ("flax", ""),
    "PyTensor": ("pytensor", ""),
}
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu"}
QUICK = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}  # each case is compiled to run once
SLOPES = {"identity": (1.0, 1.0), "relu": (0.0, 1.0), "lrelu": (0.1, 1.0)}  # below 0, from 0 on
PACKAGES = {
    "torch": ("torch",),
    "keras": ("keras",),
    "flax": ("flax", "jax"),
    "pytensor": ("pytensor",),
}
BACKENDS = {"tensorflow": "tensorflow_cpu", "torch": "torch", "jax": "jax"}


def one(title: str) -> dict[str, Any]:
    """What the process of one framework finds."""
    name, backend = RUNS[title]
    packages = [*PACKAGES[name], *([BACKENDS[backend]] if backend else [])]
    manners = framework_manners.ask(name)
    faults = keras_faults.ask() if name == "keras" else {}
    if "jax" in (name, backend) or name == "flax":
        import jax

        jax.config.update("jax_enable_x64", True)
    golden, failures = {}, []
    for group in GROUPS:
        golden[group] = _group(name, group, failures)
    tests = ROOT / "tests" / "frameworks" / f"test_{name}.py"
    failed = tests.exists() and pytest.main(["-q", str(tests)]) != 0  # PyTorch: in `make test`
    return {
        "versions": {package: version(package) for package in packages},
        "golden": {group: found for group, found in golden.items() if found},
        "failures": failures + ["its own tests"] * failed,
        "manners": manners,
        "faults": faults,
        "one_input": frameworks.one_input(name),
    }


def _group(name: str, group: str, failures: list[str]) -> dict[str, dict[str, float]]:
    """For each dtype the number of cases and the largest error of y and of each gradient."""
    found: dict[str, dict[str, float]] = {}
    for case in cases(group):
        if case.crashes or case.facts["unit"] == "ln" or "inner" in case.facts:
            continue
        if group == "g7_lasagne" and name not in frameworks.WITH_CHANNELS:
            continue
        errors = _lasagne_errors(name, case) if group == "g7_lasagne" else _errors(name, case)
        dtype = case.facts["dtype"]
        worst = found.setdefault(dtype, {"cases": 0} | dict.fromkeys(errors, 0.0))
        worst["cases"] += 1
        for what, error in errors.items():
            worst[what] = max(worst.get(what, 0.0), float(f"{error:.1e}"))
            limit = Y_TOLERANCE if what == "y" else GRADIENT_TOLERANCE
            if not error <= limit[dtype]:
                failures.append(f"{case.id} {case.facts['kind']}: {what} is off by {error:.1e}")
    return found


def _given(case: Case) -> tuple[list[str], list[np.ndarray]]:
    names = [part for part in ("weight", "bias") if part in case.arrays]
    return names, [case.x, *(case.arrays[part] for part in names)]


def _errors(name: str, case: Case) -> dict[str, float]:
    names, arrays = _given(case)
    p = case.facts.get("p", -1.0)
    options = {key: case.options[key] for key in ("eps", "eps_outside")}
    options |= {"p": p if 0 < p <= 1 else None, "rounding": "floor"}
    f = frameworks.layer(name, case.x, names, **options)
    y, (dx, *rest) = frameworks.differentiate(name, f, arrays, case.dy)
    assert y.dtype == dx.dtype == case.x.dtype
    errors = {"y": y_error(case, y), "dx": dx_error(case, dx)}
    gradients = dict(zip(names, rest, strict=True))
    if "weight" in gradients:
        errors["dweight"] = dweight_error(case, gradients["weight"])
    if "bias" in gradients:
        terms = np.abs(case.dy).reshape(-1, case.x.shape[-1]).sum(axis=0)
        errors["dbias"] = row_error(gradients["bias"], case.dbias, np.max(terms))
    return errors


def _lasagne_errors(name: str, case: Case) -> dict[str, float]:
    """The layer, then the non-linearity of the case in NumPy: first for its slope, then back."""
    names, arrays = _given(case)
    f = frameworks.channel_layer(name, case.x, names, case.facts["eps"])
    before, _ = frameworks.differentiate(name, f, arrays, case.dy)
    below, above = SLOPES[case.facts["nonlinearity"]]
    slope = np.where(before < 0, below, above).astype(before.dtype)
    dbefore = case.dy * slope
    _, (dx, *rest) = frameworks.differentiate(name, f, arrays, dbefore)
    errors = {"y": y_error(case, before * slope), "dx": dx_error(case, dx)}
    pixels = tuple(axis for axis in range(case.x.ndim) if axis != 1)
    flat = case.x.reshape(*case.x.shape[:2], -1) if case.x.ndim == 4 else case.x
    xhat = reference.rms_norm(flat, eps=case.facts["eps"]).reshape(case.x.shape)
    for part, got in zip(names, rest, strict=True):
        terms = np.abs(dbefore * (xhat if part == "weight" else 1.0)).sum(axis=pixels)
        errors["d" + part] = row_error(got, case.arrays["d" + part], np.max(terms))
    return errors


def child(title: str, folder: Path) -> dict[str, Any] | None:
    """The findings of a new process; None, and its words, when it broke."""
    path = folder / f"{title}.json"
    _, backend = RUNS[title]
    keras = {"KERAS_BACKEND": backend} if backend else {}
    command = [sys.executable, __file__, "--one", title, "--into", str(path)]
    env = os.environ | QUIET | QUICK | keras
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode or not path.exists():
        print(f"{title} broke:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}", file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    if "its own tests" in found["failures"]:
        print(done.stdout[-6000:], file=sys.stderr)
    return found


def _report(title: str, found: dict[str, Any] | None) -> list[str]:
    """Print one line, return what is wrong."""
    if found is None:
        return [f"{title}: broke"]
    every = [worst for group in found["golden"].values() for worst in group.values()]
    count = sum(worst["cases"] for worst in every)
    print(f"{title:20} {count} cases, {len(found['failures'])} failures")
    return [f"{title}: {failure}" for failure in found["failures"]]


def _differences(found: dict[str, Any], record: dict[str, Any]) -> list[str]:
    """Answers that are not those of the record, which the book's page shows."""
    changed = []
    for title, now in found.items():
        then = record[title]["manners"]
        for norm, answers in now["manners"].items():
            for question, answer in answers.items():
                if question != "float64_error" and answer != then[norm][question]:
                    was = then[norm][question]
                    changed.append(f"{title}, {norm}, {question}: {answer}; recorded was {was}")
    return changed


def main() -> int:
    """Run all, or as a child one; the exit status is 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write the record `frameworks`")
    parser.add_argument("--one", choices=RUNS, help=argparse.SUPPRESS)
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        options.into.write_text(json.dumps(one(options.one)), "utf-8")
        return 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        slow_first = {t: pool.submit(child, t, Path(folder)) for t in reversed(RUNS)}
        found = {title: slow_first[title].result() for title in RUNS}
    wrong = [line for title in RUNS for line in _report(title, found[title])]
    if not wrong and not options.record:
        wrong = _differences(found, recorded.load("frameworks").data["frameworks"])
    print("\n".join(wrong), file=sys.stderr)
    if options.record and not wrong:
        data = {"frameworks": found}
        print(recorded.write("frameworks", data, command="make frameworks RECORD=1"))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
