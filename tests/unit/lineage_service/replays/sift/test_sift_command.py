"""`lineage sift` and `lineage influence` over a store and files on a disk.

What a job's driver would do, a script does by hand. It runs again and again in one guarded process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lineage_service.cli import main
from lineage_service.replays.reports import replays_of
from lineage_service.replays.sift import guarded_runs
from lineage_service.replays.sift.job_runs import JobRuns
from tests.support.file_applications import APP, questions_of, splits_of
from tests.support.processes import still_running

LINES = ["Graz,1.5", "Linz,2", "Wien,3", "Wien,4"]
#: Copies its input as the agent would; `ACT` is a line of its own.
JOB = """
import json, os, sys
from spark_agent.driver.replay import replay
spec = replay.current().spec
sandbox, report = spec["sandbox"], {"application": "app-2", "refused": [], "differences": []}
report["sources"] = [{"node": one["node"], "name": "textFile", "way": "literal"} for one in spec["sources"]]
lines = [line for source in spec["sources"] for part in source.get("texts", {}).values()
         for line in part]
ACT
with open(sandbox + "/out/part-00000", "w") as file:
    file.write("".join(line + "\\n" for line in lines))
report["sinks"] = [{"node": 2, "name": "collect", "call_site": "", "path": None,
                    "to": sandbox + "/out", "format": "text"}]
json.dump(report, open(sandbox + "/report.json", "w"))
END
"""


#: What the agent says where it cannot follow the saved row.
NOT_FOLLOWED = (
    'json.dump({"why": "join has several inputs", "taken": []}, open(sandbox + "/influence.json", "w"))'
)
DIES = "json.dump(report, open(sandbox + '/report.json', 'w')); sys.exit(7)"


class Job(NamedTuple):
    folder: Path
    input: Path
    output: Path

    def run(self, command: str, *words: str, act: str = "", end: str = "") -> int:
        path = self.folder / "job.py"
        path.write_text(JOB.replace("ACT", act).replace("END", end))
        flags = ("--home", str(self.folder / "home"), "--store", str(self.folder / "flows"))
        return main.main([command, APP, *words, *flags, "--", sys.executable, str(path)])


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    made = Job(tmp_path, tmp_path / "in.csv", tmp_path / "out" / "part-00000")
    made.output.parent.mkdir()
    for path in (made.input, made.output):
        path.write_text("".join(f"{line}\n" for line in LINES))
    questions_of(tmp_path, splits_of(made.input), [len(LINES)], written=splits_of(made.output))
    return made


def answer_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_the_rows_of_one_wrong_output_are_enough(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.run("sift", "--fails", "line.startswith('Wien')", "--json") == 0
    sift = answer_of(capsys)
    [row] = sift["rows"]
    assert (row["path"], row["row"], row["line"], row["text"]) == (str(job.input), 2, 3, "Wien,3")
    assert [output["row"] for output in sift["outputs"]] == [2, 3]
    assert (sift["tests"], sift["of"], sift["whole"], sift["unresolved"]) == (2, 1, False, 0)
    assert (sift["sufficient"], sift["necessary"], sift["minimal"], sift["exact"]) == (True,) * 4
    [kept] = replays_of(job.folder / "home", APP).sifts
    assert (kept.test, kept.rows[0].text) == ("a row for which line.startswith('Wien') holds", "Wien,3")


@pytest.mark.thorough
def test_where_the_lineage_does_not_fail_all_rows_are_sifted(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    act = "lines = lines if len(lines) >= 3 else []"
    assert job.run("sift", "--fails", "line.startswith('Wien')", "--json", act=act) == 0
    sift = answer_of(capsys)
    assert (sift["total"], sift["of"], sift["whole"], sift["minimal"]) == (3, 4, True, True)
    assert any(row["text"].startswith("Wien") for row in sift["rows"])


#: Reads all rows where it should read two of them.
READS_ALL = f"""
if len(lines) == 2:
    report["sources"][0]["way"], lines = "whole", {LINES!r}
lines = lines if len(lines) > 2 else []
"""


@pytest.mark.thorough
def test_a_later_run_that_had_other_rows_does_not_count(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.run("sift", "--fails", "line == 'Wien,3'", "--json", act=READS_ALL) == 0
    sift = answer_of(capsys)
    assert (sift["total"], sift["whole"], sift["exact"]) == (3, True, False)
    assert "Wien,3" in [row["text"] for row in sift["rows"]]
    assert sift["unresolved"] > 0
    assert any("counted as passed: textFile was read whole" in note for note in sift["notes"])


INFERS = 'report["inferred"] = ["json (job.py:3)"]'


@pytest.mark.thorough
def test_columns_that_were_inferred_of_all_rows_are_said(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, end in (
        (("sift", "--fails", "line == 'Linz,2'"), ""),
        (("influence", f"{job.output}:2"), NOT_FOLLOWED),
    ):
        assert job.run(*words, "--json", act=INFERS, end=end) == 0
        answer = answer_of(capsys)
        assert not answer["exact"]
        assert any("the columns of json (job.py:3) were inferred from all rows" in n for n in answer["notes"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("act", "code", "says"),
    [
        ("", 1, ""),
        ("lines = []", 1, "the job does not fail again on its own input"),
        (None, 130, "interrupted: no process of the job is left"),
    ],
)
def test_files_that_changed_meanwhile_are_said_and_no_result_is_kept(
    job: Job,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    act: str | None,
    code: int,
    says: str,
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(guarded_runs, "changes", lambda *_: [f"{job.input} has another size"])
    if act is None:
        monkeypatch.setattr(JobRuns, "run", interrupted)
    assert job.run("sift", "--fails", "line == 'Linz,2'", act=act or "") == code
    said = capsys.readouterr().err
    assert f"files of the original changed meanwhile: {job.input} has another size" in said
    assert says in said
    assert said.count("\n") == 1
    assert replays_of(job.folder / "home", APP).sifts == ()


@pytest.mark.thorough
def test_an_influence_of_files_that_changed_meanwhile_is_not_kept(
    job: Job, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded_runs, "changes", lambda *_: ["it is gone"])
    assert job.run("influence", f"{job.output}:2", end=NOT_FOLLOWED) == 1
    assert "files of the original changed meanwhile: it is gone" in capsys.readouterr().err
    assert replays_of(job.folder / "home", APP).influences == ()


UNSEEN = 'report["sources"] = []'


@pytest.mark.thorough
def test_what_the_run_did_not_read_as_the_original_is_not_sifted(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job.run("sift", "--fails", "line == 'Linz,2'", act=UNSEEN) == 1
    said = capsys.readouterr().err
    assert "nothing can be sifted: textFile was not restricted: the run did not read it as" in said
    assert job.run("influence", f"{job.output}:2", act=UNSEEN) == 1
    assert "nothing can be said: textFile was not read as in the original" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_crash_without_the_rows_says_nothing_of_them(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    act = f"if not lines: {DIES}"
    assert job.run("sift", "--fails", "line == 'Linz,2'", "--json", act=act) == 0
    sift = answer_of(capsys)
    assert (sift["total"], sift["unresolved"], sift["necessary"]) == (1, 1, None)
    assert job.run("sift", "--fails", "line == 'Linz,2'", act=act) == 0
    assert "necessary: whether the job fails without them is not known" in capsys.readouterr().out
    assert job.run("influence", f"{job.output}:2", "--json", act=act, end=NOT_FOLLOWED) == 0
    influence = answer_of(capsys)
    assert (influence["exact"], influence["inputs"][0]["failed"]) == (False, True)
    assert job.run("influence", f"{job.output}:2", act=act, end=NOT_FOLLOWED) == 0
    captured = capsys.readouterr()
    assert f"failed  {job.input}:2  Linz,2" in captured.out
    assert f"without {job.input}:2 the command ended with exit code 7" in captured.out + captured.err


def test_a_folder_for_the_rows_is_looked_at_first(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    words = "--fails", "line == 'Linz,2'", "--extract", str(job.folder)
    assert job.run("sift", *words) == 1
    assert "is there already: name a folder that is new, or empty" in capsys.readouterr().err
    assert not list((job.folder / "home").glob("replays/*"))


@pytest.mark.thorough
def test_where_the_rows_cannot_be_written_the_answer_says_so(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    (job.folder / "file").write_text("")
    below = job.folder / "file" / "fixture"
    assert job.run("sift", "--fails", "line == 'Linz,2'", "--extract", str(below), "--json") == 0
    sift = answer_of(capsys)
    assert (sift["total"], sift["saved"]) == (1, None)
    assert any(f"{below} was not written:" in note for note in sift["notes"])


@pytest.mark.thorough
def test_people_read_the_rows_and_what_they_are(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.run("sift", "--wrong", f"{job.output}:4", "--extract", str(job.folder / "fixture")) == 0
    printed = capsys.readouterr().out
    assert "1 of 1 row is enough to fail: 2 tests" in printed
    assert f"{job.input}:4  Wien,4" in printed
    assert "the test: a row of which field 2 is above 3, the largest of the other rows" in printed
    assert "necessary: on the other rows that were looked at the job does not fail" in printed
    [extracted] = [path for path in (job.folder / "fixture").rglob("*") if path.is_file()]
    assert extracted.read_text() == "Wien,4\n"


@pytest.mark.parametrize(
    ("words", "act", "code", "why"),
    [
        (("--fails", "line == 'x'"), "", 3, "the original did not write a row for which line == 'x' holds"),
        (("--fails", "line +"), "", 1, "--fails line +: SyntaxError"),
        (("--test", "nowhere:check"), "", 1, "--test nowhere:check: ModuleNotFoundError"),
        (
            ("--fails", "int(line)"),
            "",
            1,
            "no output row fails, 4 cannot be judged: --fails raised ValueError",
        ),
        (("--fails", "line == 'Linz,2'"), "lines = []", 3, "the job does not fail again on its own input"),
        (("--fails", "line == 'Linz,2'"), DIES, 3, "the command ended with exit code 7"),
        (("--fails", "line == 'Linz,2'"), "os._exit(7)", 1, "ended without a Spark application"),
        (("--fails", "line == 'Linz,2'"), "open(sys.argv[0], 'a')", 1, "refused: open for writing"),
        (("--wrong", "OUTPUT:2"), "", 1, "looks like the other rows of its output"),
        (("--crash",), "", 1, "there is no such failure"),
        (("--crash", "OUTPUT:1"), "", 1, "--crash takes no START"),
        (("--fails", "1", "--failure", "1"), "", 1, "--failure is for --crash"),
    ],
)
def test_what_cannot_be_sifted_is_one_sentence(
    job: Job, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], act: str, code: int, why: str
) -> None:
    words = tuple(word.replace("OUTPUT", str(job.output)) for word in words)
    assert job.run("sift", *words, act=act) == code
    said = capsys.readouterr().err
    assert why in said, said
    assert said.count("\n") == 1


def test_the_output_without_each_row_comes_of_folds_or_of_runs(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    folded = 'json.dump({"node": 0, "without": ["Linz,1.5"]}, open(sandbox + "/influence.json", "w"))'
    for end, way, without, change in ((folded, "folds", "Linz,1.5", 0.5), (NOT_FOLLOWED, "runs", None, None)):
        assert job.run("influence", f"{job.output}:2", "--json", end=end) == 0
        influence = answer_of(capsys)
        [row] = influence["inputs"]
        assert (influence["way"], influence["total"], influence["exact"]) == (way, 1, True)
        assert (row["text"], row["without"], row["change"]) == ("Linz,2", without, change)
    assert (influence["why"], influence["whole"]) == ("join has several inputs", False)
    again = replays_of(job.folder / "home", APP)
    assert [of.way for of in again.influences] == ["runs", "folds"]  # the newest first
    assert (again.replays, again.influences[0].inputs[0].text) == ((), "Linz,2")
    assert replays_of(job.folder / "home", "another").influences == ()
    assert job.run("influence", f"{job.output}:2", end=NOT_FOLLOWED) == 0
    assert f"gone  {job.input}:2  Linz,2" in capsys.readouterr().out
    assert job.run("influence", f"{job.output}:2", act="lines = []") == 3
    assert "the row does not come out again, not even of all input rows" in capsys.readouterr().err


#: Reads its input as the agent would, without the rows that the spec names.
ALL_BUT = """
left_out = {source["node"]: source["splits"] for source in spec["sources"] if spec["mode"] == "without"}
rows = {first for split in left_out.get(0, ()) for first, _ in split["positions"]}
if spec["mode"] != "only":
    texts = open(INPUT).read().splitlines()
    lines = [text for number, text in enumerate(texts) if number not in rows]
"""
TAKES = 'json.dump({"why": "...", "taken": ["count"]}, open(sandbox + "/influence.json", "w"))'


@pytest.mark.thorough
def test_where_the_program_took_values_the_job_runs_on_all_rows_but_one(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    script = ALL_BUT.replace("INPUT", repr(str(job.input)))
    assert job.run("influence", f"{job.output}:2", "--json", act=script, end=TAKES) == 0
    influence = answer_of(capsys)
    assert (influence["way"], influence["whole"], influence["exact"]) == ("runs", True, True)
    assert influence["why"] == "the program took values from count, which its functions may use"
    assert influence["tests"] == 3
    assert [(row["text"], row["without"]) for row in influence["inputs"]] == [("Linz,2", None)]


def test_what_the_agent_does_not_say_is_not_taken_for_none(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    act = ALL_BUT.replace("INPUT", repr(str(job.input)))
    assert job.run("influence", f"{job.output}:2", "--json", act=act) == 0
    influence = answer_of(capsys)
    assert (influence["whole"], influence["tests"]) == (True, 3)
    assert influence["why"] == "the agent did not say what values the program took"


@pytest.mark.thorough
def test_what_comes_out_of_all_rows_only_is_run_on_all_rows(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    act = ALL_BUT.replace("INPUT", repr(str(job.input))) + "lines = lines if len(lines) >= 3 else []"
    assert job.run("influence", f"{job.output}:2", "--json", act=act) == 0
    influence = answer_of(capsys)
    assert (influence["way"], influence["whole"], influence["exact"]) == ("runs", True, True)
    assert influence["why"] == "the row does not come out again from its input rows alone"


WAITS = "open(sandbox + '/pid', 'w').write(str(os.getpid())); import time; time.sleep(600)"


def pids_in(home: Path) -> list[int]:
    """Of jobs that have begun."""
    texts = [path.read_text() for path in home.glob("replays/*/runs/*/pid")]
    return [int(text) for text in texts if text]


def test_ctrl_c_leaves_no_process(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    pids: list[int] = []

    def interrupt() -> None:
        while not pids:
            time.sleep(0.01)
            pids.extend(pids_in(job.folder / "home"))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    assert job.run("sift", "--fails", "line == 'Linz,2'", act=WAITS) == 130
    thread.join()
    assert "interrupted: no process of the job is left; its sandbox is" in capsys.readouterr().err
    assert not still_running(pids)


@pytest.mark.thorough
def test_a_test_that_does_not_end_in_time_is_ended(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.run("sift", "--fails", "line == 'Linz,2'", "--seconds", "1", act=WAITS) == 1
    assert "no test failed within --seconds" in capsys.readouterr().err
    assert not still_running(pids_in(job.folder / "home"))
