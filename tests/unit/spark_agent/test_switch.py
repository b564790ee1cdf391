from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from spark_agent import agent, switch
from spark_agent.driver.replay import guard

CLOUDERA = {
    "spark.lineage.enabled": "true",
    "spark.lineage.log.dir": "/var/log/spark/lineage",
    "spark.extraListeners": "com.cloudera.spark.lineage.NavigatorAppListener",
    "spark.sql.queryExecutionListeners": "com.cloudera.spark.lineage.NavigatorQueryListener",
}

Said = tuple[bool, list[str]]


@pytest.fixture
def decide(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], Said]:
    """decide(conf) -> (was the agent started, the lines on standard error)."""

    def decide(conf: dict[str, str]) -> Said:
        started: list[object] = []
        stream = io.StringIO()
        monkeypatch.setattr(agent, "start", lambda *arguments: started.append(arguments))
        monkeypatch.setattr(sys, "stderr", stream)
        text = "\n".join(f"{name}={value}" for name, value in conf.items())
        switch.start_if_wanted(SimpleNamespace(applicationId="app", _conf=conf), text)
        return bool(started), stream.getvalue().splitlines()

    return decide


@pytest.mark.parametrize("value", ["true", "TRUE", "True "])
def test_true_switches_lineage_on(value: str, decide: Callable[[dict[str, str]], Said]) -> None:
    assert decide({"spark.lineage.enabled": value}) == (True, [])


@pytest.mark.parametrize(
    "conf", [{}, {"spark.lineage.enabled": "false"}, {"spark.lineage.detailed": "true"}], ids=str
)
def test_what_is_off_says_nothing(conf: dict[str, str], decide: Callable[[dict[str, str]], Said]) -> None:
    assert decide(conf) == (False, [])


@pytest.mark.parametrize("value", ["yes", "on", "1", "tru", ""])
def test_what_is_neither_true_nor_false_is_off_and_says_so(
    value: str, decide: Callable[[dict[str, str]], Said]
) -> None:
    line = (
        f"lineage: off for app: spark.lineage.enabled={value} is neither true nor false; "
        "set spark.lineage.enabled=true"
    )
    assert decide({"spark.lineage.enabled": value}) == (False, [line])
    assert decide({"spark.lineage.enabled": value, "spark.lineage.quiet": "true"}) == (False, [])


@pytest.mark.parametrize("others", [{}, {"spark.lineage.enabled": "false"}], ids=["alone", "beside false"])
def test_a_misspelled_switch_is_told(
    others: dict[str, str], decide: Callable[[dict[str, str]], Said]
) -> None:
    is_started, (line,) = decide({"spark.lineage.enable": "true", **others})
    assert not is_started
    assert line == (
        "lineage: off for app: spark.lineage.enable is not a setting, and means nothing; "
        "did you mean spark.lineage.enabled?"
    )


def test_beside_cloudera_s_listeners_its_key_alone_is_not_for_the_agent(
    decide: Callable[[dict[str, str]], Said],
) -> None:
    is_started, (line,) = decide(CLOUDERA)
    assert not is_started
    assert "Cloudera's lineage listeners are configured" in line
    assert decide({**CLOUDERA, "spark.lineage.quiet": "true"}) == (False, [])


@pytest.mark.parametrize("listeners", ["spark.extraListeners", "spark.sql.queryExecutionListeners"])
def test_one_of_the_two_listeners_is_enough(listeners: str, decide: Callable[[dict[str, str]], Said]) -> None:
    conf = {"spark.lineage.enabled": "true", listeners: f"org.x.Y,{CLOUDERA[listeners]}"}
    assert not decide(conf)[0]


def test_a_key_of_ours_switches_lineage_on_beside_cloudera_s(
    decide: Callable[[dict[str, str]], Said],
) -> None:
    assert decide({**CLOUDERA, "spark.lineage.kafka.bootstrap.servers": "a:1"}) == (True, [])


def test_cloudera_s_folder_without_its_listeners_is_no_unknown_key(
    decide: Callable[[dict[str, str]], Said],
) -> None:
    assert decide({"spark.lineage.log.dir": "/var/log"}) == (False, [])


def test_settings_that_come_behind_the_start_are_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    context = SimpleNamespace(applicationId="app-late", _conf={"spark.lineage.detailed": "true"})
    same = {"spark.lineage.detailed": "true", "spark.app.name": "later"}
    switch.say_what_is_too_late(context, same)
    assert not capsys.readouterr().err
    for _ in range(2):
        switch.say_what_is_too_late(context, {**same, "spark.lineage.enabled": True})
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("lineage: spark.lineage.enabled means nothing to app-late, which was running")
    quiet = SimpleNamespace(applicationId="app-quiet", _conf={"spark.lineage.quiet": "true"})
    switch.say_what_is_too_late(quiet, {"spark.lineage.enabled": "true"})
    assert not capsys.readouterr().err


class Context(SimpleNamespace):
    """Stands for a SparkContext that has just been made."""

    def __init__(self) -> None:
        conf = SimpleNamespace(toDebugString=lambda: "spark.lineage.enabled=false\nspark.master=local")
        super().__init__(applicationId="app", _conf=conf)


@pytest.fixture
def replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a spec that this process is a replay of."""
    spec = {
        "version": 1,
        "replay": "r1",
        "of": "app-1",
        "mode": "all",
        "strategy": "rows",
        "round": 0,
        "sandbox": str(tmp_path),
        "sources": [],
        "protected": [],
    }
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec))
    monkeypatch.setenv("LINEAGE_REPLAY", str(path))
    unguarded = SimpleNamespace(args=(), kwargs={})
    monkeypatch.setattr(guard, "guarded_arguments", lambda *_arguments: unguarded)
    monkeypatch.setattr(guard, "check", lambda _context: None)
    return path


def test_in_a_replay_lineage_is_on_whatever_the_conf_says(
    replay: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    monkeypatch.setattr(agent, "start", lambda _context, names: steps.append(",".join(names)))
    switch.start_replay(Context(), lambda: steps.append("initialise"), (), {})
    assert steps == ["initialise", "spark.lineage.enabled"]


def test_a_replay_without_a_spec_ends_before_anything_begins(replay: Path) -> None:
    replay.write_text("{}")
    begun: list[str] = []
    with pytest.raises(SystemExit) as ended:
        switch.start_replay(Context(), lambda: begun.append("initialise"), (), {})
    assert begun == []
    assert str(ended.value.code).startswith("lineage: replay refused: follow the spec")


def test_a_replay_whose_agent_cannot_start_ends(replay: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_context: object, _names: object) -> None:
        raise KeyError("no such method")

    monkeypatch.setattr(agent, "start", fails)
    with pytest.raises(SystemExit, match="lineage: replay refused: the agent could not start"):
        switch.start_replay(Context(), lambda: None, (), {})


def test_a_replay_over_spark_connect_is_refused(replay: Path) -> None:
    with pytest.raises(SystemExit, match="lineage: replay refused: the job uses Spark Connect"):
        switch.refuse_connect()
