"""The data sets of the experiments, read from the package: no network, nothing is unpickled.

Where each is from, its licence and how it was made: the README beside this file.
"""

import hashlib
import lzma
import re
from functools import cache
from importlib.resources import files

__all__ = ["Pairs", "held_out", "pairs"]
Pairs = tuple[tuple[str, str], ...]

HELD_OUT_SHARE = 0.1
SHA256 = {
    "homeassistant-en-de.tsv.xz": "3241babad80a7afc40a4cd5ca61f70304ce5f4705c1d5cfc5fc4847c6e257bbc"
}


@cache
def pairs() -> Pairs:
    """The 9,775 pairs (English, German) of Home Assistant's interface, in the file's order.

    Sentences of 2 to 15 words, no English one twice. ValueError if the file is damaged.
    """
    lines = lzma.decompress(_checked("homeassistant-en-de.tsv.xz")).decode("utf-8").splitlines()
    found = (line.split("\t") for line in lines)
    return tuple((english, german) for english, german in found)


def held_out(all_pairs: Pairs) -> tuple[Pairs, Pairs]:
    """The pairs to learn from and those held out, about one tenth, without near-duplicates.

    Pairs whose English or whose German agrees but for digits, punctuation and capitals ("Phase 1
    power", "Phase 2 power") are one group, and a group is never divided. A group's side follows
    from a hash of its text, not from a seed.
    """
    sides: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
    for pair, group in zip(all_pairs, _groups(all_pairs), strict=True):
        number = int.from_bytes(hashlib.sha256(group.encode()).digest()[:4], "big")
        sides[number < HELD_OUT_SHARE * 2**32].append(pair)
    return tuple(sides[0]), tuple(sides[1])


def _checked(name: str) -> bytes:
    """The file's bytes; ValueError unless they are those that it was published with."""
    content = files(__name__).joinpath(name).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[name]:
        raise ValueError(
            f"{name} is damaged: its sha256 is {found}, not {SHA256[name]}; reinstall rmsnorm_edu"
        )
    return content


def _groups(all_pairs: Pairs) -> list[str]:
    """For each pair the name of its group: the smallest template that its group's pairs have."""
    parent: dict[str, str] = {}

    def root(template: str) -> str:
        while parent.setdefault(template, template) != template:
            template = parent[template]
        return template

    templates = [(f"en:{_template(en)}", f"de:{_template(de)}") for en, de in all_pairs]
    for english, german in templates:
        small, large = sorted((root(english), root(german)))
        parent[large] = small
    return [root(english) for english, _ in templates]


def _template(sentence: str) -> str:
    """The sentence's words, in small letters, without digits and punctuation."""
    return " ".join(re.findall(r"[^\W\d_]+", sentence.lower()))
