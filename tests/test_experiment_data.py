"""The experiments' data: whole, its own, and split without near-duplicates."""

import re
import subprocess
import sys

import pytest

from rmsnorm_edu.experiments import data


def test_the_pairs() -> None:
    pairs = data.pairs()
    assert len(pairs) == len({english for english, _ in pairs}) == 9775
    assert pairs[2] == ("Invalid authentication", "Ungültige Authentifizierung")
    assert all(2 <= len(side.split()) <= 15 for pair in pairs for side in pair)


def test_a_damaged_file_is_an_error_that_says_the_fix(monkeypatch) -> None:
    monkeypatch.setitem(data.SHA256, "homeassistant-en-de.tsv.xz", 64 * "0")
    data.pairs.cache_clear()
    with pytest.raises(ValueError, match=r"sha256 is 3241ba.*reinstall rmsnorm_edu"):
        data.pairs()


def test_nothing_is_held_out_that_was_learned() -> None:
    """Not even but for digits, signs and capitals, in either language."""
    pairs = data.pairs()
    learn, held_out = data.held_out(pairs)
    assert sorted(learn + held_out) == sorted(pairs)
    assert 0.08 < len(held_out) / len(pairs) < 0.12
    for side in (0, 1):
        learned, kept = (
            {re.sub(r"[\W\d_]+", " ", pair[side].lower()).strip() for pair in half}
            for half in (learn, held_out)
        )
        assert not learned & kept


def test_chains_of_likeness_are_one_group() -> None:
    chain = (("Phase 1", "Eins"), ("phase 2!", "Zwei"), ("Stage", "zwei"), ("Level", "Stufe"))
    groups = data._groups(chain)
    assert groups[0] == groups[1] == groups[2] != groups[3]


def test_the_loader_loads_neither_torch_nor_the_network() -> None:
    code = """
import sys
from rmsnorm_edu.experiments import data
data.held_out(data.pairs())
print({"torch", "socket"} & set(sys.modules))
"""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
