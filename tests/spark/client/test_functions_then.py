"""Functions whose values the program has changed: they run with what executors got, or it is said why."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from spark_agent import explain
from tests.support.spark.application import part_rows
from tests.support.spark.pipelines import write
from tests.support.spark.sessions import Servers, session

pytestmark = pytest.mark.timeout(1800)

POINTS = [1, 2, 4, 30, 31, 50]
CENTRES = [0, 10]
TURNS = 3


def nearest(point: int, centres: list[int]) -> int:
    return min(range(len(centres)), key=lambda number: abs(centres[number] - point))


def moved(sums: tuple[int, tuple[int, int]]) -> tuple[int, int]:
    number, (total, count) = sums
    return number, total // count


def in_plain_python(points: list[int], centres: list[int]) -> dict[int, tuple[int, int]]:
    """By centre: the sum and the number of the points that are nearest."""
    sums: dict[int, tuple[int, int]] = {}
    for point in points:
        number = nearest(point, centres)
        total, count = sums.get(number, (0, 0))
        sums[number] = total + point, count + 1
    return sums


@dataclass
class Ran:
    """A job that moves centres in place, and the sums and the centres of each turn."""

    folder: Path
    context: Any
    sums: list[Any] = field(default_factory=list)
    centres: list[list[int]] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    lines: Any = None


@pytest.fixture(scope="module")
def ran(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("points")
    path = write(folder / "points.txt", list(map(str, POINTS)))
    with session({**servers.conf, "spark.default.parallelism": "2"}) as context:
        job = Ran(folder, context)
        job.lines = context.textFile(str(path), 2)
        points = job.lines.map(int).cache()
        centres = list(CENTRES)
        for _ in range(TURNS):
            job.centres.append(list(centres))
            near = points.map(lambda point: (nearest(point, centres), (point, 1)))
            sums = near.reduceByKey(lambda one, other: (one[0] + other[0], one[1] + other[1]))
            for number, centre in sums.map(moved).collect():
                centres[number] = centre
            job.sums.append(sums)
        job.last = list(centres)
        yield job


def test_each_turn_of_a_loop_that_moves_its_centres_is_verified_with_those_of_the_turn(ran: Ran) -> None:
    for sums, centres in zip(ran.sums, ran.centres, strict=True):
        for number, expected in in_plain_python(POINTS, centres).items():
            enough = explain(sums).key(str(number)).sufficient()
            assert enough.verified is not None, enough.reasons
            assert enough.verified.added == 0
            rows = [int(row.text or "") for row in enough.collect()]
            assert in_plain_python(rows, centres)[number] == expected
            values = [value for value in enough.given_values if value.startswith("centres as it was then, ")]
            assert len(values) == (centres != ran.last), enough.given_values
            # Of fewer points the program would have other centres: others are not told that it is verified.
            assert explain(sums).key(str(number)).checks == []


def test_a_record_of_a_changed_function_is_the_one_of_then(ran: Ran) -> None:
    limit = [4]
    above = ran.lines.filter(lambda line: int(line) >= limit[0])
    assert above.collect() == ["4", "30", "31", "50"]
    offsets = [len(part) for part in above.glom().collect()]
    limit[0] = 0  # the RDD itself would have other records at the same places now
    for partition, count in enumerate(offsets):
        for offset in range(count):
            enough = explain(above).at(partition, offset).sufficient()
            assert enough.verified is not None, enough.reasons
            [row] = enough.collect()
            assert int(row.text or "") >= 4


def row_of(folder: Path, text: str) -> Any:
    ((path, row, _),) = [part for part in part_rows(folder) if part[2] == text]
    return explain(str(path)).row(row)


def test_values_that_were_changed_and_changed_back_are_those_of_the_job(ran: Ran) -> None:
    limit = [50]
    above = ran.lines.filter(lambda line: int(line) >= limit[0])
    limit[0] = 4
    above.saveAsTextFile(str(ran.folder / "back"))
    limit[0] = 50
    enough = row_of(ran.folder / "back", "30").sufficient()
    assert enough.verified is not None, enough.reasons
    assert enough.verified.added == 0
    assert enough.given_values[-1].startswith("a value as it was then, in filter at ")


def test_a_function_that_ran_with_several_values_verifies_nothing(ran: Ran) -> None:
    limit = [4]
    above = ran.lines.filter(lambda line: int(line) >= limit[0])
    above.map(str).saveAsTextFile(str(ran.folder / "four"))
    limit[0] = 30
    above.map(str).saveAsTextFile(str(ran.folder / "thirty"))
    limit[0] = 50
    explained = row_of(ran.folder / "four", "4").sufficient()
    assert explained.verified is None
    assert " uses limit, which is not known to be what it was" in explained.reasons[0]


def test_the_broadcast_variable_and_the_classes_of_then_are_used(ran: Ran) -> None:
    class Least:
        value = 30

    holder = {"least": ran.context.broadcast(Least.value)}
    first = holder["least"]
    calls = ran.context.accumulator(0)

    def is_above(line: str) -> bool:
        calls.add(1)
        least: int = max(holder["least"].value, Least.value)
        return int(line) >= least

    ran.lines.filter(is_above).saveAsTextFile(str(ran.folder / "classes"))
    holder["least"], Least.value = ran.context.broadcast(0), 60
    before = calls.value
    explained = row_of(ran.folder / "classes", "31")
    assert " uses " in explained.sufficient().reasons[0]  # the job's broadcast variable is in no function
    holder["least"] = first
    enough = explained.sufficient()
    assert enough.verified is not None, enough.reasons
    assert enough.verified.added == 0
    assert (Least.value, calls.value) == (60, before)


def test_what_a_fold_began_with_is_what_it_was(ran: Ran) -> None:
    zero = [100]
    pairs = ran.lines.map(lambda line: (int(line) // 30, int(line)))
    lists = pairs.aggregateByKey(zero, lambda values, value: [*values, value], operator.add, 2)
    lists.mapValues(sum).map(str).saveAsTextFile(str(ran.folder / "folds"))
    zero.append(7)
    texts = sorted(text for *_, text in part_rows(ran.folder / "folds"))
    for text in texts:
        enough = row_of(ran.folder / "folds", text).sufficient()
        if enough.verified is None:
            assert enough.reasons[0].startswith("Not verified: ")
    assert len(texts) == 2


def test_a_function_that_counts_in_the_worker_is_verified_only_where_it_gives_the_record(ran: Ran) -> None:
    seen: set[str] = set()

    def numbered(line: str) -> str:
        seen.add(line)
        return f"{line} {len(seen)}"

    ran.lines.map(numbered).saveAsTextFile(str(ran.folder / "seen"))
    for path, row, text in part_rows(ran.folder / "seen"):
        enough = explain(str(path)).row(row).sufficient()
        if enough.verified is not None:
            lines = [row.text or "" for row in enough.collect()]
            assert text in [f"{line} {number + 1}" for number, line in enumerate(lines)], (text, lines)
