"""RDDs in whatever form their batches have, kept and put together: the rows and their order stay."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.serializers import (
    AutoBatchedSerializer,
    BatchedSerializer,
    CPickleSerializer,
    MarshalSerializer,
    PickleSerializer,
)

Run = Callable[..., Any]

#: As SparkContext(serializer=..., batchSize=...) sets it up; a size of 0 finds one.
FORMS = {
    "as they mostly are": (CPickleSerializer, 0),
    "batches of ten": (CPickleSerializer, 10),
    "batches of one": (CPickleSerializer, 1),
    "all in one batch": (CPickleSerializer, -1),
    "another pickler": (PickleSerializer, 10),
    "marshalled": (MarshalSerializer, 0),
    "marshalled batches of three": (MarshalSerializer, 3),
}


def in_form(context: Any, form: str) -> None:
    kind, size = FORMS[form]
    inner = kind()
    context._unbatched_serializer, context._batchSize = inner, size
    context.serializer = AutoBatchedSerializer(inner) if size == 0 else BatchedSerializer(inner, size)


def everything(context: Any, folder: Path) -> list[Any]:
    """What kept, put together and dealt out RDDs give, partition by partition."""
    numbers = context.parallelize(range(103), 4).map(lambda i: i + 1)
    kept = numbers.filter(lambda i: i % 7).cache()
    kept.count()
    both = kept.union(numbers)
    three = context.union([kept, numbers, both.coalesce(2)])
    small = kept.filter(lambda i: i % 40 == 1)
    found = [
        *(each.glom().collect() for each in (kept, both, three, both.coalesce(3).cache(), kept.coalesce(1))),
        *(each.repartition(3).glom().collect() for each in (kept, both, numbers.coalesce(2), three.cache())),
        small.cartesian(numbers).collect(),
        small.cartesian(kept.union(small)).cache().collect(),
        kept.zip(kept.map(str)).collect(),
        both.zip(kept.map(str).union(numbers.map(str))).collect(),
        kept.map(lambda i: (i % 5, i)).sortByKey(numPartitions=2).cache().glom().collect(),
        kept.map(lambda i: (i % 5, i)).partitionBy(2).union(kept.map(lambda i: (i, i))).glom().collect(),
        kept.map(lambda i: (i % 5, i)).join(both.map(lambda i: (i % 5, i)), 2).count(),
        list(three.toLocalIterator(prefetchPartitions=True)),
        [three.take(7), three.first(), both.top(3), kept.takeOrdered(4), kept.unpersist().take(3)],
    ]
    numbers.checkpoint()
    found += [numbers.collect(), numbers.glom().collect()]
    kept.union(kept).saveAsPickleFile(str(folder / context.applicationId), 7)
    found.append(sorted(context.pickleFile(str(folder / context.applicationId)).collect()))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
def test_rows_and_their_order_stay(form: str, run: Run, run_plain: Run, tmp_path: Path) -> None:
    def job(context: Any) -> list[Any]:
        context.setCheckpointDir(str(tmp_path / "checkpoints"))
        in_form(context, form)
        return everything(context, tmp_path)

    for given, stock in zip(run(job)[0], run_plain(job), strict=True):
        assert given == stock


@pytest.mark.thorough
def test_a_checkpoint_can_be_looked_into(run: Run, run_plain: Run, tmp_path: Path) -> None:
    def job(context: SparkContext) -> list[Any]:
        context.setCheckpointDir(str(tmp_path / "checkpoints"))
        found = []
        for data in (
            context.parallelize(range(20), 2).map(lambda i: [i]),
            context.parallelize(range(20), 2).map(str).cache().union(context.parallelize("ab", 1).map(str)),
            context.parallelize(range(20), 2),
        ):
            data.checkpoint()
            data.count()
            for deserializer in (context.serializer, data._jrdd_deserializer):
                file: Any = data.getCheckpointFile()
                found.append(context._checkpointFile(file, deserializer).collect())  # type: ignore[arg-type]
        return found

    assert run(job)[0] == run_plain(job)


def test_a_form_that_two_threads_settle_is_one(run: Run, run_plain: Run) -> None:
    """One asks for the RDD of the JVM and is pickling its functions, while another caches it."""

    def job(context: SparkContext) -> list[int]:
        begun, ended = threading.Event(), threading.Event()

        class Slow:
            def __reduce__(self) -> Any:
                begun.set()
                ended.wait(1)
                return int, ()

        slow = Slow()
        data = context.parallelize(range(20), 2).map(lambda i: (slow, i)[1])
        asking = threading.Thread(target=lambda: data._jrdd)
        asking.start()
        assert begun.wait(60)
        data.cache()
        ended.set()
        asking.join()
        return data.map(lambda i: i + 1).collect() + data.collect()

    assert run(job)[0] == run_plain(job)
