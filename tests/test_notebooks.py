"""The notebooks: plain Markdown, the page's cells, a set-up cell that cannot surprise."""

import json
import re
from pathlib import Path

import book_facts
import export_notebooks
import nbformat
import pytest
import setup_cell
from IPython.core.inputtransformer2 import TransformerManager
from myst_to_markdown import Translator

FACTS = book_facts.read()
PAGES = [p for p in sorted((FACTS.root / "book").rglob("*.md")) if export_notebooks.is_notebook(p)]
PROJECT = {
    "name": "rmsnorm_edu",
    "urls": {"Repository": "https://github.com/OWNER/rmsnorm-edu"},
    "optional-dependencies": {
        "widgets": ["anywidget>=0.9", "ipython>=7.34"],
        "torch": ["torch>=2"],
        "full": ["rmsnorm_edu[widgets, torch]", "ml-dtypes"],
    },
}
LABELS = {
    "doc": {"book/a/page": "This page", "book/a/other": "The other", "book/plain": "No code"},
    "eq": {"square": "1.2"},
    "ref": {"there": ["book/a/other", "A section"]},
    "numref": {"fig-dot": ["figure", "3.1"]},
    "cite": {"zhang": "B\\. Zhang\\.\nRMSNorm\\."},
    "author": {"zhang": "Zhang and Sennrich", "ba": "Ba et al."},
    "year": {"zhang": "2019", "ba": "2016"},
}
HEAD = "---\nfile_format: mystnb\nkernelspec: {display_name: P, language: python, name: python3}\n"


@pytest.fixture
def facts(tmp_path):
    """A book of three pages, one of them without code."""
    folder = tmp_path / "book" / "a"
    folder.mkdir(parents=True)
    for name in ("page", "other"):
        (folder / f"{name}.md").write_text(f"{HEAD}---\n", "utf-8")
    (tmp_path / "book" / "reference").mkdir()
    for name in ("plain", "reference/glossary"):
        (tmp_path / "book" / f"{name}.md").write_text("# No code\n", "utf-8")
    (folder / "dot.svg").write_text("<svg/>", "utf-8")
    return book_facts.Facts(
        root=tmp_path,
        values={"book/a/page": {"share": "25.2%"}},
        labels=LABELS,
        symbols={"rms": {"tex": r"\RMS(x)", "means": "size"}},
        macros={"RMS": r"\operatorname{RMS}"},
        project=PROJECT,
    )


@pytest.fixture
def translate(facts):
    """translate(text) -> Markdown, after asserting that nothing was unknown."""

    def run(text):
        translator = Translator(facts.root / "book" / "a" / "page.md", facts)
        markdown = translator(text)
        assert translator.problems == []
        return markdown

    return run


@pytest.mark.parametrize(
    ("myst", "markdown"),
    [
        ("It is {glue:text}`share` large.", "It is 25.2% large."),
        ("{sym}`rms` and {math}`a`", r"$\operatorname{RMS}(x)$ and $a$"),
        (r"$\RMS(x)$, not $\RMSNorm$", r"$\operatorname{RMS}(x)$, not $\RMSNorm$"),
        ("see {eq}`square`", "see (1.2)"),
        ("{cite:t}`zhang`, {cite:p}`zhang,ba`",
         "Zhang and Sennrich (2019), (Zhang and Sennrich, 2019; Ba et al., 2016)"),
        ("{doc}`other`", "[The other](other.ipynb)"),
        ("{doc}`here <other>`", "[here](other.ipynb)"),
        ("one {term}`ulp`, two {term}`ulps <ulp>`",
         "one [ulp](../reference/glossary.md), two [ulps](../reference/glossary.md)"),
        ("{doc}`/book/plain`", "[No code](../plain.md)"),
        ("[plain](../plain.md)", "[plain](../plain.md)"),
        ("[one](other.md#there)", "[one](other.ipynb)"),
        ("{ref}`there`", "[A section](other.ipynb)"),
        ("{ref}`fig-dot` {numref}`fig-dot`", "Fig. 3.1 Fig. 3.1"),
        ("{doc}`page`", "This page"),
        ("`{eq}` is code", "`{eq}` is code"),
        ("(target)=\n# Title\n% a comment\ntext", "# Title\ntext"),
        (":::{note}\nMind.\n:::", "> **Note**\n>\n> Mind."),
        (":::{note} Mind.\n:::", "> **Note**\n>\n> Mind."),
        ("::::{grid} 2\n:::{grid-item-card} Go\n:link: other\n:link-type: doc\nThere.\n:::\n::::",
         "**[Go](other.ipynb)**\n\nThere."),
        ("```{math}\n:label: square\n:derived: reference.rms\na^2\n```",
         "$$\na^2 \\tag{1.2}\n$$\n\n*Tested on the package's* `reference.rms`."),
        ("```{math}\n:label: square\n:quoted: zhang\na\n```",
         "$$\na \\tag{1.2}\n$$\n\n*Quoted from* Zhang and Sennrich (2019)."),
        ("```{math}\na\n\nb \\\\ c\n```",
         "$$\n\\begin{aligned}a\\\\\\begin{split}b \\\\ c\\end{split}\\end{aligned}\n$$"),
        ("```{figure} dot.svg\n:name: fig-dot\n:alt: a dot\nThe dot.\n```",
         "![a dot](data:image/svg+xml;base64,PHN2Zy8+)\n\n*Fig. 3.1* The dot."),
        ("```python\n{doc}`other`\n```", "```python\n{doc}`other`\n```"),
    ],
)  # fmt: skip
def test_translation(translate, myst, markdown):
    assert translate(myst) == markdown


def test_hints_open_one_by_one(translate):
    text = translate(":::{hints}\n- One $a$.\n- Two,\n  on two lines.\n- Three.\n:::")
    assert re.findall("<summary>(.*)</summary>", text) == ["Hint", "Another hint", "Last hint"]
    assert text.endswith("</details>\n\n</details>\n\n</details>")


def test_quiz_and_exercises_are_counted(translate):
    quiz = ":::{quiz} Which of `a` and $b$?\n- [ ] `a` < *b*\n\n  Not it.\n- [x] $b$\n\n  It.\n:::"
    text = translate(f":::{{exercise}} First\n:name: e\nDo.\n:::\n\n{quiz}\n\n{quiz}")
    assert "**Exercise 1. First**\n\nDo." in text
    assert "**Question 1.** Which of `a` and $b$?" in text
    assert "**Question 2.**" in text
    assert "<summary><code>a</code> &lt; <em>b</em></summary>\n\n**No.** Not it." in text
    assert "<summary>$b$</summary>\n\n**Yes.** It." in text


@pytest.mark.parametrize(
    ("myst", "complaint"),
    [
        (":::{mermaid}\na\n:::", "no rule for the directive {mermaid}"),
        ("{abbr}`HTML`", "no rule for the role {abbr}"),
        ("{glue:text}`gone`", "`gone`: the last build has no such value"),
        ("{eq}`gone`", "`gone`: the last build has no such label"),
        ("{cite:t}`gone`", "`gone`: the last build has no such label"),
        ("{sym}`gone`", "`gone`: no such symbol in book/notation.yml"),
        ("```{math}\n:label: gone\na\n```", "not found: 'gone'"),
        ("```{literalinclude} gone.py\n```", "No such file"),
        ("```{literalinclude} dot.svg\n:lines: 1-2\n```", "{literalinclude} {'lines'}"),
        ("```{note}\nnever closed", "a fence is not closed"),
        (":::{quiz} Q\n- [x] a\n- [ ] b\n:::", "one right answer, and a reason for each"),
        (":::{quiz} Q\n- [x] a\n\n  y\n- [x] b\n\n  z\n:::", "one right answer, and a reason"),
        ("a {{value}}", "no rule for a substitution"),
        ("a note[^1]", "no rule for a footnote"),
        ("word\n: its meaning", "no rule for a definition list"),
    ],
)
def test_what_has_no_rule_is_one_clear_line(facts, myst, complaint):
    translator = Translator(facts.root / "book" / "a" / "page.md", facts)
    translator(myst)
    [problem] = translator.problems
    assert problem.startswith("book/a/page: ")
    assert complaint in problem
    assert "\n" not in problem


def export(facts, body, head=""):
    path = facts.root / "book" / "a" / "page.md"
    path.write_text(f"{HEAD}{head}---\n\n{body}", "utf-8")
    text, problems = export_notebooks.export(path, facts)
    return nbformat.reads(text, as_version=4) if text else None, problems


def code(source, tags=""):
    return f"```{{code-cell}}\n{f':tags: [{tags}]' if tags else ''}\n{source}\n```\n\n"


def test_cells_of_a_page(facts):
    body = (
        "# T\n\n{glue:text}`share`\n\n"
        + code("shown = 1")
        + code("a = 1", "hide-input")
        + code("b = 1", "exercise")
        + code("b = 2", "solution, hide-cell")
    )
    nb, problems = export(facts, body, "gpu: true\n")
    assert problems == []
    folded = {"cellView": "form", "jupyter": {"source_hidden": True}}
    assert [(c.cell_type, c.id, dict(c.metadata)) for c in nb.cells] == [
        ("markdown", "page-000", {}),
        ("code", "page-001", {}),
        ("code", "page-002", {}),
        ("code", "page-003", folded),
        ("code", "page-004", {"tags": ["exercise"]}),
        ("markdown", "page-005", {}),
    ]
    assert nb.cells[1].source == setup_cell.setup_cell(PROJECT, [])
    assert "```python\nb = 2\n```" in nb.cells[5].source
    assert nb.metadata["accelerator"] == "GPU"
    assert nb.metadata["colab"] == {"gpuType": "T4", "provenance": []}


@pytest.mark.parametrize(
    ("own", "line"),
    [
        ("", "from rmsnorm_edu.norms import norm"),
        ("def norm(x): ...", "from rmsnorm_edu import norms"),
    ],
)
def test_what_is_shown_is_imported_unless_the_page_has_its_own(facts, own, line):
    package = facts.root / "rmsnorm_edu"
    package.mkdir()
    (package / "norms.py").write_text("import os\n\ndef norm(x):\n    return x\n", "utf-8")
    include = "```{literalinclude} ../../rmsnorm_edu/norms.py\n:pyobject: norm\n```\n"
    nb, problems = export(facts, code(own or "1") + include + "{glue:text}`share`")
    assert problems == []
    assert "```python\ndef norm(x):\n    return x\n```" in nb.cells[2].source
    assert nb.cells[3].source == line


def test_unused_value_and_unknown_extra(facts):
    _, [problem] = export(facts, code("1"))
    assert problem == "book/a/page: the value 'share' is glued but no sentence shows it"
    _, [problem] = export(facts, code("1"), "extras: [magic]\n")
    assert problem.startswith("book/a/page: pyproject.toml has no extra 'magic'")


def test_a_page_with_no_code_yet_gets_its_setup_cell_at_the_end(facts):
    nb, problems = export(facts, "# A heading {glue:text}`share`")
    assert (problems, [cell.cell_type for cell in nb.cells]) == ([], ["markdown", "code"])


def test_links_are_absolute_once_the_address_is_known(facts):
    published = {**PROJECT, "urls": {"Repository": "https://github.com/o/r"}}
    known = book_facts.Facts(**{**vars(facts), "project": published})
    translator = Translator(facts.root / "book" / "a" / "page.md", known)
    assert translator("{doc}`other` {doc}`/book/plain`") == (
        "[The other](https://colab.research.google.com/github/o/r/blob/main/book/a/other.ipynb) "
        "[No code](https://github.com/o/r/blob/main/book/plain.md)"
    )


def run_setup(extras, missing=(), **settings):
    """Run the set-up cell as IPython would; what it printed is captured by the caller."""
    source = setup_cell.setup_cell(PROJECT, extras)
    for name, value in settings.items():
        source = re.sub(rf'^{name} = ".*?"', f"{name} = {value!r}", source, flags=re.M)
    ran = []

    class Shell:
        def run_line_magic(self, name, line):
            ran.append(f"%{name} {line.format(**space)}")

    plain = TransformerManager().transform_cell(source)
    plain = plain.replace("from importlib.util import find_spec", "find_spec = find")
    space = {"get_ipython": Shell, "find": lambda name: name not in missing}
    try:
        exec(compile(plain, "set-up", "exec"), space)
    except SystemExit as stop:
        return ran, str(stop)
    return ran, None


def test_setup_installs_nothing_when_all_is_there(capsys):
    assert run_setup(["widgets"]) == ([], None)
    assert re.fullmatch(r"rmsnorm_edu \d+\.\d+\.\d+\S*, .+\n", capsys.readouterr().out)


def test_setup_without_an_address_stops_with_one_sentence():
    ran, sentence = run_setup([], missing=["rmsnorm_edu"])
    assert ran == []
    assert "set REPO in this cell, or upload a wheel and set WHEEL" in sentence
    assert sentence.count(".") == 1


@pytest.mark.parametrize("missing", ["rmsnorm_edu", "anywidget", "IPython"])
def test_setup_installs_from_the_address_or_the_wheel(missing):
    ran, _ = run_setup(["widgets"], [missing], REPO="https://github.com/o/r")
    assert ran == ['%pip install -q "rmsnorm_edu[widgets] @ git+https://github.com/o/r"']
    ran, _ = run_setup(["widgets"], [missing], WHEEL="rmsnorm_edu-1-py3-none-any.whl")
    assert ran == ['%pip install -q "rmsnorm_edu-1-py3-none-any.whl[widgets]"']


def test_extras_name_their_packages():
    assert setup_cell.requirements(PROJECT, "full") == [
        "anywidget",
        "ipython",
        "torch",
        "ml-dtypes",
    ]
    assert '"ml_dtypes"' in setup_cell.setup_cell(PROJECT, ["full"])


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_notebooks_of_the_book(path):
    """Committed, in Colab's form, without outputs; every link leads to a file."""
    nb = json.loads(path.with_suffix(".ipynb").read_text("utf-8"))
    assert nb["metadata"]["colab"]["provenance"] == []
    code_cells = [c for c in nb["cells"] if c["cell_type"] == "code"]
    assert "".join(code_cells[0]["source"]).startswith("# Set up")
    assert all(c["outputs"] == [] and c["execution_count"] is None for c in code_cells)
    assert not any(re.search(r"%%capture|pip install (-e|--editable)", str(c)) for c in code_cells)
    text = "\n".join("".join(c["source"]) for c in nb["cells"] if c["cell_type"] == "markdown")
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    assert not re.search(r"\{[\w:-]+\}`|^:::|^\([\w-]+\)=|\\RMS\b", prose, re.M)
    for target in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert Path(path.parent, target).is_file(), target
