"""The first code cell of every notebook: it installs the package where it is missing."""

import json
import re
from typing import Any

MODULES = {"ipython": "IPython"}  # distributions whose module is named otherwise
CELL = """\
# Set up: installs the book's package where it is missing, then says what was found.
# Further down, a line such as "share = 25%" under a cell is a number that a sentence uses.
REPO = {address}
WHEEL = ""  # or the name of a wheel that you uploaded here: the README says how to make it
from importlib.util import find_spec

if not all(map(find_spec, {modules})):
    if WHEEL:
        %pip install -q "{{WHEEL}}{extras}"
    elif "/OWNER/" in REPO:
        raise SystemExit("No address yet: set REPO in this cell, or upload a wheel and set WHEEL.")
    else:
        %pip install -q "rmsnorm_edu{extras} @ git+{{REPO}}"

import rmsnorm_edu
from rmsnorm_edu.recorded.provenance import gpus

gpu = "; ".join(gpus()) or "no GPU: this chapter runs without"
print(f"rmsnorm_edu {{rmsnorm_edu.__version__}}, {{gpu}}")"""


def requirements(project: dict[str, Any], extra: str) -> list[str]:
    """The distributions of an extra, those of the extras that it names included.

    Raises ValueError for an extra that `project` (pyproject's table) does not have.
    """
    extras = project["optional-dependencies"]
    if extra not in extras:
        raise ValueError(f"pyproject.toml has no extra {extra!r}; it has {sorted(extras)}")
    found = []
    for requirement in extras[extra]:
        inner = re.fullmatch(rf"{project['name']}\[(.+)\]", requirement)
        if inner:
            names = (requirements(project, name.strip()) for name in inner[1].split(","))
            found += [distribution for of_one in names for distribution in of_one]
        else:
            found.append(re.match(r"[\w-]+", requirement)[0])
    return found


def setup_cell(project: dict[str, Any], extras: list[str]) -> str:
    """The cell's source for a page whose front matter lists `extras`."""
    needed = [name for extra in extras for name in requirements(project, extra)]
    modules = [MODULES.get(name.lower(), name.replace("-", "_")) for name in needed]
    return CELL.format(
        address=json.dumps(project["urls"]["Repository"].rstrip("/")),
        modules=json.dumps([project["name"], *dict.fromkeys(modules)]),
        extras=f"[{','.join(extras)}]" if extras else "",
    )
