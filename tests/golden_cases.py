"""The 2019 code's recorded cases (tests/golden/README.md) in the words of `reference`."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rmsnorm_edu import recorded, reference

FOLDER = Path(__file__).parent / "golden"
GROUPS = ("g1_torch_rmsnorm", "g2_tf_rmsnorm", "g3_theano_rln_ln", "g6_nematus", "g7_lasagne")
WEIGHTS = ("scale", "s", "new_std", "g")
BIASES = ("offset", "b")

Y_TOLERANCE = {"float64": 1e-12, "float32": 1e-6}
GRADIENT_TOLERANCE = {"float64": 1e-13, "float32": 2e-6}
CENTRED_TOLERANCE = {"float64": 1e-12, "float32": 1e-3}  # ln: x − mean has lost the mean's digits


@dataclass(frozen=True)
class Case:
    """One recorded call: `options` for `reference`, arrays x, dy, y, dx and what is there of
    weight, bias, dweight, dbias."""

    id: str
    facts: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(repr=False)

    def __getattr__(self, name: str) -> np.ndarray | None:
        return self.arrays.get(name)

    @property
    def k(self) -> int:
        """The 2019 code's number of features: all of them for p outside 0…1."""
        d, p = self.facts.get("d", self.x.shape[-1]), self.facts.get("p", -1.0)
        return int(d * p) if 0 <= p <= 1 else d

    @property
    def options(self) -> dict[str, Any]:
        """The keywords that `rms_norm` takes for this case (`layer_norm`: eps alone)."""
        if self.facts["unit"] == "ln":
            return {"eps": self.facts["eps"]}
        return {
            "eps": self.facts["eps"],
            "k": self.k,
            "eps_outside": self.facts["unit"] == "RMSNorm",
        }

    @property
    def crashes(self) -> bool:
        return bool(self.facts.get("empty_partial"))


@cache
def cases(group: str) -> tuple[Case, ...]:
    listed = json.loads((FOLDER / "cases.json").read_text("utf-8"))["groups"][group]["cases"]
    with np.load(FOLDER / f"{group}.npz") as stored:
        arrays: dict[str, dict[str, np.ndarray]] = {}
        for key in stored.files:
            case, name = key.split("/")
            arrays.setdefault(case, {})[_renamed(name)] = stored[key]
    return tuple(Case(f"{group}/{facts['id']}", facts, arrays[facts["id"]]) for facts in listed)


def _renamed(name: str) -> str:
    for new, old in (("weight", WEIGHTS), ("bias", BIASES)):
        if name in old:
            return new
        if name[:1] == "d" and name[1:] in old:
            return "d" + new
    return name


def rms_cases() -> Iterator[Case]:
    """Every case of the groups that normalise the last axis and gave a number."""
    for group in GROUPS[:-1]:
        yield from (case for case in cases(group) if not case.crashes)


def row_error(got: np.ndarray, expected: np.ndarray, scale: np.ndarray | float) -> float:
    """Largest |got − expected| relative to its row's largest |expected|, at least `scale`."""
    assert got.shape == expected.shape
    top = np.maximum(np.max(np.abs(expected), axis=-1, keepdims=True), scale)
    wrong = np.abs(got - expected)
    return float(np.max(np.divide(wrong, top, out=wrong.copy(), where=top > 0), initial=0.0))


def y_error(case: Case, y: np.ndarray) -> float:
    return row_error(y, case.y, 0.0 if case.bias is None else np.max(np.abs(case.bias)))


def dx_error(case: Case, dx: np.ndarray) -> float:
    return row_error(dx, case.dx, np.asarray(case.facts["dx_scale"])[..., np.newaxis])


def dweight_error(case: Case, dweight: np.ndarray) -> float:
    unweighted = _norm(case)(case.x, **case.options)
    terms = np.abs(case.dy * unweighted).reshape(-1, case.x.shape[-1]).sum(axis=0)
    return row_error(dweight, case.dweight, np.max(terms))


def _norm(case: Case):
    return reference.layer_norm if case.facts["unit"] == "ln" else reference.rms_norm


PAGE_CASES = {  # of all features, small, of ordinary and of tiny size
    "rmsnorm_torch.py, RMSNorm": ("g1_torch_rmsnorm", "case108", "case111"),
    "rmsnorm_tensorflow.py, rms_norm": ("g2_tf_rmsnorm", "case108", "case111"),
    "layers.py, rln": ("g3_theano_rln_ln", "case042", "case046"),
    "README.md, LayerNormLayer of Nematus": ("g6_nematus", "case028", "case031"),
    "README.md, layer_norm of Nematus": ("g6_nematus", "case123", "case127"),
}


def data_for_pages() -> dict[str, Any]:
    """The few cases that the book's pages check: the data of the record `golden_2019`."""
    picked = []
    for where, (group, *ids) in PAGE_CASES.items():
        for case in cases(group):
            if case.facts["id"] in ids:
                picked.append(_page_case(where, group, case))
    return {"source": "bzhangGo/rmsnorm at 2e726f1", "cases": picked}


def _page_case(where: str, group: str, case: Case) -> dict[str, Any]:
    metas = json.loads((FOLDER / "cases.json").read_text("utf-8"))["groups"][group]["metas"]
    names = ("x", "weight", "bias", "dy", "y", "dx", "dweight")
    return {
        "where": where,
        "ran_under": metas[case.facts["meta"]]["framework"],
        "case": case.id,
        "eps": case.facts["eps"],
        "place": "outside" if case.options["eps_outside"] else "inside",
    } | {name: case.arrays.get(name) for name in names}


PARTIAL_CASES = {  # k by int(d*p): 4 of 8, 1 of 5, 2 of 8 that are 0, and 0 of 8
    "rmsnorm_torch.py, RMSNorm": "g1_torch_rmsnorm",
    "rmsnorm_tensorflow.py, rms_norm": "g2_tf_rmsnorm",
}
PARTIAL_IDS = ("case236", "case081", "case261", "case284")


def partial_for_pages() -> dict[str, Any]:
    """Partial norms and their crash: the data of the record `golden_partial`."""
    picked = [
        _page_case(where, group, case) | {key: case.facts.get(key) for key in ("p", "error")}
        for where, group in PARTIAL_CASES.items()
        for case in cases(group)
        if case.facts["id"] in PARTIAL_IDS
    ]
    return {"source": "bzhangGo/rmsnorm at 2e726f1", "cases": picked}


RECORDS = {"golden_2019": data_for_pages, "golden_partial": partial_for_pages}

if __name__ == "__main__":  # python tests/golden_cases.py golden_partial
    for name in sys.argv[1:]:
        print(recorded.write(name, RECORDS[name](), command=f"python tests/golden_cases.py {name}"))
