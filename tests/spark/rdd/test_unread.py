"""Actions on records that no Python worker had: the driver's own, of pickled files, what the JVM made."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.serializers import MarshalSerializer

from lineage_service.queries import RecordQuery
from tests.support.lanes import sampled, selected
from tests.support.spark.application import Application, run_application

# The first test of the module runs the jobs of all of them.
pytestmark = [pytest.mark.timeout(2700), pytest.mark.thorough]

#: Stands for a source in a case: makes it, and notes it so that its records can be looked up.
Source = Callable[..., Any]
#: (source, folder of files that are there) -> a dataset.
Make = Callable[[Source, str], Any]


def record(number: int) -> Any:
    """Of a class that the workers have not."""
    from known_to_the_driver import Record  # type: ignore[import-not-found] # made by the test

    return Record(number)


def numbers(source: Source, count: int, splits: int, first: int = 0) -> Any:
    return source("parallelize", list(range(first, first + count)), splits)


def cached(dataset: Any) -> Any:
    dataset.cache()
    dataset.count()
    return dataset


def checkpointed(dataset: Any) -> Any:
    dataset.checkpoint()
    dataset.count()
    return dataset


DATASETS: dict[str, Make] = {
    "parallelize": lambda source, _: numbers(source, 7, 3),
    "more splits than records": lambda source, _: numbers(source, 2, 5),
    "a class of the driver": lambda source, _: source("parallelize", [record(n) for n in range(5)], 2),
    "range": lambda source, _: source("range", 0, 12, 3, 3),
    "union": lambda source, _: numbers(source, 5, 2).union(numbers(source, 4, 3, 100)),
    "union of unions": lambda source, _: (
        numbers(source, 4, 1).union(numbers(source, 3, 2, 50)).union(numbers(source, 4, 2, 100))
    ),
    "union with what was mapped": lambda source, _: (
        numbers(source, 4, 2).union(numbers(source, 4, 2, 100).map(lambda n: n))
    ),
    "union of a class of the driver": lambda source, _: (
        source("parallelize", [record(n) for n in range(4)], 2)
        .union(source("parallelize", [record(n) for n in range(10, 14)], 2))
    ),
    "coalesce": lambda source, _: numbers(source, 11, 5).coalesce(2),
    "coalesce of a union": lambda source, _: (
        numbers(source, 5, 3).union(numbers(source, 4, 2, 100)).coalesce(2)
    ),
    "zip": lambda source, _: numbers(source, 6, 2).zip(numbers(source, 6, 2, 100)),
    "zip of a zip": lambda source, _: (
        numbers(source, 6, 2).zip(numbers(source, 6, 2, 100).zip(numbers(source, 6, 2, 200)))
    ),
    "union of zips": lambda source, _: (
        numbers(source, 3, 1).zip(numbers(source, 3, 1, 100))
        .union(numbers(source, 4, 2, 10).zip(numbers(source, 4, 2, 110)))
    ),
    "cartesian": lambda source, _: numbers(source, 3, 2).cartesian(numbers(source, 3, 2, 100)),
    "repartition": lambda source, _: numbers(source, 40, 4).repartition(3),
    "repartition of a class of the driver": lambda source, _: (
        source("parallelize", [record(n) for n in range(30)], 3).repartition(2)
    ),
    "repartition again": lambda source, _: (
        source("parallelize", [record(n) for n in range(30)], 3).repartition(4).repartition(2)
    ),
    "repartition and coalesce": lambda source, _: (
        source("parallelize", [record(n) for n in range(40)], 4).repartition(3).coalesce(2)
    ),
    "cartesian of a class of the driver": lambda source, _: (
        source("parallelize", [record(n) for n in range(3)], 2)
        .cartesian(source("parallelize", [record(n) for n in range(10, 14)], 2))
    ),
    "cartesian of what was repartitioned": lambda source, _: (
        source("parallelize", [record(n) for n in range(20)], 2).repartition(2)
        .cartesian(numbers(source, 3, 2, 100))
    ),
    "zip of what was repartitioned": lambda source, _: (
        source("parallelize", [record(n) for n in range(40)], 4).repartition(2)
        .zip(source("parallelize", [record(n) for n in range(50, 90)], 4).repartition(2))
    ),
    "union of cartesians": lambda source, _: (
        source("parallelize", [record(n) for n in range(3)], 2).cartesian(numbers(source, 2, 1, 100))
        .union(
            source("parallelize", [record(n) for n in range(6, 9)], 2).cartesian(numbers(source, 2, 1, 200))
        )
    ),
    "union of what was repartitioned": lambda source, _: (
        source("parallelize", [record(n) for n in range(20)], 2).repartition(2)
        .union(source("parallelize", [record(n) for n in range(40, 60)], 2).repartition(1))
    ),
    "cache": lambda source, _: cached(numbers(source, 6, 2)),
    "map and cache": lambda source, _: cached(numbers(source, 6, 2).map(lambda n: n)),
    "checkpoint": lambda source, _: checkpointed(numbers(source, 6, 2)),
    "pickleFile": lambda source, folder: source("pickleFile", f"{folder}/pickled", 3),
    "sequenceFile": lambda source, folder: source("sequenceFile", f"{folder}/sequence"),
    "emptyRDD": lambda source, _: source("emptyRDD"),
    "text and numbers": lambda source, folder: (
        source("textFile", f"{folder}/in.txt", 2).union(numbers(source, 4, 2))
    ),
}  # fmt: skip


def few(source: Source, _: str) -> Any:
    return numbers(source, 9, 4)


def zipped(source: Source, _: str) -> Any:
    return numbers(source, 6, 2).zip(numbers(source, 6, 2, 10))


#: Case -> (dataset, action that gives its records in a list, name of the sink).
GIVEN: dict[str, tuple[Make, Callable[[Any], list[Any]], str]] = {
    **{name: (make, lambda dataset: dataset.collect(), "collect") for name, make in DATASETS.items()},
    "toLocalIterator": (few, lambda dataset: list(dataset.toLocalIterator()), "toLocalIterator"),
    "read ahead": (few, lambda dataset: list(dataset.toLocalIterator(True)), "toLocalIterator"),
    "collectAsMap": (zipped, lambda dataset: list(dataset.collectAsMap().items()), "collectAsMap"),
    "take": (few, lambda dataset: dataset.take(5), "take"),
    "first": (few, lambda dataset: [dataset.first()], "first"),
    "top": (few, lambda dataset: dataset.top(3), "top"),
    "take of a union": (DATASETS["union"], lambda dataset: dataset.take(7), "take"),
    "takeSample": (few, lambda dataset: dataset.takeSample(False, 4, 7), "takeSample"),
}
#: Case -> (dataset, saver, its arguments, reader of what was written).
SAVED: dict[str, tuple[Make, str, tuple[Any, ...], str]] = {
    "batches of ten": (lambda source, _: numbers(source, 20, 2), "saveAsPickleFile", (), "pickleFile"),
    "a class in batches of ten": (
        lambda source, _: source("parallelize", [record(n) for n in range(20)], 2),
        "saveAsPickleFile",
        (),
        "pickleFile",
    ),
    "pickled again": (DATASETS["pickleFile"], "saveAsPickleFile", (0,), "pickleFile"),
    "sequence again": (DATASETS["sequenceFile"], "saveAsSequenceFile", (), "sequenceFile"),
    "from a cache": (
        lambda source, _: cached(
            source("parallelize", [(n, str(n)) for n in range(6)], 2).map(lambda pair: pair)
        ),
        "saveAsSequenceFile",
        (),
        "sequenceFile",
    ),
}
CASES = (*GIVEN, *SAVED)


@dataclass(frozen=True)
class Outcome:
    application: Application
    #: Case -> (result without lineage, with it, the records of each split of each of its sources).
    results: Mapping[str, tuple[list[Any], list[Any], list[list[list[Any]]]]]
    #: Case -> its sink.
    sinks: Mapping[str, Any]


@pytest.fixture(scope="module")
def outcome(
    request: pytest.FixtureRequest, kafka: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outcome]:
    folder = tmp_path_factory.mktemp("unread")
    (folder / "known_to_the_driver.py").write_text(
        "from typing import NamedTuple\n\n\nclass Record(NamedTuple):\n    number: int\n    text: str = 'x'\n"
    )
    (folder / "in.txt").write_text("a\nb\nc\n")
    sys.path.insert(0, str(folder))
    try:
        yield run_cases(kafka.bootstrap_servers, folder, selected(request, {**GIVEN, **SAVED}))
    finally:
        sys.path.remove(str(folder))


def run_cases(servers: str, folder: Path, cases: Mapping[str, Any]) -> Outcome:
    given = {name: case for name, case in GIVEN.items() if name in cases}
    to_save = {name: case for name, case in SAVED.items() if name in cases}

    def plain(context: Any) -> dict[str, tuple[list[Any], list[list[list[Any]]]]]:
        context.setCheckpointDir(str(folder / "checkpoints"))
        context.parallelize(range(9), 2).saveAsPickleFile(str(folder / "pickled"), 2)
        context.parallelize(range(9), 2).map(lambda n: (n, str(n))).saveAsSequenceFile(
            str(folder / "sequence")
        )
        found = {}
        for name in cases:
            splits: list[list[list[Any]]] = []

            def source(maker: str, *args: Any, splits: Any = splits) -> Any:
                dataset = getattr(context, maker)(*args)
                if maker == "parallelize":  # a worker may not have the class
                    places = context.parallelize(list(range(len(args[0]))), args[1]).glom().collect()
                    splits.append([[args[0][at] for at in split] for split in places])
                else:
                    splits.append(dataset.glom().collect())
                return dataset

            make, act = (
                GIVEN[name][:2] if name in GIVEN else (SAVED[name][0], lambda dataset: dataset.collect())
            )
            found[name] = act(make(source, str(folder))), splits
        return found

    def with_lineage(context: Any) -> dict[str, list[Any]]:
        context.setCheckpointDir(str(folder / "checkpoints"))

        def source(maker: str, *args: Any) -> Any:
            return getattr(context, maker)(*args)

        found = {name: act(make(source, str(folder))) for name, (make, act, _) in given.items()}
        for name, (make, saver, args, _) in to_save.items():
            getattr(make(source, str(folder)), saver)(str(folder / name), *args)
        return found

    def read_again(context: Any) -> dict[str, list[Any]]:
        return {
            name: sorted(getattr(context, reader)(str(folder / name)).collect())
            for name, (_, _, _, reader) in to_save.items()
        }

    without, _ = run_application(servers, folder, plain, lineage=False)
    results, application = run_application(servers, folder / "store", with_lineage)
    saved, _ = run_application(servers, folder, read_again, lineage=False)
    assert application is not None
    found = {
        name: (rows if name in GIVEN else sorted(rows), (results | saved)[name], splits)
        for name, (rows, splits) in without.items()
    }
    sinks = [sink for sink in application.sinks() if sink.name != "count"]
    return Outcome(application, found, dict(zip(cases, sinks, strict=True)))


@pytest.mark.parametrize("name", sampled(CASES, 6))
def test_the_records_are_those_without_lineage(outcome: Outcome, name: str) -> None:
    without, with_lineage, _ = outcome.results[name]
    assert with_lineage == without


@pytest.mark.parametrize("name", sampled(CASES, 6))
def test_each_record_of_the_sink_is_traced_to_its_sources(outcome: Outcome, name: str) -> None:
    without, _, splits = outcome.results[name]
    application, sink = outcome.application, outcome.sinks[name]
    assert sink.name == (GIVEN[name][2] if name in GIVEN else SAVED[name][1])
    assert sink.exact
    page = application.questions.records(
        application.application_id, RecordQuery(node=sink.node_id, limit=1000)
    )
    assert len(page.records) == len(without)
    nodes = sources_of(application, sink)
    assert len(nodes) == len(splits)
    for found, expected in zip(page.records, without, strict=True):
        trace = application.trace(direction="backward", node=sink.node_id, record=found.record_id)
        assert trace.exact
        origins = [
            splits[nodes.index(node.node_id)][source.partition][source.offset]
            for node in sorted(trace.nodes, key=lambda node: number_of(node.node_id))
            if node.kind == "source"
            for source in node.records
        ]
        assert origins == flat(expected), found.record_id


@pytest.mark.parametrize("name", sampled(CASES, 6))
def test_each_source_of_a_record_is_traced_to_it(outcome: Outcome, name: str) -> None:
    application, sink = outcome.application, outcome.sinks[name]
    records = application.questions.records(
        application.application_id, RecordQuery(node=sink.node_id, limit=1000)
    ).records
    for record_id in {record.record_id for record in (*records[:1], *records[-1:])}:
        backward = application.trace(direction="backward", node=sink.node_id, record=record_id)
        for node in backward.nodes:
            if node.kind == "source":
                (source,) = node.records
                forward = application.trace(
                    direction="forward", node=node.node_id, record=source.record_id, to=sink.node_id
                )
                reached = next(node for node in forward.nodes if node.node_id == sink.node_id)
                assert forward.exact
                assert record_id in [each.record_id for each in reached.records]


def test_records_in_a_form_of_their_own_are_said_to_be_unknown(
    run: Callable[..., tuple[Any, Application]],
) -> None:
    def job(context: Any) -> list[int]:
        context._unbatched_serializer = MarshalSerializer()  # as SparkContext(serializer=...) does
        return list(context.parallelize([1, 2, 3], 2).collect())

    rows, application = run(job)
    assert rows == [1, 2, 3]
    (sink,) = application.sinks()
    assert not sink.exact
    assert "collect" in sink.reason
    assert "JVM" in sink.reason


def flat(record: Any) -> list[Any]:
    """The source records in one of a zip or a product; a pair of a number and a text is a record itself."""
    if isinstance(record, tuple) and not (len(record) == 2 and isinstance(record[1], str)):
        return [each for part in record for each in flat(part)]
    return [record]


def number_of(node_id: str) -> int:
    return int(node_id.rpartition("#")[2])


def sources_of(application: Application, sink: Any) -> list[str]:
    """The sources that the sink comes from, in the order in which they were made."""
    graph = application.questions.graph(application.application_id)
    reached, stack = {sink.node_id}, [sink.node_id]
    while stack:
        at = stack.pop()
        for edge in graph.edges:
            if edge.target == at and edge.source not in reached:
                reached.add(edge.source)
                stack.append(edge.source)
    found = [node.node_id for node in graph.nodes if node.kind == "source" and node.node_id in reached]
    return sorted(found, key=number_of)
