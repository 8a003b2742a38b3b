import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rmsnorm_edu import __main__ as cli
from rmsnorm_edu import benchmarks, recorded

COMMANDS = ("info", "invariance", "record", "aot")


def test_it_runs_as_a_module() -> None:
    """From another folder, as a reader would run it; errors go to stderr, the status says so."""
    run = [sys.executable, "-W", "error", "-m", "rmsnorm_edu"]
    good = subprocess.run([*run, "info"], capture_output=True, text=True, cwd="/")
    assert (good.returncode, good.stderr) == (0, "")
    bad = subprocess.run([*run, "record", "nothing"], capture_output=True, text=True, cwd="/")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "numpy_ladder" in bad.stderr


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_everywhere(command: str, capsys) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main([*command.split(), "--help"])
    assert exit_.value.code == 0
    assert "usage: python -m rmsnorm_edu" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["fly"], ["info", "--fast"], ["record"]])
def test_wrong_usage_is_status_2_and_says_the_usage_on_stderr(arguments, capsys) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    said = capsys.readouterr()
    assert exit_.value.code == 2
    assert said.out == ""
    assert "usage:" in said.err


def test_info_names_versions_extras_and_gpu(capsys, monkeypatch) -> None:
    monkeypatch.setattr(cli, "gpus", list)
    assert cli.main(["info"]) == 0
    text = capsys.readouterr().out
    assert f"numpy        {np.__version__}" in text
    assert "none found: everything here runs without" in text
    monkeypatch.setattr(cli, "gpus", lambda: ["NVIDIA T4, 550.1"])
    monkeypatch.setattr(cli, "installed", lambda name: None)
    cli.main(["info"])
    text = capsys.readouterr().out
    assert "GPU          NVIDIA T4, 550.1" in text
    assert "torch        torch not installed" in text


def test_info_for_machines(capsys) -> None:
    cli.main(["info", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["numpy"] == np.__version__
    assert isinstance(found["GPU"], list)
    assert found["extras"].keys() == {
        "widgets", "precision", "torch", "cpu", "triton", "tensorflow", "jax", "pytensor"
    }  # fmt: skip


def test_invariance_as_a_table_and_for_machines(capsys) -> None:
    assert cli.main(["invariance", "--json"]) == 0
    cells = json.loads(capsys.readouterr().out)
    assert len(cells) == 35
    keys = ["method", "transformation", "invariant", "max_change", "negative_scale"]
    assert all(list(cell) == keys for cell in cells)
    assert cli.main(["invariance"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert len(table) == 36
    assert table[0].startswith("method            transformation")
    assert all(" yes " in line or " no " in line for line in table[1:])


def test_record_measures_and_writes(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(cli, "measure_of", lambda name: lambda: {"of": name})
    assert cli.main(["record", "numpy_ladder", "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "numpy_ladder.json")
    monkeypatch.setattr(recorded, "SHELF", tmp_path)
    record = recorded.load("numpy_ladder")
    assert record.data == {"of": "numpy_ladder"}
    assert record.provenance["command"] == "python -m rmsnorm_edu record numpy_ladder"


def test_an_error_of_the_command_is_one_line_on_stderr(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(cli, "measure_of", lambda name: pytest.fail("measured first"))
    nowhere = tmp_path / "missing"
    assert cli.main(["record", "numpy_ladder", "--folder", str(nowhere)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"rmsnorm_edu record: folder {nowhere} does not exist: make it or give another\n"
    )


@pytest.mark.parametrize("arguments", [["invariance", "--json"], ["info"], ["--help"]])
def test_a_reader_who_leaves_hears_nothing(arguments: list[str]) -> None:
    run = [sys.executable, "-W", "error", "-m", "rmsnorm_edu", *arguments]
    read, write = os.pipe()
    os.close(read)  # as `| true` does
    try:
        done = subprocess.run(run, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write)
    assert done.stderr == ""
    assert done.returncode in (0, 1)  # argparse forgives it in --help


def test_who_stops_it_is_told_no_more(capsys, monkeypatch) -> None:
    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.cpu, "bench", stopped)
    assert cli.main(["bench", "cpu"]) == 130
    assert capsys.readouterr() == ("", "")


def test_every_record_that_is_measured_exists() -> None:
    assert set(benchmarks.TASKS) <= set(recorded.names())
