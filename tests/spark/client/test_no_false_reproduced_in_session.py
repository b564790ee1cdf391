"""Random rows of random pipelines: what a replay in the session calls reproduced comes out of its rows alone.

A brute-force computation over these rows confirms it, and PySpark without lineage on the same rows.
`LINEAGE_TEST_SEED` and `LINEAGE_TEST_REPLAYS` make others, and more.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spark_agent import trace
from tests.support.spark.application import part_rows
from tests.support.spark.ending_pipelines import NAIVE, SPARK, Pair, Step, in_spark, make, plus
from tests.support.spark.pipelines import write
from tests.support.spark.record_graph import Item
from tests.support.spark.sessions import Servers, session

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(7200)]

SEED = int(os.environ.get("LINEAGE_TEST_SEED", "29"))
REPLAYS = int(os.environ.get("LINEAGE_TEST_REPLAYS", "12"))
ROWS_OF_EACH, PROGRAMS_AT_ONCE = 3, 25
#: Of so many rows their records are made again, too: those that are called exact are these, and no others.
RECORDS_TOO = 0.5
QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
STOCK = {"spark.lineage.enabled": "false", **QUIET}


@dataclass(frozen=True)
class Reproduced:
    """A row that a replay gave again, and the rows of both inputs that it was made of."""

    program: Sequence[Step]
    text: str
    left: list[Pair]
    right: list[Pair]


def pairs(lines: Sequence[str]) -> list[Pair]:
    return [pair_of(line) for line in lines]


def pair_of(line: str) -> Pair:
    key, value = line.split(",")
    return int(key), int(value)


def text_of(pair: Any) -> str:
    return f"{pair[0]},{pair[1]}"


def naively(program: Sequence[Step], left: Sequence[Pair], right: Sequence[Pair]) -> Counter[str]:
    datasets = [[Item(pair) for pair in side] for side in (left, right)]
    for step in program:
        given = [datasets[number] for number in step.inputs]
        datasets.append([Item(value) for value, _ in NAIVE[step.name](step.number, *given)])
    return Counter(text_of(item.value) for item in datasets[-1])


def stock(context: Any, one: Reproduced) -> Counter[str]:
    datasets = [context.parallelize(side, 2) for side in (one.left, one.right)]
    for step in one.program:
        result = SPARK[step.name](step.number, *(datasets[number] for number in step.inputs))
        datasets.append(result.map(plus) if step.name in ("join", "leftOuterJoin") else result)
    return Counter(datasets[-1].map(text_of).collect())


def test_each_reproduced_row_comes_out_of_its_rows_alone(servers: Servers, tmp_path: Path) -> None:
    verdicts: Counter[str] = Counter()
    reproduced: list[Reproduced] = []
    seed = SEED * 10_000
    while verdicts.total() < REPLAYS:
        seeds = range(seed, seed + PROGRAMS_AT_ONCE)
        seed += PROGRAMS_AT_ONCE
        folder = tmp_path / str(seed)
        folder.mkdir()
        with session({**servers.conf, **QUIET}) as context:
            some, counts = replayed(context, folder, seeds, REPLAYS - verdicts.total())
        reproduced += some
        verdicts += counts
    for one in reproduced:
        assert naively(one.program, one.left, one.right)[one.text] > 0, one
    with session(STOCK) as context:
        for one in reproduced:
            assert stock(context, one)[one.text] > 0, one
    print(f"{verdicts.total()} replays: {dict(verdicts)}; confirmed: {len(reproduced)}")
    assert verdicts["reproduced"] > 0


def replayed(context: Any, folder: Path, seeds: range, most: int) -> tuple[list[Reproduced], Counter[str]]:
    """Of programs of these seeds, in one application."""
    chance = random.Random(seeds.start)
    lines = {
        side: [f"{chance.randrange(6)},{chance.randrange(9)}" for _ in range(12)]
        for side in ("left", "right")
    }
    paths = [write(folder / f"{side}.txt", lines[side]) for side in lines]
    left, right = (context.textFile(str(path), 3).map(pair_of) for path in paths)
    programs = {number: make(number) for number in seeds}
    outputs = {number: in_spark(program, left, right)[0].map(text_of) for number, program in programs.items()}
    for number, dataset in outputs.items():  # in a variable, so that their recipes live
        dataset.saveAsTextFile(str(folder / f"out-{number}"))
    reproduced: list[Reproduced] = []
    verdicts: Counter[str] = Counter()
    for number, program in programs.items():
        rows = part_rows(folder / f"out-{number}")
        for path, row, text in chance.sample(rows, min(ROWS_OF_EACH, len(rows))):
            if verdicts.total() == most:
                return reproduced, verdicts
            records = trace(str(path)).row(row)
            report = records.replay().report
            verdicts[str(report.verdict)] += 1
            if chance.random() < RECORDS_TOO:
                again = records.rdd()
                assert not again.report.exact or again.collect() == [text], (program, text, again.report)
            if report.verdict == "reproduced":
                assert report.mode == "only"
                used = rows_of(records)
                sides = [pick(lines[side], used, side) for side in lines]
                reproduced.append(Reproduced(program, text, *map(pairs, sides)))
    return reproduced, verdicts


def rows_of(records: Any) -> set[tuple[str, int]]:
    sources = [record["source"] for _, record in records.go_back_all().collect()]
    return {(Path(source["path"]).stem, source["row"]) for source in sources}


def pick(lines: Sequence[str], used: set[tuple[str, int]], side: str) -> list[str]:
    return [line for row, line in enumerate(lines) if (side, row) in used]
