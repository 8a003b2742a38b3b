"""What the book's Sphinx extension refuses, each fault with one line, and what its parts do.

One small book of faults is built with the book's own settings; the good case is the book itself.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import build_book
import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.xdist_group("machinery")  # one worker builds the book of faults

HEAD = """\
---
file_format: mystnb
kernelspec: {display_name: Python 3, language: python, name: python3}
---
# Faults

```{code-cell} ipython3
1 + 1
```
"""
TOC = """\
format: jb-book
root: book/index
chapters:
  - file: book/reference/how_tested
  - file: book/reference/notation
  - file: book/reference/bibliography
"""
TESTS = """\
import pytest
@pytest.mark.equation("sound", "no-such-function", "ghost-of-a-label")
def test_it(): pass
"""
EQUATION = "```{{math}}\n:label: {}\n{}\nx = 1\n```\n"
QUIZ = ":::{{quiz}} A question?\n{}:::\n"
RIGHT, WRONG = "- [x] This.\n\n  It is.\n", "- [ ] That.\n\n  It is not.\n"

# name: (source on the page, the words of its one warning)
FAULTS = {
    "label without a note": (EQUATION.format("bare", ""), "equation 'bare' has none of"),
    "label after dollars": ("$$\nx = 2\n$$ (dollars)\n", "equation 'dollars' has none of"),
    "function that is not there": (
        EQUATION.format("no-such-function", ":derived: reference.nothing"),
        "equation 'no-such-function': the package has no reference.nothing",
    ),
    "derived without a test": (
        EQUATION.format("untested", ":derived: reference.rms"),
        "equation 'untested': no test is marked with it",
    ),
    "two kinds": (
        EQUATION.format("two-kinds", ":definition:\n:derived: reference.rms"),
        "an equation has one of",
    ),
    "quoted from nowhere": (EQUATION.format("quote", ":quoted: nobody1999"), "nobody1999"),
    "mark of no label": ("", "marked with the equation 'ghost-of-a-label', which no page has"),
    "unknown citation": ("{cite:p}`someone2001`\n", "someone2001"),
    "unknown symbol": ("{sym}`ghost-symbol`\n", "no symbol 'ghost-symbol' in notation.yml"),
    "unknown value": ("{glue:text}`ghost-value`\n", "ghost-value"),
    "unknown directive": (":::{ghost-directive}\n:::\n", "ghost-directive"),
    "quiz without a reason": (QUIZ.format("- [x] This.\n"), "ERROR: every answer of a quiz is"),
    "quiz with two right answers": (QUIZ.format(RIGHT + RIGHT), "one right answer, this has 2"),
    "quiz with none": (QUIZ.format(WRONG + WRONG), "one right answer, this has 0"),
    "quiz without answers": (QUIZ.format("Just words.\n"), "a quiz is a list of answers"),
    "hints that are no list": (":::{hints}\nJust words.\n:::\n", "hints are a list"),
    "values out of step": ("", "book/values.json is out of step"),
    "labels out of step": ("", "book/labels.json is out of step"),
}


def small_book(root: Path, page: str) -> None:
    """A repository with the book's settings and extension, one page, one function, one test."""
    shutil.copytree(ROOT / "book" / "_ext", root / "book" / "_ext")
    for name in ("_config.yml", "pyproject.toml", "book/notation.yml", "book/references.bib"):
        shutil.copy(ROOT / name, root / name)
    for name in ("how_tested", "notation", "bibliography"):
        (root / "book" / "reference").mkdir(exist_ok=True)
        shutil.copy(ROOT / "book" / "reference" / f"{name}.md", root / "book" / "reference")
    files = {
        "_toc.yml": TOC,
        "book/index.md": page,
        "tests/test_it.py": TESTS,
        "rmsnorm_edu/reference.py": "def rms(x): ...\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    palette = Path("rmsnorm_edu/explorables/palette.json")
    (root / palette).parent.mkdir()
    shutil.copy(ROOT / palette, root / palette)
    shutil.copytree(ROOT / "vendor" / "css", root / "vendor" / "css")


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[str]]:
    """Exit code and warnings of the book of faults."""
    root = tmp_path_factory.mktemp("faults")
    sound = EQUATION.format("sound", ":derived: reference.rms")
    small_book(root, "\n".join([HEAD, sound, *(source for source, _ in FAULTS.values())]))
    command = [str(root) if part == str(ROOT) else part for part in build_book.command(root)]
    env = {"BOOK_CHECK": "1", "NO_COLOR": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env})
    log = re.sub(r"\x1b\[[\d;]*m", "", run.stdout + run.stderr)
    return run.returncode, [line for line in log.splitlines() if re.search("WARNING|ERROR", line)]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_stops_the_build_with_one_line(fault: str, refused: tuple[int, list[str]]) -> None:
    code, warnings = refused
    assert code == 1
    assert len([line for line in warnings if FAULTS[fault][1] in line]) == 1, warnings


def test_nothing_else_is_said(refused: tuple[int, list[str]]) -> None:
    expected = [words for _, words in FAULTS.values()]
    assert [line for line in refused[1] if not any(words in line for words in expected)] == []
