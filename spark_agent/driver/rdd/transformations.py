"""The transformations of RDDs that are replaced, or adapted, while lineage is on.

Each gives the rows of unmodified PySpark in the same order. Some are built again from captured operators.
Others run the original code with its `mapPartitions` function wrapped by an operator that knows what it does.
A transformation that is not here is made of these (`NAMED`), or keeps the upper bound of `mapPartitions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from spark_agent.driver.rdd import key_transformations, partition_transformations
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators.adapters import Identity, LastRead, Sort, WholePartition
from spark_agent.worker.operators.narrow import Filter, FlatMap, Map

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

Operation = Callable[..., Any]

#: Operations that only need their name; what they do is made of the captured ones, or is an upper bound.
NAMED = (
    "aggregateByKey", "cogroup", "distinct", "flatMapValues", "foldByKey", "groupBy", "groupWith",
    "intersection", "keyBy", "keys", "mapValues", "pipe", "reduceByKey", "repartition", "sortBy", "subtract",
    "values",
)  # fmt: skip


def replacements(session: Session, original: Callable[[str], Operation]) -> dict[str, Operation]:
    """Name -> what runs in the place of `original(name)`."""
    adapted = {
        "glom": _whole,
        "repartitionAndSortWithinPartitions": Sort,
        "sortByKey": Sort,
    }
    index_adapted = {
        "randomSplit": LastRead,
        "sample": LastRead,
        "sampleByKey": LastRead,
        "zipWithIndex": Identity,
        "zipWithUniqueId": Identity,
    }
    return {
        "map": _map,
        "flatMap": _flat_map,
        "filter": _filter,
        "mapPartitions": _map_partitions(session, original("mapPartitions")),
        "mapPartitionsWithIndex": _map_partitions_with_index(session, original("mapPartitionsWithIndex")),
        **{name: _adapted(session, original(name), adapter=operator) for name, operator in adapted.items()},
        **{
            name: _adapted(session, original(name), indexed_adapter=operator)
            for name, operator in index_adapted.items()
        },
        **{name: original(name) for name in NAMED},
        **key_transformations.replacements(session),
        **partition_transformations.replacements(session, original),
    }


def _map(self: Any, f: Callable[[Any], Any], preservesPartitioning: bool = False) -> Any:
    return self.mapPartitionsWithIndex(Map(f), preservesPartitioning)


def _flat_map(self: Any, f: Callable[[Any], Iterable[Any]], preservesPartitioning: bool = False) -> Any:
    return self.mapPartitionsWithIndex(FlatMap(f), preservesPartitioning)


def _filter(self: Any, f: Callable[[Any], Any]) -> Any:
    return self.mapPartitionsWithIndex(Filter(f), True)


def _map_partitions(session: Session, original: Operation) -> Operation:
    def map_partitions(self: Any, f: Callable[[Any], Any], preservesPartitioning: bool = False) -> Any:
        adapter = session.scope.adapter
        if adapter is not None:
            return self.mapPartitionsWithIndex(adapter(f), preservesPartitioning)
        with session.scope.adapting(indexed_adapter=None):  # the original calls mapPartitionsWithIndex
            return original(self, f, preservesPartitioning)

    return map_partitions


def _map_partitions_with_index(session: Session, original: Operation) -> Operation:
    def map_partitions(self: Any, f: Callable[[int, Any], Any], preservesPartitioning: bool = False) -> Any:
        adapter = session.scope.indexed_adapter
        if adapter is not None and not isinstance(f, Operator):
            f = adapter(f)
        return original(self, f, preservesPartitioning)

    return map_partitions


def _adapted(session: Session, original: Operation, **adapters: Any) -> Operation:
    """`original` with the functions that it gives to mapPartitions(WithIndex) wrapped by an operator."""

    def adapted(self: Any, *args: Any, **kwargs: Any) -> Any:
        with session.scope.adapting(**adapters):
            return original(self, *args, **kwargs)

    return adapted


def _whole(original: Callable[[Any], Any]) -> WholePartition:
    return WholePartition(lambda _, records: original(records))
