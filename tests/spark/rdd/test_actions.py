"""Every action's result, traced to the records that it was made of; one application calls them all."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

from lineage_service.queries import RecordQuery
from tests.support.spark.application import Application, rows_at, run_application
from tests.support.spark.pipelines import write

# The first test of the module runs the jobs of all of them.
pytestmark = pytest.mark.timeout(2700)

#: 40 rows in 4 splits; every fifth is filtered out before the action.
ROWS = [i for i in range(40) if i % 5]

AGGREGATES: dict[str, Callable[[Any], Any]] = {
    "aggregate": lambda numbers: numbers.aggregate(0, operator.add, operator.add),
    "count": lambda numbers: numbers.count(),
    "countApprox": lambda numbers: numbers.countApprox(60_000),
    "countApproxDistinct": lambda numbers: numbers.countApproxDistinct(),
    "countByKey": lambda numbers: numbers.keyBy(lambda n: n % 2).countByKey(),
    "countByValue": lambda numbers: numbers.countByValue(),
    "fold": lambda numbers: numbers.fold(0, operator.add),
    "histogram": lambda numbers: numbers.histogram([0, 10, 40]),
    "max": lambda numbers: numbers.max(),
    "mean": lambda numbers: numbers.mean(),
    "meanApprox": lambda numbers: numbers.map(float).meanApprox(60_000),
    "min": lambda numbers: numbers.min(),
    "reduce": lambda numbers: numbers.reduce(operator.add),
    "reduceByKeyLocally": lambda numbers: numbers.keyBy(lambda n: n % 2).reduceByKeyLocally(operator.add),
    "sampleStdev": lambda numbers: numbers.sampleStdev(),
    "sampleVariance": lambda numbers: numbers.sampleVariance(),
    "stats": lambda numbers: numbers.stats().count(),
    "stdev": lambda numbers: numbers.stdev(),
    "sum": lambda numbers: numbers.sum(),
    "sumApprox": lambda numbers: numbers.map(float).sumApprox(60_000),
    "treeAggregate": lambda numbers: numbers.treeAggregate(0, operator.add, operator.add),
    "treeReduce": lambda numbers: numbers.treeReduce(operator.add),
    "variance": lambda numbers: numbers.variance(),
}
#: Action -> the rows, in order, that its result holds.
CHOSEN: dict[str, Callable[[Any], list[int]]] = {
    "first": lambda numbers: [numbers.first()],
    "take": lambda numbers: numbers.take(13),
    "takeOrdered": lambda numbers: numbers.takeOrdered(7, key=lambda n: (-n % 7, n)),
    "takeSample": lambda numbers: numbers.takeSample(False, 9, 3),
    "top": lambda numbers: numbers.top(5),
}
GIVEN: dict[str, Callable[[Any], list[int]]] = {
    "collect": lambda numbers: numbers.collect(),
    "collectAsMap": lambda numbers: list(numbers.map(lambda n: (n, n)).collectAsMap()),
    "toLocalIterator": lambda numbers: list(numbers.toLocalIterator()),
    "lookup": lambda numbers: numbers.keyBy(lambda n: n % 3).lookup(1),
}
TAKEN: dict[str, Callable[[Any], None]] = {
    "foreach": lambda numbers: numbers.foreach(lambda n: None),
    "foreachPartition": lambda numbers: numbers.foreachPartition(lambda it: sum(it)),
}
SAVED: dict[str, Callable[[Any, str], None]] = {
    "saveAsPickleFile": lambda numbers, path: numbers.saveAsPickleFile(path, 3),
    "saveAsSequenceFile": lambda numbers, path: numbers.keyBy(str).saveAsSequenceFile(path),
    "saveAsHadoopFile": lambda numbers, path: numbers.keyBy(str).saveAsHadoopFile(
        path, "org.apache.hadoop.mapred.SequenceFileOutputFormat"
    ),
    "saveAsNewAPIHadoopFile": lambda numbers, path: numbers.keyBy(str).saveAsNewAPIHadoopFile(
        path, "org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat"
    ),
    "saveAsHadoopDataset": lambda numbers, path: numbers.keyBy(str).saveAsHadoopDataset(
        {
            "mapred.output.format.class": "org.apache.hadoop.mapred.SequenceFileOutputFormat",
            "mapreduce.job.output.key.class": "org.apache.hadoop.io.Text",
            "mapreduce.job.output.value.class": "org.apache.hadoop.io.IntWritable",
            "mapreduce.output.fileoutputformat.outputdir": path,
        }
    ),
    "saveAsNewAPIHadoopDataset": lambda numbers, path: numbers.keyBy(str).saveAsNewAPIHadoopDataset(
        {
            "mapreduce.job.outputformat.class": (
                "org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat"
            ),
            "mapreduce.job.output.key.class": "org.apache.hadoop.io.Text",
            "mapreduce.job.output.value.class": "org.apache.hadoop.io.IntWritable",
            "mapreduce.output.fileoutputformat.outputdir": path,
        }
    ),
}


@pytest.fixture(scope="module")
def called(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Application]:
    """(result of each action, the lineage of the application that called them all)."""
    folder = tmp_path_factory.mktemp("actions")
    source = write(folder / "in.txt", [f"{i:03}" for i in range(40)])

    def job(context: Any) -> dict[str, Any]:
        numbers = context.textFile(str(source), 4).map(int).filter(lambda n: n % 5)
        results = {name: action(numbers) for name, action in (AGGREGATES | CHOSEN | GIVEN | TAKEN).items()}
        for name, save in SAVED.items():
            save(numbers, str(folder / name))
        results["isEmpty"] = numbers.isEmpty()
        results["runJob"] = context.runJob(numbers, lambda it: [sum(it)])
        return results

    results, application = run_application(kafka.bootstrap_servers, folder / "store", job)
    assert application is not None
    return results, application


def sink_of(application: Application, name: str) -> Any:
    return next(sink for sink in application.sinks() if sink.name == name)


def source_of(application: Application) -> str:
    nodes = application.questions.graph(application.application_id).nodes
    return next(node.description for node in nodes if node.kind == "source")


def rows_of_records(application: Application, sink: Any) -> list[int]:
    """The input row of each record of a sink, in the order of its records."""
    page = application.questions.records(
        application.application_id, RecordQuery(node=sink.node_id, limit=1000)
    )
    rows = []
    for record in page.records:
        trace = application.trace(direction="backward", node=sink.node_id, record=record.record_id)
        assert trace.exact
        ((_, row),) = rows_at(trace, "source")
        rows.append(row)
    return rows


def test_an_aggregate_is_one_record_made_of_all_that_entered(called: tuple[Any, Application]) -> None:
    results, application = called
    assert results["sum"] == sum(ROWS)
    assert results["count"] == len(ROWS)
    for name in AGGREGATES:
        sink = sink_of(application, name)
        assert sink.records == 1, name
        trace = application.trace(direction="backward", node=sink.node_id, record="write#0#0")
        assert trace.exact, name
        assert {row for _, row in rows_at(trace, "source")} == set(ROWS), name


def test_a_row_is_traced_to_every_result_that_it_went_into(called: tuple[Any, Application]) -> None:
    results, application = called
    for row in (7, 10, 39):
        reached = {
            node.name
            for node in application.trace(direction="forward", path=source_of(application), row=row).nodes
            if node.kind == "sink"
        }
        expected = {*AGGREGATES, *TAKEN, *SAVED, "runJob"} if row in ROWS else set()
        chosen = {name for name in (*CHOSEN, *GIVEN) if row in as_list(results[name])}
        assert reached - {"isEmpty"} == expected | chosen, row


def as_list(result: Any) -> list[int]:
    return list(result)


@pytest.mark.parametrize("name", [*CHOSEN, *GIVEN])
def test_each_record_of_a_result_is_traced_to_its_row(name: str, called: tuple[Any, Application]) -> None:
    results, application = called
    assert rows_of_records(application, sink_of(application, name)) == as_list(results[name])


@pytest.mark.parametrize("name", [*TAKEN, *SAVED])
def test_each_record_that_was_taken_is_traced_to_its_row(name: str, called: tuple[Any, Application]) -> None:
    _, application = called
    assert rows_of_records(application, sink_of(application, name)) == ROWS


def test_a_record_of_a_saved_file_is_found_by_its_path(called: tuple[Any, Application]) -> None:
    _, application = called
    for name in SAVED:
        (file,) = [
            record.source.path
            for record in application.questions.records(
                application.application_id,
                RecordQuery(node=sink_of(application, name).node_id, partition=1, limit=1),
            ).records
            if record.source is not None
        ]
        assert application.sources_of(file, 0) == {("in.txt", ROWS[8])}, name


def test_a_job_of_ones_own_is_a_bound(called: tuple[Any, Application]) -> None:
    _, application = called
    sink = sink_of(application, "runJob")
    assert not sink.exact
    assert "runJob" in sink.reason
