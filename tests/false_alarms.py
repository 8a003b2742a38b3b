"""How often `verify` rejects what is right: every right program, every type, many seeds.

python tests/false_alarms.py 1000     (the tests themselves run a sample of it)
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
from implementations import RIGHT, RIGHT_VJP

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rmsnorm_edu.checks.inputs import cases, long_cases
from rmsnorm_edu.checks.judge import Fault, Judge
from rmsnorm_edu.checks.rules import Rules

DTYPES = {name: np.dtype(name) for name in ("float32", "float16", "float64")}
DTYPES["bfloat16"] = np.dtype(ml_dtypes.bfloat16)
PROGRAMS = {"forward": RIGHT, "vjp": RIGHT_VJP}


def alarms(dtype: np.dtype, seeds: range) -> Iterator[tuple[str, str | None]]:
    """For each program and input its name, and what the judge found wrong with it."""
    judge = Judge(Rules("torch", dtype))
    inputs = [case for seed in seeds for case in cases(seed, dtype)]
    for case in [*inputs, *(long_cases(dtype) if 0 in seeds else ())]:
        for function, programs in PROGRAMS.items():
            arguments = case.arguments(function)
            (rights,) = judge.rules.right(function, arguments)  # once for all programs
            for name, program in programs.items():
                got = judge.results(function, program, arguments)
                fault = got if isinstance(got, Fault) else judge._first_fault(function, got, rights)
                yield name, fault and f"{case.kind}, eps = {case.eps}: {fault.what}, {fault.reason}"


def main(seeds: int) -> None:
    for name, dtype in DTYPES.items():
        count, found = 0, []
        for seed in range(seeds):
            for program, fault in alarms(dtype, range(seed, seed + 1)):
                count += 1
                if fault:
                    found.append((program, fault))
                    print(f"  {program}, seed {seed}: {fault}", flush=True)
        programs = len(RIGHT) + len(RIGHT_VJP)
        print(
            f"{name}: {programs} programs, {count} results, {len(found)} false alarms", flush=True
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
