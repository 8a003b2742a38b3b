"""What the figure of the cost chapter must compute: vectors for `node --test`."""

from typing import Any

from rmsnorm_edu import cost
from rmsnorm_edu._cost_passes import PARTIALS
from rmsnorm_edu.explorables import roofline as figure

STATES = [  # chip, dtype, rows, n, programs
    ("H100", "bfloat16", 8192, 4096, 132),
    ("T4", "float32", 128, 512, 0),
    ("B200", "float16", 1, 64, 4),
]


def roofline() -> dict[str, Any]:
    """The tables that the figure gets, and for each operation its bytes, flops and times."""
    cases = [case(operation, *state) for operation in cost.OPERATIONS for state in STATES]
    roofs = [
        [chip, dtype, x, cost.roof(chip, dtype, x)]
        for chip in cost.CHIPS
        for dtype in figure.DTYPES
        for x in (0.04, 1.0, 20.0, 25.0, 300.0, 1500.0)
    ]
    return {
        "data": figure.data(),
        "rows": figure.ROWS,
        "widths": figure.WIDTHS,
        "programs": list(figure.PROGRAMS),
        "cases": cases,
        "roofs": roofs,
    }


def case(operation: str, chip: str, dtype: str, rows: int, n: int, programs: int) -> dict[str, Any]:
    shape = (operation, rows, n, dtype)
    more = {"programs": programs} if operation in PARTIALS else {}
    return {
        **{"operation": operation, "chip": chip, "dtype": dtype, "rows": rows, "n": n},
        "programs": programs,
        "traffic": [list(item) for item in cost.traffic(*shape, **more).items()],
        "flops": cost.flops(operation, rows, n, **more),
        "intensity": cost.intensity(*shape, **more),
        "floor": cost.floor(*shape, chip, **more),
    }
