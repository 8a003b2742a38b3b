import numpy as np
import pytest

from rmsnorm_edu import precision, reference
from rmsnorm_edu.benchmarks import measure_of, numpy_ladder


@pytest.mark.parametrize("name", numpy_ladder.RUNGS)
def test_every_rung_is_rms_norm(name: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(2.0, 3.0, (4, 129)).astype(np.float32)
    weight = rng.uniform(-3.0, 3.0, 129).astype(np.float32)
    y = numpy_ladder.RUNGS[name](x, weight)
    truth = reference.rms_norm(x, weight)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, truth, rtol=precision.bound("float32", 129), atol=0)


def test_measure_times_every_rung() -> None:
    found = measure_of("numpy_ladder")(rows=2, n=3, repeats=2)
    assert found["median_ms"].keys() == numpy_ladder.RUNGS.keys()
    assert all(median >= 0 for median in found["median_ms"].values())
    assert found["shape"] == [2, 3]


def test_an_unknown_task_lists_the_tasks() -> None:
    with pytest.raises(ValueError, match=r"nothing measures 'x'; there are: .*numpy_ladder"):
        measure_of("x")
