"""The command line: ``python -m rmsnorm_edu {info, invariance, record, aot}``."""

import argparse
import json
import os
import platform
import sys
from typing import Any

from rmsnorm_edu import __version__, recorded
from rmsnorm_edu.benchmarks import TASKS, cpu, measure_of
from rmsnorm_edu.recorded.provenance import gpus, installed, processor

EXTRAS = {
    "widgets": ("anywidget", "ipywidgets", "matplotlib"),
    "precision": ("ml_dtypes",),
    "torch": ("torch",),
    "cpu": ("numba",),
    "triton": ("triton",),
    "tensorflow": ("keras", "tensorflow"),
    "jax": ("jax", "flax"),
    "pytensor": ("pytensor",),
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status is 0, 1 after an error of the command, 2 for its usage.

    It is 1, too, and nothing is said, when who reads the output (``| head``) wants no more of it,
    and 130 when the user stops it (Ctrl-C).
    """
    try:
        try:
            return _status(arguments)
        finally:
            if sys.stdout:
                sys.stdout.flush()  # here, where a closed pipe can be noticed
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for Python's last flush
        return 1
    except KeyboardInterrupt:
        return 130


def _status(arguments: list[str] | None) -> int:
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except BrokenPipeError:
        raise
    except (ImportError, MemoryError, OSError, RuntimeError, ValueError) as error:
        print(f"rmsnorm_edu {options.command}: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m rmsnorm_edu", description="RMSNorm, measured.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, run, text in (
        ("info", _info, "versions, optional packages, processor and GPU"),
        (
            "invariance",
            _invariance,
            "measure which transformation changes which normalisation; negative scale: whether a "
            "factor below 0 flips the output's sign or changes it (-: there is no factor)",
        ),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("--json", action="store_true", help="print JSON, for machines")
        command.set_defaults(run=run)
    _add_bench(commands)
    text = "measure NAME on this machine and write it where the book's pages read it"
    record = commands.add_parser("record", help=text, description=text)
    record.add_argument("name", choices=sorted(TASKS), metavar="NAME", help=", ".join(TASKS))
    record.add_argument("--folder", help="write NAME.json there instead of into the package")
    record.set_defaults(run=_record)
    _add_aot(commands)
    return parser


def _add_aot(commands: Any) -> None:
    text = "compile the Triton kernels for GPUs that are not here, and say what each is made of"
    aot = commands.add_parser("aot", help=text, description=text)
    aot.add_argument("--d", type=int, default=4096, metavar="N", help="features of a row: 4096")
    for name, kind, example in (
        ("arch", numbers, "75,80,90,100"),
        ("dtype", words, "float32,float16,bfloat16"),
        ("kernel", words, "forward,backward.partials"),
    ):
        aot.add_argument(f"--{name}", type=kind, help=f"one or more, as {example}")
    aot.add_argument("--json", action="store_true", help="print JSON, for machines")
    aot.set_defaults(run=_aot)


def words(text: str) -> list[str]:
    """Words with commas between them."""
    return text.split(",")


def numbers(text: str) -> list[int]:
    """Integers with commas between them."""
    try:
        return [int(word) for word in words(text)]
    except ValueError as error:
        remedy = f"{text!r}: give whole numbers with commas between them, like 75,90"
        raise argparse.ArgumentTypeError(remedy) from error


def _add_bench(commands: Any) -> None:
    text = "time RMSNorm on this machine beside a plain copy of the same bytes"
    bench = commands.add_parser("bench", help=text, description=text)
    bench.add_argument("device", choices=["cpu"])
    bench.add_argument("--json", action="store_true", help="print JSON, for machines")
    bench.add_argument("--shape", default="8192x4096", help="ROWSxFEATURES (8192x4096)")
    bench.add_argument("--dtype", default="float32", help="float32 or float64 (float32)")
    bench.add_argument("--repeats", type=int, default=15, help="of each method, in turn (15)")
    bench.add_argument("--threads", type=int, help="of each method (one for each processor)")
    bench.add_argument("--methods", help="some of them: " + ", ".join(cpu.METHODS))
    bench.set_defaults(run=_bench)


def _bench(options: argparse.Namespace) -> None:
    methods = cpu.METHODS if options.methods is None else options.methods.split(",")
    entries = cpu.bench(
        cpu.parsed_shape(options.shape),
        options.dtype,
        options.repeats,
        [method.strip() for method in methods],
        options.threads,
    )
    print(json.dumps(entries, indent=1) if options.json else cpu.table(entries))


def _info(options: argparse.Namespace) -> None:
    found: dict[str, Any] = {
        "rmsnorm_edu": __version__,
        "Python": platform.python_version(),
        "numpy": installed("numpy"),
        "processor": processor(),
        "GPU": gpus(),
        "extras": {extra: {p: installed(p) for p in needs} for extra, needs in EXTRAS.items()},
    }
    if options.json:
        print(json.dumps(found, indent=1))
        return
    extras = found.pop("extras")
    found["GPU"] = "; ".join(found["GPU"]) or "none found: everything here runs without"
    for name, value in found.items():
        print(f"{name:12} {value}")
    for extra, needs in extras.items():
        print(f"{extra:12} " + ", ".join(f"{p} {v or 'not installed'}" for p, v in needs.items()))


def _invariance(options: argparse.Namespace) -> None:
    from rmsnorm_edu import invariance

    cells = invariance.measure()
    if options.json:
        print(json.dumps(cells, indent=1))
        return
    print(f"{'method':17} {'transformation':26} {'max change':>10}  invariant  negative scale")
    for cell in cells:
        print(
            f"{cell['method']:17} {cell['transformation']:26} {cell['max_change']:10.1e}  "
            f"{'yes' if cell['invariant'] else 'no':9}  {cell['negative_scale'] or '-'}"
        )


def _record(options: argparse.Namespace) -> None:
    command = f"python -m rmsnorm_edu record {options.name}"
    recorded.place(options.name, options.folder)  # before minutes of measuring
    data = measure_of(options.name)()
    print(recorded.write(options.name, data, command=command, folder=options.folder))


def _aot(options: argparse.Namespace) -> None:
    from rmsnorm_edu.kernels import aot

    asked = {"arches": options.arch, "dtypes": options.dtype, "kernels": options.kernel}
    entries = aot.report(options.d, **{name: value for name, value in asked.items() if value})
    print(json.dumps(entries, indent=1) if options.json else aot.table(entries))


if __name__ == "__main__":
    sys.exit(main())
