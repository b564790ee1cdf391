"""Each captured operation, traced record by record and compared with the naive interpreter."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.lanes import sampled, selected
from tests.support.spark.application import Application, check_against
from tests.support.spark.pipelines import Traced, trace_pipelines, write
from tests.support.spark.rdd_pipelines import PIPELINES

Run = Callable[..., tuple[Any, Application]]


@pytest.fixture(scope="module")
def traced(request: pytest.FixtureRequest, kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    return trace_pipelines(kafka, tmp_path_factory.mktemp("pipelines"), selected(request, PIPELINES))


@pytest.mark.parametrize("name", sampled(PIPELINES, 4))
def test_traces_equal_the_naive_interpreter(name: str, traced: Traced) -> None:
    traced.check(name)


def test_collect_is_traced_and_its_records_are_the_result(run: Run, tmp_path: Path) -> None:
    source = write(tmp_path / "in.txt", [str(i) for i in range(20)])

    def job(context: Any) -> Any:
        return context.textFile(str(source), 3).map(int).filter(lambda i: i % 2 == 0).collect()

    result, application = run(job)
    rows = [
        sorted(record.source.row for node in trace.nodes if node.kind == "source" for record in node.records)
        for sink in application.sinks()
        for record in application.questions.records(
            application.application_id, query(sink.node_id)
        ).records
        for trace in [application.trace(direction="backward", node=sink.node_id, record=record.record_id)]
    ]  # fmt: skip
    assert [row for (row,) in rows] == result


def query(node: str) -> Any:
    from lineage_service.queries import RecordQuery

    return RecordQuery(node=node, limit=1000)


def test_equal_keys_of_different_types_are_one_group(run: Run, tmp_path: Path) -> None:
    source = write(tmp_path / "in.txt", ["1", "1.0", "True", "2"])
    output = tmp_path / "out"
    keys = {"1": 1, "1.0": 1.0, "True": True, "2": 2}

    def job(context: Any) -> None:
        pairs = context.textFile(str(source), 2).map(lambda line: (keys[line], 1))
        pairs.reduceByKey(operator.add).map(lambda kv: f"{kv[0] == 1} {kv[1]}").saveAsTextFile(str(output))

    _, application = run(job)
    expected = Counter(
        {
            ("True 3", frozenset({("in.txt", 0), ("in.txt", 1), ("in.txt", 2)})): 1,
            ("False 1", frozenset({("in.txt", 3)})): 1,
        }
    )
    check_against(application, output, [source], expected)


def test_a_record_with_row_ends_is_several_rows_of_the_output(run: Run, tmp_path: Path) -> None:
    source = write(tmp_path / "in.txt", ["a", "b", "c", "d"])
    output = tmp_path / "out"
    texts = {"a": "one", "b": "two\nthree\r\nfour", "c": "", "d": "five\rsix"}

    def job(context: Any) -> None:
        context.textFile(str(source), 1).map(lambda line: texts[line]).saveAsTextFile(str(output))

    _, application = run(job)
    found = [next(iter(application.sources_of(output / "part-00000", row)))[1] for row in range(7)]
    assert found == [0, 1, 1, 1, 2, 3, 3]
    assert application.outputs_of(source, 1) == {("part-00000", 1), ("part-00000", 2), ("part-00000", 3)}


def test_spilling_keeps_the_traces_exact(run: Run, tmp_path: Path) -> None:
    source = write(tmp_path / "in.txt", [f"{i % 9_000}" for i in range(30_000)])
    output = tmp_path / "out"

    def job(context: Any) -> None:
        pairs = context.textFile(str(source), 1).map(lambda line: (line, 1))
        pairs.reduceByKey(operator.add, 1).map(lambda kv: f"{kv[0]} {kv[1]}").saveAsTextFile(str(output))

    _, application = run(job, spark_python_worker_memory="1m")
    assert any(event.get("overridden") for event in application.events), "nothing was spilled"
    lines = (output / "part-00000").read_text().splitlines()
    for row in range(0, len(lines), 997):
        key = int(lines[row].split()[0])
        expected = {("in.txt", line) for line in range(key, 30_000, 9_000)}
        assert application.sources_of(output / "part-00000", row) == expected


def test_an_operation_that_is_not_captured_gives_a_sound_bound_and_says_so(run: Run, tmp_path: Path) -> None:
    source = write(tmp_path / "in.txt", [str(i) for i in range(8)])
    output = tmp_path / "out"

    def job(context: Any) -> None:
        lines = context.textFile(str(source), 2).mapPartitions(lambda records: [sum(map(int, records))])
        lines.map(str).saveAsTextFile(str(output))

    _, application = run(job)
    for split, rows in ((0, range(5)), (1, range(5, 8))):
        trace = application.trace(direction="backward", record=f"write#{split}#0")
        assert not trace.exact
        found = {r.source.row for n in trace.nodes if n.kind == "source" for r in n.records}  # type: ignore[union-attr]
        assert found == set(rows)
    nodes = application.questions.graph(application.application_id).nodes
    (bound,) = [node for node in nodes if not node.exact]
    assert bound.name == "mapPartitions"
    assert "not captured" in bound.reason


def test_another_process_is_a_bound_and_says_so(
    run: Run, run_plain: Callable[..., Any], tmp_path: Path
) -> None:
    source = write(tmp_path / "in.txt", [str(i) for i in range(8)])

    def job(context: Any) -> Any:
        return context.textFile(str(source), 2).pipe("cat").map(lambda record: record).collect()

    result, application = run(job)
    assert result == run_plain(job)
    sink = application.sinks()[-1]
    (first, *_) = application.questions.records(application.application_id, query(sink.node_id)).records
    trace = application.trace(direction="backward", node=sink.node_id, record=first.record_id)
    assert not trace.exact
    assert any(node.kind == "source" and node.total for node in trace.nodes)
