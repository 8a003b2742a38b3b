"""The theme's script holds thousands of icons, half a megabyte; the site keeps those it shows."""

import re

ENTRY = re.compile(
    r'"?([a-z0-9-]+)"?:\[\d+,\d+,\[[^\]]*\],"[0-9a-f]+",(?:"[^"]*"|\["[^"]*"(?:,"[^"]*")*\])\],?'
)
SHOWN = re.compile(r"fa-([a-z0-9-]+)")


def shown(folder):
    """Names after "fa-" in any page or script of the site: icons, and words that are none."""
    files = [*folder.rglob("*.html"), *folder.joinpath("_static").rglob("*.js")]
    own = [f for f in files if f.name not in {"fontawesome.js", "tex-svg-full.js"}]
    return {name for f in own for name in SHOWN.findall(f.read_text(encoding="utf-8"))}


def thin(script, keep):
    """The script without the icons that are not in `keep`."""
    return ENTRY.sub(lambda entry: entry[0] if entry[1] in keep else "", script)


def finish(app, exception):
    if exception or app.builder.format != "html":
        return
    path = app.outdir / "_static" / "scripts" / "fontawesome.js"
    script = thin(path.read_text(encoding="utf-8"), shown(app.outdir))
    path.write_text(script, encoding="utf-8")
    path.with_suffix(".js.map").unlink(missing_ok=True)  # it maps what is no longer there


def setup(app):
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
