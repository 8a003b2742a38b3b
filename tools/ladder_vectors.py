"""What the figure of the CPU chapter must compute: vectors for `node --test`."""

from typing import Any

from rmsnorm_edu.benchmarks.cpu_ladder import traffic
from rmsnorm_edu.explorables import where_bytes_go as figure
from rmsnorm_edu.recorded import Record

# Invented times, so that a new record does not change the vectors: method, ms, rows, page faults.
_SMALL = [("copy", 1.0, 512, 0), ("copy (fresh)", 1.5, 512, 0), ("fused", 1.2, 512, 0)]
_SMALL += [("loop", 10.0, 4, 0), ("numpy", 2.5, 512, 0), ("einsum", 2.1, 512, 0)]
_SMALL += [("blocked", 2.0, 512, 0), ("fused (fresh)", 1.3, 512, 0), ("streamed", 1.6, 512, 0)]
_LARGE = [("copy", 10.0, 8192, 0), ("copy (fresh)", 30.0, 8192, 32769), ("loop", 20.0, 8, 0)]
_LARGE += [("numpy", 100.0, 8192, 1152), ("einsum", 22.0, 8192, 0), ("blocked", 20.0, 8192, 0)]
_LARGE += [("fused", 12.0, 8192, 0), ("fused (fresh)", 15.0, 8192, 584)]
_LARGE += [("streamed", 8.0, 8192, 0)]
SHAPES = {512: 8192, 8192: 4096}


def record() -> Record:
    """A record of the ladder as `cpu_ladder.measure` makes it, with times that nobody measured."""
    entries = [
        {"method": name, "direction": "forward", "shape": [rows, n], "ms_median": ms, "faults": f}
        for table, n in ((_SMALL, 8192), (_LARGE, 4096))
        for name, ms, rows, f in table
    ]
    entries.append(entries[-1] | {"direction": "forward+backward", "ms_median": 99.0})
    data = {"shapes": [list(s) for s in SHAPES.items()], "dtype": "float32", "entries": entries}
    where = {"machine": "none", "versions": {}, "date": "never", "command": "none", "commit": "0"}
    return Record("cpu_ladder", data, where)


def where_bytes_go() -> dict[str, Any]:
    """The figure's data of that record, and what each rung moves through the memory."""
    return {
        "data": figure.data(record()),
        "bytes": {rung: sum(traffic(rung, 8192, 4096).values()) for rung in figure.RUNGS},
    }
