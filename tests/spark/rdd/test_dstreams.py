"""DStreams whose RDDs are kept, put together or dealt out give what they give without lineage."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.lanes import sampled

pytestmark = pytest.mark.thorough

MAKES: dict[str, Callable[[Any], Any]] = {
    "coalesce": lambda stream: stream.transform(lambda data: data.coalesce(1)),
    "cache": lambda stream: stream.transform(lambda data: data.map(lambda i: i + 1).cache()),
    "union": lambda stream: stream.transform(
        lambda data: data.map(lambda i: i + 1).union(data.map(lambda i: -i))
    ),
    "cartesian": lambda stream: stream.transform(lambda data: data.cartesian(data.filter(lambda i: i < 7))),
    "partitionBy": lambda stream: stream.map(lambda i: (i, i)).partitionBy(2),
    "repartition": lambda stream: stream.repartition(3),
    "reduceByKey": lambda stream: stream.map(lambda i: (i % 3, i)).reduceByKey(lambda a, b: a + b, 2),
    "cached by the stream": lambda stream: stream.map(lambda i: i + 1).cache(),
}
INTERVALS = 2


def streamed(context: Any, make: Callable[[Any], Any]) -> list[list[str]]:
    """What each interval of a stream has."""
    from pyspark.streaming import StreamingContext

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # DStreams are deprecated
        streaming = StreamingContext(context, 0.3)
    numbers = context.parallelize(range(10), 2)
    found: list[list[str]] = []
    made = make(streaming.queueStream([numbers, context.parallelize(range(5, 20), 2)]))
    made.foreachRDD(lambda data: found.append(sorted(map(str, data.collect()))))
    streaming.start()
    try:
        until = time.monotonic() + 240
        while len([each for each in found if each]) < INTERVALS and time.monotonic() < until:
            streaming.awaitTerminationOrTimeout(0.1)
    finally:
        streaming.stop(stopSparkContext=False)
    return [each for each in found if each][:INTERVALS]


@pytest.mark.parametrize("name", sampled(MAKES, 4))
def test_a_stream_gives_what_it_gives_without_lineage(
    name: str, run: Callable[..., Any], run_plain: Callable[..., Any]
) -> None:
    def job(context: Any) -> list[list[str]]:
        return streamed(context, MAKES[name])

    rows = run_plain(job)
    assert len(rows) == INTERVALS
    assert run(job)[0] == rows


def test_a_function_that_fails_stops_the_stream(run: Callable[..., Any]) -> None:
    def fails(_data: Any) -> Any:
        raise ValueError("in the function of a transform")

    def job(context: Any) -> str:
        with pytest.raises(Exception, match="in the function of a transform") as error:
            streamed(context, lambda stream: stream.transform(fails))
        return str(error.value)

    assert "spark_agent" not in run(job)[0]
