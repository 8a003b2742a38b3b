"""The 2019 code's recorded recurrences (tests/golden/README.md), and how to run a cell on one."""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rmsnorm_edu import recorded
from rmsnorm_edu.nn import NormGRU, NormLSTM

FOLDER = Path(__file__).parent / "golden"
GROUPS = {"g4_theano_gru": NormGRU, "g5_theano_lstm": NormLSTM}
NORMS = {"gru": None, "lngru": "layer", "rlngru": "rms"}
NORMS |= {"lstm": None, "lnlstm": "layer", "rlnlstm": "rms"}
INPUTS = ("x", "h0", "c0", "learned_h0")


@dataclass(frozen=True)
class Case:
    """One recorded call: what was passed (`facts`) and its arrays under the 2019 names."""

    id: str
    kind: type[NormGRU] | type[NormLSTM]
    facts: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(repr=False)

    @property
    def norm(self) -> str | None:
        return NORMS[self.facts["unit"].removesuffix("_layer")]

    @property
    def params(self) -> dict[str, np.ndarray]:
        return {name: self.arrays[name] for name in self.facts["param_order"]}

    @property
    def outputs(self) -> tuple[str, ...]:
        return ("h",) if self.kind is NormGRU else ("h", "c")


@cache
def cases(group: str) -> tuple[Case, ...]:
    listed = json.loads((FOLDER / "cases.json").read_text("utf-8"))["groups"][group]["cases"]
    arrays: dict[str, dict[str, np.ndarray]] = {}
    with np.load(FOLDER / f"{group}.npz") as stored:
        for key in stored.files:
            case, name = key.split("/")
            arrays.setdefault(case, {})[name] = stored[key]
    kind = GROUPS[group]
    return tuple(Case(f"{group}/{f['id']}", kind, f, arrays.get(f["id"], {})) for f in listed)


ALL = [case for group in GROUPS for case in cases(group)]
WORKING = [case for case in ALL if "error" not in case.facts]


def run(case: Case, cell: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """The cell's h (and c) in the recorded shapes, and the gradients, by their recorded names."""
    given = {n: torch.tensor(case.arrays[n]) for n in INPUTS if n in case.arrays}
    for tensor in given.values():
        tensor.requires_grad_()
    x, mask = _as_sequence(case, given["x"])
    states = {name: given[name] for name in ("h0", "c0") if name in given}
    if "learned_h0" in given:
        states["h0"] = given["learned_h0"]
    out = cell(x, mask, **states)
    out = out if isinstance(out, tuple) else (out,)
    got = {n: o.reshape(case.arrays[n].shape) for n, o in zip(case.outputs, out, strict=True)}
    loss = sum((o * torch.tensor(case.arrays[f"d{name}"])).sum() for name, o in got.items())
    loss.backward()
    live = given | cell.to_original()
    return got | {f"d{name}": tensor.grad for name, tensor in live.items()}


def _as_sequence(case: Case, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """x (T, B, nin) and mask (T, B) of a call that may have passed one step, or one example."""
    mask = torch.tensor(case.arrays["mask"]) if "mask" in case.arrays else None
    if case.facts.get("one_step"):
        return x[None], mask if mask is None else mask[None]
    steps = case.facts.get("nsteps") or len(x)
    x = x[:, None] if x.ndim == 2 else x
    return x[:steps], mask if mask is None else mask[:steps]


def error(case: Case, got: dict[str, torch.Tensor | None]) -> dict[str, float]:
    """|got − recorded| by name: of an output as it is, of a gradient by its largest, at least 1."""
    worst = {}
    for name, tensor in got.items():
        recorded = case.arrays[name]
        if tensor is None:  # a parameter that a wrong cell does not use
            worst[name] = np.inf
            continue
        assert tensor.shape == recorded.shape, name
        assert tensor.dtype == torch.tensor(recorded).dtype, name
        largest = max(1.0, float(np.max(np.abs(recorded), initial=0.0)))
        wrong = np.max(np.abs(tensor.detach().numpy() - recorded), initial=0.0)
        worst[name] = float(wrong) / largest
    return worst


PAGE_CASES = {  # fractions as masks, states passed; and first values as the 2019 helpers drew them
    "rlngru_layer": ("g4_theano_gru", "case082"),
    "rlnlstm_layer": ("g5_theano_lstm", "case096"),
    "rlnlstm_layer, its own first values": ("g5_theano_lstm", "case093"),
}


def data_for_pages() -> dict[str, Any]:
    """The few recurrences that a page checks: the data of the record `golden_recurrent`."""
    picked = {}
    for where, (group, wanted) in PAGE_CASES.items():
        [case] = [c for c in cases(group) if c.facts["id"] == wanted]
        picked[where] = {"case": case.id, "names": case.facts["param_order"]} | case.arrays
    source = "layers.py of bzhangGo/rmsnorm at 2e726f1, Theano 1.0.5"
    return {"source": source, "runs": len(WORKING), "cases": picked}


if __name__ == "__main__":
    command = "python tests/golden_recurrent.py"
    print(recorded.write("golden_recurrent", data_for_pages(), command=command))
