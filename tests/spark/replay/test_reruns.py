"""A program that runs several times in one process, each time on other rows, as `lineage sift` has it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spark_agent.contract.replay_notes import read_notes
from tests.support.spark.replays import (
    run_program,
    site_of,
    text_source,
    texts_in,
    write_silent_spec,
)

PROGRAM = """import os
import sys
from operator import add

from pyspark import SparkContext

import helper

helper.calls += 1
assert helper.calls == 1, "modules of the user's are new"
assert "LEFT_BEHIND" not in os.environ
os.environ["LEFT_BEHIND"] = "1"
folder = sys.argv.pop()
os.chdir("/")
context = SparkContext(appName="Sums")
lines = context.textFile(f"{folder}/in.txt", 2)
sums = lines.map(lambda line: (line[0], int(line[1:]))).reduceByKey(add).sortByKey()
sums.map(lambda pair: f"{pair[0]} {pair[1]}").saveAsTextFile(f"{folder}/out")
print("first", sums.first(), sums.take(1), sums.count())
if sums.filter(lambda pair: pair[0] == "x").count():
    open(f"{folder}/in.txt", "w")
"""
HELPER = "calls = 0\n"
LINES = ["a1", "b2", "a3", "b-5", "a7", "cc", "b11", "x0"]
RUNS = [{0, 2, 3}, {1, 5}, set(), {6, 4, 3}, {7}, {0, 2, 3}, set()]
#: Those that have few partitions.
COMPACT = (6, 7)


@dataclass(frozen=True)
class Ran:
    folder: Path
    sandbox: Path
    process: subprocess.CompletedProcess[str]

    def ended(self, number: int) -> dict[str, Any]:
        ended: dict[str, Any] = json.loads((self.sandbox / "runs" / str(number) / "ended.json").read_text())
        return ended

    def saved(self, number: int) -> Path:
        report = json.loads((self.sandbox / "runs" / str(number) / "report.json").read_text())
        (to,) = [sink["to"] for sink in report["sinks"] if sink["path"] == f"{self.folder}/out"]
        return Path(to)

    def texts(self, number: int) -> list[str]:
        return sorted(texts_in(self.saved(number)).elements())


@pytest.fixture(scope="module")
def ran(jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder, sandbox = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("sandbox")
    program = folder / "sums.py"
    program.write_text(PROGRAM)
    (folder / "helper.py").write_text(HELPER)
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in LINES))
    site = site_of(program, 'in.txt", 2')
    for number, rows in enumerate(RUNS, 1):
        run = sandbox / "runs" / str(number)
        (run / "out").mkdir(parents=True)
        is_literal = number != 4
        source = text_source(0, site, folder / "in.txt", 2, rows, is_literal=is_literal)
        write_silent_spec(run, [source], is_compact=number in COMPACT)
    (sandbox / "runs" / "over").touch()
    write_silent_spec(sandbox, [])
    process = run_program(
        ["-m", "spark_agent.driver.replay.rerun", str(program), str(folder)],
        {"spark.master": "local[2]"},
        {"LINEAGE_REPLAY": str(sandbox / "spec.json")},
    )
    return Ran(folder, sandbox, process)


def test_each_run_gives_what_its_rows_give(ran: Ran) -> None:
    assert ran.process.returncode == 0, ran.process.stderr[-4000:]
    assert [ran.ended(number)["exit_code"] for number in (1, 4)] == [0, 0], ran.ended(1)["printed"][-3000:]
    assert ran.texts(1) == ["a 4", "b -5"]
    assert ran.texts(4) == ["a 7", "b 6"]
    assert "first ('a', 4) [('a', 4)] 2\n" in ran.ended(1)["printed"]


def test_a_run_that_fails_ends_as_python_does_and_the_next_one_goes_on(ran: Ran) -> None:
    assert ran.ended(2)["exit_code"] == 1
    assert "ValueError: invalid literal for int() with base 10: 'c'" in ran.ended(2)["printed"]
    assert 'sums.py", line 17' in ran.ended(2)["printed"]
    assert "ValueError: RDD is empty" in ran.ended(3)["printed"]  # first() of nothing
    assert ran.texts(3) == []


def test_a_run_in_few_partitions_gives_the_same(ran: Ran) -> None:
    assert ran.ended(6)["exit_code"] == 0, ran.ended(6)["printed"][-3000:]
    assert ran.texts(6) == ran.texts(1)
    assert ran.ended(6)["printed"] == ran.ended(1)["printed"]
    assert "ValueError: RDD is empty" in ran.ended(7)["printed"]
    before, now = (len(list(ran.saved(number).glob("part-*"))) for number in (1, 6))
    assert now == 1 < before
    assert ran.ended(6)["looks"] == ""


def test_the_guard_holds_in_each_run(ran: Ran) -> None:
    assert ran.ended(5)["exit_code"] == 1
    (refused,) = read_notes(str(ran.sandbox))["refused"]
    assert (refused["path"], refused["where"]) == (str(ran.folder / "in.txt"), "sums.py:21")
    assert (ran.folder / "in.txt").read_text() == "".join(f"{line}\n" for line in LINES)
    assert not (ran.folder / "out").exists()


def test_nothing_is_captured(ran: Ran) -> None:
    assert "lineage:" not in ran.process.stderr
    assert read_notes(str(ran.sandbox))["connections"] == []
