"""`NormGRU` and `NormLSTM` against the 2019 code, forward and every gradient; and wrong cells.

Tolerances of tests/golden/README.md's source: in float64 1e-12 and 1e-9 of the largest gradient, in
float32 1e-4. The recorded numbers carry Theano's rounding, over up to seven steps.
"""

import numpy as np
import pytest
import torch
from golden_recurrent import ALL, WORKING, Case, cases, data_for_pages, error, run

from rmsnorm_edu import recorded
from rmsnorm_edu.nn import NormGRU, NormLSTM
from rmsnorm_edu.nn._cell import mixed

TOLERANCE = {"float64": 1e-9, "float32": 1e-4}
OUTPUT_TOLERANCE = {"float64": 1e-12, "float32": 1e-5}
by_id = {"ids": lambda case: f"{case.id}-{case.facts['unit']}-{case.facts['mask']}"}


@pytest.mark.equation("norm-gru", "norm-lstm", "mask-mix")
@pytest.mark.parametrize("case", WORKING, **by_id)
def test_output_and_gradients(case: Case) -> None:
    wrong = error(case, run(case, case.kind.from_original(case.params, case.norm)))
    assert wrong.keys() >= {"h", "dx", *(f"d{name}" for name in case.params)}
    for name, off in wrong.items():
        tolerance = OUTPUT_TOLERANCE if name in case.outputs else TOLERANCE
        assert off <= tolerance[case.facts["dtype"]], name


def test_all_cases_are_there() -> None:
    assert [len(cases(group)) for group in ("g4_theano_gru", "g5_theano_lstm")] == [38, 44]
    assert len(ALL) - len(WORKING) == 4


@pytest.mark.parametrize("case", [c for c in ALL if "error" in c.facts], **by_id)
def test_one_sequence_without_its_axis_of_examples(case: Case) -> None:
    """The original died inside Theano ("Not enough dimensions …"); here the fix is said."""
    facts = case.facts
    assert facts["x_ndim"] == 2
    assert "Not enough dimensions" in facts["error"]
    cell = case.kind(facts["nin"], facts["dim"], case.norm)
    with pytest.raises(ValueError, match=r"x is 2-D, \(3, 2\).*One sequence of T steps is x\[:, N"):
        cell(torch.ones(facts["T"], facts["nin"]))


# --- Wrong cells: each must miss recorded numbers, or the comparison above would prove little.


class GatesApart(NormGRU):
    def project(self, x):
        gates = x @ self.weight_ih_gates + self.bias_gates
        return self._apart(self.norm_ih_gates, gates), super().project(x)[1]

    def _apart(self, norm, gates):
        halves = gates.chunk(2, -1), norm.weight.chunk(2)
        parts = [
            h * torch.rsqrt(h.square().mean(-1, True) + 1e-5) * w
            for h, w in zip(*halves, strict=True)
        ]
        return torch.cat(parts, -1)


class BiasAfterTheNorm(NormGRU):
    def project(self, x):
        gates = self.norm_ih_gates(x @ self.weight_ih_gates) + self.bias_gates
        return gates, super().project(x)[1]


class _OtherGRU(NormGRU):
    """A GRU that differs after its gates are known."""

    def step(self, projected, state, mask=None):
        (h,) = state
        z = projected[0] + self.norm_hh_gates(h @ self.weight_hh_gates)
        r, u = torch.sigmoid(z).chunk(2, -1)
        return (mixed(mask, self.new(projected[1], r, u, h), h),)


class ResetBeforeTheProduct(_OtherGRU):
    def new(self, of_x, r, u, h):
        candidate = torch.tanh(of_x + self.norm_hh_candidate((r * h) @ self.weight_hh_candidate))
        return u * h + (1 - u) * candidate


class UpdateTurned(_OtherGRU):
    def new(self, of_x, r, u, h):
        candidate = torch.tanh(of_x + r * self.norm_hh_candidate(h @ self.weight_hh_candidate))
        return (1 - u) * h + u * candidate


class _OtherLSTM(NormLSTM):
    """An LSTM that differs in what its parts are."""

    bias_outside, order = 1.0, (0, 1, 2, 3)

    def step(self, projected, state, mask=None):
        h, c = state
        z = projected[0] + self.norm_hh(h @ self.weight_hh) + self.bias_outside * self.bias
        blocks = z.chunk(4, -1)
        i, f, o, g = (blocks[at] for at in self.order)
        new = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        shown, carried = self.cells(new, c, mask)
        return mixed(mask, torch.sigmoid(o) * torch.tanh(shown), h), carried

    def cells(self, new, c, mask):
        carried = mixed(mask, new, c)
        return self.norm_cell(carried), carried


class BiasOnce(_OtherLSTM):
    bias_outside = 0.0


class CandidateThird(_OtherLSTM):
    order = (0, 1, 3, 2)


class CellNotNormalised(_OtherLSTM):
    def cells(self, new, c, mask):
        return (carried := mixed(mask, new, c)), carried


class NormalisedCellCarried(_OtherLSTM):
    def cells(self, new, c, mask):
        return (shown := self.norm_cell(mixed(mask, new, c))), shown


class CellNormalisedBeforeTheMask(_OtherLSTM):
    def cells(self, new, c, mask):
        return self.norm_cell(new), mixed(mask, new, c)


class MaskIgnored(NormLSTM):
    def forward(self, x, mask=None, h0=None, c0=None):
        return super().forward(x, None, h0, c0)


WRONG = {  # how many of the ten or twelve float64 cases with "rms" must notice
    GatesApart: 9,
    BiasAfterTheNorm: 10,
    ResetBeforeTheProduct: 9,
    UpdateTurned: 10,
    BiasOnce: 12,
    CandidateThird: 12,
    CellNotNormalised: 12,
    NormalisedCellCarried: 8,
    CellNormalisedBeforeTheMask: 1,  # with masks of 0 and 1 it is the same
    MaskIgnored: 3,
}


@pytest.mark.parametrize("kind", WRONG, ids=lambda kind: kind.__name__)
def test_wrong_cells_are_noticed(kind: type) -> None:
    group = "g4_theano_gru" if issubclass(kind, NormGRU) else "g5_theano_lstm"
    rms = [
        c
        for c in cases(group)
        if c.norm == "rms" and c.facts["dtype"] == "float64" and "error" not in c.facts
    ]
    off = [max(error(c, run(c, kind.from_original(c.params))).values()) for c in rms]
    assert sum(value > 1e-6 for value in off) >= WRONG[kind], off


@pytest.mark.parametrize("kind", [_OtherGRU, _OtherLSTM])
def test_the_skeletons_of_the_wrong_cells_are_right(kind: type) -> None:
    if kind is _OtherGRU:
        kind = type("RightGRU", (_OtherGRU,), {"new": _right})
    group = "g4_theano_gru" if issubclass(kind, NormGRU) else "g5_theano_lstm"
    for case in (c for c in cases(group) if c.norm == "rms" and c in WORKING[:80:3]):
        wrong = error(case, run(case, kind.from_original(case.params)))
        assert max(wrong.values()) <= TOLERANCE[case.facts["dtype"]]


def _right(self, of_x, r, u, h):
    candidate = torch.tanh(of_x + r * self.norm_hh_candidate(h @ self.weight_hh_candidate))
    return u * h + (1 - u) * candidate


def test_the_record_for_the_page_is_that_of_the_golden_vectors() -> None:
    stored, fresh = recorded.load("golden_recurrent").data, data_for_pages()
    assert stored["cases"].keys() == fresh["cases"].keys()
    assert stored["runs"] == fresh["runs"] == 78
    for where, case in fresh["cases"].items():
        for name, value in case.items():
            np.testing.assert_array_equal(stored["cases"][where][name], value)
