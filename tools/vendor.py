"""Rebuild the third-party files that the book serves, and compare them with vendor/manifest.json.

    python tools/vendor.py            fetch, bundle, compare: exit code 1 where a file differs
    python tools/vendor.py --update   fetch, bundle, write the files, their licences, the manifest

npm fetches exactly the packages of tools/npm/package-lock.json and checks their SHA-512 sums.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / "tools" / "npm"
MANIFEST = ROOT / "vendor" / "manifest.json"
D3 = "rmsnorm_edu/explorables/d3.js"
D3_LICENCE = "rmsnorm_edu/explorables/d3.LICENSE.txt"
MATHJAX = "vendor/mathjax/tex-svg-full.js"
FONTS = {"source-serif-4": ("normal", "italic"), "source-sans-3": ("normal",)}
ESBUILD = ["--bundle", "--minify", "--format=esm", "--target=es2020", "--legal-comments=none"]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def entries() -> list[dict[str, str]]:
    return json.loads(MANIFEST.read_text(encoding="utf-8"))


def mismatches() -> list[str]:
    """The committed files that are missing or are not what the manifest says."""
    bad = []
    for entry in entries():
        path = ROOT / entry["file"]
        found = digest(path.read_bytes()) if path.is_file() else "no file"
        if found != entry["sha256"]:
            bad.append(f"{entry['file']}: sha256 {found}, the manifest has {entry['sha256']}")
    return bad


def fetch(work: Path) -> dict[str, bytes]:
    """Install the pinned packages in `work`; return each vendored file's content by its path."""
    shutil.copytree(RECIPE, work, dirs_exist_ok=True)
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(["npm", "ci", *options], cwd=work, check=True, stdout=subprocess.DEVNULL)
    bundle = ["npx", "esbuild", "d3.js", *ESBUILD, "--log-level=warning"]
    d3 = subprocess.run(bundle, cwd=work, check=True, capture_output=True).stdout
    mathjax = work / "node_modules" / "mathjax"
    return {
        D3: d3,
        D3_LICENCE: d3_licence(work).encode(),
        MATHJAX: (mathjax / "es5" / "tex-svg-full.js").read_bytes(),
        "vendor/mathjax/LICENSE": (mathjax / "LICENSE").read_bytes(),
        **fonts(work),
    }


def fonts(work: Path) -> dict[str, bytes]:
    """The faces that the book's css names, in Latin, upright ones in Greek too; the licences."""
    found = {}
    for family, styles in FONTS.items():
        package = work / "node_modules" / "@fontsource-variable" / family
        faces = [f"{family}-latin-wght-{style}.woff2" for style in styles]
        for face in [*faces, f"{family}-greek-wght-normal.woff2"]:
            found[f"vendor/fonts/{face}"] = (package / "files" / face).read_bytes()
        found[f"vendor/fonts/{family}.LICENSE"] = (package / "LICENSE").read_bytes()
    return found


def d3_packages() -> dict[str, str]:
    """Name and version of what is in the bundle: the locked packages needed at run time."""
    lock = json.loads((RECIPE / "package-lock.json").read_text(encoding="utf-8"))
    names = {k.removeprefix("node_modules/"): v for k, v in lock["packages"].items() if k}
    used = {n: v["version"] for n, v in names.items() if not v.get("dev") and n != "mathjax"}
    return {n: version for n, version in used.items() if not n.startswith("@fontsource")}


def d3_licence(work: Path) -> str:
    """Each package's copyright line, then the ISC text that all of them share."""
    lines, bodies = [], set()
    for name, version in d3_packages().items():
        text = (work / "node_modules" / name / "LICENSE").read_text(encoding="utf-8")
        copyright_line, body = text.strip().split("\n", 1)
        lines.append(f"{name} {version}: {copyright_line}")
        bodies.add(body)
    if len(bodies) != 1:
        raise SystemExit("the packages of the D3 bundle no longer share one licence text")
    return "\n".join([*lines, *bodies]) + "\n"


def manifest(files: dict[str, bytes]) -> list[dict[str, str]]:
    packages = d3_packages()
    lock = json.loads((RECIPE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    mathjax = lock["node_modules/mathjax"]["version"]
    esbuild = lock["node_modules/esbuild"]["version"]
    bundle = ", ".join(f"{name} {version}" for name, version in packages.items())
    faces = [face for face in files if face.endswith(".woff2")]
    return [
        {
            "file": D3,
            "name": "D3",
            "version": bundle,
            "licence": "ISC",
            "sha256": digest(files[D3]),
            "source": f"npm, bundled from tools/npm/d3.js by esbuild {esbuild}",
        },
        {
            "file": MATHJAX,
            "name": "MathJax",
            "version": mathjax,
            "licence": "Apache-2.0",
            "sha256": digest(files[MATHJAX]),
            "source": f"npm mathjax@{mathjax}, es5/tex-svg-full.js",
        },
        *(font_entry(face, files[face], lock) for face in faces),
    ]


def font_entry(file: str, content: bytes, lock: dict[str, dict[str, str]]) -> dict[str, str]:
    """The manifest's entry of vendor/fonts/FAMILY-SUBSET-wght-STYLE.woff2."""
    family = next(family for family in FONTS if Path(file).name.startswith(family))
    version = lock[f"node_modules/@fontsource-variable/{family}"]["version"]
    return {
        "file": file,
        "name": family.replace("-", " ").title(),
        "version": version,
        "licence": "OFL-1.1",
        "sha256": digest(content),
        "source": f"npm @fontsource-variable/{family}@{version}, files/{Path(file).name}",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write what was fetched")
    update = parser.parse_args().update
    if shutil.which("npm") is None:
        raise SystemExit("npm is needed to rebuild the vendored files: install Node.js 18 or later")
    with tempfile.TemporaryDirectory() as folder:
        files = fetch(Path(folder))
    differing = [f for f, text in files.items() if not same(ROOT / f, text)]
    if update:
        for file in differing:
            (ROOT / file).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / file).write_bytes(files[file])
        text = json.dumps(manifest(files), indent=1, ensure_ascii=False) + "\n"
        MANIFEST.write_text(text, encoding="utf-8")
        differing = []
    problems = [f"{f}: not what npm and esbuild give" for f in differing] + mismatches()
    print("\n".join(problems) or "the vendored files are what their sources give")
    return bool(problems)


def same(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


if __name__ == "__main__":
    sys.exit(main())
