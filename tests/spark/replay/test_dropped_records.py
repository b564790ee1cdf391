"""A replay that drops records on which functions raise: all are in its report, and the rest is as ever."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark import failing_program
from tests.support.spark.failing_pipelines import BAD, CASES, KEYS, ROWS, STEPS, steps_of
from tests.support.spark.replays import Replayed, replay, run_program

pytestmark = pytest.mark.thorough

PROGRAM = Path(failing_program.__file__)
CONF = {"spark.lineage.kafka.bootstrap.servers": "127.0.0.1:1", "spark.lineage.delivery.timeout": "0"}
STOCK = {"spark.lineage.enabled": "false"}
#: Functions that are called with whole partitions or by the program itself are not guarded.
WHOLE = (
    "partition by row", "partition by map", "finally", "partition at once", "caught", "text", "pickle",
    "foreach", "key of a sort", "largest", "comparison in a sort",
)  # fmt: skip
#: What these drop is more than the planted record: a group.
GROUPS = ("first of a group", "reduceByKey", "behind a group", "behind a join")
RECORDS = [name for name in CASES if name not in (*WHOLE, *GROUPS)]
CHAINS = [f"chain {seed}" for seed in range(40) if steps_of(seed)[0][steps_of(seed)[1]] != "mapPartitions"]


@dataclass(frozen=True)
class Ran:
    replayed: Replayed
    results: Mapping[str, Any]
    expected: Mapping[str, Any]  # of unmodified PySpark, without the planted row


@pytest.fixture(scope="module")
def ran(jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder, edited = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("edited")
    lines = [f"{number % KEYS}|{number}\n" for number in range(ROWS)]
    (folder / "in.txt").write_text("".join(lines))
    (edited / "in.txt").write_text("".join(line for row, line in enumerate(lines) if row != BAD))
    names = [*RECORDS, *GROUPS, *CHAINS]
    sandbox = tmp_path_factory.mktemp("home") / "r"
    replayed = replay([str(PROGRAM), str(folder), *names], sandbox, "all", [], CONF, skip_failing=True)
    assert replayed.process.returncode == 0, replayed.process.stderr
    stock = run_program([str(PROGRAM), str(edited), *names], STOCK)
    assert stock.returncode == 0, stock.stderr
    return Ran(replayed, json.loads(replayed.process.stdout), json.loads(stock.stdout))


@pytest.mark.parametrize("name", [*RECORDS, *CHAINS])
def test_the_result_is_that_without_the_planted_row(name: str, ran: Ran) -> None:
    assert ran.results[name] == ran.expected[name]


def test_each_planted_record_is_reported(ran: Ran) -> None:
    skipped = ran.replayed.report["skipped"]
    assert ran.replayed.report["skipped_total"] == len(skipped) >= len([*RECORDS, *CHAINS])
    assert all(str(BAD) in json.dumps(entry["record"]["value"]) or entry["message"] for entry in skipped)


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_whose_function_raises_is_dropped(name: str, ran: Ran) -> None:
    assert not str(ran.results[name]).startswith("failed")


def test_every_kind_of_step_is_among_the_chains() -> None:
    assert {name for chain in CHAINS for name in steps_of(int(chain.split()[1]))[0]} == set(STEPS)
