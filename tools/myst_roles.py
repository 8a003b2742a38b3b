"""MyST's text within a line as plain Markdown: roles, links, symbols. What is unknown is noted."""

import html
import posixpath
import re
from pathlib import Path

from book_facts import Facts

SPAN = re.compile(r"(?:\{([\w:]+)\})?(?<!`)(`+)(?!`)(.+?)(?<!`)\2(?!`)", re.S)  # role, code span
PAGE_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s:#]+)\.md(?:#[^)]*)?\)")
TITLED = re.compile(r"(.*?)\s*<(.+)>$", re.S)
NEEDS_MYST = {  # what a notebook would show raw
    r"\{\{.*?\}\}": "a substitution",
    r"\[\^[\w-]+\]": "a footnote",
    r"(?m)^:\s+\S": "a definition list",
}
MISSING = {
    "glue:text": "the last build has no such value for this page (book/values.json)",
    "sym": "no such symbol in book/notation.yml",
}
COLAB = "https://colab.research.google.com/github/"


class Roles:
    """The roles of one page. `problems` collects what has no rule or no value."""

    def __init__(self, path: Path, facts: Facts) -> None:
        self.path, self.facts, self.labels = path, facts, facts.labels
        self.page = path.relative_to(facts.root).with_suffix("").as_posix()
        self.values = facts.values.get(self.page, {})
        self.used: set[str] = set()
        self.cited: set[str] = set()
        self.problems: list[str] = []

    def problem(self, text: str) -> str:
        """Note it, and leave it in the text as well."""
        self.problems.append(f"{self.page}: {text}")
        return f"**{text}**"

    def inline(self, text: str) -> str:
        """A stretch of prose."""
        prose = SPAN.sub("", text)
        for pattern, name in NEEDS_MYST.items():
            if found := re.search(pattern, prose):
                self.problem(f"the exporter has no rule for {name}: {found[0]}")
        text = PAGE_LINK.sub(lambda m: self.to_page(m[2], m[1]), text)
        return SPAN.sub(self.role, self.tex(text))

    def tex(self, text: str) -> str:
        """The book's macros written out: a notebook's MathJax does not know them."""
        for name, meaning in self.facts.macros.items():
            text = re.sub(rf"\\{name}(?![A-Za-z])", lambda _, m=meaning: m, text)
        return text

    def as_html(self, text: str) -> str:
        """Prose for a <summary>, in which Markdown is not read; formulas are."""
        text = html.escape(self.inline(text), quote=False)
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
        text = re.sub(r"\*\*([^*$]+)\*\*", r"<strong>\1</strong>", text)
        return re.sub(r"(?<![\w*])\*([^*$]+)\*(?![\w*])", r"<em>\1</em>", text)

    def role(self, match: re.Match[str]) -> str:
        """A role's plain form; a code span stays as it is."""
        name, _, text = match.groups()
        if not name:
            return match[0]
        rule = getattr(self, "role_" + name.replace(":", "_"), None)
        if not rule:
            return self.problem(f"the exporter has no rule for the role {{{name}}}")
        try:
            return rule(text)
        except KeyError:
            return self.problem(
                f"{match[0]}: {MISSING.get(name, 'the last build has no such label')}"
            )

    def role_glue_text(self, name: str) -> str:
        self.used.add(name)
        return self.values[name]

    def role_sym(self, key: str) -> str:
        return self.tex(f"${self.facts.symbols[key]['tex']}$")

    def role_math(self, text: str) -> str:
        return f"${text}$"

    def role_eq(self, label: str) -> str:
        return f"({self.labels['eq'][label]})"

    def role_download(self, text: str) -> str:
        """The file lies beside the notebook, or is the notebook: its title is enough."""
        return titled(text)[0]

    def role_doc(self, text: str) -> str:
        title, target = titled(text)
        return self.to_page(target, title)

    def role_term(self, text: str) -> str:
        """A word of the glossary links to its page."""
        title, term = titled(text)
        return self.to_page("/book/reference/glossary", title or term)

    def role_ref(self, text: str) -> str:
        title, label = titled(text)
        if label in self.labels["numref"] and not title:
            return self.role_numref(text)
        doc, name = self.labels["ref"][label]
        return self.link(title or name, doc)

    def role_numref(self, text: str) -> str:
        kind, number = self.labels["numref"][titled(text)[1]]
        return {"figure": "Fig.", "table": "Table"}.get(kind, kind.capitalize()) + f" {number}"

    def role_cite_p(self, keys: str) -> str:
        return "(" + "; ".join(self.cite(key.strip(), ", ") for key in keys.split(",")) + ")"

    role_cite = role_cite_p

    def role_cite_t(self, keys: str) -> str:
        return ", ".join(self.cite(key.strip(), " (") + ")" for key in keys.split(","))

    def cite(self, key: str, between: str) -> str:
        """Author and year, as the page has them."""
        self.cited.add(key)
        return f"{self.labels['author'][key]}{between}{self.labels['year'][key]}"

    def to_page(self, target: str, title: str = "") -> str:
        """A link to a page given by its path from this one, or from the root with a slash."""
        here = posixpath.dirname(self.page)
        doc = target[1:] if target[0] == "/" else posixpath.normpath(posixpath.join(here, target))
        return self.link(title or self.labels["doc"][doc], doc)

    def link(self, text: str, doc: str) -> str:
        """To the notebook beside; in Colab only an absolute address works, once there is one."""
        if doc == self.page:
            return text
        notebook = is_notebook(self.facts.root / f"{doc}.md")
        file = f"{doc}.ipynb" if notebook else f"{doc}.md"
        if not self.facts.published:
            return f"[{text}]({posixpath.relpath(file, posixpath.dirname(self.page))})"
        address = f"{self.facts.address}/blob/main/{file}"
        if notebook:
            address = address.replace("https://github.com/", COLAB)
        return f"[{text}]({address})"


def titled(text: str) -> tuple[str, str]:
    """``title <target>`` as (title, target); a bare target has the title ""."""
    match = TITLED.match(text)
    return (match[1], match[2]) if match else ("", text)


def is_notebook(path: Path) -> bool:
    """Does the page say in its front matter which kernel runs it?"""
    return "\nkernelspec:" in path.read_text(encoding="utf-8").split("\n---", 2)[0]
