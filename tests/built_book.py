"""Building the book for a test."""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import build_book

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path("_build") / ".jupyter_cache"  # what the cells gave


class Built(NamedTuple):
    """What a build left behind."""

    html: Path
    code: int
    log: str


def run_build(folder: Path, *options: str, **env: str) -> Built:
    """Build the book into `folder`, running what its cache lacks; the checkout stays as it is."""
    run = subprocess.run(
        build_book.command(folder, *options),
        env={**os.environ, "BOOK_CHECK": "1", **env},
        capture_output=True,
        text=True,
    )
    return Built(folder / "_build" / "html", run.returncode, run.stdout + run.stderr)
