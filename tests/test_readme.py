"""The README's example runs, and says what it promises."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_example_runs_and_finds_the_missing_eps(capsys):
    [code] = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    names = {}
    exec(compile(code, str(README), "exec"), names)
    root = (12.5 + 1e-6) ** 0.5
    assert names["y"] == pytest.approx([3 / root, -8 / root], rel=1e-15, abs=0)
    assert "eps is not used: add it to the mean square." in capsys.readouterr().out
