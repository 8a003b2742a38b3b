"""The explorables: what their pages hold, what their widgets tell Python, what they vendor."""

import ast
import base64
import html.parser
import importlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("anywidget")

import traitlets

from rmsnorm_edu import explorables, invariance
from rmsnorm_edu.explorables import figure, invariance_table
from rmsnorm_edu.explorables.html_math import html_math

ROOT = Path(__file__).resolve().parents[1]
FIGURES = [name for name in explorables.__all__ if name != "Figure"]
OWN = ROOT / "rmsnorm_edu" / "explorables"


def make(name):
    return getattr(explorables, name)()


@pytest.fixture(params=FIGURES)
def shown(request):
    return make(request.param)


class Page(html.parser.HTMLParser):
    """The elements of a fragment, its attributes that load something, and its ids."""

    def __init__(self, text):
        super().__init__()
        self.open, self.loads, self.keys, self.scripts = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.open.append(tag)
        self.loads += [attrs[k] for k in ("src", "href", "data", "srcset") if k in attrs]
        self.keys += [attrs["data-rmsn"]] if "data-rmsn" in attrs else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            self.scripts.append(data)


def test_a_fragment_is_self_contained(shown):
    text = shown.to_html()
    page = Page(text)
    assert page.open == [], "every element is closed"
    assert page.loads == []
    namespaces = {"http://www.w3.org/" + end for end in ("2000/svg", "1999/xhtml", "1999/xlink")}
    namespaces |= {"http://www.w3.org/" + end for end in ("XML/1998/namespace", "2000/xmlns/")}
    assert set(re.findall(r"https?://[\w./-]*", text)) <= namespaces
    assert not re.search(r"@import|url\(|\bimport\s*[\"'({*]\s*[\"']|fetch\(", text)
    own = sum((OWN / f"{name}.css").is_file() for name in (*shown.needs, shown.name))
    assert len(page.keys) == len(set(page.keys)) == 6 + len(shown.needs) + own


def test_pages_are_light(shown):
    assert len(shown.to_html()) < 120_000
    assert (OWN / f"{shown.name}.js").stat().st_size < 24_000


def test_ids_are_counters_and_sources_have_the_same_keys():
    first, second = make("Hero").to_html(), make("Hero").to_html()
    numbers = [int(re.search(r'id="hero-(\d+)"', text)[1]) for text in (first, second)]
    assert numbers[1] == numbers[0] + 1
    assert Page(first).keys == Page(second).keys


def test_a_state_cannot_leave_its_script():
    text = figure._json({"a": "</script><!-- \u2028 ü"})
    assert "<" not in text
    assert "\u2028" not in text
    assert json.loads(text) == {"a": "</script><!-- \u2028 ü"}
    with pytest.raises(ValueError, match="JSON compliant"):
        figure._json(float("nan"))


def test_a_source_that_would_end_its_script_is_refused(tmp_path, monkeypatch):
    (tmp_path / "bad.js").write_text("'</SCRIPT>'", encoding="utf-8")
    monkeypatch.setattr(figure, "files", lambda package: tmp_path)
    with pytest.raises(ValueError, match=r"bad\.js holds </script"):
        figure._read("bad.js")


SCRIPT = """// about the file

export const a = 1; // stays
  // about b
const b = `text ${a}
// text, too

  end`; const c = `one line`;
// about nothing
  const d = "//";
"""


def test_the_page_is_spared_the_comments(tmp_path, monkeypatch):
    (tmp_path / "one.js").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "one.css").write_text("/* of two\n lines */\na {\n  b: c;\n} /* d */\n\n", "utf-8")
    monkeypatch.setattr(figure, "files", lambda package: tmp_path)
    assert figure._slim("one.js").split("\n") == [
        "export const a = 1; // stays",
        "const b = `text ${a}",
        "// text, too",
        "",
        "  end`; const c = `one line`;",
        'const d = "//";',
    ]
    assert figure._slim("one.css") == "a {\nb: c;\n} /* d */"


def test_the_state_is_the_figures_own_traits():
    hero = explorables.Hero(scale=-2.0)
    assert set(hero.state()) == {"x", "scale", "shift"}
    call = Page(hero.to_html()).scripts[-1]
    assert '"scale":-2.0' in call
    assert json.dumps(hero.label) in call


def test_a_state_of_numpys_numbers_is_plain():
    state = explorables.Roofline(rows=np.int64(8)).state()
    assert type(state["rows"]) is int
    assert state["rows"] == 8


@pytest.mark.parametrize("change", [{"scale": 3.5}, {"shift": -4}, {"x": [1.0]}, {"x": [1.0, 9]}])
def test_the_hero_refuses_what_it_cannot_show(change):
    with pytest.raises(traitlets.TraitError):
        explorables.Hero(**change)


def test_a_drag_reaches_python():
    hero = explorables.Hero()
    seen = []
    hero.observe(lambda change: seen.append((change.name, change.new)), ["scale", "x"])
    hero.set_state({"scale": 2.5, "x": [1.0, -2.0, 0.5]})  # what the page's message calls
    assert seen == [("scale", 2.5), ("x", [1.0, -2.0, 0.5])]


def test_the_table_has_every_cell_of_the_measurement():
    data = explorables.InvarianceTable().state()["data"]
    assert [m["key"] for m in data["methods"]] == list(invariance.METHODS)
    assert [c["key"] for c in data["changes"]] == list(invariance.TRANSFORMATIONS)
    cells = {(m, c): law["html"] for m, laws in data["laws"].items() for c, law in laws.items()}
    assert cells.keys() == invariance.LAWS.keys()
    assert all(re.fullmatch(r"([^<>\\{}^_]|</?(sub|sup|b)>)+", law) for law in cells.values())


def test_the_example_of_the_table_is_the_papers_too():
    found = invariance.measure(layer=invariance_table.LAYER)
    cells = {(c["method"], c["transformation"]): c["invariant"] for c in found}
    assert {cell: cells[cell] for cell in invariance.TABLE_ONE} == invariance.TABLE_ONE


def test_a_law_that_cannot_be_shown_is_refused():
    with pytest.raises(ValueError, match=r"no rule for .*binom"):
        html_math(r"\binom{n}{k}")


def test_the_table_tells_python_what_was_tried():
    table = explorables.InvarianceTable(method="layer_norm")
    table.set_state({"amount": -2.0, "verified": ["layer_norm/rotation"]})
    assert (table.amount, table.verified) == (-2.0, ["layer_norm/rotation"])
    with pytest.raises(traitlets.TraitError):
        explorables.InvarianceTable(method="group_norm")


def test_both_forms_reach_a_notebook(shown):
    data, _ = shown._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/html"].startswith('<div class="rmsn-figure"')


def test_a_widget_carries_its_module(shown):
    assert "export default { render" in shown._esm
    assert json.dumps(figure._slim(f"{shown.name}.js")) in shown._esm
    assert "--rms: #0072b2" in shown._css


def test_without_anywidget_the_error_says_what_to_install(monkeypatch):
    assert {*FIGURES} <= {*dir(explorables)}
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ImportError, match=r'pip install "rmsnorm_edu\[widgets\]"'):
        explorables.__getattr__("Hero")
    assert not {*FIGURES} & {*dir(explorables)} - {*vars(explorables)}
    alone = importlib.util.spec_from_file_location("alone", figure.__file__)
    with pytest.raises(ImportError, match=r'pip install "rmsnorm_edu\[widgets\]"'):
        alone.loader.exec_module(importlib.util.module_from_spec(alone))


def test_an_unknown_figure_is_named():
    with pytest.raises(AttributeError, match="no figure 'Nope'; it has"):
        _ = explorables.Nope


def contrast(one, other):
    light, dark = sorted(map(luminance, (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    channels = (c / 255 for c in base64.b16decode(colour[1:].upper()))
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_palette_can_be_read(mode):
    palette = json.loads(figure._read("palette.json"))[mode]
    for name in ("ink", "soft", *(n for n in palette if n.endswith("-text"))):
        for ground in ("paper", "wash"):
            assert contrast(palette[name], palette[ground]) >= 4.5, (name, ground)
    for name in ("input", "none", "rms", "layer", "batch", "weight", "wrong"):
        assert contrast(palette[name], palette["paper"]) >= 3, name


def test_the_vendored_files_are_those_of_the_manifest(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    vendor = importlib.import_module("vendor")
    assert vendor.mismatches() == []
    assert {e["licence"] for e in vendor.entries()} == {"ISC", "Apache-2.0", "OFL-1.1"}
    licences = [vendor.D3_LICENCE, "vendor/mathjax/LICENSE"]
    licences += [f"vendor/fonts/{family}.LICENSE" for family in vendor.FONTS]
    assert all((ROOT / file).is_file() for file in licences)
    named = {entry["file"] for entry in vendor.entries()}
    fonts = {p.relative_to(ROOT).as_posix() for p in (ROOT / "vendor" / "fonts").glob("*.woff2")}
    assert fonts <= named, "every font that is served is in the manifest"
    monkeypatch.setattr(vendor, "entries", lambda: [{"file": "README.md", "sha256": "0"}])
    assert len(vendor.mismatches()) == 1, "a changed file is noticed"


def test_the_vectors_are_those_of_the_reference(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    vectors = importlib.import_module("explorable_vectors")
    for name, value in vectors.vectors().items():
        assert vectors.agree(value, vectors.committed(name)), f"run {vectors.__file__}"
    assert not vectors.agree([1.0], [1.0 + 1e-9])


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
@pytest.mark.parametrize("file", sorted(p.name for p in (ROOT / "tests" / "js").glob("*.test.mjs")))
def test_the_pure_functions(file):
    command = ["node", "--test", str(ROOT / "tests" / "js" / file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", sorted(OWN.glob("*.py")), ids=lambda path: path.stem)
def test_colabs_traitlets_have_no_types_to_subscript(path):
    """In traitlets 5.7 ``traitlets.List[float]`` is a TypeError: such annotations are strings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    subscripted = [n.value for n in ast.walk(tree) if isinstance(n, ast.Subscript)]
    assert "traitlets" not in {ast.unparse(value).split(".")[0] for value in subscripted}
