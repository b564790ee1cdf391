"""Records that take long in real jobs: the planted ones are listed, with their input rows."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lineage_service.lineage import Slow, SlowRecord
from lineage_service.queries import SlowQuery
from tests.support.spark.application import run_application

LONG_S = 0.4
ROWS, KEYS = 300, 3
#: The rows that each function takes long for.
MAPPED, FILTERED, MERGED, READ, KEY = 17, 250, 120, 77, 2


def slowly(value: Any, is_planted: bool) -> Any:
    if is_planted:
        time.sleep(LONG_S)
    return value


def by_row(rows: Iterable[int]) -> Iterator[int]:
    for row in rows:
        if row == READ:
            time.sleep(LONG_S)
        yield row


def job(context: Any, lines: Path, folder: Path) -> list[int]:
    numbers = context.textFile(str(lines), 2).map(lambda line: slowly(int(line), line == str(MAPPED)))
    kept = numbers.filter(lambda number: slowly(True, number == FILTERED)).mapPartitions(by_row)
    pairs = kept.map(lambda number: (number % KEYS, number))
    sums = pairs.reduceByKey(lambda a, b: slowly(a + b, b == MERGED), 2)
    sums.map(lambda pair: slowly(pair, pair[0] == KEY)).saveAsTextFile(str(folder / "sums"))
    return [
        int(count)
        for count in context.range(2, numSlices=2).map(lambda _: threading.active_count()).collect()
    ]


@pytest.fixture(scope="module")
def ran(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Slow, list[int]]:
    folder = tmp_path_factory.mktemp("slow")
    lines = folder / "in.txt"
    lines.write_text("".join(f"{number}\n" for number in range(ROWS)))
    threads, application = run_application(
        kafka.bootstrap_servers,
        folder / "store",
        lambda context: job(context, lines, folder),
        **{"spark.lineage.pace": "true"},
    )
    assert application is not None
    query = SlowQuery(limit=100)
    return application.questions.slow(application.application_id, query), threads


def taken(slow: Slow, name: str) -> list[SlowRecord]:
    """The records of an operation that took at least half of what was planted."""
    return [one for one in slow.records if one.name == name and one.ms >= 1000 * LONG_S / 2]


@pytest.mark.parametrize(
    ("name", "rows"),
    [("filter", {FILTERED}), ("mapPartitions", {READ}), ("reduceByKey", {MERGED})],
)
def test_a_planted_record_is_listed_with_its_row(name: str, rows: set[int], ran: Any) -> None:
    records = taken(ran[0], name)
    assert rows in [{row.row for row in one.sources} for one in records if one.exact]


def test_a_record_behind_a_shuffle_is_the_group(ran: Any) -> None:
    maps = taken(ran[0], "map")
    assert [row.row for row in maps[0].sources if row.text is not None]
    assert {MAPPED} in [{row.row for row in one.sources} for one in maps]
    (group,) = [one for one in maps if one.sources_total > 1]
    assert group.sources_total == ROWS // KEYS
    assert {int(row.text or "") % KEYS for row in group.sources} == {KEY}
    assert group.record is not None
    assert group.record.key == str(KEY)


def test_the_slowest_rows_are_the_planted_ones(ran: Any) -> None:
    rows = {one.source.row for one in ran[0].inputs if one.ms >= 1000 * LONG_S / 2}
    assert {MAPPED, FILTERED, MERGED, READ} <= rows


def test_the_job_sees_no_other_thread(ran: Any) -> None:
    assert set(ran[1]) == {1}
