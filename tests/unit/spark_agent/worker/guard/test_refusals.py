from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from spark_agent.contract.replay_notes import NOTES, note, read_notes
from spark_agent.worker.guard.refusals import Refusals, ReplayRefused


def test_a_refusal_is_one_sentence_and_survives_pickling() -> None:
    error = ReplayRefused("remove", "/data/x", "job.py:12", "leave it")
    assert str(error) == "replay refused: remove /data/x at job.py:12; nothing was changed; leave it"
    assert isinstance(error, PermissionError)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.path, again.where) == (str(error), "/data/x", "job.py:12")


def test_a_refusal_is_noted_with_its_place(tmp_path: Path) -> None:
    refusals = Refusals(str(tmp_path))
    with pytest.raises(ReplayRefused, match=r"remove /data/x at test_refusals.py:\d+"):
        refusals.refuse("remove", "/data/x")
    (refused,) = read_notes(str(tmp_path))["refused"]
    assert (refused["what"], refused["path"]) == ("remove", "/data/x")
    assert refused["where"].startswith("test_refusals.py:")


def test_notes_are_read_once_each_in_order_whatever_else_is_in_the_file(tmp_path: Path) -> None:
    sandbox = str(tmp_path)
    for address in ("a:1", "b:2", "a:1"):
        note(sandbox, "connection", address)
    with (tmp_path / NOTES).open("ab") as file:
        file.write(
            b'[1]\n"x"\n{"connection": 3}\n{"refused": "x"}\n{"other": "x"}\n{\xff\n\n'
            + b"[" * 100_000
            + b"\n{"
        )
    notes = read_notes(sandbox)
    assert notes == {"refused": [], "connections": ["a:1", "b:2"], "pretended": [], "remarks": []}


def test_a_refusal_that_is_there_again_with_its_place_is_one(tmp_path: Path) -> None:
    refused = {"what": "remove", "path": "/data/x", "where": ""}
    note(str(tmp_path), "refused", refused)
    note(str(tmp_path), "refused", {**refused, "where": "job.py:3"})
    note(str(tmp_path), "refused", {**refused, "path": "/data/y"})
    assert [note["where"] for note in read_notes(str(tmp_path))["refused"]] == ["job.py:3", ""]


def test_no_notes_and_no_sandbox(tmp_path: Path) -> None:
    note(str(tmp_path / "nothing"), "remark", "x")
    assert read_notes(str(tmp_path / "nothing"))["remarks"] == []
