"""Laws of replays in a session, of many pipelines: what comes out, and which records `rdd()` gives.

The other sides are the naive interpreter over the rows that a trace names, and the captured values.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spark_agent import contract, trace
from tests.support.spark import naive_interpreter as naive
from tests.support.spark.application import part_rows
from tests.support.spark.naive_interpreter import Data
from tests.support.spark.pipelines import AWKWARD, pair, show, write
from tests.support.spark.replayed_program import ALL, BY_PLACES, PARTITIONS
from tests.support.spark.sessions import Servers, session

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(3600)]

ROWS_OF_EACH, STEPS_BACK = 3, 4


@dataclass(frozen=True)
class World:
    folder: Path
    kept: dict[str, Any]  # the RDDs of the pipelines, so that their recipes live

    def output(self, name: str) -> Path:
        return self.folder / f"out-{list(ALL).index(name)}"

    def chosen(self, name: str) -> list[tuple[str, int, str]]:
        rows = [(str(path), row, text) for path, row, text in part_rows(self.output(name))]
        return random.Random(name).sample(rows, min(ROWS_OF_EACH, len(rows)))

    def expected(self, name: str, rows: dict[str, set[int]]) -> Counter[str]:
        """What a pipeline gives of these rows, by the naive interpreter."""
        data: list[Data] = []
        for side in PARTITIONS:
            lines = naive.text_file(self.folder / f"{side}.txt")
            meant = [(text, of) for text, of in lines if text and any(row in rows[side] for _, row in of)]
            data.append(naive.map_(meant, pair))
        return Counter(show(value) for value, _ in ALL[name][1](*data))


@pytest.fixture(scope="module")
def world(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("data")
    write(folder / "left.txt", [f"{AWKWARD[i % 7]}|{i % 11}" for i in range(60)])
    write(folder / "right.txt", [f"{AWKWARD[i % 10]}|{i}" for i in range(3, 33)])
    conf = {**servers.conf, "spark.default.parallelism": "3", "spark.lineage.detailed": "true"}
    with session(conf) as context:
        context.setCheckpointDir(str(folder / "checkpoints"))
        lines = [context.textFile(str(folder / f"{side}.txt"), count) for side, count in PARTITIONS.items()]
        datasets = [text.filter(lambda line: line != "").map(pair) for text in lines]
        datasets[0].lines = lines[0]
        one = World(folder, {})
        for name, (in_spark, _) in ALL.items():
            one.kept[name] = in_spark(*datasets).map(show)
            one.kept[name].saveAsTextFile(str(one.output(name)))
        yield one


@pytest.mark.parametrize("name", ALL)
def test_a_replay_gives_what_its_rows_give(name: str, world: World) -> None:
    for path, row, text in world.chosen(name):
        records = trace(path).row(row)
        again = records.replay()
        texts = Counter(again.collect())
        report = again.report
        assert (report.verdict == "reproduced") == (texts[text] > 0)
        if name in BY_PLACES:
            assert (report.mode, report.verdict) == ("all", "reproduced")
        if report.mode == "all" or any(source.way == "whole" for source in report.sources):
            assert report.verdict == "reproduced"
            continue
        rows: dict[str, set[int]] = {side: set() for side in PARTITIONS}
        for _, record in records.go_back_all().collect():
            rows[Path(record["source"]["path"]).stem].add(record["source"]["row"])
        assert report.rows <= sum(map(len, rows.values())) * 3  # a file may be read several times
        assert texts == world.expected(name, rows)


@pytest.mark.parametrize("name", ALL)
def test_records_of_operations_have_the_values_that_they_had(name: str, world: World) -> None:
    for path, row, _ in world.chosen(name)[:1]:
        for steps in range(1, STEPS_BACK + 1):
            records = trace(path).row(row).go_back(steps)
            collected = records.collect()
            values = Counter(str(record.get("value")) for _, record in collected)
            if len({node for node, _ in collected}) != 1 or "None" in values:
                continue
            again = records.rdd()
            made = Counter(contract.typed_text(record)[1] for record in again.collect())
            if again.report.exact:
                assert made == values, (name, steps)
            elif name not in BY_PLACES:
                assert made >= values or not again.report.sources, (name, steps)
