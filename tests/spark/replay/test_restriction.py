"""A program that runs again on some rows of its inputs gives what these rows give, and writes elsewhere."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark import naive_interpreter as naive
from tests.support.spark import replayed_program
from tests.support.spark.application import Application, part_rows, read_application
from tests.support.spark.naive_interpreter import Data
from tests.support.spark.pipelines import AWKWARD, pair, show, write
from tests.support.spark.replayed_program import ALL, PARTITIONS
from tests.support.spark.replays import Replayed, replay, site_of, text_source

pytestmark = pytest.mark.thorough

PROGRAM = Path(replayed_program.__file__)
NAMES = ("map", "reduceByKey", "join", "union", "groupByKey", "coalesce")
ROWS = {"left": {0, 3, 4, 11, 12, 20}, "right": {1, 2, 5}}


@dataclass(frozen=True)
class Ran:
    folder: Path
    replayed: Replayed
    application: Application
    before: dict[str, tuple[int, int]]


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def ran(kafka: Any, jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder, home = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("home")
    write(folder / "left.txt", [f"{AWKWARD[i % 7]}|{i % 11}" for i in range(21)])
    write(folder / "right.txt", [f"{AWKWARD[i % 10]}|{i}" for i in range(3, 12)])
    (folder / "out-0").mkdir()
    write(folder / "out-0" / "part-00000", ["of the original"])
    before = files_of(folder)
    sources = [
        text_source(
            node,
            site_of(PROGRAM, f'"{name}.txt"'),
            folder / f"{name}.txt",
            PARTITIONS[name],
            ROWS[name],
            is_literal=is_literal,
        )
        for node, (name, is_literal) in enumerate([("left", True), ("right", False)])
    ]
    prefix = uuid.uuid4().hex[:10]
    topics = {"node": f"{prefix}-node", "flow": f"{prefix}-flow"}
    conf = {
        "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
        "spark.lineage.delivery.timeout": "20",
        "spark.lineage.topic.node": topics["node"],
        "spark.lineage.topic.flow": topics["flow"],
    }
    replayed = replay([str(PROGRAM), str(folder), *NAMES], home / "r1", "only", sources, conf)
    assert replayed.process.returncode == 0, replayed.process.stderr
    application = read_application(kafka.bootstrap_servers, topics, home / "store")
    return Ran(folder, replayed, application, before)


def restricted(folder: Path, rows: dict[str, set[int]]) -> list[Data]:
    """The inputs of the pipelines, of these rows alone."""
    return [
        naive.map_(
            [
                (line, sources)
                for line, sources in naive.text_file(folder / f"{name}.txt")
                if line and any(row in rows[name] for _, row in sources)
            ],
            pair,
        )
        for name in ("left", "right")
    ]


@pytest.mark.parametrize("name", NAMES)
def test_it_gives_what_the_rows_alone_give(name: str, ran: Ran) -> None:
    expected = Counter(show(value) for value, _ in ALL[name][1](*restricted(ran.folder, ROWS)))
    assert ran.replayed.texts(output_of(ran, name)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_of_it_shows_the_original_rows(name: str, ran: Ran) -> None:
    folder = ran.replayed.folder(output_of(ran, name))
    traced = Counter((text, ran.application.sources_of(part, row)) for part, row, text in part_rows(folder))
    expected = ALL[name][1](*restricted(ran.folder, ROWS))
    assert traced == Counter((show(value), sources) for value, sources in expected)


def output_of(ran: Ran, name: str) -> Path:
    return ran.folder / f"out-{list(ALL).index(name)}"


def test_no_original_is_touched(ran: Ran) -> None:
    assert files_of(ran.folder) == ran.before
    assert ran.replayed.folder(ran.folder / "out-0").parent == ran.replayed.sandbox / "out"


def test_it_says_how_each_source_was_read(ran: Ran) -> None:
    report = ran.replayed.report
    assert ran.replayed.ways() == {0: "literal", 1: "filter"}
    assert report["differences"] == report["refused"] == []
    assert report["application"] == ran.application.application_id
    assert {sink["name"] for sink in report["sinks"]} == {"saveAsTextFile"}


def test_its_application_says_what_it_is_a_replay_of(ran: Ran) -> None:
    started = ran.application.events[0]
    rows = sum(map(len, ROWS.values()))
    assert started["replay"] == {
        "of": "local-1795263429425",
        "mode": "only",
        "rows": rows,
        "strategy": "rows",
        "round": 0,
    }
