"""`lineage explain --sufficient`, `--minimal` and `--save` over a store and files on a disk.

What a job's driver would do, a script does by hand.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lineage_service.cli import main
from lineage_service.cli.query import proved_explanation
from lineage_service.decode.batches import event_batch
from lineage_service.kafka.errors import BrokerUnavailableError
from lineage_service.store.flow_store import DeltaFlowStore
from tests.support.file_applications import APP, questions_of, splits_of
from tests.support.lineage_messages import messages

LINES = ["Graz,1.5", "Linz,2", "Wien,3", "Bern,4"]
#: Copies its input as the agent would; `ACT` is a line of its own.
JOB = """
import json, os, sys
from spark_agent.driver.replay import replay
spec = replay.current().spec
sandbox, report = spec["sandbox"], {"application": "app-2", "refused": [], "differences": []}
report["sources"] = [{"node": one["node"], "name": "textFile", "way": "literal"} for one in spec["sources"]]
lines = [line for source in spec["sources"] for part in source.get("texts", {}).values() for line in part]
saved = [one["folder"] for one in spec.get("stand_ins", ()) if one["path"] == INPUT]
if spec["mode"] == "all":
    lines = open(saved[0] if saved else INPUT).read().splitlines()
ACT
with open(sandbox + "/out/part-00000", "w") as file:
    file.write("".join(line + "\\n" for line in lines))
report["sinks"] = [{"node": 2, "name": "collect", "call_site": "", "path": None,
                    "to": sandbox + "/out", "format": "text"}]
json.dump(report, open(sandbox + "/report.json", "w"))
"""


class Job(NamedTuple):
    folder: Path
    input: Path
    output: Path
    #: What went to Kafka.
    sent: list[bytes]

    def asked(self, *words: str) -> int:
        """Of what is stored, with nothing run."""
        return main.main(["explain", APP, *words, *self.flags])

    @property
    def flags(self) -> tuple[str, ...]:
        return "--home", str(self.folder / "home"), "--store", str(self.folder / "flows")

    def explain(self, *words: str, act: str = "") -> int:
        path = self.folder / "job.py"
        path.write_text(JOB.replace("INPUT", repr(str(self.input))).replace("ACT", act))
        flags = (*self.flags, "--trace-seconds", "1")
        return main.main(["explain", APP, *words, *flags, "--json", "--", sys.executable, str(path)])


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    made = Job(tmp_path, tmp_path / "in.csv", tmp_path / "out" / "part-00000", [])
    monkeypatch.setattr(
        proved_explanation, "send_event", lambda _settings, _app, message: made.sent.append(message)
    )
    made.output.parent.mkdir()
    for path in (made.input, made.output):
        path.write_text("".join(f"{line}\n" for line in LINES))
    questions_of(tmp_path, splits_of(made.input), [len(LINES)], written=splits_of(made.output))
    return made


def recorded(job: Job) -> None:
    """What went to Kafka is stored."""
    store = DeltaFlowStore(job.folder / "flows")
    store.write_events(event_batch("group/node-0", messages(*job.sent, first=1_000)))


def answer_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_a_row_that_comes_out_of_its_rows_and_of_the_saved_files_is_verified(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = job.folder / "repro"
    assert job.explain(f"{job.output}:2", "--sufficient", "--save", str(folder)) == 0
    answer = answer_of(capsys)
    assert (answer["kind"], answer["total"]) == ("verified", 1)
    assert answer["verified"] == {"runs": 2, "added": 0, "minimal": False}
    [row] = answer["rows"]
    assert (row["path"], row["line"], row["text"]) == (str(job.input), 2, "Linz,2")
    assert (folder / "in.csv").read_text() == "Linz,2\n"
    assert (folder / "asked.txt").read_text() == "Linz,2\n"
    script = (folder / "run.sh").read_text()
    assert f"{job.folder}/job.py" in script
    assert 'ln -s "$here"/in.csv' in script


def test_what_was_verified_is_seen_by_who_asks_later(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.explain(f"{job.output}:2", "--sufficient") == 0
    assert len(job.sent) == 1
    recorded(job)
    capsys.readouterr()
    assert job.asked(f"{job.output}:2") == 0
    printed = capsys.readouterr().out
    assert re.search(
        r"^verified on \d{4}-\d\d-\d\d \d\d:\d\d UTC: the job gives it again on these rows alone; "
        r"2 runs, nothing added$",
        printed,
        re.MULTILINE,
    )
    assert job.asked(f"{job.output}:2", "--json") == 0
    answer = answer_of(capsys)
    assert (answer["kind"], answer["verified"]["runs"]) == ("verified", 2)
    assert job.asked(f"{job.output}:3", "--json") == 0
    answer = answer_of(capsys)
    assert (answer["kind"], answer["verified"], answer["checks"]) == ("concise", None, [])
    assert job.explain(f"{job.output}:2", "--sufficient", act="lines = []") == 3
    answer = answer_of(capsys)
    assert (answer["kind"], answer["verified"], answer["checks"]) == ("concise", None, [])


def test_nothing_is_recorded_of_inputs_that_have_changed(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    job.input.write_text(job.input.read_text() + "Rom,9\n")
    assert job.explain(f"{job.output}:2", "--sufficient", "--anyway") == 0
    assert (answer_of(capsys)["kind"], job.sent) == ("verified", [])


def test_a_broker_that_is_away_is_one_line_and_the_answer_stays(
    job: Job, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise BrokerUnavailableError("no Kafka broker at 127.0.0.1:1 took it (timed out)")

    monkeypatch.setattr(proved_explanation, "send_event", refuse)
    assert job.explain(f"{job.output}:2", "--sufficient") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["kind"] == "verified"
    assert printed.err.splitlines()[-1] == (
        "lineage: not recorded, so others do not see that it is verified: "
        "no Kafka broker at 127.0.0.1:1 took it (timed out)"
    )


@pytest.mark.thorough
def test_rows_are_added_until_it_comes_out_and_left_out_again(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    act = "lines = lines if len(lines) > 1 else []"
    assert job.explain(f"{job.output}:2", "--sufficient", act=act) == 0
    answer = answer_of(capsys)
    assert (answer["kind"], answer["total"], answer["verified"]["added"]) == ("verified", 4, 3)
    recorded(job)
    assert job.asked(f"{job.output}:2") == 0
    printed = capsys.readouterr().out
    assert "of other rows: 4 rows, 3 of them not among these; " in printed
    assert f"  + {job.input}:4  Bern,4" in printed
    assert any("all of their rows are meant" in reason for reason in answer["reasons"])
    waited = (
        "Repair: all rows of the inputs were read: the lineage of the replay was not in the store after 1 s"
    )
    assert any(reason.startswith(waited) for reason in answer["reasons"])
    assert job.explain(f"{job.output}:2", "--minimal", act=act) == 0
    answer = answer_of(capsys)
    assert (answer["total"], answer["verified"]["minimal"]) == (2, True)
    assert "Linz,2" in [row["text"] for row in answer["rows"]]
    words = ("--minimal", "--with", f"{job.input}:4")
    assert job.explain(f"{job.output}:2", *words, act=act) == 0
    assert [row["line"] for row in answer_of(capsys)["rows"]] == [2, 4]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("act", "code", "reason"),
    [
        ("lines = []", 3, "Not verified: not deterministic: not even all rows of the inputs give it again."),
        ("sys.exit(7)", 3, "Not verified: the command ended with exit code 7, on all rows."),
        (
            "lines = [] if saved else lines",
            3,
            "Not verified: a run on the saved files alone does not give it: what it is may depend on "
            "partitions.",
        ),
        (
            'report["sources"] = [{**one, "way": "whole", "why": "so"} for one in report["sources"]]',
            3,
            "Not verified: it came out again, but textFile was read whole: so.",
        ),
        (
            'report["refused"] = [{"what": "open a file", "path": "/x", "where": "job.py:3"}]',
            1,
            "Not verified: the run was refused.",
        ),
    ],
)
def test_what_is_not_shown_is_not_verified(
    act: str, code: int, reason: str, job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job.explain(f"{job.output}:2", "--sufficient", act=act) == code
    answer = answer_of(capsys)
    assert answer["kind"] in ("concise", "bound")
    assert (answer["verified"], answer["total"]) == (None, 1)
    assert answer["reasons"][0] == reason


def test_without_runs_the_rows_that_decided_are_saved(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    folder = job.folder / "repro"
    assert job.explain(f"{job.output}:3", "--save", str(folder)) == 0
    answer = answer_of(capsys)
    assert (answer["verified"], (folder / "in.csv").read_text()) == (None, "Wien,3\n")
    assert any("nobody has tried whether they are enough" in reason for reason in answer["reasons"])
    assert not (job.folder / "home" / "replays").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sufficient", "--compare", "app-2"], "leave out --same and --compare"),
        ([], "a command goes with --sufficient, --minimal or --save"),
        (["--sufficient", "--cursor", "0:0:1"], "--cursor shows further rows"),
        (["--sufficient", "--save", "IN"], "is there already"),
    ],
)
def test_flags_that_do_not_go_together_are_said(
    words: list[str], said: str, job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(job.folder) if word == "IN" else word for word in words]
    assert job.explain(f"{job.output}:2", *words) == 1
    assert said in capsys.readouterr().err


def test_without_a_command_nothing_can_be_proved(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--home", str(job.folder / "home"), "--store", str(job.folder / "flows"))
    assert main.main(["explain", APP, f"{job.output}:2", "--sufficient", *flags]) == 1
    assert "say which command runs the job" in capsys.readouterr().err
