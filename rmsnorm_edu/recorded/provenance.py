"""Where a number came from: the machine, the versions, the date, the command, the commit."""

import os
import platform
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PARTS = {"machine", "versions", "date", "command", "commit"}  # of a record's provenance
PACKAGES = ("numpy", "torch", "triton", "numba", "tensorflow", "jax", "pytensor", "ml_dtypes")


def gather(command: str) -> dict[str, Any]:
    """The provenance of a result that `command` made in this process, today.

    `versions` are those of Python, this package and the libraries that are loaded.
    """
    loaded = {name: installed(name) for name in PACKAGES if name in sys.modules}
    return {
        "machine": machine(),
        "versions": {"Python": platform.python_version(), "rmsnorm_edu": installed("rmsnorm_edu")}
        | loaded,
        "date": datetime.now(UTC).date().isoformat(),
        "command": command,
        "commit": commit(),
    }


def machine() -> str:
    """Processor, its number of logical cores, operating system, and the GPUs if any."""
    parts = [f"{processor()} ({os.cpu_count()} logical cores)", platform.system(), *gpus()]
    return ", ".join(parts)


def processor() -> str:
    """The processor's name as Linux or the platform module gives it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text("utf-8").splitlines() if cpuinfo.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def gpus() -> list[str]:
    """The names of the NVIDIA GPUs, asked of the driver's own tool; [] without it."""
    if shutil.which("nvidia-smi") is None:
        return []
    return _said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")


def commit() -> str:
    """The commit of the checkout that holds this package, "+ changes" if files differ from it."""
    here = str(Path(__file__).parent)
    if not _said("git", "-C", here, "ls-files", "provenance.py"):  # installed, not a checkout
        return "none (installed package)"
    head = _said("git", "-C", here, "rev-parse", "--short=12", "HEAD")
    if not head:  # no commit yet, or git took too long
        return "none (git names no commit)"
    changed = _said("git", "-C", here, "status", "--porcelain", "--untracked-files=no")
    return f"{head[0]} + changes" if changed else head[0]


def installed(name: str) -> str | None:
    """The version of an installed distribution, None when it is not there."""
    from importlib.metadata import PackageNotFoundError, version  # half of this module's import

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _said(*command: str) -> list[str]:
    """What `command` prints, in lines; [] when it is missing, fails, or takes over 10 s."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.strip().splitlines()
