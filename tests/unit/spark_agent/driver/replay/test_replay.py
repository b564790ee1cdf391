"""What a replay makes of its spec, of events and of results; without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_agent import contract
from spark_agent.delivery.settings import AgentSettings
from spark_agent.driver.nodes import Node
from spark_agent.driver.rdd import actions
from spark_agent.driver.replay import replay as replays
from spark_agent.driver.replay.replay import Replay
from spark_agent.worker.guard.refusals import ReplayRefused

SETTINGS = AgentSettings(bootstrap_servers="nowhere:1")


class Restriction:
    """Stands for what restricts sources."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, str, str]] = []

    def of_frame(self, *source: Any) -> None:
        self.frames.append(source)

    def end(self) -> None:
        pass


def spec(folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "replay": "r1",
        "of": "app-1",
        "mode": "only",
        "strategy": "rows",
        "round": 2,
        "sandbox": str(folder),
        "sources": [
            {
                "node": 0,
                "name": "textFile",
                "whole": False,
                "splits": [{"split": 0, "positions": [[0, 2], [5, 1]]}, {"split": 3, "positions": [[1, 1]]}],
            }
        ],
        "protected": [],
        **more,
    }


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    made = Replay(spec(tmp_path))
    made._restriction = Restriction()
    return made


def report(replay: Replay) -> dict[str, Any]:
    replay.report.write()
    fields: dict[str, Any] = json.loads((Path(replay.sandbox) / "report.json").read_text())
    return fields


def registered(number: int, name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"node": number, "name": name, "kind": kind, "call_site": f"job.py:{number}", **more}


def test_it_says_what_it_is(replay: Replay) -> None:
    assert replay.started() == {"of": "app-1", "mode": "only", "rows": 4, "strategy": "rows", "round": 2}


def test_a_replay_in_steps_captures_every_value_whatever_the_conf_chose(tmp_path: Path) -> None:
    chosen = AgentSettings(
        bootstrap_servers="nowhere:1",
        dataframes_level="lazy",
        values_nodes=("map",),
        values_call_sites=("job.py:4",),
        values_sample=0.1,
        redact="privacy:redact",
    )
    assert Replay(spec(tmp_path)).adapted(chosen) == chosen
    stepped = Replay(spec(tmp_path, step=True)).adapted(chosen)
    assert stepped == replace(
        chosen,
        detailed=True,
        dataframes_level="eager",
        values_nodes=("*",),
        values_call_sites=("*",),
        values_sample=1.0,
    )
    assert not stepped.follows_paths


def test_of_all_rows_only_the_ways_of_watched_ones_have_values(tmp_path: Path) -> None:
    fields = spec(tmp_path)
    stepped = Replay({**fields, "mode": "all", "step": True, "watched": fields["sources"]}).adapted(SETTINGS)
    assert stepped.values_of == ((0, 0, ((0, 2), (5, 1))), (0, 3, ((1, 1),)))
    assert stepped.follows_paths
    assert (stepped.detailed, stepped.values_sample) == (True, 1.0)


def test_the_spec_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(spec(tmp_path)))
    monkeypatch.setenv("LINEAGE_REPLAY", str(file))
    first = replays.current()
    file.unlink()
    assert first is not None
    assert replays.current() is first
    monkeypatch.delenv("LINEAGE_REPLAY")
    assert replays.current() is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "No such file or directory"),
        ("{", "the replay's spec is not JSON"),
        ("{}", "'version'"),
        (json.dumps(spec(Path("relative"))), "'sandbox' is 'relative', not an absolute path"),
        (json.dumps(spec(Path("/x"), mode="some")), "'mode'"),
        (json.dumps(spec(Path("/x"), version=2)), "'version'"),
    ],
)
def test_a_spec_that_cannot_be_read_refuses_the_job(
    text: str | None, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "spec.json"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv("LINEAGE_REPLAY", str(file))
    with pytest.raises(ReplayRefused) as refused:
        replays.current()
    assert str(file) in str(refused.value)
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_sources_of_frames_are_told(replay: Replay) -> None:
    replay._observe(contract.NODE_REGISTERED, registered(4, "scan csv", "source"))
    replay._observe(contract.LINK, {"source": 4, "target": 5})
    assert replay._restriction.frames == [(4, "scan csv", "job.py:4")]


def test_what_an_action_gave_is_in_the_report(replay: Replay) -> None:
    results: list[tuple[str, Any, Any]] = [
        ("collect", [1, "a"], [["int", "1"], ["str", "a"]]),
        ("count", 7, [["int", "7"]]),
        ("first", (1, 2), [["json", "[1, 2]"]]),
        ("collectAsMap", {"a": 1}, [["json", '["a", 1]']]),
        ("countByKey", {"a": 1}, [["json", '{"a": 1}']]),
        ("foreach", None, None),
        ("toLocalIterator", iter([1]), None),
        ("reduce", None, [["none", ""]]),
    ]
    for number, (name, result, _) in enumerate(results):
        replay._observe(contract.NODE_REGISTERED, registered(number, name, "sink"))
        records = actions._records(name, result)
        if records is not None:
            replay.gave(SETTINGS, Node(number, name), records)
    sinks = report(replay)["sinks"]
    assert [sink.get("values") for sink in sinks] == [values for _, _, values in results]
    assert [sink["name"] for sink in sinks] == [name for name, *_ in results]


def test_a_saver_has_a_folder_by_its_node(replay: Replay) -> None:
    folder = replay.redirected(7, "saveAsTextFile", "job.py:3", "/data/out", "text")
    replay._observe(contract.NODE_REGISTERED, registered(7, "saveAsTextFile", "sink"))
    (sink,) = report(replay)["sinks"]
    assert sink == {
        "node": 7,
        "name": "saveAsTextFile",
        "call_site": "job.py:3",
        "path": "/data/out",
        "to": f"{replay.sandbox}/out/7-saveAsTextFile",
        "format": "text",
    }
    assert folder == f"file:{sink['to']}"


def test_a_saver_without_a_folder_is_refused(replay: Replay) -> None:
    with pytest.raises(
        ReplayRefused, match=r"call saveAsHadoopDataset without a folder at job\.py:3; nothing"
    ):
        replay.redirected(7, "saveAsHadoopDataset", "job.py:3", "", "hadoop")
    assert report(replay)["refused"][0]["where"] == "job.py:3"


def test_the_sink_of_a_frame_gets_its_node_when_its_query_is_planned(replay: Replay) -> None:
    folder = replay.redirected_frame("csv", "job.py:9", "file:/data/out", "csv", is_more=False)
    assert replay.redirected_frame("csv", "job.py:9", folder, "csv", is_more=True) == folder
    dataset = {"namespace": "file", "name": folder.removeprefix("file:"), "format": "csv"}
    replay._observe(contract.NODE_REGISTERED, registered(12, "write csv", "sink", dataset=dataset))
    (sink,) = report(replay)["sinks"]
    assert (sink["node"], sink["name"], sink["path"]) == (12, "write csv", "/data/out")
    assert f"file:{sink['to']}" == folder


def test_a_dropped_record_is_named_by_the_node_before(replay: Replay) -> None:
    replay._observe(contract.NODE_REGISTERED, registered(3, "map", "operator"))
    manifest = {"split": 2, "input": 0, "nodes": [1, 3]}
    failure = {
        "failed_node": 3,
        "position": 17,
        "certain": True,
        "error": "ValueError",
        "message": "bad",
        "frame": "job.py:1",
        "record": ["int", "5"],
    }
    replay._skipped(manifest, [failure, {**failure, "failed_node": 1}], 9)
    fields = report(replay)
    first, second = fields["skipped"]
    assert (first["name"], first["call_site"], first["partition"]) == ("map", "job.py:3", 2)
    assert first["record"] == {"node": 1, "record_id": "2#17", "value": ["int", "5"]}
    assert second["record"]["node"] == 0
    assert fields["skipped_total"] == 9


def result_of(folder: Path, **asked: Any) -> Any:
    """What is said of the influence, of a program that counted before it saved."""
    replay = Replay(spec(folder, influence={"node": 7, "text": "x", **asked}))
    replay._restriction = Restriction()
    replay._observe(contract.NODE_REGISTERED, registered(3, "count", "sink"))
    replay.redirected(7, "saveAsTextFile", "job.py:3", "/data/out", "text")
    replay._observe(contract.NODE_REGISTERED, registered(7, "saveAsTextFile", "sink"))
    replay.saves(Node(7, "saveAsTextFile"))
    return json.loads((folder / "influence.json").read_text())


def test_what_an_action_gave_the_program_is_not_folded(tmp_path: Path) -> None:
    why = "the program took values from count, which its functions may use"
    assert result_of(tmp_path) == {"why": why, "taken": ["count"]}
    assert result_of(tmp_path, kept=[4])["taken"] == ["count"]


def test_what_is_the_same_without_another_row_does_not_count(tmp_path: Path) -> None:
    result = result_of(tmp_path, kept=[3])
    assert (result["taken"], "took values" in result["why"]) == ([], False)
