"""SVG pictures go into the page, their colours as CSS variables: they follow light and dark."""

import html
import json
import re
from pathlib import Path

from docutils import nodes

ROOT = Path(__file__).resolve().parents[2]
PALETTE = ROOT / "rmsnorm_edu" / "explorables" / "palette.json"
LARGER = 1.12  # the page's type is lower and narrower than the one that matplotlib measured
LEAST = 8.8  # of an exponent, where a tick's label had 10; wider it would touch its neighbour
SIZE = re.compile(r"\bfont-size: ([\d.]+)px")
PROLOG = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<!--.*?-->", re.S)


def variables():
    """{"#0072b2": "var(--rmsn-rms, #0072b2)", ...}."""
    light = json.loads(PALETTE.read_text(encoding="utf-8"))["light"]
    return {value: f"var(--rmsn-{key}, {value})" for key, value in light.items()}


def enlarged(size):
    """A font size for the page's type: letters fill the room that matplotlib left for its own."""
    return f"font-size: {max(LARGER * float(size[1]), LEAST):.4g}px"


def inline(svg, alt, number):
    """The <svg> element: named for screen readers, ids of its own, colours of the page."""
    svg = PROLOG.sub("", svg).strip()
    svg = svg.replace(">*{", ">.picture *{")  # matplotlib's rule would hold for the whole page
    svg = SIZE.sub(enlarged, svg)
    colours = variables()
    svg = re.sub(r"#[0-9a-f]{6}\b", lambda m: colours.get(m[0], m[0]), svg)
    svg = re.sub(r'\bid="', f'id="p{number}-', svg)
    svg = re.sub(r'href="#', f'href="#p{number}-', svg)
    svg = svg.replace("url(#", f"url(#p{number}-")
    head, rest = svg.split(">", 1)
    width = re.search(r'\bwidth="([\d.]+)pt"', head)
    if width:
        head = re.sub(r'\s(?:width|height)="[\d.]+pt"', "", head)
        head += f' style="max-width: {float(width[1]) * 4 / 3:.0f}px"'
    return f'{head} class="picture" role="img" aria-label="{html.escape(alt)}">{rest}'


def place(app, doctree, docname):
    """Replace each image of an SVG file by the picture itself."""
    if app.builder.format != "html":
        return
    for number, node in enumerate(list(doctree.findall(nodes.image)), 1):
        path = Path(app.srcdir, node["uri"])
        if path.suffix != ".svg" or not path.is_file():
            continue
        text = inline(path.read_text(encoding="utf-8"), node.get("alt", ""), number)
        node.replace_self(nodes.raw("", text, format="html"))


def setup(app):
    app.connect("doctree-resolved", place)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
