"""Where captures go wrong: each trap that a prototype fell into (and some more), traced record by record."""

from __future__ import annotations

import contextlib
import operator
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext

from spark_agent import contract
from spark_agent.delivery import process_sender
from tests.support.spark import naive_interpreter as naive
from tests.support.spark.application import Application, Row, part_rows, rows_at, run_application
from tests.support.spark.naive_interpreter import Data

Run = Callable[..., tuple[Any, Application]]

FILES = {
    "left": [f"{'abc'[i % 3]} {i}" for i in range(13)],
    "right": [f"{'bcd'[i % 3]} {i}" for i in range(7)],
    "first": [f"{i}" for i in range(9)],
    "second": [f"{-i}" for i in range(5)],
    "sorted": [f"{i * 5 % 7} {i}" for i in range(12)],
    "cached": [f"k {i}" for i in range(9)],
    "caught": [f"k {i}" for i in range(10)],
}
KEYS = {"a": 1, "b": 1.0, "c": True, "d": 2}


def pair(line: str) -> tuple[str, int]:
    key, value = line.split()
    return key, int(value)


def is_odd(kv: tuple[str, int]) -> bool:
    return kv[1] % 2 == 1


def fails_on_fours(kv: tuple[str, int]) -> tuple[str, int]:
    if kv[1] % 4 == 3:
        raise ValueError(kv)
    return kv


def going_on(records: Iterator[Any]) -> Iterator[Any]:
    while True:
        try:
            yield next(records)
        except StopIteration:
            return
        except ValueError:
            yield "caught"


def save_all(context: Any, folder: Path) -> None:
    def save(dataset: Any, name: str) -> None:
        dataset.map(repr).saveAsTextFile(str(folder / name))

    def read(name: str, splits: int = 3) -> Any:
        return context.textFile(str(folder / f"{name}.txt"), splits).map(pair)

    left, right = read("left", 4), read("right", 2)
    save(left.filter(is_odd).union(right).union(left).coalesce(3), "union")
    save(left.partitionBy(2).union(right.partitionBy(2)), "union of shuffles")
    save(left.partitionBy(4).coalesce(2), "coalesce of a shuffle")
    files = context.textFile(f"{folder}/first.txt,{folder}/second.txt", 5)
    save(files.coalesce(2), "coalesce of files")
    keyed = left.map(lambda kv: (KEYS[kv[0]], kv[1])).join(right.map(lambda kv: (KEYS[kv[0]], kv[1])))
    save(keyed.mapValues(sum).map(lambda kv: (kv[0] == 1, kv[1])), "equal keys")
    doubled = left.reduceByKey(operator.add)
    save(doubled, "saved once")
    save(doubled, "saved twice")
    save(read("sorted").sortBy(lambda kv: kv[0], numPartitions=2), "sort")
    cached = read("cached").filter(is_odd).cache()
    save(cached, "cached")
    save(cached.union(cached), "cached and read twice")
    cached.unpersist(blocking=True)
    save(cached.map(lambda kv: kv), "computed again")
    threads = [
        threading.Thread(target=save, args=(left.mapValues(n.__add__).sortBy(str), f"thread {n}"))
        for n in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read("caught", 2).map(fails_on_fours).map(lambda kv: kv).mapPartitions(going_on).collect()


def read_naively(folder: Path, name: str) -> Data:
    lines = naive.text_file(folder / f"{name}.txt")
    return lines if name in ("first", "second") else naive.map_(lines, pair)


def joined(left: Data, right: Data) -> Data:
    pairs = [naive.map_(data, lambda kv: (KEYS[kv[0]], kv[1])) for data in (left, right)]
    return naive.map_(naive.map_values(naive.join(*pairs), sum), lambda kv: (kv[0] == 1, kv[1]))


EXPECTED: dict[str, Callable[[Callable[[str], Data]], Data]] = {
    "union": lambda read: naive.filter_(read("left"), is_odd) + read("right") + read("left"),
    "union of shuffles": lambda read: read("left") + read("right"),
    "coalesce of a shuffle": lambda read: read("left"),
    "coalesce of files": lambda read: read("first") + read("second"),
    "equal keys": lambda read: joined(read("left"), read("right")),
    "saved once": lambda read: naive.reduce_by_key(read("left"), operator.add),
    "saved twice": lambda read: naive.reduce_by_key(read("left"), operator.add),
    "sort": lambda read: read("sorted"),
    "thread 0": lambda read: read("left"),
    "thread 1": lambda read: naive.map_values(read("left"), (1).__add__),
    "cached": lambda read: naive.filter_(read("cached"), is_odd),
    "cached and read twice": lambda read: naive.filter_(read("cached") * 2, is_odd),
    "computed again": lambda read: naive.filter_(read("cached"), is_odd),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("traps")
    for name, lines in FILES.items():
        (made / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    return made


@pytest.fixture(scope="module")
def application(kafka: Any, folder: Path) -> Application:
    _, application = run_application(
        kafka.bootstrap_servers, folder / "store", lambda context: save_all(context, folder)
    )
    assert application is not None
    return application


@pytest.mark.parametrize("name", EXPECTED)
def test_every_output_row_and_input_row_is_traced(name: str, application: Application, folder: Path) -> None:
    expected = EXPECTED[name](lambda source: read_naively(folder, source))
    found = {
        (part.name, row): (text, application.sources_of(part, row))
        for part, row, text in part_rows(folder / name)
    }
    assert Counter(found.values()) == Counter((repr(value), sources) for value, sources in expected)
    for file, input_row in sorted({row for _, sources in expected for row in sources})[::3]:
        wanted = {place for place, (_, sources) in found.items() if (file, input_row) in sources}
        assert outputs_in(application, folder / name, folder / file, input_row) == wanted


def outputs_in(application: Application, output: Path, path: Path, row: int) -> set[Row]:
    """The rows of one output that an input row went into."""
    trace = application.trace(direction="forward", path=str(path), row=row)
    return {
        (Path(record.source.path).name, record.source.row)
        for node in trace.nodes
        for record in node.records
        if record.source is not None and Path(record.source.path).parent == output
    }


def runs_of(application: Application, description: str) -> list[dict[str, Any]]:
    """The committed runs that read a file."""
    (node,) = {
        event["node"]
        for event in application.events
        if event["type"] == contract.NODE_REGISTERED and event["description"].endswith(description)
    }
    return [
        event
        for event in application.events
        if event["type"] == contract.RUN_COMMITTED and event["input"] == node
    ]


def test_the_jobs_that_a_sort_runs_for_itself_do_not_show(application: Application) -> None:
    assert set(Counter(run["split"] for run in runs_of(application, "sorted.txt")).values()) == {1}
    assert {sink.name for sink in application.sinks()} == {"saveAsTextFile", "collect"}


def test_a_cached_partition_is_captured_each_time_that_it_is_computed(application: Application) -> None:
    # Once for the first two outputs, which share the cache; once more after it was given back.
    assert set(Counter(run["split"] for run in runs_of(application, "cached.txt")).values()) == {2}


def test_records_behind_one_that_raised_keep_their_place(application: Application) -> None:
    runs = sorted(runs_of(application, "caught.txt"), key=lambda run: run["split"])
    below = contract.node_id(application.application_id, runs[0]["nodes"][-2])
    places = [(run["split"], offset) for run in runs for offset in range(run["inputs"])]
    survivors = [place for row, place in enumerate(places) if row % 4 != 3]
    rows = []
    for split in range(len(runs)):
        for offset in range(sum(place[0] == split for place in survivors)):
            trace = application.trace(direction="backward", node=below, record=f"{split}#{offset}")
            assert trace.exact
            rows += [row for _, row in rows_at(trace, "source")]
    assert rows == [row for row in range(10) if row % 4 != 3]


@pytest.mark.thorough
def test_joins_and_sorts_that_spill_are_exact(run: Run, tmp_path: Path) -> None:
    left, right = tmp_path / "left.txt", tmp_path / "right.txt"
    left.write_text("".join(f"k{i % 400} {i}\n" for i in range(4_000)))
    right.write_text("".join(f"k{i} {-i}\n" for i in range(400)))

    def job(context: Any) -> None:
        pairs = [context.textFile(str(path), 2).map(pair) for path in (left, right)]
        met = pairs[0].join(pairs[1], 1).map(lambda kv: (kv[1], kv[0]))
        met.sortByKey(numPartitions=1).map(repr).saveAsTextFile(str(tmp_path / "out"))

    _, application = run(job, spark_python_worker_memory="1m")
    rows = part_rows(tmp_path / "out")
    assert len(rows) == 4_000
    for part, row, text in rows[::391]:
        assert text == repr(((row, -(row % 400)), f"k{row % 400}"))
        assert application.sources_of(part, row) == {("left.txt", row), ("right.txt", row % 400)}


@pytest.mark.thorough
def test_an_attempt_that_failed_never_shows(run: Run, tmp_path: Path) -> None:
    big, small = tmp_path / "big.txt", tmp_path / "small.txt"
    big.write_text("".join(f"{i:06}\n" for i in range(310_000)))
    small.write_text("".join(f"{'abc'[i % 3]} {i}\n" for i in range(12)))

    def once_wrong(text: str) -> str:
        # Late enough for a block to have left the first time; a worker that fails may die before it is sent.
        if text in ("150000", "b 10", "c 11") and TaskContext.get().attemptNumber() == 0:
            sender = process_sender.process_sender.sender
            assert sender is not None
            sender._producer.flush(20)
            raise ValueError(f"the first attempt at {text}")
        return text

    def job(context: Any) -> None:
        lines = context.textFile(str(big), 2).filter(lambda text: text[-1] != "7").map(once_wrong)
        lines.filter(lambda text: text[-2:] == "00").saveAsTextFile(str(tmp_path / "kept"))
        pairs = context.textFile(str(small), 3).map(once_wrong).map(pair)
        pairs.reduceByKey(operator.add).map(repr).saveAsTextFile(str(tmp_path / "sums"))

    _, application = run(job, master="local[2,3]")
    committed = [event for event in application.events if event["type"] == contract.RUN_COMMITTED]
    lost = {block.run for block in application.blocks} - {event["run"] for event in committed}
    assert lost, "no block of a failed attempt has left"
    assert Counter((event["input"], event["split"]) for event in committed).most_common(1)[0][1] == 1
    rows = part_rows(tmp_path / "kept")
    assert [text for _, _, text in rows] == [f"{i:06}" for i in range(0, 310_000, 100)]
    for part, row, text in rows[::290]:
        assert application.sources_of(part, row) == {("big.txt", int(text))}
    sums = {text: application.sources_of(part, row) for part, row, text in part_rows(tmp_path / "sums")}
    assert sums == {
        repr((key, sum(range(k, 12, 3)))): {("small.txt", i) for i in range(k, 12, 3)}
        for k, key in enumerate("abc")
    }


@pytest.mark.thorough
def test_keys_that_do_not_equal_themselves_are_told_where_a_merge_spills(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{'nan' if i % 1_000 == 7 else i % 9_000} {i}\n" for i in range(30_000)))

    def job(context: Any) -> int:
        pairs = context.textFile(str(source), 1).map(lambda line: (float(line.split()[0]), 1))
        return len(pairs.reduceByKey(operator.add, 1).collect())

    with pytest.raises(AssertionError, match=r"keys that do not equal themselves \(NaN\)"):
        run(job, spark_python_worker_memory="1m")


@pytest.mark.thorough
def test_records_of_an_action_that_failed_are_no_result(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{i}\n" for i in range(40)))

    def job(context: Any) -> None:
        wrong = context.textFile(str(source), 4).map(lambda line: 1 // (39 - int(line)))
        with contextlib.suppress(Exception):
            wrong.saveAsTextFile(str(tmp_path / "out"))
        with contextlib.suppress(Exception):
            wrong.collect()
        wrong.filter(bool).take(1)

    _, application = run(job)
    sinks = {sink.name: (sink.exact, "failed" in sink.reason) for sink in application.sinks()}
    assert sinks == {"saveAsTextFile": (False, True), "collect": (False, True), "take": (True, False)}
