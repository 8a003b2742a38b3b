import torch
from tensors import gains, uneven

from rmsnorm_edu.benchmarks import measure_of, nn_speed


def test_the_closed_form_is_rms_norm() -> None:
    x, dy = uneven(6, 33).float(), uneven(6, 33, seed=1).float()
    found = []
    for kind in (torch.nn.RMSNorm, nn_speed.PlainNorm):
        norm, rows = kind(33), x.clone().requires_grad_()
        norm.weight.data.copy_(gains(33))
        y = norm(rows)
        y.backward(dy)
        found.append((y, rows.grad, norm.weight.grad))
    for theirs, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_measure_has_a_time_for_every_method(monkeypatch) -> None:
    monkeypatch.setattr(nn_speed, "peak", lambda name, rows, n: 1.0)  # processes: below
    found = measure_of("nn_speed")(rows=8, n=16, repeats=2, compiled=False)
    assert found["shape"] == [8, 16]
    assert list(found["median_ms"]) == list(found["ratio"]) == list(nn_speed.EAGER)
    assert found["ratio"]["torch.nn.RMSNorm"] == 1.0
    assert all(low <= high for low, high in found["spread_ms"].values())


def test_no_more_memory_than_torch() -> None:
    """y and dx of 16 MB each, and less than 16 MB beside them; torch needs six times 16."""
    ballast = torch.ones(2**26)  # what this process holds does not count
    ours = nn_speed.peak("nn.RMSNorm", 1024, 4096)
    assert 2 * 16 <= ours <= 3 * 16
    assert ballast[0] == 1
