"""With lineage on, a job gives what it gives without: rows, order, errors, accumulators, laziness."""

from __future__ import annotations

import operator
import re
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, reduce
from inspect import isfunction
from pathlib import Path
from typing import Any

import pytest
from pyspark import RDD, BarrierTaskContext, SparkConf, SparkContext
from pyspark.sql import SparkSession

from spark_agent import agent
from tests.support.lanes import sampled, selected

rdd_module = sys.modules[RDD.__module__]  # pyspark.core.rdd, and pyspark.rdd before PySpark 4
PipelinedRDD = rdd_module.PipelinedRDD

# The first test of the module runs the jobs of all of them.
pytestmark = pytest.mark.timeout(2700)

Job = Callable[[SparkContext, Path], Any]


class OnTheDriverOnly:
    """An object that a Python worker cannot unpickle."""

    def __reduce__(self) -> Any:
        return _of_the_driver, (threading.main_thread().ident,)


def _of_the_driver(thread: int) -> str:
    if thread != threading.main_thread().ident:
        raise AssertionError("unpickled by another process than the driver")
    return "of the driver"


def numbers(context: SparkContext, count: int = 24, splits: int = 4) -> RDD[int]:
    return context.parallelize(list(range(count)), splits)


def pairs(context: SparkContext) -> RDD[tuple[str, int]]:
    return numbers(context).map(lambda i: ("abcde"[i * i % 5], i))


def others(context: SparkContext) -> RDD[tuple[str, str]]:
    return context.parallelize([("a", "p"), ("b", "q"), ("a", "r"), ("z", "s"), ("e", "t")], 3)


def lines(context: SparkContext, folder: Path) -> RDD[str]:
    return context.textFile(str(folder / "in.txt"), 3)


def split_rows(dataset: RDD[Any]) -> list[list[Any]]:
    return dataset.glom().collect()


def values(grouped: RDD[Any]) -> list[Any]:
    """Rows of a groupByKey or cogroup with their iterables as lists."""
    return grouped.mapValues(_as_lists).collect()


def _as_lists(value: Any) -> Any:
    return [list(part) for part in value] if isinstance(value, tuple) else list(value)


def saved(dataset: RDD[Any], folder: Path, *codec: str) -> list[tuple[str, bytes]]:
    path = folder / f"saved-{time.monotonic_ns()}"
    dataset.saveAsTextFile(str(path), *codec)
    return [(part.name, part.read_bytes()) for part in sorted(path.glob("part-*"))]


def counted(context: SparkContext, use: Callable[[Any], Any]) -> tuple[Any, int]:
    """(what `use` gives, how often it counted)."""
    accumulator = context.accumulator(0)
    return use(accumulator), accumulator.value


def made_again(context: SparkContext, folder: Path, accumulator: Any, *, cached: bool) -> Any:
    """Of an action behind a shuffle whose map outputs are lost after the first one."""
    counting = numbers(context).map(lambda i: accumulator.add(1) or (i % 5, i))
    summed = (counting.cache() if cached else counting).reduceByKey(operator.add, 3)
    before = summed.map(lambda pair: accumulator.add(100) or pair).collect()
    lost = list(folder.glob("local/**/shuffle_*"))
    assert lost
    for path in lost:
        path.unlink()
    return before, summed.map(lambda pair: accumulator.add(100) or pair).collect()


def stubborn(records: Iterator[Any]) -> Iterator[Any]:
    """Goes on after errors of the iterator that it is given."""
    while True:
        try:
            yield next(records)
        except StopIteration:
            return
        except ValueError as error:
            yield f"caught {error}"


def reused(_records: Iterator[Any]) -> Iterator[list[int]]:
    record = [0]
    for i in range(9):
        record[0] = i
        yield record


def cached_twice(context: SparkContext) -> Any:
    cached = numbers(context).map(lambda i: i + 1).filter(lambda i: i % 3).cache()
    first = cached.collect(), cached.map(str).collect(), cached.union(cached).coalesce(2).collect()
    cached.unpersist(blocking=True)
    return first, cached.collect(), cached.sortBy(lambda i: -i).collect()


def with_finally(accumulator: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def generator(records: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from records
        finally:
            accumulator.add(1)

    return generator


ROWS: dict[str, Job] = {
    "map": lambda sc, _: split_rows(numbers(sc).map(lambda i: (i, str(i)))),
    "filter": lambda sc, _: split_rows(numbers(sc).filter(lambda i: i % 5 == 1)),
    "flatMap of lists, tuples, strings, dicts and generators": lambda sc, _: [
        split_rows(numbers(sc, 9).flatMap(f))
        for f in (
            lambda i: [i] * (i % 3),
            lambda i: (i, -i),
            lambda i: "xyz"[: i % 4],
            lambda i: {i: 0, -i: 1},
            lambda i: (i for _ in range(i % 3)),
        )
    ],
    "mapValues, keyBy, keys, values": lambda sc, _: [
        split_rows(pairs(sc).mapValues(lambda v: -v).keyBy(lambda kv: kv[1] % 2)),
        pairs(sc).keys().collect(),
        pairs(sc).values().collect(),
    ],
    "mapPartitions, glom, pipe": lambda sc, _: [
        split_rows(numbers(sc).mapPartitions(lambda it: [sum(it)])),
        numbers(sc).mapPartitions(list).mapPartitions(lambda it: [len(it)]).collect(),
        numbers(sc).pipe("cat").collect(),
    ],
    "mapPartitions that goes on after errors": lambda sc, _: split_rows(
        numbers(sc).map(lambda i: fails_on(i, 7)).map(lambda i: i).mapPartitions(stubborn)
    ),
    "filter under a mapPartitions that goes on": lambda sc, _: split_rows(
        numbers(sc).filter(lambda i: fails_on(i, 7) % 2).mapPartitions(stubborn)
    ),
    "flatMap under a mapPartitions that goes on": lambda sc, _: split_rows(
        numbers(sc).flatMap(lambda i: [fails_on(i, 7)] * 2).mapPartitions(stubborn)
    ),
    "one object that changes": lambda sc, _: split_rows(
        sc.parallelize([0], 1).mapPartitions(reused).map(lambda r: r).filter(bool).map(lambda r: r[0])
    ),
    "reduceByKey": lambda sc, _: split_rows(pairs(sc).reduceByKey(operator.add)),
    "reduceByKey of keys that are equal": lambda sc, _: split_rows(
        sc.parallelize([(1, "a"), (1.0, "b"), (True, "c"), ((1, 2), "d"), ((True, 2), "e")], 3)
        .reduceByKey(operator.add, 2)
    ),
    "combineByKey, aggregateByKey, foldByKey": lambda sc, _: [
        split_rows(pairs(sc).combineByKey(lambda v: [v], lambda vs, v: [*vs, v], operator.add)),
        split_rows(pairs(sc).aggregateByKey([], lambda vs, v: [*vs, v], operator.add, 2)),
        split_rows(pairs(sc).foldByKey(100, operator.add, 5)),
    ],
    "distinct": lambda sc, _: split_rows(numbers(sc).map(lambda i: i % 7).distinct()),
    "groupByKey, groupBy, cogroup": lambda sc, _: [
        values(pairs(sc).groupByKey(2)),
        values(numbers(sc).groupBy(lambda i: i % 3)),
        values(pairs(sc).cogroup(others(sc), 2)),
    ],
    "joins": lambda sc, _: [
        split_rows(join(others(sc), 2))
        for left in [pairs(sc)]
        for join in (left.join, left.leftOuterJoin, left.rightOuterJoin, left.fullOuterJoin)
    ],
    "join of what is partitioned alike": lambda sc, _: split_rows(
        pairs(sc).partitionBy(3).join(others(sc).partitionBy(3))
    ),
    "subtract, intersection": lambda sc, _: [
        numbers(sc).subtract(numbers(sc, 20)).collect(),
        numbers(sc).intersection(numbers(sc, 5)).collect(),
    ],
    "partitionBy": lambda sc, _: [
        split_rows(pairs(sc).partitionBy(3)),
        pairs(sc).partitionBy(2, ord).collect(),
        split_rows(pairs(sc).partitionBy(2).union(others(sc).partitionBy(2))),
        split_rows(pairs(sc).partitionBy(3).coalesce(1)),
        split_rows(pairs(sc).partitionBy(2).zip(pairs(sc).partitionBy(2))),
    ],
    "repartitionAndSortWithinPartitions": lambda sc, _: split_rows(
        pairs(sc).map(lambda kv: (kv[1], kv[0])).repartitionAndSortWithinPartitions(3, lambda k: k % 3)
    ),
    "sortBy, sortByKey": lambda sc, _: [
        split_rows(numbers(sc).sortBy(lambda i: i * 7 % 5)),
        split_rows(numbers(sc).sortBy(lambda i: -i, numPartitions=1)),
        split_rows(pairs(sc).sortByKey(ascending=False, numPartitions=3, keyfunc=str.upper)),
        sc.parallelize([], 2).map(lambda i: (i, i)).sortByKey().collect(),
    ],
    "union, coalesce, repartition": lambda sc, folder: [
        reduce(lambda made, _: made.union(made), range(5), numbers(sc, 4, 1)).coalesce(2).collect(),
        split_rows(numbers(sc).union(pairs(sc)).coalesce(3).map(str)),
        split_rows(lines(sc, folder).union(lines(sc, folder)).coalesce(2)),
        split_rows(sc.union([numbers(sc), numbers(sc, 3)])),
        split_rows(numbers(sc).repartition(3)),
        numbers(sc).map(str).union(lines(sc, folder)).collect(),
    ],
    "zip, zipWithIndex, zipWithUniqueId, cartesian": lambda sc, folder: [
        numbers(sc).zip(numbers(sc).map(str)).collect(),
        lines(sc, folder).zip(lines(sc, folder)).collect(),
        split_rows(numbers(sc).zipWithIndex()),
        split_rows(numbers(sc).zipWithUniqueId()),
        numbers(sc, 3).cartesian(lines(sc, folder)).collect(),
    ],
    "sample, randomSplit, takeSample": lambda sc, _: [
        numbers(sc).sample(False, 0.4, 3).collect(),
        [part.collect() for part in numbers(sc).randomSplit([1, 2], 5)],
        numbers(sc).takeSample(False, 4, 7),
    ],
    "take, first, top, takeOrdered, isEmpty": lambda sc, _: [
        numbers(sc).filter(lambda i: i > 9).take(5),
        numbers(sc).flatMap(lambda i: [i] * 100).take(7),
        numbers(sc).map(str).union(numbers(sc)).take(9),
        pairs(sc).reduceByKey(max).first(),
        numbers(sc).top(3),
        numbers(sc).takeOrdered(3, lambda i: -i),
        numbers(sc).filter(lambda i: False).isEmpty(),
    ],
    "take before a record that raises": lambda sc, _: [
        sc.parallelize(range(10), 1).map(lambda i: fails_on(i, 6)).take(5),
        sc.parallelize(range(10), 1).filter(lambda i: fails_on(i, 6) > -1).take(5),
        sc.parallelize(range(10), 1).flatMap(lambda i: iter([fails_on(i, 6)])).take(5),
    ],
    "actions that give one value": lambda sc, _: [
        numbers(sc).count(),
        numbers(sc).sum(),
        numbers(sc).reduce(max),
        numbers(sc).fold(0, operator.add),
        numbers(sc).aggregate([], lambda a, b: [*a, b], operator.add),
        numbers(sc).treeReduce(operator.add),
        numbers(sc).treeAggregate(0, operator.add, operator.add),
        numbers(sc).map(lambda i: i % 4).countByValue(),
        pairs(sc).countByKey(),
        pairs(sc).reduceByKeyLocally(max),
        pairs(sc).collectAsMap(),
        pairs(sc).lookup("b"),
        numbers(sc).histogram(3),
        numbers(sc).stats().asDict(),
        list(numbers(sc).toLocalIterator()),
        sc.runJob(numbers(sc), lambda it: [sum(it)], [1, 2]),
    ],
    "text files": lambda sc, folder: [
        lines(sc, folder).collect(),
        saved(lines(sc, folder).map(str.upper), folder),
        saved(pairs(sc).reduceByKey(max), folder),
        saved(numbers(sc).map(lambda i: f"{i}\n{i}"), folder),
        saved(numbers(sc), folder, "org.apache.hadoop.io.compress.BZip2Codec"),
        [text for _, text in sc.wholeTextFiles(str(folder / "in.txt")).collect()],
    ],
    "pickle files": lambda sc, folder: pickled(pairs(sc), folder),
    "objects that only the driver can read": lambda sc, _: [
        sc.parallelize([OnTheDriverOnly()]).collect(),
        sc.parallelize([OnTheDriverOnly()] * 2).coalesce(1).collect(),
        sc.parallelize([OnTheDriverOnly()]).union(sc.parallelize([OnTheDriverOnly()])).cache().collect(),
        list(sc.parallelize([OnTheDriverOnly()] * 3, 2).toLocalIterator()),
        sc.parallelize([OnTheDriverOnly()]).zip(sc.parallelize([OnTheDriverOnly()])).collect(),
    ],
    "cache": lambda sc, _: cached_twice(sc),
    "checkpoint": lambda sc, folder: checkpointed(sc, folder),
    "accumulators": lambda sc, _: [
        counted(sc, lambda a: numbers(sc).map(lambda i: a.add(1) or i).collect()),
        counted(sc, lambda a: numbers(sc).foreach(lambda i: a.add(i))),
        counted(sc, lambda a: numbers(sc).map(lambda i: a.add(1) or i).sortBy(lambda i: i).collect()),
        counted(sc, lambda a: numbers(sc).map(lambda i: a.add(1) or (i % 2, i)).reduceByKey(max).collect()),
        counted(sc, lambda a: numbers(sc).map(lambda i: a.add(1) or i).take(3)),
    ],
    "a stage that is made again": lambda sc, folder: [
        counted(sc, lambda a: made_again(sc, folder, a, cached=False)),
        counted(sc, lambda a: made_again(sc, folder, a, cached=True)),
    ],
    "generators that are left early are finalised within the task": lambda sc, _: [
        counted(sc, lambda a: sc.parallelize(range(9), 1).mapPartitions(with_finally(a)).map(str).take(2)),
        counted(sc, lambda a: numbers(sc).mapPartitions(with_finally(a)).flatMap(lambda i: [i, i]).take(3)),
        counted(sc, lambda a: numbers(sc).mapPartitions(with_finally(a)).collect()),
    ],
    "broadcasts": lambda sc, _: (lambda b: numbers(sc).map(lambda i: b.value[i % 2]).collect())(
        sc.broadcast(["even", "odd"])
    ),
    "barrier": lambda sc, _: numbers(sc, 8, 2).barrier().mapPartitions(meet).collect(),
    "DataFrames": lambda sc, _: dataframes(sc),
    "threads": lambda sc, _: in_threads(sc),
    "partitioners": lambda sc, _: [
        made.partitioner is not None and made.partitioner.numPartitions
        for made in (
            pairs(sc).reduceByKey(max, 5),
            pairs(sc).reduceByKey(max, 5).mapValues(str),
            pairs(sc).reduceByKey(max, 5).filter(bool),
            pairs(sc).reduceByKey(max, 5).map(str),
            pairs(sc).join(others(sc), 4),
            pairs(sc).partitionBy(3).union(others(sc).partitionBy(3)),
            pairs(sc).sortByKey(),
        )
    ],
}  # fmt: skip


#: Jobs that run with values captured as well, which puts a step between all operators.
DETAILED = (
    "map", "filter", "flatMap of lists, tuples, strings, dicts and generators", "mapPartitions, glom, pipe",
    "mapPartitions that goes on after errors", "one object that changes", "reduceByKey", "joins",
    "sortBy, sortByKey", "take before a record that raises",
    "generators that are left early are finalised within the task",
)  # fmt: skip


def fails_on(i: int, bad: int) -> int:
    if i % 10 == bad:
        raise ValueError(f"no {i}")
    return i


def pickled(dataset: RDD[Any], folder: Path) -> Any:
    path = str(folder / f"pickled-{time.monotonic_ns()}")
    dataset.saveAsPickleFile(path)
    return sorted(dataset.ctx.pickleFile(path, 3).collect())


def checkpointed(context: SparkContext, folder: Path) -> Any:
    context.setCheckpointDir(str(folder / "checkpoints"))
    dataset = numbers(context).map(lambda i: i * 2)
    dataset.checkpoint()
    return dataset.collect(), dataset.map(str).collect(), dataset.isCheckpointed()


def meet(records: Iterator[int]) -> Iterator[tuple[int, int]]:
    BarrierTaskContext.get().barrier()
    yield BarrierTaskContext.get().partitionId(), sum(records)


def dataframes(context: SparkContext) -> Any:
    spark = SparkSession(context)
    frame = spark.createDataFrame(pairs(context).reduceByKey(max), "k string, v int")
    return [
        sorted(map(tuple, frame.collect())),
        sorted(frame.rdd.map(lambda row: row.v).collect()),
        sorted(map(tuple, frame.rdd.collect())),
        frame.groupBy("k").count().count(),
    ]


def in_threads(context: SparkContext) -> list[list[int]]:
    results: list[list[int]] = [[], [], []]

    def work(number: int) -> None:
        results[number] = numbers(context).map(lambda i: i + number).sortBy(lambda i: -i).collect()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def raises(_record: Any, *_more: Any) -> Any:
    raise ZeroDivisionError("of the user")


def stops(_record: Any, *_more: Any) -> Any:
    raise StopIteration("of the user")


ERRORS: dict[str, Job] = {
    "failing map": lambda sc, _: numbers(sc).map(lambda i: i).map(lambda i: 1 // (i - 3)).map(str).collect(),
    "failing filter": lambda sc, _: numbers(sc).filter(lambda i: 1 // (i - 3)).collect(),
    "flatMap": lambda sc, _: numbers(sc).flatMap(raises).count(),
    "flatMap of what is no iterable": lambda sc, _: numbers(sc).flatMap(lambda i: i).collect(),
    "generator of a flatMap": lambda sc, _: numbers(sc).flatMap(lambda i: (1 // x for x in [i])).count(),
    "mapPartitions": lambda sc, _: numbers(sc).mapPartitions(raises).map(str).collect(),
    "mapPartitions that gives nothing": lambda sc, _: numbers(sc).mapPartitions(lambda it: None).count(),
    "failing reduceByKey": lambda sc, _: pairs(sc).reduceByKey(raises).collect(),
    "combiner": lambda sc, _: pairs(sc).combineByKey(raises, raises, raises).collect(),
    "reduce side": lambda sc, _: pairs(sc).combineByKey(str, lambda a, b: a, raises).collect(),
    "records that are no pairs": lambda sc, _: numbers(sc).reduceByKey(max).collect(),
    "records of three": lambda sc, _: numbers(sc).map(lambda i: (i, 0, 0)).reduceByKey(max).count(),
    "key without a hash": lambda sc, _: pairs(sc).map(lambda kv: ([kv[0]], 1)).reduceByKey(max).collect(),
    "join of keys without a hash": lambda sc, _: numbers(sc).map(lambda i: ([i], 1)).join(others(sc)).count(),
    "partition function": lambda sc, _: pairs(sc).partitionBy(2, raises).collect(),
    "partition function that gives text": lambda sc, _: pairs(sc).partitionBy(2, str).collect(),
    "sort key": lambda sc, _: numbers(sc).sortBy(lambda i: raises(i)).collect(),
    "keys that do not compare": lambda sc, _: sc.parallelize([1, "a", 2], 2).sortBy(lambda i: i).collect(),
    "StopIteration in map": lambda sc, _: numbers(sc).map(stops).collect(),
    "StopIteration in filter": lambda sc, _: numbers(sc).filter(stops).collect(),
    "StopIteration in flatMap": lambda sc, _: numbers(sc).flatMap(stops).collect(),
    "StopIteration in reduceByKey": lambda sc, _: pairs(sc).reduceByKey(stops).collect(),
    "StopIteration in foreach": lambda sc, _: numbers(sc).foreach(stops),
    "result that cannot be pickled": lambda sc, _: numbers(sc).map(lambda i: threading.Lock()).collect(),
    "function that cannot be pickled": lambda sc, _: (
        lambda lock: numbers(sc).map(lambda i: lock).map(str).collect()
    )(threading.Lock()),
    "context in a function": lambda sc, _: numbers(sc).map(lambda i: sc.parallelize([i])).collect(),
    "RDD in a function": lambda sc, _: (lambda r: r.map(lambda i: r).count())(numbers(sc)),
    "input that is missing": lambda sc, folder: sc.textFile(str(folder / "none")).map(len).collect(),
    "input that is missing, coalesced": lambda sc, folder: sc.textFile(f"{folder}/none").coalesce(1).count(),
    "pickle file that is missing": lambda sc, folder: sc.pickleFile(str(folder / "none")).collect(),
    "output that exists": lambda sc, folder: numbers(sc).saveAsTextFile(str(folder)),
    "codec that is missing": lambda sc, folder: numbers(sc).saveAsTextFile(str(folder / "x"), "no.Such"),
    "empty reduce": lambda sc, _: numbers(sc, 0).reduce(max),
    "coalesce to nothing": lambda sc, _: numbers(sc).coalesce(0),
    "zip of different sizes": lambda sc, _: numbers(sc).zip(numbers(sc, 5)).collect(),
    "zip of different partitions": lambda sc, _: numbers(sc).zip(numbers(sc, 5, 2)),
    "union with no RDD": lambda sc, _: numbers(sc) + 3,
    "wrong number of arguments": lambda sc, _: numbers(sc).map(),
}  # fmt: skip

#: Jobs whose error comes out of PySpark's own code: the traceback is that without lineage, frame by frame.
REFUSED: dict[str, Job] = {
    "save that raises": lambda sc, folder: saved(numbers(sc).map(raises), folder),
    "save over what exists": lambda sc, folder: numbers(sc).saveAsTextFile(str(folder)),
    "source of a number": lambda sc, _: sc.parallelize(3),
    "source of no number of slices": lambda sc, _: sc.range(3, numSlices="x"),
    "union of what is no RDD": lambda sc, _: numbers(sc).union(3),
    "union of a list": lambda sc, _: numbers(sc).union([numbers(sc)]),
    "context's union of no RDD": lambda sc, _: sc.union([]),
    "context's union of a number": lambda sc, _: sc.union(3),
    "context's union of numbers": lambda sc, _: sc.union([3, 4]),
    "context's union of an RDD and None": lambda sc, _: sc.union([numbers(sc), None]),
    "context's union of a generator": lambda sc, _: sc.union(each for each in [numbers(sc)]),
}  # fmt: skip


JOBS = {**ROWS, **ERRORS, **REFUSED}


def error_of(job: Callable[[], Any]) -> tuple[str, list[str]]:
    """(type, text without the frames of PySpark and the agent, without stack frames of the JVM).

    Without the number of the task either: where two fail at once, either can be the first.
    """
    try:
        result = job()
    except Exception as error:  # noqa: BLE001 - every kind is compared
        text = re.sub(r"\n\tat .*", "", str(error), flags=re.DOTALL)
        frames = re.compile(r'  File "[^"]*(?:/pyspark/|/spark_agent/)[^"]*", line.*\n(?:    .*\n)*')
        text = re.sub(
            r"0x[0-9a-f]+|(?<=calling o)\d+|(?<=stage )[\d.]+|(?<=TID )\d+|(?<=[Tt]ask )[\d.]+",
            "…",
            frames.sub("", text),
        )
        seen = re.search("spark_agent/(worker|driver)/", "".join(traceback.format_exception(error)))
        text += f"\n{seen}" if seen else ""
        return type(error).__name__, text.splitlines()
    pytest.fail(f"no error, but {result!r}")


def frames_of(job: Callable[[], Any]) -> list[tuple[str, str, int | None]]:
    """(file, function, line) of each frame below this one."""
    with pytest.raises(Exception) as caught:
        job()
    return [(each.filename, each.name, each.lineno) for each in traceback.extract_tb(caught.tb)][1:]


@contextmanager
def a_context(kafka: Any, **conf: str) -> Iterator[SparkContext]:
    settings = {
        "spark.master": "local[2]",
        "spark.app.name": "test",
        "spark.ui.enabled": "false",
        "spark.default.parallelism": "3",
        "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
        "spark.lineage.topic.node": "test-invisible-node",
        "spark.lineage.topic.flow": "test-invisible-flow",
        **{name.replace("_", "."): value for name, value in conf.items()},
    }
    with SparkContext(conf=SparkConf().setAll(list(settings.items()))) as context:
        context.setLogLevel("OFF")
        yield context


Outcomes = Mapping[str, Any]


def outcomes(kafka: Any, folder: Path, names: Iterable[str], **conf: str) -> Outcomes:
    """What the jobs give: rows as text, or the error."""
    given: dict[str, Any] = {}
    with a_context(kafka, spark_local_dir=str(folder / "local"), **conf) as context:
        for name in names:
            if name in ERRORS:
                given[name] = error_of(partial(ERRORS[name], context, folder))
                continue
            if name in REFUSED:
                job = partial(REFUSED[name], context, folder)
                given[name] = *error_of(job), frames_of(job)
                continue
            try:
                given[name] = repr(ROWS[name](context, folder))
            except Exception as error:  # noqa: BLE001 - the test of this job reports it
                given[name] = error
    return given


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("invisible")
    (made / "in.txt").write_text("".join(f"line {i}\n" for i in range(11)))
    return made


@pytest.fixture(scope="module")
def without(request: pytest.FixtureRequest, kafka: Any, folder: Path) -> Outcomes:
    return outcomes(kafka, folder, selected(request, JOBS))


@pytest.fixture(scope="module")
def with_lineage(request: pytest.FixtureRequest, kafka: Any, folder: Path) -> Outcomes:
    return outcomes(kafka, folder, selected(request, JOBS), spark_lineage_enabled="true")


@pytest.fixture(scope="module")
def with_values(kafka: Any, folder: Path) -> Outcomes:
    return outcomes(kafka, folder, DETAILED, spark_lineage_enabled="true", spark_lineage_detailed="true")


def test_no_two_jobs_have_one_name() -> None:
    assert len({*ROWS, *ERRORS, *REFUSED}) == len(ROWS) + len(ERRORS) + len(REFUSED)


@pytest.mark.parametrize("name", sampled(ROWS, 10))
def test_a_job_gives_the_same_with_lineage(name: str, without: Outcomes, with_lineage: Outcomes) -> None:
    assert not isinstance(without[name], Exception), without[name]
    assert not isinstance(with_lineage[name], Exception), with_lineage[name]
    assert with_lineage[name] == without[name]


@pytest.mark.parametrize("name", sampled(ERRORS, 10))
def test_a_job_fails_as_it_fails_without_lineage(
    name: str, without: Outcomes, with_lineage: Outcomes
) -> None:
    assert with_lineage[name] == without[name]


@pytest.mark.parametrize("name", sampled(REFUSED, 10))
def test_an_error_of_pyspark_has_the_same_words_and_frames(
    name: str, without: Outcomes, with_lineage: Outcomes
) -> None:
    assert with_lineage[name] == without[name]


@pytest.mark.thorough
@pytest.mark.parametrize("name", DETAILED)
def test_a_job_gives_the_same_with_values_too(name: str, without: Outcomes, with_values: Outcomes) -> None:
    assert with_values[name] == without[name]


def attributes() -> dict[str, Any]:
    """Every attribute that the agent may replace."""
    owners = (RDD, PipelinedRDD, SparkContext)
    return {
        **{f"{owner.__name__}.{name}": value for owner in owners for name, value in vars(owner).items()},
        "_wrap_function": rdd_module._wrap_function,
    }


def is_stock(name: str, value: Any) -> bool:
    """The hook watches `_do_init` in any case: it is where the conf is read."""
    is_ours = isfunction(value) and value.__globals__["__name__"].startswith("spark_agent")
    return name == "SparkContext._do_init" or not is_ours


def changing(found: Mapping[str, Any]) -> dict[str, Any]:
    """Without the state that a SparkContext keeps in its class."""
    return {name: value for name, value in found.items() if callable(value)}


def test_off_means_that_nothing_is_patched(kafka: Any) -> None:
    stock = changing(attributes())
    assert [name for name, value in stock.items() if not is_stock(name, value)] == []
    for conf in ({}, *({"spark_lineage_enabled": flag} for flag in ("", "false", "yes"))):
        with a_context(kafka, **conf) as context:
            assert changing(attributes()) == stock
            assert type(numbers(context).map(str).func).__module__ == "builtins"
            assert agent.active() is None


def test_a_stopped_context_leaves_nothing_patched_and_another_can_start(kafka: Any) -> None:
    stock = changing(attributes())
    for _ in range(2):
        with a_context(kafka, spark_lineage_enabled=" True ") as context:
            patched = [name for name, value in attributes().items() if not is_stock(name, value)]
            assert {"RDD.map", "RDD.collect", "PipelinedRDD.__init__", "SparkContext.stop"} <= set(patched)
            assert numbers(context).map(str).collect() == [str(i) for i in range(24)]
            running = agent.active()
            assert running is not None
        assert changing(attributes()) == stock
        assert agent.active() is None
        counters = dict(running.session.events.counters)
        assert counters.pop("driver_waited_ms") >= 0
        assert counters == {
            "runs": 4, "blocks": 0, "dropped": 0, "spooled": 0, "cut": 0, "withheld": 0, "events_lost": 0,
            "queries_failed": 0, "waited_ms": 0,
        }  # fmt: skip


def test_a_session_that_cannot_begin_leaves_nothing_patched(
    kafka: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock = changing(attributes())

    def broken(_context: Any) -> None:
        raise OSError("no place for the archive")

    monkeypatch.setattr(agent, "ship_agent", broken)
    finders = list(sys.meta_path)
    with a_context(kafka, spark_lineage_enabled="true") as context:
        assert changing(attributes()) == stock
        assert sys.meta_path == finders
        assert agent.active() is None
        assert numbers(context).map(str).count() == 24


def test_the_hook_imports_nothing_but_sys() -> None:
    script = (
        "import sys; before = set(sys.modules); import spark_agent.hook; print(*set(sys.modules) - before)"
    )
    # -S: without the .pth file, which would have imported it before.
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env={"PYTHONPATH": str(Path(agent.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) == {"spark_agent", "spark_agent.hook"}


def test_a_pyspark_that_is_there_before_the_hook_is_watched_too() -> None:
    script = "from pyspark import SparkContext; import spark_agent.hook; print(SparkContext._lineage_hooked)"
    folders = [Path(agent.__file__).parents[1], *map(Path, sys.path)]
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env={"PYTHONPATH": ":".join(map(str, folders))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True"]
