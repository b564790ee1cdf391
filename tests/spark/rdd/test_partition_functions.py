"""Functions of a partition as people write them, traced in a real Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.generators.batches import BATCHES
from tests.support.generators.by_row import BY_ROW
from tests.support.generators.hostile import HOSTILE
from tests.support.generators.setup import ROWS, Model
from tests.support.spark.application import Application, rows_at
from tests.support.spark.pipelines import write

pytestmark = pytest.mark.thorough

Run = Callable[..., tuple[Any, Application]]
Truth = Callable[[Sequence[str]], list[list[int]]]

LINES = [*ROWS, *ROWS[::-1], "b", "x:1"]
ROW_BY_ROW = (
    *(
        "compiled_pattern",
        "counter_of_errors",
        "model_with_features",
        "database",
        "context_manager",
        "numbered",
    ),
    *(
        "several_for_a_row",
        "from_a_function",
        "from_an_expression",
        "over_an_expression",
        "two_steps",
        "method",
    ),
    *("returned_chain", "accumulator_beside", "try_except_finally", "sorted_by_an_inner_function"),
)
IN_BATCHES = ("flushed_and_new_list", "swapped_before", "only_full_rows", "two_lists", "behind_a_header")
BOUNDS = ("running_total", "without_duplicates", "smoother", "function_that_keeps", "last_three", "in_order")


def of_each_row(function: Callable[[Iterator[str]], Any]) -> Truth:
    def truth(rows: Sequence[str]) -> list[list[int]]:
        return [[position] for position, row in enumerate(rows) for _ in function(iter([row]))]

    return truth


def of_index(index: int, rows: Iterator[str]) -> Iterator[tuple[int, str]]:
    pattern = re.compile(r"\w+")
    for row in rows:
        for word in pattern.findall(row):
            yield index, word


def cases() -> dict[str, tuple[Callable[[Any], Any], Truth]]:
    """name -> (what is built of the lines, the sources of each output within a partition)."""
    model = Model(2)
    table = {"a": 1, "b": 2}

    def local(rows: Iterator[str]) -> Iterator[Any]:
        done = 0
        try:
            for row in rows:
                done += 1
                if row in ("", "h"):
                    continue
                yield row, model.predict(row), table.get(row[:1])
        finally:
            print(f"{done} rows", end="")

    def local_batches(rows: Iterator[str]) -> Iterator[int]:
        batch: list[str] = []
        for row in rows:
            batch.append(row)
            if len(batch) == 3:
                yield from model.predict_many(batch)
                batch = []
        yield from model.predict_many(batch)

    def applied(function: Any) -> Callable[[Any], Any]:
        return lambda lines: lines.mapPartitions(function)

    built: dict[str, tuple[Callable[[Any], Any], Truth]] = {
        name: (applied(BY_ROW[name]), of_each_row(BY_ROW[name])) for name in ROW_BY_ROW
    }
    built |= {name: (applied(BATCHES[name][0]), BATCHES[name][1]) for name in IN_BATCHES}
    built["pickled by value"] = applied(local), of_each_row(local)
    built["batches, pickled by value"] = applied(local_batches), BATCHES["flushed_and_new_list"][1]
    built["with an index"] = (
        lambda lines: lines.mapPartitionsWithIndex(of_index),
        of_each_row(lambda rows: of_index(0, rows)),
    )
    built["twice"] = (
        lambda lines: lines.mapPartitions(BY_ROW["skipping"]).mapPartitions(BY_ROW["model"]),
        of_each_row(BY_ROW["skipping"]),
    )
    return built


def test_sources_are_those_of_the_catalogue(run: Run, tmp_path: Path) -> None:
    source = write(tmp_path / "in.txt", LINES)

    def job(context: Any) -> list[list[str]]:
        lines = context.textFile(str(source), 3)
        for name, (built, _truth) in cases().items():
            built(lines).map(repr).saveAsTextFile(str(tmp_path / name))
        return lines.glom().collect()  # type: ignore[no-any-return]

    partitions, application = run(job)
    assert [row for rows in partitions for row in rows] == LINES
    for name, (_built, truth) in cases().items():
        first = 0
        for number, rows in enumerate(partitions):
            part = tmp_path / name / f"part-{number:05}"
            expected = [{("in.txt", first + position) for position in named} for named in truth(rows)]
            assert len(part.read_text().splitlines()) == len(expected), name
            for row, named in enumerate(expected):
                trace = application.trace(direction="backward", path=str(part), row=row)
                assert trace.exact, (name, number, row)
                assert application.sources_of(part, row) == named, (name, number, row)
            first += len(rows)


def test_what_carries_something_on_names_its_partition(run: Run, tmp_path: Path) -> None:
    source = write(tmp_path / "in.txt", LINES)

    def job(context: Any) -> list[list[str]]:
        lines = context.textFile(str(source), 2)
        for name in BOUNDS:
            lines.mapPartitions(HOSTILE[name]).map(repr).saveAsTextFile(str(tmp_path / name))
        return lines.glom().collect()  # type: ignore[no-any-return]

    partitions, application = run(job)
    for name in BOUNDS:
        part = tmp_path / name / "part-00001"
        trace = application.trace(direction="backward", path=str(part), row=0)
        assert not trace.exact, name
        last = range(len(partitions[0]), len(LINES))
        assert rows_at(trace, "source") == {("in.txt", row) for row in last}, name
