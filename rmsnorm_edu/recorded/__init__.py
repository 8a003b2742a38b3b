"""Results that a page shows when it cannot measure them itself, each with where it came from.

A record is one JSON file beside this one: ``{"data": …, "provenance": …}``. Arrays in the data
keep their dtype, their shape and every bit (of a nan: that it is one).

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

from rmsnorm_edu.recorded.provenance import PARTS, gather

__all__ = ["Record", "building", "live", "load", "names", "place", "write"]
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
    """The record `name`; ValueError if it is damaged, and one that lists all if there is none."""
    if name not in names():
        raise ValueError(f"no record {name!r}; there are: {', '.join(names())}")
    path = SHELF / f"{name}.json"
    try:
        record = Record(name, **_decoded_text(path.read_text("utf-8")))
        whole = isinstance(record.data, dict) and record.provenance.keys() == PARTS
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"record {name!r} is damaged ({error}): replace {path}") from error
    if not whole:
        raise ValueError(f"record {name!r} is damaged (data or provenance missing): replace {path}")
    return record


def building() -> bool:
    """Whether the book is being built: the environment variable RMSNORM_BOOK is set, not to 0."""
    return os.environ.get("RMSNORM_BOOK", "0") not in ("", "0")


def live(name: str, measure: Callable[[], dict[str, Any]]) -> Record:
    """In a notebook what ``measure()`` finds now; while the book is built the record `name`.

    A page measures no time during the build, so that two builds give the same bytes. TypeError
    when measure() gives no dictionary.
    """
    record = load(name)  # also in a notebook: a page without its record must not go unnoticed
    if building():
        return record
    return Record(name, _dictionary(measure()), gather("measured in this notebook"))


def place(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """The file of the record `name` in `folder`, or among the package's own.

    ValueError for a name that is not a plain lower-case word, and where no file can be written.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"record name {name!r}; give lower-case letters, digits, underscores")
    home = SHELF if folder is None else Path(folder)
    if not home.is_dir():
        what = "is not a folder" if home.exists() else "does not exist"
        raise ValueError(f"folder {home} {what}: make it or give another")
    if not os.access(home, os.W_OK):
        raise ValueError(f"folder {home} cannot be written to: give another")
    path = home / f"{name}.json"
    if path.is_dir():
        raise ValueError(f"{path} is a folder: move it away or give another folder")
    return path


def write(
    name: str, data: dict[str, Any], *, command: str, folder: str | os.PathLike[str] | None = None
) -> Path:
    """Write `data`, measured just now in this process by `command`, as the record `name`.

    `data` holds what JSON can (a tuple comes back as a list), and NumPy arrays of integers and of
    floats up to float64. The provenance is gathered here. The file appears whole or not at all,
    and only if reading it gives the data back. Errors as `place`; TypeError or ValueError for data
    that a record cannot hold, OSError when writing fails.
    """
    path = place(name, folder)
    if not isinstance(command, str):
        raise TypeError(f"command = {command!r} is {type(command).__name__}; give a string")
    text = _text({"data": _dictionary(data), "provenance": gather(command)})
    try:
        _replace(path, text)
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _dictionary(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise TypeError(f"data is {type(data).__name__}; give a dictionary, {{name: value}}")
    return data


def _text(record: dict[str, Any]) -> str:
    """The record in JSON, once it is sure that the same comes back."""
    advice = "give strings as keys, nan and inf in arrays, no keys dtype + shape + values"
    try:
        text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False, default=_encoded)
        text.encode("utf-8")
    except (RecursionError, ValueError) as error:
        raise ValueError(f"a record cannot hold this data: {error}; {advice}") from error
    try:
        lost = _lost(record, _decoded_text(text))
    except (AttributeError, TypeError, ValueError) as error:  # a dictionary like a stored array
        raise ValueError(f"this data cannot be read back: {error}; {advice}") from error
    if lost:
        raise ValueError(f"{lost} would not come back from a record as it is; {advice}")
    return text + "\n"


def _lost(a: Any, b: Any, where: str = "") -> str:
    """The place in `a` that is another in `b`, read back; "" where there is none."""
    if isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b):
        keys = list(a)
    elif isinstance(a, list | tuple) and isinstance(b, list) and len(a) == len(b):
        keys = list(range(len(a)))
    else:
        return "" if _equal(a, b) else where
    found = (_lost(a[key], b[key], f"{where}[{key!r}]" if where else str(key)) for key in keys)
    return next(filter(None, found), "")


def _equal(a: Any, b: Any) -> bool:
    """Whether scalars, or arrays with their dtype, shape and signs, are the same."""
    if not isinstance(a, np.ndarray):
        return not isinstance(b, np.ndarray) and bool(a == b)
    if not isinstance(b, np.ndarray) or a.dtype != b.dtype or a.shape != b.shape:
        return False
    same_sign = (np.signbit(a) == np.signbit(b)) | (a != a)  # a nan has no sign to keep
    return bool(np.array_equal(a, b, equal_nan=True) and same_sign.all())


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
    if np.ma.is_masked(value):
        raise TypeError("a record cannot hold masked values; fill them first, numpy.ma.filled(...)")
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.dtype.itemsize <= 8:
        values = " ".join(repr(number) for number in value.ravel().tolist())
        return {"dtype": str(value.dtype), "shape": value.shape, "values": values}
    if isinstance(value, np.generic) and not isinstance(value.item(), np.generic):
        return value.item()  # a long double would give itself
    raise TypeError(f"a record cannot hold {value!r} of type {type(value).__name__}")


def _decoded_text(text: str) -> Any:
    return json.loads(text, object_hook=_decoded)


def _decoded(entry: dict[str, Any]) -> Any:
    if entry.keys() == {"dtype", "shape", "values"}:
        number = int if np.dtype(entry["dtype"]).kind in "iu" else float
        numbers = [number(text) for text in entry["values"].split()]
        return np.array(numbers, dtype=entry["dtype"]).reshape(entry["shape"])
    return entry
