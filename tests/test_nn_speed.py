from itertools import accumulate

import pytest
import torch
from tensors import gains, uneven

from rmsnorm_edu.benchmarks import measure_of, nn_speed
from rmsnorm_edu.nn import _blocked


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


def most_alive(name: str, rows: int, n: int) -> int:
    """Bytes of the tensors that forward + backward make and keep at the same time, at most.

    As torch's allocator tells them: what the process holds depends on the C library and the system.
    """
    step = nn_speed._step(nn_speed._norm(name, n, 0), *nn_speed._rows(rows, n, 0))
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as seen:
        step()
    events = seen.profiler.kineto_results.events()
    return max(accumulate(event.nbytes() for event in events if event.name() == "[memory]"))


@pytest.mark.usefixtures("own_threads")
@pytest.mark.parametrize("threads", [1, 2])
def test_no_more_memory_than_torch(threads: int) -> None:
    """y and dx of 16 MiB each, and a block beside them for each thread; torch needs six of 16."""
    torch.set_num_threads(threads)
    array, vectors = 1024 * 4096 * 4, 8 * 4096 * 4
    ours = most_alive("nn.RMSNorm", 1024, 4096)
    assert 2 * array <= ours <= 2 * array + threads * _blocked.BLOCK + vectors < 3 * array
    assert 6 * array <= most_alive("torch.nn.RMSNorm", 1024, 4096) <= 6 * array + vectors


def test_the_memory_of_a_process_is_measured() -> None:
    assert 0 <= nn_speed.peak("nn.RMSNorm", 16, 64) < 2**10
