"""The record of what the compiler makes of a growing row, and the table that rests on it."""

import torch

from rmsnorm_edu import recorded
from rmsnorm_edu.benchmarks import forward_registers
from rmsnorm_edu.kernels import _choice


def test_record_has_what_measure_gives(monkeypatch) -> None:
    monkeypatch.setattr(forward_registers, "BLOCKS", (1024,))
    monkeypatch.setattr(forward_registers, "STAGES", (2,))
    monkeypatch.setattr(
        forward_registers,
        "_made",
        lambda plan, d, arch, *_, **__: dict.fromkeys(
            ("registers", "spilled", "shared"), d * plan.num_warps + arch
        ),
    )
    found, record = forward_registers._compiled(), recorded.load("forward_registers").data
    assert found.keys() == record.keys()
    assert found["registers"]["8"]["75"] == [1024 * 8 + 75]
    assert found["shared"] == {"75": [4096 * 8 + 75], "90": [4096 * 8 + 90]}
    assert found["bare"] == {"registers": 1024 * 8 + 90, "spilled": 1024 * 8 + 90}
    assert found["loop"]["float16"] == [1024 * warps + 90 for warps in (4, 8, 16, 32)]
    assert record["registers"].keys() == found["registers"].keys()


def test_table_ends_before_the_first_spill() -> None:
    data = recorded.load("forward_registers").data
    spilling = [
        block
        for by_arch in data["spilled"].values()
        for spilled in by_arch.values()
        for block, size in zip(data["blocks"], spilled, strict=True)
        if size
    ]
    longest = [b for b in data["blocks"] if "one_row" in _choice.forward_table(b, torch.float32)]
    assert max(longest) < min(spilling)
