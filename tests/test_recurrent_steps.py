"""The benchmark of a recurrence's steps: what it times is what its names say."""

import numpy as np
import pytest
import torch

from rmsnorm_edu.benchmarks import recurrent_steps


def test_the_shape_of_the_record_and_nothing_left_behind() -> None:
    threads, generator = torch.get_num_threads(), torch.random.get_rng_state()
    data = recurrent_steps.measure(hidden=(16, 18), batch=2, steps=2, repeats=2, compiled=False)
    assert list(data["cells"]) == ["GRU", "LSTM"]
    for sizes in data["cells"].values():
        assert list(sizes) == ["16", "18"]
        for ways in sizes.values():
            assert list(ways["eager"]) == list(recurrent_steps.EAGER)
            for line in ways["eager"].values():
                assert 0 < line["low_ms"] <= line["median_ms"] <= line["high_ms"]
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), generator)


@pytest.mark.parametrize("cell", recurrent_steps.CELLS)
def test_the_lines_differ_in_the_norm_alone(cell: str) -> None:
    layers = {}
    for name in recurrent_steps.EAGER[:-1]:
        torch.manual_seed(0)
        layers[name] = recurrent_steps.made(cell, name, 32)
    x = torch.tensor(np.random.default_rng(0).normal(1, 1, (3, 2, 32)), dtype=torch.float32)
    outs = {name: layer(x) for name, layer in layers.items()}
    h = {name: out[0] if isinstance(out, tuple) else out for name, out in outs.items()}
    torch.testing.assert_close(h["layer"], h["layer_fused"], rtol=0, atol=1e-5)
    for a, b in [("none", "layer"), ("layer", "rms"), ("rms", "partial")]:
        assert (h[a] - h[b]).abs().max() > 1e-3
    assert {type(inner).__name__ for inner in layers["layer_fused"].children()} == {"LayerNorm"}
    assert [norm.k for norm in layers["partial"].children() if norm.features == 32][-1:] == [2]
