"""Write tests/js/vectors/*.json: what the figures' pure functions must return, by `reference`.

python tools/explorable_vectors.py           write the files
python tools/explorable_vectors.py --check   exit code 1 where a committed file differs
"""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import atlas_vectors
import cell_vectors
import gradient_vectors
import ladder_vectors
import numpy as np
import partial_vectors
import roofline_vectors
import sphere_vectors
import stepper_vectors

from rmsnorm_edu import invariance, reference
from rmsnorm_edu.explorables import depth as simulation
from rmsnorm_edu.explorables import epsilons as epsilon_figure
from rmsnorm_edu.explorables import invariance_table as figure
from rmsnorm_edu.explorables import mutant_detective as detective
from rmsnorm_edu.explorables import rounding_cloud as cloud

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "js" / "vectors"
EPS = 1e-6


def hero() -> list[dict[str, Any]]:
    """Rows, scales and shifts (0 and negative ones too), and both norms' answers."""
    rng = np.random.default_rng(1)
    rows = [np.array([1.6, -0.6, 0.9, 2.0, -1.2, 0.4, 1.2, -0.3]), np.zeros(3), np.full(4, 0.7)]
    rows += [np.round(rng.normal(0.5, 2, n), 2) for n in (2, 5, 8, 12)]
    moves = [(1, 0), (3, 0), (-1, 0), (1, 2), (-0.5, 1.3), (0, 1), (0, 0)]
    return [hero_case(x, scale, shift) for x in rows for scale, shift in moves]


def hero_case(x: np.ndarray, scale: float, shift: float) -> dict[str, Any]:
    moved = scale * x + shift
    return {
        "x": x.tolist(),
        "scale": scale,
        "shift": shift,
        "eps": EPS,
        "mean": float(moved.mean()),
        "size": float(np.sqrt(reference.rms(moved) ** 2 + EPS)),
        "rms": reference.rms_norm(moved, eps=EPS).tolist(),
        "layer": reference.layer_norm(moved, eps=EPS).tolist(),
    }


def invariance_table() -> dict[str, Any]:
    """What the figure gets, and every cell at amounts of both signs, without and with eps."""
    amounts = {"scale": (2.5, -2.0, 0.1), "shift": (2.0, -0.7), "angle": (60.0, -135.0)}
    cases = [
        invariance_case(method, change, amount, eps)
        for method in figure.METHODS
        for change, (_, _, kind) in figure.CHANGES.items()
        for amount in amounts[kind]
        for eps in (0.0, 0.1)
    ]
    return {"data": figure.data(), "cases": cases}


def invariance_case(method: str, change: str, amount: float, eps: float) -> dict[str, Any]:
    found = invariance.measure_one(method, change, amount, eps, layer=figure.LAYER)
    return {
        "method": method,
        "transformation": change,
        "amount": amount,
        "eps": eps,
        "after": found.after.tolist(),
        "max_change": found.max_change,
    }


def depth() -> dict[str, Any]:
    """The sizes at gain 1, and at others by simulation; eps = 0, where the laws are exact."""
    curves = {norm: simulation.sizes(norm, eps=0.0).tolist() for norm in simulation.NORMS}
    cases = []
    for norm in simulation.NORMS:
        for gain in (0.5, 0.73, 1.0, 1.31, 2.0):
            sizes = simulation.sizes(norm, gain, eps=0.0).tolist()
            cases += [
                {"norm": norm, "gain": gain, "layer": layer, "size": sizes[layer - 1]}
                for layer in (1, 2, 50, 100)
            ]
    return {"curves": curves, "cases": cases}


def epsilons() -> dict[str, Any]:
    """The four files, and the size of each one's output over the axis of the figure."""
    files = epsilon_figure.Epsilons().files
    x = np.array([0.3, -1.7, 2.0, 0.9, -0.2])
    unit = x / reference.rms(x)

    def size(file: dict[str, Any], s: float) -> float:
        y = reference.rms_norm(s * unit, eps=file["eps"], eps_outside=file["outside"])
        return float(reference.rms(y))

    exponents = [-8, -6.5, -5, -4, -3.3, -2, -0.1, 0, 2]
    cases = [{"exponent": e, "outputs": [size(f, 10.0**e) for f in files]} for e in exponents]
    return {"files": files, "cases": cases}


def rounding_cloud() -> dict[str, Any]:
    """What the figure gets, and at some sizes the errors before they became letters."""
    data = cloud.data()
    choices = [(d, c, word) for d in data["types"] for c in data["conventions"] for word in WORDS]
    return {"data": data, "cases": [c for choice in choices for c in cloud_cases(*choice)]}


WORDS = {"own": None, "zero": 0.0}


def cloud_cases(dtype: str, convention: str, word: str) -> list[dict[str, Any]]:
    exponents = cloud.sizes(dtype)
    x = cloud.inputs(dtype, exponents, cloud.DTYPES[dtype])
    errors = cloud.errors(*cloud.outputs(convention, x, WORDS[word]))
    state = {"dtype": dtype, "convention": convention, "eps": word}
    return [
        {**state, "exponent": k, "errors": [float(e) if np.isfinite(e) else None for e in row]}
        for k, row in zip(exponents, errors, strict=True)
        if k in (-76, -24, -10, 0, 8, 14, 66)
    ]


def vectors() -> dict[str, Any]:
    """What stands in the files, by their names."""
    return {
        "hero": hero(),
        "invariance_table": invariance_table(),
        "cell": cell_vectors.cell(),
        "depth": depth(),
        "epsilons": epsilons(),
        "gradient_plane": gradient_vectors.gradient_plane(),
        "sphere": sphere_vectors.sphere(),
        "rounding_cloud": rounding_cloud(),
        "mutant_detective": detective.data(),
        "conventions_atlas": atlas_vectors.conventions_atlas(),
        "growing_weights": gradient_vectors.growing_weights(),
        "partial_estimate": partial_vectors.partial_estimate(),
        "kernel_stepper": stepper_vectors.kernel_stepper(),
        "roofline": roofline_vectors.roofline(),
        "where_bytes_go": ladder_vectors.where_bytes_go(),
    }


def agree(a: Any, b: Any) -> bool:
    """Equal, but for the last digits of numbers: processors sum in different orders."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(agree(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(agree, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-11, abs_tol=1e-11)
    return bool(a == b)


def committed(name: str) -> Any:
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    stale = {n: v for n, v in vectors().items() if not agree(v, committed(n))}
    if check:
        print("\n".join(f"tests/js/vectors/{n}.json is out of step with reference" for n in stale))
        return bool(stale)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, value in stale.items():
        text = json.dumps(value, separators=(",", ":")).replace("},{", "},\n{") + "\n"
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
