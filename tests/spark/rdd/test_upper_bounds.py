"""Bounds hold all that they must, and a page of one takes what it lists, however much the bound has."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support.lanes import sampled
from tests.support.spark.application import Application, part_rows, rows_at

Run = Callable[..., tuple[Any, Application]]

ROWS, LIMIT = 60_000, 100


def reversed_halves(records: Iterable[int]) -> Iterable[int]:
    """No output comes with the record that was read last."""
    held = list(records)
    return held[::-2] + held[-2::-2]


def backwards(records: Iterable[Any]) -> Iterable[Any]:
    yield from reversed(list(records))


def last_and_all(records: Iterable[Any]) -> Iterable[Any]:
    held = tuple(records)
    yield held[-1]
    yield from held


def in_a_set(records: Iterable[Any]) -> Iterable[Any]:
    return set(records)


WHOLE = (reversed_halves, backwards, last_and_all, in_a_set)


@pytest.mark.thorough
def test_bounds_one_behind_the_other_have_all_records_of_the_partition(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{i}\n" for i in range(8)))
    pairs = [(first, second) for first in WHOLE for second in WHOLE]

    def job(context: Any) -> None:
        lines = context.textFile(str(source), 2)
        for at, (first, second) in enumerate(pairs):
            both = lines.mapPartitions(first).mapPartitions(second)
            both.mapPartitions(first).map(str).saveAsTextFile(str(tmp_path / f"out-{at}"))

    _, application = run(job)
    assert application.questions.application(application.application_id).complete
    for at, (first, second) in enumerate(pairs):
        for part, row, text in part_rows(tmp_path / f"out-{at}"):
            trace = application.trace(direction="backward", path=str(part), row=row)
            rows = {row for _, row in rows_at(trace, "source")}
            assert int(text) in rows, (first, second)
            assert len(rows) in (3, 5), (first, second)  # those of its split
            assert not trace.exact


@pytest.mark.parametrize("whole", sampled(WHOLE, 4))
def test_a_bound_straight_behind_a_range_has_its_numbers(whole: Any, run: Run) -> None:
    _, application = run(lambda context: context.range(6, numSlices=2).mapPartitions(whole).collect())
    trace = application.trace(
        direction="backward", node=application.sinks()[0].node_id, partition=1, offset=0
    )
    assert [(node.name, node.total) for node in trace.nodes][-1] == ("range", 3)


class Given:
    """Neither a list nor an iterator."""

    def __init__(self, records: Iterable[Any]) -> None:
        self._records = records

    def __iter__(self) -> Any:
        return iter(self._records)


def test_records_that_cannot_be_counted_are_said_to_be_missing(run: Run) -> None:
    def kind(records: Any) -> Iterable[Any]:
        return [type(records).__name__, *records]

    rows: list[Any] = []

    def job(context: Any) -> None:
        rows.extend(context.parallelize(range(4), 1).mapPartitions(Given).mapPartitions(kind).collect())

    with pytest.raises(
        AssertionError, match="cannot be counted"
    ):  # of what an application that is read lacks
        run(job)
    assert rows == ["Given", 0, 1, 2, 3]


@pytest.mark.thorough
@pytest.mark.parametrize("direction", ["backward", "forward"])
def test_the_flows_of_a_page_take_no_more_than_it_lists(direction: str, run: Run, tmp_path: Path) -> None:
    def job(context: Any) -> None:
        numbers = context.range(ROWS, numSlices=2).mapPartitions(reversed_halves)
        numbers.mapPartitions(reversed_halves).map(str).saveAsTextFile(str(tmp_path / "out"))

    _, application = run(job)
    graph = application.questions.graph(application.application_id)
    start = {"node": graph.nodes[-1 if direction == "backward" else 0].node_id, "partition": 1, "offset": 9}
    tracemalloc.start()
    try:
        trace = application.trace(direction=direction, limit=LIMIT, **start)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not trace.exact
    bounds = [node for node in trace.nodes if node.total == ROWS // 2]
    assert len(bounds) >= 2
    assert [len(node.records) for node in bounds] == [LIMIT] * len(bounds)
    assert len(trace.flows) >= LIMIT
    assert most < 20 * ROWS * 8  # for each listed record all of a bound would be hundreds of times that
