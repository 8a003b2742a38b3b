"""Make homeassistant-en-de.tsv.xz: ``python homeassistant.py FOLDER``.

FOLDER holds the unpacked wheel ``homeassistant==2025.1.4``; the file appears in the current
folder. The package never runs this: it is the note of how the data was made.
"""

import json
import lzma
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MARKUP = re.compile(r"[{}<>\[\]|`*#_@/\\]|http")
LENGTHS = range(2, 16)  # in words


def texts(entry: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """The strings of a translation file, each with its place."""
    for key, value in entry.items():
        if isinstance(value, dict):
            yield from texts(value, f"{path}/{key}")
        elif isinstance(value, str):
            yield f"{path}/{key}", value


def differing(folder: Path) -> Iterator[tuple[str, str]]:
    """English and German of every place where the two differ, component by component."""
    for file in sorted(folder.glob("homeassistant/components/*/translations/en.json")):
        other = file.with_name("de.json")
        if not other.exists():
            continue
        english, german = (dict(texts(json.loads(f.read_text("utf-8")))) for f in (file, other))
        both = ((text, german[place]) for place, text in english.items() if place in german)
        yield from ((plain(en), plain(de)) for en, de in both if en != de)


def plain(text: str) -> str:
    """One space between words, three dots for an ellipsis."""
    return re.sub(r"\s+", " ", text.replace("…", "...")).strip()


def kept(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Sentences of 2 to 15 words on both sides, without markup; no English one twice."""
    seen = set()
    for english, german in pairs:
        lengths = len(english.split()), len(german.split())
        if MARKUP.search(english + german) or not all(n in LENGTHS for n in lengths):
            continue
        if english not in seen:
            seen.add(english)
            yield english, german


if __name__ == "__main__":
    lines = [f"{english}\t{german}\n" for english, german in kept(differing(Path(sys.argv[1])))]
    content = lzma.compress("".join(lines).encode(), preset=9)
    Path("homeassistant-en-de.tsv.xz").write_bytes(content)
    print(len(lines), "pairs")
