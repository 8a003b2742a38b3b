"""Run the code cells of the book's pages as a notebook would, and watch what they do."""

import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jupytext
import matplotlib.pyplot as plt
import pytest
from myst_roles import is_notebook

from rmsnorm_edu import checks, page

ROOT = Path(__file__).resolve().parents[1]
PAGES = [p for p in sorted((ROOT / "book").rglob("*.md")) if is_notebook(p)]
CHAPTERS = [p for p in PAGES if p.parent.name not in ("book", "reference")]


@dataclass
class Laboratory:
    """One call of page.laboratory: its controls, and the values of each drawing."""

    controls: dict[str, Any]
    drawn: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Run:
    """What a page's cells did: (tags, [did the check pass, …]) of each cell, and more."""

    checked: list[tuple[list[str], list[bool]]] = field(default_factory=list)
    laboratories: list[Laboratory] = field(default_factory=list)
    figures: int = 0

    def of(self, tag: str) -> list[list[bool]]:
        """The checks of the cells with this tag, cell by cell."""
        return [results for tags, results in self.checked if tag in tags]


def code_cells(path: Path) -> list[Any]:
    """The page's code cells in order."""
    cells = jupytext.read(path, fmt="md:myst").cells
    return [cell for cell in cells if cell.cell_type == "code"]


@contextmanager
def watching(run: Run) -> Iterator[None]:
    """Note checks, laboratories and figures in `run`; records instead of timings."""
    real_check, real_laboratory = checks.check, page.laboratory

    def check(*arguments: Any) -> Any:
        result = real_check(*arguments)
        run.checked[-1][1].append(result.ok)
        return result

    def laboratory(draw: Any, **controls: Any) -> Any:
        seen = Laboratory(controls)
        run.laboratories.append(seen)

        def watched(**values: Any) -> None:  # interactive_output would swallow an error of draw
            draw(**values)
            seen.drawn.append(values)

        return real_laboratory(watched, **controls)

    def show() -> None:
        run.figures += len(plt.get_fignums())
        plt.close("all")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RMSNORM_BOOK", "1")
        patch.setattr(checks, "check", check)
        patch.setattr(page, "laboratory", laboratory)
        patch.setattr(plt, "show", show)
        yield


def run(path: Path) -> Run:
    """Execute the page from top to bottom, solutions included, in one namespace."""
    found, namespace = Run(), {"__name__": "__main__"}
    plt.switch_backend("agg")
    with watching(found):
        for number, cell in enumerate(code_cells(path)):
            found.checked.append((cell.metadata.get("tags", []), []))
            name = f"{path.name}, code cell {number}"
            lines = cell.source.splitlines(keepends=True)
            linecache.cache[name] = (
                len(cell.source),
                None,
                lines,
                name,
            )  # Triton reads kernels there
            exec(compile(cell.source, name, "exec"), namespace)
    return found
