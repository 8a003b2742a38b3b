import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from golden_cases import RECORDS

from rmsnorm_edu import recorded, reference
from rmsnorm_edu.recorded import provenance


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that `load` reads instead of the package's own."""
    monkeypatch.setattr(recorded, "SHELF", tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", recorded.names())
def test_every_record_says_where_it_comes_from(name: str) -> None:
    record = recorded.load(name)
    assert record.data
    assert record.provenance.keys() == {"machine", "versions", "date", "command", "commit"}
    assert record.provenance["versions"]["numpy"]
    for part in ("machine", "date", "command", "commit"):
        assert record.provenance[part]
        assert record.provenance[part] in record.caption
    assert "\n" not in record.caption


def test_an_unknown_name_lists_the_names() -> None:
    with pytest.raises(ValueError, match=r"no record 'ladder'; there are: .*numpy_ladder"):
        recorded.load("ladder")


def test_what_is_written_comes_back_to_the_bit(shelf: Path) -> None:
    rng = np.random.default_rng(5)
    arrays = [
        rng.normal(size=(2, 3)).astype(np.float32),
        np.array([[np.nan, -np.inf, 5e-324, -0.0, 1.7e308]]),
        rng.normal(size=(0, 4)),
        np.array(2**62 + 1),
    ]
    data = {"arrays": arrays, "number": np.float64(0.1), "nested": {"list": [1, None, "é"]}}
    path = recorded.write("trial_1", data, command="python -m trial", folder=shelf)
    back = recorded.load("trial_1")
    assert path == shelf / "trial_1.json"
    for written, read in zip(arrays, back.data["arrays"], strict=True):
        assert written.dtype == read.dtype
        assert written.shape == read.shape
        assert written.tobytes() == read.tobytes()
    assert back.data["number"] == 0.1
    assert back.data["nested"] == data["nested"]
    assert back.provenance["command"] == "python -m trial"


def test_a_failed_write_leaves_nothing_and_keeps_the_old(shelf: Path, monkeypatch) -> None:
    recorded.write("trial", {"a": 1}, command="first", folder=shelf)
    with pytest.raises(TypeError, match="cannot hold"):
        recorded.write("trial", {"a": {1, 2}}, command="second", folder=shelf)

    def refuse(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match=r"cannot write .*trial\.json: disk full"):
        recorded.write("trial", {"a": 2}, command="third", folder=shelf)
    assert [p.name for p in shelf.iterdir()] == ["trial.json"]
    assert recorded.load("trial").data == {"a": 1}


CIRCLE: list = []
CIRCLE.append(CIRCLE)
NOT_KEPT = {
    "masked": (np.ma.array([1.0, 2.0], mask=[0, 1]), TypeError, "masked values; fill them first"),
    "long doubles": (np.ones(2, np.longdouble) / 3, TypeError, "cannot hold array"),
    "long double": (np.longdouble("0.1"), TypeError, "cannot hold .*longdouble"),
    "complex": (np.complex128(1j), TypeError, "cannot hold 1j"),
    "objects": (np.array([None]), TypeError, "cannot hold array"),
    "set": ({1, 2}, TypeError, "cannot hold"),
    "like an array": (
        {"dtype": "float64", "shape": [1], "values": "1"},
        ValueError,
        r"data\['v'\]\[0\] would not come back .*no keys dtype",
    ),
    "like no array": (
        {"dtype": "x", "shape": 1, "values": "y"},
        ValueError,
        r"cannot be read back: .*'x'.*no keys dtype",
    ),
    "like no text": ({"dtype": "int8", "shape": 1, "values": 2}, ValueError, "cannot be read"),
    "integer keys": ({1: 2}, ValueError, r"data\['v'\]\[0\] would not .*give strings as keys"),
    "nan": (math.nan, ValueError, "nan and inf in arrays"),
    "inf": (np.float64(math.inf), ValueError, "nan and inf in arrays"),
    "half a letter": ("\ud800", ValueError, "surrogates not allowed"),
    "circle": (CIRCLE, ValueError, "[Cc]ircular"),
}


@pytest.mark.parametrize("what", NOT_KEPT)
def test_what_would_not_come_back_keeps_the_old_record(what: str, shelf: Path) -> None:
    recorded.write("trial", {"a": 1}, command="first", folder=shelf)
    value, error, message = NOT_KEPT[what]
    with pytest.raises(error, match=message):
        recorded.write("trial", {"v": [value]}, command="second", folder=shelf)
    assert [p.name for p in shelf.iterdir()] == ["trial.json"]
    assert recorded.load("trial").data == {"a": 1}


def test_what_json_can_hold_comes_back(shelf: Path) -> None:
    nans = np.array([np.nan, -np.nan], np.float16)
    data = {"pair": (1, "é"), "big": 10**400, "yes": np.True_, "f4": np.float32(0.1), "nan": nans}
    recorded.write("trial", data, command="", folder=shelf)
    back = recorded.load("trial").data
    assert back["pair"] == [1, "é"]
    assert back["big"] == 10**400
    assert back["yes"] is True
    assert np.float32(back["f4"]) == np.float32(0.1)
    assert back["nan"].dtype == np.float16
    assert np.isnan(back["nan"]).all()


@pytest.mark.parametrize("data", [None, [1, 2], "words"])
def test_data_is_a_dictionary(data: object, tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(TypeError, match=r"data is .*; give a dictionary"):
        recorded.write("trial", data, command="", folder=tmp_path)
    monkeypatch.delenv("RMSNORM_BOOK", raising=False)
    with pytest.raises(TypeError, match=r"data is .*; give a dictionary"):
        recorded.live("numpy_ladder", lambda: data)
    with pytest.raises(TypeError, match="command = None is NoneType; give a string"):
        recorded.write("trial", {}, command=None, folder=tmp_path)


@pytest.mark.parametrize("name", ["", "../up", "With Space", "1st", "a\n", None, 3])
def test_a_name_is_a_plain_word(name: object, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give lower-case letters"):
        recorded.write(name, {}, command="", folder=tmp_path)


def test_a_place_is_a_folder_that_can_be_written_to(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "taken.json").mkdir()
    for name, folder, message in (
        ("trial", "none", "none does not exist: make it or give another"),
        ("trial", "file", "file is not a folder: make it or give another"),
        ("taken", "", "taken.json is a folder: move it away"),
    ):
        with pytest.raises(ValueError, match=message):
            recorded.place(name, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    assert recorded.place("trial", "") == Path("trial.json")  # not the package's own
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ValueError, match="cannot be written to"):
        recorded.place("trial", tmp_path)


@pytest.mark.parametrize("text", [
    "", "{}", "[1]", '{"data": 1}', '{"data": {}, "provenance": {}}',
    '{"data": {"dtype": "float64", "shape": [3], "values": "1"}, "provenance": {}}',
])  # fmt: skip
def test_a_damaged_record_is_named(text: str, shelf: Path) -> None:
    (shelf / "bad.json").write_text(text)
    with pytest.raises(ValueError, match=r"record 'bad' is damaged \(.*\): replace .*bad.json"):
        recorded.load("bad")


def test_live_shows_the_record_in_the_book_and_measures_in_a_notebook(monkeypatch) -> None:
    monkeypatch.setenv("RMSNORM_BOOK", "1")
    shown = recorded.live("numpy_ladder", lambda: pytest.fail("measured during the build"))
    assert shown == recorded.load("numpy_ladder")
    monkeypatch.setenv("RMSNORM_BOOK", "0")
    assert not recorded.building()
    monkeypatch.delenv("RMSNORM_BOOK")
    measured = recorded.live("numpy_ladder", lambda: {"shape": [1, 1]})
    assert measured.data == {"shape": [1, 1]}
    assert measured.provenance["command"] == "measured in this notebook"


def test_the_commit_is_the_checkouts_or_none(monkeypatch) -> None:
    monkeypatch.setattr(provenance, "_said", lambda *command: [])
    assert provenance.commit() == "none (installed package)"
    said = {"ls-files": ["provenance.py"], "rev-parse": ["abc"], "status": [" M a.py"]}
    monkeypatch.setattr(provenance, "_said", lambda *command: said[command[3]])
    assert provenance.commit() == "abc + changes"
    said["rev-parse"] = []
    assert provenance.commit() == "none (git names no commit)"


def test_a_missing_tool_says_nothing() -> None:
    assert provenance._said("no-such-tool-of-any-kind") == []
    assert provenance._said("git", "no-such-command") == []


@pytest.mark.parametrize(("name", "count"), [("golden_2019", 10), ("golden_partial", 8)])
def test_a_golden_record_is_that_of_the_golden_vectors(name: str, count: int) -> None:
    stored, fresh = recorded.load(name).data, RECORDS[name]()
    assert stored["source"] == fresh["source"]
    assert len(stored["cases"]) == len(fresh["cases"]) == count
    for old, new in zip(stored["cases"], fresh["cases"], strict=True):
        assert old.keys() == new.keys()
        for key, value in new.items():
            np.testing.assert_array_equal(old[key], value)


@pytest.mark.equation("eps-inside", "eps-outside")
@pytest.mark.parametrize(
    "case", recorded.load("golden_2019").data["cases"], ids=lambda case: case["case"]
)
def test_the_golden_record_holds_what_the_reference_says(case: dict) -> None:
    options = {"eps": case["eps"], "eps_outside": case["place"] == "outside"}
    y = reference.rms_norm(case["x"], case["weight"], case["bias"], **options)
    dx, dweight = reference.rms_norm_vjp(case["dy"], case["x"], case["weight"], **options)
    np.testing.assert_allclose(y, case["y"], rtol=1e-12)
    u = np.abs(case["dy"] * case["weight"])
    size = np.max(u) / (np.min(reference.rms(case["x"])) + case["eps"])
    np.testing.assert_allclose(dx, case["dx"], rtol=0, atol=1e-13 * size)
    np.testing.assert_allclose(dweight, case["dweight"], rtol=0, atol=1e-13 * np.max(u) * len(u))


def test_the_ladder_is_a_ladder() -> None:
    median = recorded.load("numpy_ladder").data["median_ms"]
    assert median["loop"] > 10 * median["vectorised"] > 0


def test_records_are_plain_json() -> None:
    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is not JSON")

    for name in recorded.names():
        text = (recorded.SHELF / f"{name}.json").read_text("utf-8")
        json.loads(text, parse_constant=refuse)
