"""What the book's Sphinx extension refuses, each fault with one line, and what its parts do.

One small book of faults is built with the book's own settings; the good case is the book itself.
"""

import json
import os
import re
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import NamedTuple

import book_equations
import book_streams
import build_book
import environment
import nbformat
import pytest
import rmsnorm_book
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[1]

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

SOUND = """\
:::{exercise} A task with $x^2$
Do it.
:::

:::{hints}
- One.
- Two.
- Three.
:::

:::{quiz} Is `x` one?
- [ ] No, $x$ is two.

  It is not.
- [x] Yes.

  It is.
:::
"""

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


class Refused(NamedTuple):
    """What came of the book of faults."""

    code: int
    warnings: list[str]
    page: Path


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
def refused(tmp_path_factory: pytest.TempPathFactory) -> Refused:
    """The book of faults, built."""
    root = tmp_path_factory.mktemp("faults")
    sound = EQUATION.format("sound", ":derived: reference.rms")
    small_book(root, "\n".join([HEAD, sound, SOUND, *(source for source, _ in FAULTS.values())]))
    command = [str(root) if part == str(ROOT) else part for part in build_book.command(root)]
    env = {"BOOK_CHECK": "1", "NO_COLOR": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env})
    log = re.sub(r"\x1b\[[\d;]*m", "", run.stdout + run.stderr)
    warnings = [line for line in log.splitlines() if re.search("WARNING|ERROR", line)]
    return Refused(run.returncode, warnings, root / "_build" / "html" / "book" / "index.html")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_stops_the_build_with_one_line(fault: str, refused: Refused) -> None:
    code, warnings, _ = refused
    assert code == 1
    assert len([line for line in warnings if FAULTS[fault][1] in line]) == 1, warnings


def test_nothing_else_is_said(refused: Refused) -> None:
    expected = [words for _, words in FAULTS.values()]
    assert [line for line in refused.warnings if not any(words in line for words in expected)] == []


@pytest.fixture
def article(refused: Refused) -> BeautifulSoup:
    return BeautifulSoup(refused.page.read_text(encoding="utf-8"), "html.parser").article


def test_an_exercise_is_numbered_and_its_hints_open_one_by_one(article: BeautifulSoup) -> None:
    assert article.select_one(".exercise-title").text.startswith("Exercise 1. A task with")
    assert [s.text for s in article.select(".hint > summary")] == [
        "Hint",
        "Another hint",
        "Last hint",
    ]
    assert "Three." in article.select_one(".hint > .hint > .hint").text


def test_a_quiz_folds_each_answer_with_its_reason(article: BeautifulSoup) -> None:
    quiz = article.select_one(".quiz")
    assert quiz.select_one(".quiz-question").text == "Question 1. Is x one?"
    wrong, right = quiz.select("details.answer")
    assert right["class"] == ["answer", "is-right"]
    assert (wrong.p.text, right.p.text) == ("No. It is not.", "Yes. It is.")
    assert wrong.summary.select_one(".math") is not None
    assert quiz.select("input") == []


def test_an_equation_says_what_it_is_and_the_table_lists_it(
    article: BeautifulSoup, refused
) -> None:
    assert "reference.rms · 1 test" in article.select_one(".equation-chip.derived").text
    told = (refused.page.parent / "reference" / "how_tested.html").read_text(encoding="utf-8")
    assert "test_it.py::test_it" in told


def test_a_formula_keeps_the_signs_that_touch_it() -> None:
    formula = '<span class="math notranslate nohighlight">\\(x\\)</span>'
    assert rmsnorm_book.unbroken(f"a {formula} b") == f"a {formula} b"
    for text in (f"({formula}", f"{formula}."):
        assert rmsnorm_book.unbroken(f"a {text} b") == f'a <span class="unbroken">{text}</span> b'


def test_a_page_keeps_the_first_copy_of_shared_code() -> None:
    shared = '<script type="a" data-rmsn="core-1">x</script>\n<style data-rmsn="css-2">y</style>\n'
    other = '<script data-rmsn="core-3">z</script>'
    assert rmsnorm_book.once_per_page(f"{shared}<p>{shared}{other}") == f"{shared}<p>{other}"


@pytest.mark.parametrize(
    ("environment", "published", "address"),
    [
        ("", "https://github.com/OWNER/rmsnorm-edu", ""),
        ("", "https://github.com/o/r/", "https://github.com/o/r"),
        (
            "https://github.com/a/b",
            "https://github.com/OWNER/rmsnorm-edu",
            "https://github.com/a/b",
        ),
    ],
)
def test_the_sites_address(monkeypatch, tmp_path, environment, published, address) -> None:
    toml = f'[project.urls]\nRepository = "{published}"\n'
    (tmp_path / "pyproject.toml").write_text(toml, encoding="utf-8")
    monkeypatch.setattr(rmsnorm_book, "ROOT", tmp_path)
    monkeypatch.delenv("BOOK_REPO_URL", raising=False)
    if environment:
        monkeypatch.setenv("BOOK_REPO_URL", environment)
    assert rmsnorm_book.repository() == address


def test_marks_are_read_on_functions_and_classes(tmp_path) -> None:
    source = """
    import pytest
    @pytest.mark.equation("a", "b")
    def test_f(): pass
    @pytest.mark.equation("a")
    class TestC: pass
    @pytest.mark.skip
    def test_g(): pass
    """
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text(textwrap.dedent(source), encoding="utf-8")
    found = book_equations.marked_tests(tmp_path / "tests")
    function, class_ = "tests/test_x.py::test_f", "tests/test_x.py::TestC"
    assert found == {"a": [function, class_], "b": [function]}


def test_a_function_is_where_it_is_defined_or_taken_from_beside() -> None:
    there = ("reference.rms", "precision.ulp", "mutants.base.RMSNorm.vjp")
    assert all(map(book_equations.has_function, there))
    assert not any(map(book_equations.has_function, ("precision.ulps", "precision.np", "no.rms")))


def test_pages_of_a_table_of_contents() -> None:
    chapters = [{"file": "b", "sections": [{"file": "c"}]}]
    toc = {"root": "a", "parts": [{"caption": "d", "chapters": chapters}]}
    assert build_book.pages(toc) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("version", "module", "cure"),
    [((3, 10), True, "PYTHON=python3.11"), ((3, 11), False, "apt-get install python3.11-venv")],
)
def test_a_python_that_will_not_do_is_told(monkeypatch, version, module, cure) -> None:
    monkeypatch.setattr(environment.sys, "version_info", (*version, 0))
    monkeypatch.setattr(environment, "find_spec", lambda name: module or None)
    assert cure in environment.obstacle()


def test_a_python_that_will_do(monkeypatch) -> None:
    monkeypatch.setattr(environment, "find_spec", lambda name: True)
    assert environment.obstacle() == ""


def test_a_failed_build_is_not_taken_for_done_the_next_time(monkeypatch, tmp_path) -> None:
    """Sphinx remembers pages that only warned: without their memory they are read again."""
    memory = tmp_path / "_build" / ".doctrees"
    memory.mkdir(parents=True)
    (tmp_path / "_toc.yml").write_text("root: book/index\n", encoding="utf-8")
    monkeypatch.setattr(build_book, "ROOT", tmp_path)
    monkeypatch.setattr(build_book, "command", lambda folder: ["false"])
    assert build_book.main() == 1
    assert not memory.exists()


def test_a_new_page_may_link_to_the_notebook_that_comes_after_it(monkeypatch, tmp_path) -> None:
    page = tmp_path / "book" / "new.md"
    page.parent.mkdir()
    page.write_text("---\nkernelspec: {name: python3}\n---\n", encoding="utf-8")
    monkeypatch.setattr(build_book, "ROOT", tmp_path)
    build_book.placeholders()
    notebook = page.with_suffix(".ipynb")
    assert json.loads(notebook.read_text(encoding="utf-8"))["cells"] == []


def test_a_build_that_writes_no_pages_fails(monkeypatch, tmp_path, capsys) -> None:
    (tmp_path / "_toc.yml").write_text("root: book/index\n", encoding="utf-8")
    monkeypatch.setattr(build_book, "ROOT", tmp_path)
    monkeypatch.setattr(build_book, "command", lambda folder: ["true"])
    assert build_book.main() == 1
    assert "not written: book/index" in capsys.readouterr().err


@pytest.mark.parametrize("cut", range(1, 8))
def test_where_a_kernel_cuts_its_text_makes_no_difference(cut: int) -> None:
    """A cut before the end of a line gave an empty line after it, once in some builds."""
    text = "one\ntwo\n"
    pieces = [("stdout", text[:cut]), ("stderr", "!\n"), ("stdout", text[cut:])]
    outputs = [nbformat.v4.new_output("stream", name=name, text=part) for name, part in pieces]
    found = book_streams.joined(outputs)
    assert book_streams.joined(outputs) == found  # the notebook keeps its pieces
    assert [(output["name"], output["text"]) for output in found] == [
        ("stdout", text),
        ("stderr", "!\n"),
    ]
