"""`lineage replay` over a store and files on a disk. What a job's driver would do, a script does by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import pytest

from lineage_service.cli import main
from lineage_service.replays.reports import replays_of
from tests.support.file_applications import APP, questions_of, splits_of

LINES = ["Graz,1.5", "Linz,2", "Wien,3", "Wien,3"]
#: Copies its input as the agent would, in capitals where it is told to; `ACT` is a line of its own.
JOB = """
import json, os, sys
spec = json.load(open(os.environ["LINEAGE_REPLAY"]))
sandbox, report = spec["sandbox"], {"application": "app-2", "sources": [], "refused": [], "differences": []}
lines = open(INPUT).read().splitlines()
if spec["mode"] == "only":
    lines = [line for source in spec["sources"] for part in source["texts"].values() for line in part]
for source in spec["sources"]:
    for split in source.get("splits", ()):
        places = [at for first, count in split["positions"] for at in range(first, first + count)]
        if spec["mode"] == "without":
            lines = [line for at, line in enumerate(lines) if at not in places]
    for part in (source.get("replaced") or {}).values():
        lines = [part.get(str(at), line) for at, line in enumerate(lines)]
os.makedirs(sandbox + "/out/2-collect")
ACT
with open(sandbox + "/out/2-collect/part-00000", "w") as file:
    file.write("".join(line + "\\n" for line in lines))
report["sinks"] = [{"node": 2, "name": "collect", "call_site": "", "path": None,
                    "to": sandbox + "/out/2-collect", "format": "text"}]
json.dump(report, open(sandbox + "/report.json", "w"))
"""


class Job(NamedTuple):
    folder: Path
    input: Path
    output: Path

    def script(self, act: str = "") -> str:
        path = self.folder / "job.py"
        path.write_text(JOB.replace("INPUT", repr(str(self.input))).replace("ACT", act))
        return str(path)

    def state(self) -> dict[str, tuple[bytes, int]]:
        files = (self.input, self.output)
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    def replay(self, *words: str, act: str = "") -> int:
        flags = ("--home", str(self.folder / "home"), "--store", str(self.folder / "flows"))
        flags += ("--trace-seconds", "1")
        return main.main(["replay", APP, *words, *flags, "--", sys.executable, self.script(act)])


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    made = Job(tmp_path, tmp_path / "in.csv", tmp_path / "out" / "part-00000")
    made.output.parent.mkdir()
    for path in (made.input, made.output):
        path.write_text("".join(f"{line}\n" for line in LINES))
    questions_of(
        tmp_path,
        splits_of(made.input),
        [len(LINES)],
        written=splits_of(made.output),
    )
    return made


def answer_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_an_output_row_comes_out_again_from_its_input_rows(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    before = job.state()
    assert job.replay(f"{job.output}:1", "--json") == 0
    answer = answer_of(capsys)
    assert (answer["verdict"], answer["rows"], answer["of"], answer["rounds"]) == ("reproduced", 1, 4, 1)
    [output] = answer["outputs"]
    assert (output["was"], output["is"], output["line"], output["alike"]) == ("Graz,1.5", "Graz,1.5", 1, 0)
    [used] = answer["used"]
    assert (used["path"], used["rows"]) == (str(job.input), [[0, 1]])
    assert answer["application"] == "app-2"
    assert job.state() == before
    again = replays_of(job.folder / "home", APP)
    [kept] = again.replays
    assert (again.influences, again.sifts) == ((), ())
    assert (kept.replay, kept.verdict, kept.total) == ("1", "reproduced", 4)
    assert replays_of(job.folder / "home", "another").replays == ()


def test_people_read_one_line_for_each_row(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.replay(f"{job.output}:3") == 0
    printed = capsys.readouterr().out
    assert "replayed 1 of 4 rows of in.csv in 1 round" in printed
    assert f"reproduced  {job.output}:3  Wien,3" in printed
    assert "1 other row of the original looks the same, so it may be one of these" in printed


@pytest.mark.parametrize(
    ("act", "verdict", "now"),
    [
        ("lines = ['Graz,1.5000000000000002']", "close", "Graz,1.5000000000000002"),
        ("lines = ['Graz,7']", "changed", "Graz,7"),
        ("lines = []", "no", None),
    ],
)
def test_what_comes_out_otherwise_is_never_called_reproduced(
    job: Job, capsys: pytest.CaptureFixture[str], act: str, verdict: str, now: str | None
) -> None:
    assert job.replay(f"{job.output}:1", "--json", act=act) == (0 if verdict == "close" else 3)
    [output] = answer_of(capsys)["outputs"]
    assert (output["verdict"], output["is"]) == (verdict, now)


def test_all_rows_can_be_left_out_though_an_action_took_only_the_first(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rmtree(tmp_path / "flows")
    counts = [len(LINES)]
    questions_of(tmp_path, splits_of(job.input), counts, written=splits_of(job.output), taken=1)
    assert job.replay("--without", f"{job.input}:2-4", "--json") == 0
    answer = answer_of(capsys)
    assert (answer["of"], answer["diff"][0]["same"]) == (4, 1)


def test_without_rows_the_outputs_differ(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.replay("--without", f"{job.input}:2", "--json") == 0
    answer = answer_of(capsys)
    assert (answer["mode"], answer["verdict"]) == ("without", "changed")
    [diff] = answer["diff"]
    assert (diff["gone"], diff["new"], diff["changed"], diff["same"]) == (["Linz,2"], [], [], 3)


def test_a_replaced_row_changes_its_output(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.replay("--replace", f"{job.input}:2=Linz,9", "--json") == 0
    [diff] = answer_of(capsys)["diff"]
    assert [(row["was"], row["is"]) for row in diff["changed"]] == [("Linz,2", "Linz,9")]


def test_two_runs_of_the_same_rows_are_compared(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.replay(f"{job.output}:1", "--twice", "--json") == 0
    answer = answer_of(capsys)
    assert (answer["rounds"], answer["notes"]) == (2, ["both runs gave the same rows"])
    act = "lines = [f\"Graz,{spec['round'] + 0.5}\"]"
    assert job.replay(f"{job.output}:1", "--twice", "--json", act=act) == 3
    answer = answer_of(capsys)
    assert answer["verdict"] == "changed"
    assert answer["outputs"][0]["why"] == "non-deterministic: the two runs gave 'Graz,1.5' and 'Graz,2.5'"


def test_steps_need_the_lineage_of_the_replay(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    act = "assert spec['step'] is True"
    assert job.replay(f"{job.output}:1", "--step", "--json", act=act) == 3
    answer = answer_of(capsys)
    assert (answer["verdict"], answer["steps"]) == ("reproduced", None)
    [note] = answer["notes"]
    assert note.startswith("no steps: the lineage of the replay was not in the store after 1 s")


def test_a_write_beside_the_sandbox_is_refused_by_name(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    before = job.state()
    assert job.replay(f"{job.output}:1", "--json", act=f"open({str(job.input)!r}, 'w')") == 1
    answer = answer_of(capsys)
    assert answer["verdict"] == "refused"
    assert answer["refused"][0]["path"] == str(job.input)
    assert job.state() == before


def test_a_command_that_fails_reproduces_nothing(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.replay(f"{job.output}:1", "--json", act="sys.exit(5)") == 3
    answer = answer_of(capsys)
    assert (answer["verdict"], answer["exit_code"]) == ("no", 5)
    assert any("ended with exit code 5" in note for note in answer["notes"])


def test_inputs_that_changed_are_refused_by_name(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.input.write_text("Graz,7.5\n" * 4)
    assert job.replay(f"{job.output}:1") == 1
    said = capsys.readouterr().err
    assert str(job.input) in said
    assert "--anyway" in said
    assert not (job.folder / "home").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "say what to replay"),
        (("--only", "nowhere"), "names no rows"),
        (("--only", "IN:9"), "in.csv has no line 9 that was read: 0 (textFile"),
        (("--only", "IN:5"), "read 4 rows there"),
        (("--replace", "IN:9=x"), "in.csv has no line 9 that was read: 0 (textFile"),
        (("OUT:1", "--only", "IN:1"), "say what to replay"),
        (("--replace", "IN:1"), "replaces no row"),
        (("--failure", "3"), "no failure 3"),
        (("IN:1",), "START is no row of an output"),
        (("--only", "IN:1", "--affected"), "--affected goes with --without"),
        (("--without", "IN:1", "--affected"), "--affected cannot be used: "),
        (("--without", "IN:1", "--step"), "--step shows the way of output rows"),
        (("OUT:99",), "has no line 99 that was written: 2 (collect"),
    ],
)
def test_what_cannot_be_replayed_is_one_sentence_and_leaves_nothing(
    job: Job, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    real = [word.replace("IN", str(job.input)).replace("OUT", str(job.output)) for word in words]
    assert job.replay(*real) == 1
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1
    assert not (job.folder / "home" / "replays").exists()


def test_a_row_set_that_names_rows_that_do_not_exist_is_refused(
    job: Job, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = {
        "application": APP,
        "sources": [
            {"node": 0, "name": "textFile", "whole": False, "splits": [{"split": 0, "positions": [[3, 2]]}]}
        ],
        "asked": [],
    }
    path = tmp_path / "rows.json"
    for change, why in (
        ({}, "it names record 4 in partition 0 of source 0 (textFile), which has 4 records"),
        ({"application": "app-9"}, "it is a row set of app-9, not of app-1"),
        ({"sources": [{"node": 7, "name": "textFile", "whole": False}]}, "it names source 7 (textFile)"),
        ({"sources": None}, "is no row set"),
    ):
        path.write_text(json.dumps({**rows, **change}))
        assert job.replay("--only", str(path)) == 1
        assert why in capsys.readouterr().err


def test_a_command_that_is_not_there_is_one_sentence(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--home", str(job.folder / "home"), "--store", str(job.folder / "flows"))
    assert main.main(["replay", APP, f"{job.output}:1", *flags, "--", "nowhere/python3", "job.py"]) == 1
    assert "the command nowhere/python3 is not there" in capsys.readouterr().err
    assert main.main(["replay", APP, f"{job.output}:1", *flags]) == 1
    assert "behind two dashes" in capsys.readouterr().err


def test_sandboxes_are_cleaned(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.replay(f"{job.output}:1") == 0
    capsys.readouterr()
    assert main.main(["replay", "--clean", "1", "--home", str(job.folder / "home")]) == 0
    assert capsys.readouterr().out == "removed: replay 1\n"
    assert main.main(["replay", "--clean", "--home", str(job.folder / "home")]) == 0
    assert capsys.readouterr().out == "removed: nothing\n"
    assert list((job.folder / "home" / "replays").iterdir()) == []
