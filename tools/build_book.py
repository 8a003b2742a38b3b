"""Build the book with warnings as errors, and check that every page was written.

BOOK_CHECK=1: differences to the committed book/values.json and book/labels.json are errors.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from myst_roles import is_notebook

ROOT = Path(__file__).resolve().parents[1]
EMPTY = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n'


def pages(node: object) -> list[str]:
    """Every `file:` and `root:` of the table of contents, in order: ["book/index", …]."""
    if isinstance(node, list):
        return [page for item in node for page in pages(item)]
    if not isinstance(node, dict):
        return []
    own = [node[key] for key in ("root", "file") if key in node]
    return own + [page for value in node.values() for page in pages(value)]


def toc_pages() -> list[str]:
    """The pages of the book's own _toc.yml."""
    return pages(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8")))


def placeholders() -> None:
    """An empty notebook beside each new page, which links to its own: the exporter comes later."""
    for source in (ROOT / "book").rglob("*.md"):
        notebook = source.with_suffix(".ipynb")
        if is_notebook(source) and not notebook.exists():
            notebook.write_text(EMPTY, encoding="utf-8")


def missing(html: Path) -> list[str]:
    """Pages of _toc.yml that the build has not written (Jupyter Book 2 writes none, with rc 0)."""
    return [page for page in toc_pages() if not (html / f"{page}.html").is_file()]


def command(folder: Path, *options: str) -> list[str]:
    """Jupyter Book's command line that builds into folder/_build; any warning makes it fail."""
    tool = Path(sys.executable).with_name("jupyter-book")
    output = ["--path-output", str(folder)]
    return [str(tool), "build", str(ROOT), *output, "-W", "--keep-going", "-n", "-q", *options]


def main() -> int:
    folder = ROOT / "_build"
    print("Building the book: some minutes the first time, seconds later.", flush=True)
    placeholders()
    run = subprocess.run(command(ROOT), stdout=subprocess.PIPE, text=True)  # warnings: stderr
    if run.returncode:
        # Sphinx takes the pages it warned about as read: the next build would pass
        shutil.rmtree(folder / ".doctrees", ignore_errors=True)
        print(run.stdout)
        return 1
    lost = missing(folder / "html")
    if lost:
        print("these pages of _toc.yml were not written:", *lost, file=sys.stderr)
        return 1
    print(f"The book is built. Open {folder / 'html' / 'index.html'}, or type: make read")
    return 0


if __name__ == "__main__":
    sys.exit(main())
