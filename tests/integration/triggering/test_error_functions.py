"""Errors that a user's function gives: what it is given, and whatever it may do."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lineage_service.cli import main
from lineage_service.errors import InvalidQueryError
from lineage_service.settings import Settings
from lineage_service.triggering import decide
from lineage_service.triggering.changes.changed_elements import Elements
from lineage_service.triggering.changes.error_function import (
    ErrorFunction,
    ErrorFunctionError,
    check_function,
)
from lineage_service.triggering.learning.terms import Terms
from lineage_service.triggering.waves.wave_history import job_key
from lineage_service.triggering.weighing.element_plans import planned_outputs
from lineage_service.triggering.weighing.kept_elements import KeptPairs
from tests.support.changing_job import JOB, ChangingJob, changing_job

#: Equation 3 of the paper in the user's words, and in plain Python.
RELATIVE = """
def relative(old, new):
    print("this is no answer")
    pairs = list(zip(old["mean"].to_pylist(), new["mean"].to_pylist(), strict=True))
    changed = sum(then != now for then, now in pairs)
    distance = sum(abs(then - now) for then, now in pairs)
    return changed * distance / (len(pairs) * sum(max(abs(then), abs(now)) for then, now in pairs))
"""
HOSTILE = """
import os, subprocess, sys, time
class Mean(BaseException):
    def __str__(self):
        raise ValueError
def exits(old, new): sys.exit(0)
def dies(old, new): os._exit(99)
def base(old, new): raise BaseException("not an Exception")
def mean(old, new): raise Mean
def divides(old, new): return 1 / 0
def nan(old, new): return float("nan")
def negative(old, new): return -1
def infinite(old, new): return float("inf")
def nothing(old, new): pass
def text(old, new): return "0.1"
def flag(old, new): return True
def reads(old, new): return len(input())
def no_argument(): return 0
def loops(old, new):
    while True:
        pass
def leaves(old, new):
    subprocess.Popen(["sleep", "600"])
    while True:
        time.sleep(1)
number = 3
"""
SEEN = """
import pyarrow as pa
def seen(old, new):
    assert isinstance(old, pa.Table)
    assert old.column_names == ["a", "b"]
    assert old["a"].to_pylist() == [1.0, 2.0, None], old["a"]
    assert new["a"].to_pylist()[1:] == [5.0, 7.0], new["a"]
    assert new["a"][0].as_py() is None
    number = old["b"][1].as_py()
    assert number != number  # there, and no number
    try:
        old["a"].to_numpy()[:] = 9
    except ValueError:
        pass
    return pa.scalar(0.25)
"""


def of(keys: list[int], values: list[list[float]]) -> Elements:
    return Elements(np.array(keys, np.uint64), np.array(values, np.float64))


OLD, NEW = of([1, 2], [[1, 4], [2, np.nan]]), of([2, 3], [[5, 6], [7, 8]])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "errors_of_mine.py"
    path.write_text(RELATIVE + HOSTILE + SEEN)
    return path


def test_rows_of_one_key_stand_beside_each_other(file: Path) -> None:
    with ErrorFunction(f"{file}:seen", 60) as function:
        assert [function.error(OLD, NEW, ["a", "b"]) for _ in range(2)] == [0.25, 0.25]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("exits", "it raised SystemExit: 0 (errors_of_mine.py:"),
        ("dies", "its process has ended with 99"),
        pytest.param(
            "base",
            "it raised BaseException: not an Exception (errors_of_mine.py:",
            marks=pytest.mark.thorough,
        ),
        pytest.param("mean", "it raised Mean (errors_of_mine.py:", marks=pytest.mark.thorough),
        pytest.param(
            "divides",
            "it raised ZeroDivisionError: division by zero (errors_of_mine.py:",
            marks=pytest.mark.thorough,
        ),
        ("nan", "it gave NaN"),
        pytest.param("negative", "it gave -1: an error is 0 or more", marks=pytest.mark.thorough),
        pytest.param("infinite", "it gave inf", marks=pytest.mark.thorough),
        pytest.param("nothing", "it gave NoneType, and no number", marks=pytest.mark.thorough),
        pytest.param("text", "it gave str, and no number", marks=pytest.mark.thorough),
        pytest.param("flag", "it gave bool, and no number", marks=pytest.mark.thorough),
        pytest.param("reads", "it raised EOFError", marks=pytest.mark.thorough),
        pytest.param(
            "no_argument",
            "it raised TypeError: no_argument() takes 0 positional arguments",
            marks=pytest.mark.thorough,
        ),
        ("loops", "it takes longer than 1 s"),
        pytest.param("leaves", "it takes longer than 1 s", marks=pytest.mark.thorough),
    ],
)
def test_whatever_a_function_does_is_one_sentence(
    name: str, says: str, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seconds = 1 if "longer" in says else 60
    began = time.monotonic()
    with ErrorFunction(f"{file}:{name}", seconds) as function, pytest.raises(ErrorFunctionError) as error:
        function.error(OLD, NEW, ["a", "b"])
    assert str(error.value).startswith(f"--error {file}:{name}: {says}"), str(error.value)
    assert "\n" not in str(error.value)
    assert time.monotonic() - began < 30
    assert "Traceback" not in capfd.readouterr().err
    assert function._process.poll() is not None
    assert running_in(function._process.pid) == []


def running_in(group: int) -> list[str]:
    """The processes of a group that have not ended."""
    states = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = path.read_text().rpartition(")")
            state, _, of, *_ = rest.split()
            if int(of) == group and state != "Z":
                states.append(name)
    return states


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nowhere_to_be_found:f", "there is no module 'nowhere_to_be_found' here"),
        ("json.nowhere:f", "there is no module 'json.nowhere' here"),
        ("math:pi", "pi of math is float, and no function"),
        ("math:median", "math has no function 'median'"),
        ("nowhere.py:f", "there is no file nowhere.py"),
        ("{folder}/broken.py:f", "cannot be imported: SyntaxError"),
        ("{folder}/exits.py:f", "cannot be imported: SystemExit: 3 (exits.py:1)"),
        ("{folder}/needs.py:f", "cannot be imported: ModuleNotFoundError: No module named 'absent_one'"),
    ],
)
def test_what_is_no_function_is_said_at_once(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "needs.py").write_text("import absent_one\n")
    with pytest.raises(InvalidQueryError) as error:
        check_function(text.format(folder=tmp_path), 60)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_the_function_of_the_paper_labels_as_its_name_does(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the same job the same errors, whoever computes them. Another function trains anew."""
    errors = []
    for number, error in enumerate(("relative:mean", f"{file}:relative")):
        job = wandering(tmp_path / str(number), monkeypatch)
        for _ in range(5):
            ask(job, error)
        pairs = KeptPairs(job.store.location).of(job_key(JOB), {})
        assert pairs is not None
        errors.append(pairs.errors)
    assert len(errors[0]) == 3
    assert np.allclose(errors[0], errors[1], rtol=1e-12)
    assert "0 of 8 waves are done (training has begun anew" in ask(job, f"{file}:divides").why
    failed = ask(job, f"{file}:divides")
    assert (failed.run, failed.reason) == (True, "training")  # nothing to compare with yet
    failed = ask(job, f"{file}:divides")
    assert (failed.run, failed.reason) == (True, "unknown_change"), failed.why
    assert "it raised ZeroDivisionError: division by zero (errors_of_mine.py:" in failed.why
    assert capsys.readouterr().out == ""
    labelled = KeptPairs(job.store.location).of(job_key(JOB), {})
    assert labelled is not None
    assert np.array_equal(labelled.errors, errors[1])


def test_a_function_is_not_given_columns_that_are_redacted(tmp_path: Path) -> None:
    rows = pa.table({"zone": ["a", "b"], "index": [1.0, 2.0], "salary": [3.0, 4.0]})
    terms = Terms(bound=5, error="mine.py:f", redacted=("Salary",))
    [plan] = planned_outputs({"/out": rows}, terms)
    assert (plan.keys, plan.values) == (("zone",), ("index",))
    for table, says in (
        (rows.drop_columns(["index"]), "has 0 columns of numbers"),
        (pa.table({"index": [1.0, 1.0]}), "needs --key"),
        (pa.table({"zone": ["a"], **{f"n{at}": [0.0] for at in range(9)}}), "has 9 columns of numbers"),
    ):
        with pytest.raises(InvalidQueryError, match=says):
            planned_outputs({"/out": table}, terms)


def test_the_command_and_python_name_what_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = wandering(tmp_path / "job", monkeypatch)
    monkeypatch.setenv("LINEAGE_STORE", str(job.folder / "flows"))
    words = ["trigger", JOB, "--bound", "0.1", "--error"]
    assert main.main([*words, "nowhere_to_be_found:f"]) == 2
    assert "there is no module 'nowhere_to_be_found' here" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def worst(old, new):\n    return 0.5\n")
    for text in ("mine:worst", "mine.py:worst"):
        assert main.main([*words, text]) == 0
    settings = Settings(store=str(job.folder / "flows"))
    answer = decide(JOB, bound=0.1, error="nowhere_to_be_found:f", settings=settings)
    assert (answer.run, answer.reason) == (True, "arguments")


def wandering(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ChangingJob:
    folder.mkdir()
    return changing_job(folder, monkeypatch)


def ask(job: ChangingJob, error: str, **terms: Any) -> Any:
    chance = np.random.default_rng(job.asked)
    job.readings = job.readings + chance.uniform(-1, 1, len(job.readings))
    job.write_input()
    answer = job.ask(error=error, training=8, confidence=0.55, horizon=6, **terms)
    job.run(answer.wave)
    return answer
