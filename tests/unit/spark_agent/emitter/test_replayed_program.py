"""What a program without Spark does in a replay: which rows it reads, where it writes, what it reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_agent import contract
from spark_agent.emitter.lineage_api import LineageApi, LineageApiError
from tests.support.own_program import APP, Wire, cut_wire

#: Rows of two partitions of the source 0.
NAMED = [{"split": 0, "positions": [[1, 2], [5, 1]]}, {"split": 2, "positions": [[0, 1]]}]
KEPT = {(0, 1), (0, 2), (0, 5), (2, 0)}


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    return cut_wire(monkeypatch)


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    return tmp_path / "replays" / "7"


def be_replayed(monkeypatch: pytest.MonkeyPatch, sandbox: Path, mode: str = "only", **more: Any) -> None:
    source = {"node": 0, "name": "read", "whole": False, "splits": NAMED}
    spec = {
        "version": 1,
        "replay": "7",
        "of": APP,
        "mode": mode,
        "strategy": "rows",
        "round": 2,
        "sandbox": str(sandbox),
        "sources": [source],
        "protected": [],
        **more,
    }
    sandbox.mkdir(parents=True)
    (sandbox / "spec.json").write_text(json.dumps(spec))
    monkeypatch.setenv("LINEAGE_REPLAY", str(sandbox / "spec.json"))


def kept_rows(lineage: LineageApi, node: int) -> set[tuple[int, int]]:
    places = [(split, row) for split in range(4) for row in range(8)]
    return {place for place in places if lineage.keep(node, f"read#{place[0]}#{place[1]}")}


def operations(lineage: LineageApi, folder: Path) -> None:
    lineage.register(0, "read", path=str(folder / "in.csv"))
    lineage.register(1, "map")
    lineage.register(2, "write", path=str(folder / "out.csv"))
    lineage.link(0, 1)
    lineage.link(1, 2)


def report(sandbox: Path) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((sandbox / "report.json").read_text())
    return fields


def test_outside_of_a_replay_every_row_is_kept_and_paths_stay(wire: Wire, tmp_path: Path) -> None:
    with LineageApi(APP, "") as lineage:
        operations(lineage, tmp_path)
        assert len(kept_rows(lineage, 0)) == 32
        assert lineage.output_path(2) == str(tmp_path / "out.csv")
        with pytest.raises(LineageApiError, match="node 1 has no path"):
            lineage.output_path(1)
        with pytest.raises(LineageApiError, match="is no row of a source"):
            lineage.keep(0, "write#0#1")
    assert "replay" not in wire.of(contract.APPLICATION_STARTED)[0]


@pytest.mark.parametrize("mode", ["only", "without", "all"])
def test_the_rows_of_the_spec_are_kept_or_left_out(
    mode: str, wire: Wire, sandbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_replayed(monkeypatch, sandbox, mode, **({"sources": []} if mode == "all" else {}))
    everything = {(split, row) for split in range(4) for row in range(8)}
    with LineageApi(APP, "") as lineage:
        operations(lineage, tmp_path)
        expected = {"only": KEPT, "without": everything - KEPT, "all": everything}[mode]
        assert kept_rows(lineage, 0) == expected
        assert lineage.keep(1, "a record of another operation")
    [source] = report(sandbox)["sources"]
    assert source["way"] == ("whole" if mode == "all" else "kept")


def test_it_is_an_application_of_its_own(
    wire: Wire, sandbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_replayed(monkeypatch, sandbox)
    with LineageApi(APP, "Sums") as lineage:
        operations(lineage, tmp_path)
        lineage.capture(f"{APP}#0#", "read#0#1", f"{APP}#0#first")
        lineage.capture("1#", f"{APP}#0#first", "second")
    [started] = wire.of(contract.APPLICATION_STARTED)
    application_id = started["application_id"]
    assert application_id.startswith(f"{APP}.replay-7-2-")
    assert started["replay"] == {"of": APP, "mode": "only", "rows": 4, "strategy": "rows", "round": 2}
    assert {event["application_id"] for event in wire.events} == {application_id}
    assert {block.application_id for block in wire.blocks} == {application_id}
    assert report(sandbox)["application"] == application_id
    assert len(wire.of(contract.RUN_COMMITTED)) == 2


def test_it_writes_into_the_sandbox(
    wire: Wire, sandbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_replayed(monkeypatch, sandbox)
    with LineageApi(APP, "") as lineage:
        operations(lineage, tmp_path)
        path = Path(lineage.output_path(2))
        assert lineage.output_path(2) == str(path)
        path.write_text("1\n")
    assert path == sandbox / "out" / "2-output" / "out.csv"
    [sink] = report(sandbox)["sinks"]
    assert (sink["node"], sink["name"], sink["path"]) == (2, "write", str(tmp_path / "out.csv"))
    assert sink["to"] == str(path.parent)
    partitions = {event["node"]: event["partitions"] for event in wire.of(contract.PARTITIONS)}
    assert partitions[2][0]["path"] == str(path)


def test_a_source_that_nobody_asked_about_was_read_whole(
    wire: Wire, sandbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_replayed(monkeypatch, sandbox)
    with LineageApi(APP, "") as lineage:
        operations(lineage, tmp_path)
    [source] = report(sandbox)["sources"]
    assert (source["way"], source["why"]) == (
        "whole",
        "the program did not ask LineageApi.keep about its rows",
    )


def test_a_second_execution_is_not_the_one_that_is_replayed(
    wire: Wire, sandbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_replayed(monkeypatch, sandbox)
    with LineageApi(APP, "") as first:
        operations(first, tmp_path)
    with LineageApi(f"{APP}-next", "") as second:
        operations(second, tmp_path)
        assert len(kept_rows(second, 0)) == 32
        assert Path(second.output_path(2)).is_relative_to(sandbox)
    applications = {event["application_id"] for event in wire.events}
    assert len(applications) == 2
    assert report(sandbox)["application"] in applications


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda spec: spec.write_text("{"), "cannot be read"),
        (lambda spec: spec.unlink(), "cannot be read"),
        (lambda spec: spec.write_text(spec.read_text().replace('"only"', '"replace"')), "--replace is for"),
    ],
)
def test_what_cannot_be_done_ends_the_program_with_one_sentence(
    act: Any, why: str, wire: Wire, sandbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_replayed(monkeypatch, sandbox)
    act(sandbox / "spec.json")
    with pytest.raises(LineageApiError, match=why):
        LineageApi(APP, "").__enter__()
    assert wire.events == []


def test_a_source_that_is_another_one_is_read_whole(
    wire: Wire, sandbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_replayed(monkeypatch, sandbox)
    with LineageApi(APP, "") as lineage:
        lineage.register(0, "scan", path=str(tmp_path / "other.csv"))
        lineage.register(1, "write", path=str(tmp_path / "out.csv"))
        lineage.link(0, 1)
        assert all(lineage.keep(0, f"read#{split}#{row}") for split in range(4) for row in range(8))
    [source] = report(sandbox)["sources"]
    assert (source["way"], source["why"]) == ("whole", "it was read in the original")
