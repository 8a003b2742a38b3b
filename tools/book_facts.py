"""What the exporter needs to know about the book: read from files, nothing is built or run."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Facts:
    """The values and numbers of the last build, the symbols, the formulas' macros, the package."""

    root: Path
    values: dict[str, dict[str, str]]  # {page: {name: text}}, what sentences show
    labels: dict[str, dict[str, Any]]  # numbers and titles by kind: doc, eq, ref, numref, …
    symbols: dict[str, dict[str, str]]  # notation.yml
    macros: dict[str, str]  # {"RMS": r"\operatorname{RMS}"}: notebooks have no such settings
    project: dict[str, Any]  # pyproject.toml's [project]

    @property
    def address(self) -> str:
        """The one public address, pyproject's; it holds OWNER until the owner publishes it."""
        return str(self.project["urls"]["Repository"]).rstrip("/")

    @property
    def published(self) -> bool:
        """Does the address name an owner?"""
        return "/OWNER/" not in self.address


def read(root: Path = ROOT) -> Facts:
    """Read the facts of the book whose repository is `root`."""

    def text(name: str) -> str:
        return (root / name).read_text(encoding="utf-8")

    config = yaml.safe_load(text("_config.yml"))
    return Facts(
        root=root,
        values=json.loads(text("book/values.json")),
        labels=json.loads(text("book/labels.json")),
        symbols=yaml.safe_load(text("book/notation.yml")),
        macros=config["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"],
        project=tomllib.loads(text("pyproject.toml"))["project"],
    )
