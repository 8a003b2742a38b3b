"""Results that a page shows when it cannot measure them itself, each with where it came from.

A record is one JSON file beside this one: ``{"data": …, "provenance": …}``. Arrays in the data
keep their dtype, their shape and every bit.

>>> load("numpy_ladder").data["shape"]
[256, 1024]
"""

import json
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rmsnorm_edu.recorded.provenance import gather

__all__ = ["Record", "live", "load", "names", "write"]
SHELF = Path(__file__).parent  # where the records lie


@dataclass(frozen=True)
class Record:
    """What was measured (`data`), and where, when and how (`provenance`)."""

    name: str
    data: dict[str, Any]
    provenance: dict[str, Any]

    @property
    def caption(self) -> str:
        """The provenance in one line, for the caption of a figure or a table."""
        p = self.provenance
        versions = ", ".join(f"{name} {version}" for name, version in p["versions"].items())
        return f"{p['machine']}; {versions}; {p['date']}; {p['command']}; commit {p['commit']}"


def names() -> list[str]:
    """The names of all records, sorted."""
    return sorted(path.stem for path in SHELF.glob("[!.]*.json"))


def load(name: str) -> Record:
    """The record `name`; ValueError that lists the names when there is none."""
    if name not in names():
        raise ValueError(f"no record {name!r}; there are: {', '.join(names())}")
    text = (SHELF / f"{name}.json").read_text("utf-8")
    return Record(name, **json.loads(text, object_hook=_decoded))


def live(name: str, measure: Callable[[], dict[str, Any]]) -> Record:
    """In a notebook what ``measure()`` finds now; while the book is built the record `name`.

    A page measures no time during the build, so that two builds give the same bytes. The build
    sets the environment variable RMSNORM_BOOK.
    """
    record = load(name)  # also in a notebook: a page without its record must not go unnoticed
    if os.environ.get("RMSNORM_BOOK"):
        return record
    return Record(name, measure(), gather("measured in this notebook"))


def write(
    name: str, data: dict[str, Any], *, command: str, folder: str | os.PathLike[str] | None = None
) -> Path:
    """Write `data`, measured just now in this process by `command`, as the record `name`.

    `data` holds what JSON can, and NumPy arrays of numbers. The provenance is gathered here. The
    file appears whole or not at all. ValueError for a name that is not a plain lower-case word,
    TypeError for data that JSON cannot hold.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"record name {name!r}; give lower-case letters, digits, underscores")
    record = {"data": data, "provenance": gather(command)}
    text = json.dumps(record, indent=1, ensure_ascii=False, default=_encoded) + "\n"
    path = Path(folder or SHELF) / f"{name}.json"
    _replace(path, text)
    return path


def _replace(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)  # mkstemp makes a private file; a record is for everybody
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _encoded(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        values = " ".join(repr(number) for number in value.ravel().tolist())
        return {"dtype": str(value.dtype), "shape": value.shape, "values": values}
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a record cannot hold {value!r} of type {type(value).__name__}")


def _decoded(entry: dict[str, Any]) -> Any:
    if entry.keys() == {"dtype", "shape", "values"}:
        number = int if np.dtype(entry["dtype"]).kind in "iu" else float
        numbers = [number(text) for text in entry["values"].split()]
        return np.array(numbers, dtype=entry["dtype"]).reshape(entry["shape"])
    return entry
