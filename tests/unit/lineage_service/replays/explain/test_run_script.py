"""`run.sh` runs the command on the saved files, wherever its paths come from, and marks the row."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lineage_service.replays.explain.run_script import SavedJob, run_script

pytestmark = pytest.mark.unit

PROGRAM = """
import pathlib, sys
words, out = sys.argv[1:]
rows = pathlib.Path(words).read_text().split() + pathlib.Path("../more data/rows.txt").read_text().split()
folder = pathlib.Path(out)
folder.mkdir()
(folder / "part-00000").write_text("".join(f"{row}!\\n" for row in rows))
"""


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """The folder of the original: a program, its inputs, and an output."""
    for name, text in {"jobs/words.txt": "all of it", "more data/rows.txt": "more"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "jobs" / "job.py").write_text(PROGRAM)
    saved = tmp_path / "saved copy"
    saved.mkdir()
    (saved / "words.txt").write_text("one")
    (saved / "rows.txt").write_text("two")
    return tmp_path


def run(world: Path, words: list[str], asked: str) -> subprocess.CompletedProcess[str]:
    jobs, saved = world / "jobs", world / "saved copy"
    (saved / "asked.txt").write_text(f"{asked}\n")
    job = SavedJob(
        words=[sys.executable, *words],
        where=jobs,
        inputs={f"{jobs}/words.txt": "words.txt", f"{world}/more data/rows.txt": "rows.txt"},
        outputs=[f"{jobs}/out"],
        asked={f"{jobs}/out": "asked.txt"},
    )
    script = saved / "run.sh"
    script.write_text(run_script(job))
    return subprocess.run(["sh", str(script)], cwd="/", capture_output=True, text=True, check=False)


@pytest.mark.parametrize("form", ["{}", "{jobs}/{}", "file:{jobs}/{}"])
def test_words_and_relative_paths_lead_to_the_saved_files(form: str, world: Path) -> None:
    words = [form.format(name, jobs=world / "jobs").replace("file:", "") for name in ("words.txt", "out")]
    for _ in range(2):  # it may be run again
        ended = run(world, ["job.py", *words], "one!")
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.splitlines() == ["=> one!", "   two!"]
    assert not (world / "jobs" / "out").exists()
    assert (world / "jobs" / "words.txt").read_text() == "all of it"


def test_a_row_that_does_not_come_out_is_exit_code_3(world: Path) -> None:
    ended = run(world, ["job.py", "words.txt", "out"], "none of these")
    assert (ended.returncode, ended.stderr) == (3, "the row did not come out again\n")


def test_lineage_is_off_in_the_copy_and_options_with_paths_are_changed(world: Path) -> None:
    jobs = world / "jobs"
    job = SavedJob(
        words=[
            "spark-submit",
            "--conf",
            "spark.lineage.enabled=true",
            "job.py",
            f"--in={jobs}/words.txt",
            "x y",
        ],
        where=jobs,
        inputs={f"{jobs}/words.txt": "words.txt"},
        outputs=[],
        asked={},
    )
    [command] = [line for line in run_script(job).splitlines() if line.startswith("spark-submit")]
    assert command == (
        f"spark-submit --conf spark.lineage.enabled=false {jobs}/job.py --in="
        + "\"$here\"/job/words.txt 'x y'"
    )
