"""Where the sinks of a replay write, and which copies later reads find."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_agent.driver.replay.outputs import Outputs


@pytest.fixture
def differences() -> list[str]:
    return []


@pytest.fixture
def outputs(tmp_path: Path, differences: list[str]) -> Outputs:
    return Outputs(str(tmp_path / "out"), differences.append)


def test_a_sink_has_a_folder_of_its_own(outputs: Outputs, tmp_path: Path) -> None:
    folder = str(tmp_path / "out" / "7-saveAsTextFile")
    assert outputs.folder_for("/data/totals", "7-saveAsTextFile") == folder
    assert outputs.copy_of("/data/totals/part-00000") == f"{folder}/part-00000"
    assert outputs.copy_of("file:/data/totals/*") == f"{folder}/*"
    assert outputs.copy_of("file:///data/totals/") == folder
    assert outputs.copy_of("/data/totals2") is None
    assert outputs.copy_of("/data") is None


def test_a_second_sink_of_the_same_path_is_what_is_read_from_then_on(outputs: Outputs) -> None:
    first = outputs.folder_for("/data/totals", "1-save")
    second = outputs.folder_for("/data/totals", "1-save")
    assert first != second == outputs.copy_of("/data/totals")


def test_more_goes_to_what_was_written_before(outputs: Outputs) -> None:
    first = outputs.folder_for("/data/totals", "1-a", is_more=True)
    assert outputs.folder_for("/data/totals/", "2-b", is_more=True) == first
    assert outputs.folder_for("/data/others", "2-b", is_more=True) != first


def test_the_folder_within_a_folder_counts(outputs: Outputs) -> None:
    outer, inner = outputs.folder_for("/data", "1-a"), outputs.folder_for("/data/in", "2-b")
    assert outputs.copy_of("/data/in/x") == f"{inner}/x"
    assert outputs.copy_of("/data/other") == f"{outer}/other"


def test_relative_paths_and_uris_are_places_too(
    outputs: Outputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = outputs.folder_for("totals", "1-a")
    assert outputs.copy_of(str(tmp_path / "totals")) == folder
    remote = outputs.folder_for("s3a://bucket/totals", "2-a")
    assert outputs.copy_of("s3a://bucket/totals/part-0") == f"{remote}/part-0"


def test_a_stand_in_is_read_until_the_replay_writes_there_itself(tmp_path: Path) -> None:
    outputs = Outputs(
        str(tmp_path / "out"), lambda _sentence: None, {"file:/data/totals/": "/replays/1/out/3-save"}
    )
    assert outputs.with_copies("/data/totals/part-*,/data/x") == "file:/replays/1/out/3-save/part-*,/data/x"
    assert outputs.copy_of("/data/totals") is None  # nothing that this replay has written
    own = outputs.folder_for("/data/totals", "7-save", is_more=True)
    assert own == str(tmp_path / "out" / "7-save")
    assert outputs.with_copies("/data/totals") == f"file:{own}"


def test_a_pattern_above_a_stand_in_is_said(tmp_path: Path, differences: list[str]) -> None:
    outputs = Outputs(str(tmp_path / "out"), differences.append, {"/data/totals": "/replays/1/out/3-save"})
    assert outputs.with_copies("/data/*") == "/data/*"
    assert len(differences) == 1


def test_what_is_in_the_sandbox_stays(outputs: Outputs) -> None:
    folder = outputs.folder_for("/data/totals", "1-a")
    assert outputs.folder_for(folder, "2-b") == folder
    assert outputs.holds(f"{folder}/x")
    assert not outputs.holds("/data/totals")


def test_arguments_name_several_paths(outputs: Outputs) -> None:
    folder = outputs.folder_for("/data/totals", "1-a")
    assert outputs.with_copies("/data/totals,/data/b") == f"file:{folder},/data/b"
    assert outputs.with_copies("/data/a,/data/b") == "/data/a,/data/b"
    assert outputs.with_copies(["/data/totals", "/data/b"]) == [f"file:{folder}", "/data/b"]
    assert outputs.with_copies(("/data/b",)) == ("/data/b",)
    assert outputs.with_copies(None) is None


@pytest.mark.parametrize("pattern", ["/data/t*", "/data/t*/part-*", "/*/totals", "/data/{totals}"])
def test_a_pattern_over_an_output_is_told(pattern: str, outputs: Outputs, differences: list[str]) -> None:
    outputs.folder_for("/data/totals", "1-a")
    assert outputs.copy_of(pattern) is None
    (sentence,) = differences
    assert pattern in sentence
    assert "/data/totals" in sentence


def test_a_pattern_over_something_else_is_not(outputs: Outputs, differences: list[str]) -> None:
    outputs.folder_for("/data/totals", "1-a")
    assert outputs.copy_of("/data/orders-*") is None
    assert differences == []
