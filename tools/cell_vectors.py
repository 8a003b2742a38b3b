"""What the figure of the recurrent cell must compute: the 2019 code, step by step, in NumPy.

Parameters have the 2019 code's names: W, b, U, Wx, bx, Ux, the norms' gains s1… and, for
LayerNorm, biases b1…
"""

from typing import Any

import numpy as np

from rmsnorm_edu import reference
from rmsnorm_edu.explorables import cell as figure

EPS = 1e-5
ENDS = {"gates": np.log(19), "candidate": np.log(19) / 2, "memory": np.log(19) / 2}
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def normed(kind: str, a: np.ndarray, params: dict[str, np.ndarray], place: int) -> np.ndarray:
    if kind == "none":
        return a
    if kind == "rms":
        return reference.rms_norm(a, params[f"s{place}"], eps=EPS)
    return reference.layer_norm(a, params[f"s{place}"], params[f"b{place}"], eps=EPS)


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def gru(x: np.ndarray, p: dict[str, np.ndarray], kinds: list[str]) -> dict[str, np.ndarray]:
    """Pre-activations of r | u and of the candidate, and the state, (T, B, …) each."""
    d = len(p["U"])
    h = np.zeros((x.shape[1], d))
    found: dict[str, list[np.ndarray]] = {"gates": [], "candidate": [], "h": []}
    for row in x:
        z = normed(kinds[0], row @ p["W"] + p["b"], p, 1) + normed(kinds[2], h @ p["U"], p, 3)
        r, u = np.split(sigmoid(z), 2, axis=1)
        e = normed(kinds[1], row @ p["Wx"] + p["bx"], p, 2)
        a = r * normed(kinds[3], h @ p["Ux"], p, 4) + e
        h = u * h + (1 - u) * np.tanh(a)
        for name, value in zip(found, (z, a, h), strict=True):
            found[name].append(value)
    return {name: np.array(values) for name, values in found.items()}


def lstm(x: np.ndarray, p: dict[str, np.ndarray], kinds: list[str]) -> dict[str, np.ndarray]:
    """Pre-activations of i | f | o, of the candidate and of the output's tanh; the states."""
    d = len(p["U"])
    h = c = np.zeros((x.shape[1], d))
    names = ("gates", "candidate", "memory", "h", "c")
    found: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for row in x:
        a = normed(kinds[0], row @ p["W"] + p["b"], p, 1)
        z = a + normed(kinds[1], h @ p["U"], p, 2) + p["b"]
        i, f, o = np.split(sigmoid(z[:, : 3 * d]), 3, axis=1)
        c = f * c + i * np.tanh(z[:, 3 * d :])
        memory = normed(kinds[2], c, p, 3)
        h = o * np.tanh(memory)
        for name, value in zip(names, (z[:, : 3 * d], z[:, 3 * d :], memory, h, c), strict=True):
            found[name].append(value)
    return {name: np.array(values) for name, values in found.items()}


RUN = {"gru": gru, "lstm": lstm}
PLACES = {"gru": (2, 1, 2, 1), "lstm": (4, 4, 1)}  # the width of each norm, in blocks


def parameters(cell: str, n: int, d: int, seed: int) -> dict[str, np.ndarray]:
    """Random ones: gains of both signs that are not 1, biases that are not 0."""
    rng = np.random.default_rng(seed)
    wide = {"gru": 2, "lstm": 4}[cell] * d
    shapes: dict[str, tuple[int, ...]] = {"W": (n, wide), "b": (wide,), "U": (d, wide)}
    if cell == "gru":
        shapes |= {"Wx": (n, d), "bx": (d,), "Ux": (d, d)}
    p = {name: rng.normal(0.2, 0.8, shape) for name, shape in shapes.items()}
    for place, blocks in enumerate(PLACES[cell], 1):
        p[f"s{place}"] = rng.uniform(-1.6, 1.6, blocks * d)
        p[f"b{place}"] = rng.normal(0.1, 0.5, blocks * d)
    return p


def own_parameters(cell: str, gain: float) -> dict[str, np.ndarray]:
    """Those of the figure: gains 1, biases 0, the recurrent matrices times `gain`."""
    found, d = figure.arrays(), figure.HIDDEN
    w, u = found["W"], gain * found["U"]
    if cell == "gru":
        p = {"W": w[:, : 2 * d], "U": u[:, : 2 * d], "Wx": w[:, 2 * d : 3 * d]}
        p |= {"Ux": u[:, 2 * d : 3 * d], "b": np.zeros(2 * d), "bx": np.zeros(d)}
    else:
        p = {"W": w, "U": u, "b": np.zeros(4 * d)}
    for place, blocks in enumerate(PLACES[cell], 1):
        p |= {f"s{place}": np.ones(blocks * d), f"b{place}": np.zeros(blocks * d)}
    return p


def case(cell: str, kinds: list[str], seed: int) -> dict[str, Any]:
    """A small cell with everything in it that the figure leaves out."""
    steps, batch, n, d = 4, 2, 8, 4
    x = np.random.default_rng(100 + seed).normal(0.3, 1, (steps, batch, n))
    p = parameters(cell, n, d, seed)
    return {
        "cell": cell,
        "kinds": kinds,
        "sizes": [steps, batch, n, d],
        "x": x.ravel().tolist(),
        "p": {name: value.ravel().tolist() for name, value in p.items()},
        "found": {k: v.ravel().tolist() for k, v in RUN[cell](x, p, kinds).items()},
    }


def shown(cell: str, kinds: list[str], gain: float) -> dict[str, Any]:
    """What the figure shows of its own cell: shares of saturated values and quantiles."""
    found = RUN[cell](figure.arrays()["x"], own_parameters(cell, gain), kinds)
    steps = (1, 13, 30)
    panels = {n: [found[n][t - 1].ravel() for t in steps] for n in ENDS if n in found}
    return {
        "cell": cell,
        "kinds": kinds,
        "gain": gain,
        "steps": list(steps),
        "shares": {n: [float(np.mean(abs(v) > ENDS[n])) for v in vs] for n, vs in panels.items()},
        "quantiles": {n: [np.quantile(v, LEVELS).tolist() for v in vs] for n, vs in panels.items()},
        "h": [found["h"][t - 1][0, 0].item() for t in steps],
    }


def cell() -> dict[str, Any]:
    """The figure's data, small cells with all their parameters, and what the figure shows."""
    mixed = {"gru": ["rms", "none", "layer", "rms"], "lstm": ["layer", "rms", "none"]}
    kinds = [[k] * len(PLACES[c]) for c in PLACES for k in ("none", "rms", "layer")]
    names = [c for c in PLACES for _ in range(3)]
    pairs = [*zip(names, kinds, strict=True), *mixed.items()]
    return {
        "data": figure.Cell().data,
        "cases": [case(c, k, seed) for seed, (c, k) in enumerate(pairs)],
        "shown": [shown(c, k, gain) for c, k in pairs for gain in (0.5, 3.0)],
    }
