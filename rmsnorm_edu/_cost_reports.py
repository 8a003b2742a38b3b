"""Times that others measured and published, to hold the model against: none is ours."""

from typing import NamedTuple


class Report(NamedTuple):
    """One published time in seconds; `by` is the repository and the number of its thread.

    Operation, chip, type and shape are those of `cost.traffic`.
    """

    by: str
    chip: str
    operation: str
    rows: int
    n: int
    dtype: str
    seconds: float


def _reports(by: str, chip: str, *table: tuple[str, int, int, float]) -> list[Report]:
    """Rows of (operation, rows, n, microseconds), all of bfloat16."""
    return [
        Report(by, chip, name, rows, n, "bfloat16", micro * 1e-6) for name, rows, n, micro in table
    ]


# With the cache emptied before each call, after the change; CuTe DSL kernels.
_LIGER = "linkedin/Liger-Kernel #1462"
# 4 × 4096 rows; "PyTorch" against Triton kernels after Liger's.
_T4 = "The-School-of-AI/LLM #514"

REPORTED = [
    *_reports(
        _LIGER,
        "H100",
        ("forward", 1, 4096, 6.080),
        ("forward", 128, 4096, 6.880),
        ("forward", 128, 8192, 8.000),
        ("forward", 128, 18432, 10.016),
        ("forward", 2048, 4096, 18.944),
        ("forward", 2048, 8192, 29.504),
        ("forward", 8192, 4096, 51.968),
        ("add_forward", 128, 4096, 7.872),
        ("add_forward", 2048, 4096, 28.224),
        ("add_forward", 2048, 8192, 50.720),
    ),
    *_reports(
        _LIGER,
        "B200",
        ("forward", 1, 4096, 6.432),
        ("forward", 128, 4096, 8.192),
        ("forward", 2048, 4096, 14.336),
        ("forward", 8192, 4096, 28.992),
    ),
    *_reports(
        _T4,
        "T4",
        ("forward", 16384, 4096, 1100),
        ("backward", 16384, 4096, 1600),
        ("forward_unfused", 16384, 4096, 10300),
        ("backward_unfused", 16384, 4096, 26000),
    ),
]
