"""Functions of Python over groups of rows, traced row by row and compared with plain Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lineage_service.queries import TraceQuery
from lineage_service.tracing.spark.api import SparkTracing, local_session
from tests.support.lanes import sampled
from tests.support.spark.application import Application
from tests.support.spark.cases.python_groups import CASES
from tests.support.spark.dataframe_oracle import Ran, without_lineage

# The first test of the module runs the queries of all of them.
pytestmark = [pytest.mark.timeout(1800), pytest.mark.thorough]


PLAIN = without_lineage(CASES)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLAIN)
def test_spark_writes_what_the_oracle_says(name: str, plain: Ran) -> None:
    plain.check_rows(name)


@pytest.mark.parametrize("name", sampled(CASES, 12))
def test_traces_equal_the_oracle(name: str, plain: Ran, traced: Ran) -> None:
    traced.check(name, plain)


@pytest.mark.thorough
def test_both_engines_give_the_same_answers(traced: Ran) -> None:
    application = traced.application
    assert application is not None
    assert application.store is not None
    with local_session("local[2]", ["spark.sql.shuffle.partitions=2"]) as session:
        tracing = SparkTracing(session, application.store)
        for name in (
            "a function over what another gave",
            "cogroup",
            "mapInPandas",
            "mapInPandas, aggregated",
        ):
            output = traced.output(name)
            part, row = traced.written(name)[0][0]
            backward = TraceQuery(direction="backward", path=str(output / part), row=row)
            answer = application.questions.trace(application.application_id, backward)
            assert tracing.trace(application.application_id, backward) == answer
            source = next(node for node in answer.nodes if node.kind == "source")
            record = source.records[0]
            forward = TraceQuery(
                direction="forward",
                node=source.node_id,
                partition=record.partition,
                offset=record.offset,
                to=answer.start_node,
            )
            answer = application.questions.trace(application.application_id, forward)
            assert tracing.trace(application.application_id, forward) == answer


def test_rows_that_a_function_has_read_by_then_are_named_in_steps(
    run: Callable[..., tuple[Any, Application]], tmp_path: Path
) -> None:
    """A frame is a row. Steps are single rows at first, then two, then four."""
    lines, output = tmp_path / "lines.txt", tmp_path / "out"
    lines.write_text("".join(f"{number}\n" for number in range(1000)))

    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
        read = spark.read.text(str(lines)).coalesce(1)
        read.mapInPandas(lambda frames: frames, "value string").write.text(str(output))

    _, application = run(job)
    (part,) = output.glob("part-*")
    for row in (0, 1, 7, 255, 256, 257, 510, 511, 512, 515, 999):
        trace = application.trace(direction="backward", path=str(part), row=row)
        assert not trace.exact
        (source,) = [node for node in trace.nodes if node.kind == "source"]
        size = 1 if row < 256 else 2 if row < 512 else 4
        assert source.total == min((row // size + 1) * size, 1000)
