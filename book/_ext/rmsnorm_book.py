"""The book's Sphinx extension: execution, buttons, what a page needs once; its parts are beside."""

import hashlib
import json
import os
import re
import tomllib
from pathlib import Path

import zmq
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "rmsnorm_edu"
PARTS = (
    "book_equations",
    "book_notation",
    "book_records",
    "book_exercises",
    "book_pictures",
    "book_icons",
    "book_streams",
)
SHARED = re.compile(r'<(script|style)\b[^>]* data-rmsn="([^"]+)">.*?</\1>\n?', re.S)
REPAIRS = {
    # MyST-NB names every fold "Toggle hidden content"; the fold's own text is the better name
    ' aria-label="Toggle hidden content"': "",
    # docutils' role is deprecated, and not one that a list may hold
    'role="doc-biblioentry"': 'role="listitem"',
}
# a line may break on either side of a formula: not before its full stop, nor after its bracket
FORMULA = r'<span class="math notranslate nohighlight">[^<]*</span>'
LINKED = r'<a class="sym[^>]*>.*?</a>'
TOUCHED = re.compile(rf"([(“]*)({FORMULA}|{LINKED})([^\s<&]{{0,12}})", re.S)
LATE_CSS = re.compile(r"(mystnb\.\w+\.css)\?v=\w+")
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"

# An equation wider than the screen scrolls; the keyboard must reach what scrolls.
SCROLL = """addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  const wide = "mjx-container[display], .bd-article pre, .pst-scrollable-table-container";
  for (const el of document.querySelectorAll(wide))
    if (el.scrollWidth > el.clientWidth) el.tabIndex = 0;
});"""


def package_digest():
    """jupyter-cache keys on a notebook's cells alone; a changed package needs a new cache."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in {".py", ".js", ".css", ".json"}:
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def repository():
    """The public address: BOOK_REPO_URL, or pyproject's once its owner is named; else ""."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    published = project["urls"]["Repository"]
    return os.environ.get("BOOK_REPO_URL", "" if "/OWNER/" in published else published).rstrip("/")


def execution(app, config):
    """Kernels see this checkout's package, know that they build the book, and use one thread.

    With more, sums may be taken in another order on another machine, and a busy one waits for them.
    """
    cache = Path(app.outdir).parent / ".jupyter_cache" / package_digest()
    config.nb_execution_cache_path = str(cache)
    config.nb_execution_mode = os.environ.get("BOOK_EXECUTE", config.nb_execution_mode)
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.environ["RMSNORM_BOOK"] = "1"
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    if zmq.has("curve"):  # without encryption each kernel prints a warning into the build
        KernelManager.transport_encryption.default_value = "auto"


def buttons(app, config):
    """Source, edit, issue and Colab buttons, when the repository has a public address."""
    options, url = config.html_theme_options, repository()
    names = ("use_repository_button", "use_edit_page_button", "use_issues_button")
    options.update(dict.fromkeys(names, bool(url)))
    if url:
        options["repository_url"] = url
        options["repository_branch"] = os.environ.get("BOOK_REPO_BRANCH", "main")
        options["launch_buttons"] = {"colab_url": "https://colab.research.google.com"}


def palette_style():
    """The palette as CSS variables, the same that the explorables and matplotlib use."""
    modes = json.loads((PACKAGE / "explorables" / "palette.json").read_text(encoding="utf-8"))
    rules = (
        f"html[data-theme={mode}]{{{';'.join(f'--rmsn-{k}:{v}' for k, v in colours.items())}}}"
        for mode, colours in modes.items()
    )
    return f"<style>{''.join(rules)}</style>"


def once_per_page(body):
    """Each figure carries D3 and the shared code; a page keeps the first copy of each."""
    seen = set()

    def keep(match):
        first = match[2] not in seen
        seen.add(match[2])
        return match[0] if first else ""

    return SHARED.sub(keep, body)


def unbroken(body):
    """Keep each formula together with the signs that touch it."""

    def keep(match):
        touched = match[1] or match[3]
        return f'<span class="unbroken">{match[0]}</span>' if touched else match[0]

    return TOUCHED.sub(keep, body)


def on_page(app, pagename, templatename, context, doctree):
    tag = context["css_tag"]  # MyST-NB copies its css last: only a second build would have "?v="
    context["css_tag"] = lambda css: LATE_CSS.sub(r"\1", tag(css))
    context["metatags"] = context.get("metatags", "") + palette_style()
    scripts = context.get("script_files", [])
    context["script_files"] = [
        s for s in scripts if getattr(s, "attributes", {}).get("type") != WIDGET_STATE
    ]
    if "body" in context:
        for faulty, mended in REPAIRS.items():
            context["body"] = context["body"].replace(faulty, mended)
        context["body"] = unbroken(once_per_page(context["body"]))


def setup(app):
    for part in PARTS:
        app.setup_extension(part)
    app.add_js_file(None, body=SCROLL)
    app.connect("config-inited", execution, priority=100)
    app.connect("config-inited", buttons, priority=100)
    app.connect("html-page-context", on_page, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
