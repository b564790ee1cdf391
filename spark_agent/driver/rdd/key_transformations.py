"""The transformations that bring records together by their keys: aggregations, shuffles, joins.

Each gives the rows of unmodified PySpark in the same order, with its mergers and its memory limits.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import iadd
from typing import TYPE_CHECKING, Any

from spark_agent.driver.monkeypatch import rdd_module
from spark_agent.driver.rdd.batch_formats import plain_form
from spark_agent.worker.batch_serializers import HeaderSerializer
from spark_agent.worker.operators.adapters import Order
from spark_agent.worker.operators.aggregate import Combine, CombineLists, Functions, Group, Merge
from spark_agent.worker.operators.join import Join, Side, Subtract
from spark_agent.worker.operators.shuffle import ShuffleWrite

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

Operation = Callable[..., Any]


def replacements(session: Session) -> dict[str, Operation]:
    """Name -> what runs in the place of the original."""
    return {
        "combineByKey": _combine_by_key,
        "groupByKey": _group_by_key,
        "partitionBy": _partition_by(session),
        "subtractByKey": _subtract_by_key,
        "join": _join(keep_left=False, keep_right=False),
        "leftOuterJoin": _join(keep_left=True, keep_right=False),
        "rightOuterJoin": _join(keep_left=False, keep_right=True),
        "fullOuterJoin": _join(keep_left=True, keep_right=True),
    }


# -- one input --------------------------------------------------------------------------------------


def _combine_by_key(
    self: Any,
    createCombiner: Callable[[Any], Any],
    mergeValue: Callable[[Any, Any], Any],
    mergeCombiners: Callable[[Any, Any], Any],
    numPartitions: int | None = None,
    partitionFunc: Callable[[Any], int] | None = None,
) -> Any:
    functions = Functions(createCombiner, mergeValue, mergeCombiners)
    return _aggregated(self, functions, Combine, Merge, numPartitions, partitionFunc)


def _group_by_key(
    self: Any, numPartitions: int | None = None, partitionFunc: Callable[[Any], int] | None = None
) -> Any:
    from pyspark.resultiterable import ResultIterable

    grouped = _aggregated(self, _LISTS, CombineLists, Group, numPartitions, partitionFunc)
    return grouped.mapValues(ResultIterable)


def _aggregated(
    dataset: Any,
    functions: Functions,
    combine: type[Combine],
    merge: type[Merge],
    num_partitions: int | None,
    hashed: Callable[[Any], int] | None,
) -> Any:
    count = dataset._defaultReducePartitions() if num_partitions is None else num_partitions
    serializer, memory = dataset.ctx.serializer, dataset._memory_limit()
    order = Order()
    combined = dataset.mapPartitionsWithIndex(combine(functions, memory * 0.9, serializer, order), True)
    ordered = combined.mapPartitionsWithIndex(order, True)
    shuffled = ordered.partitionBy(count, hashed or rdd_module().portable_hash)
    order = Order()
    merged = shuffled.mapPartitionsWithIndex(merge(functions, memory, serializer, order), True)
    return merged.mapPartitionsWithIndex(order, True)


def _list_of(value: Any) -> list[Any]:
    return [value]


def _append(values: list[Any], value: Any) -> list[Any]:
    values.append(value)
    return values


_LISTS = Functions(_list_of, _append, iadd)


def _lists() -> Any:
    """An Aggregator for PySpark's own mergers, without its wrapper: nothing here raises StopIteration."""
    from pyspark.shuffle import Aggregator

    aggregator = Aggregator(*_LISTS)
    vars(aggregator).update(_LISTS._asdict())
    return aggregator


def _partition_by(session: Session) -> Operation:
    def partition_by(
        self: Any, numPartitions: int | None, partitionFunc: Callable[[Any], int] | None = None
    ) -> Any:
        from pyspark.serializers import BatchedSerializer
        from pyspark.traceback_utils import SCCallSiteSync

        module = rdd_module()
        hashed = partitionFunc or module.portable_hash
        count = self._defaultReducePartitions() if numPartitions is None else numPartitions
        partitioner = module.Partitioner(count, hashed)
        if self.partitioner == partitioner:
            return self
        inner = self.ctx._unbatched_serializer
        write = ShuffleWrite(hashed, count, inner, self._memory_limit() / 2)
        keyed = self.mapPartitionsWithIndex(write, preservesPartitioning=True)
        keyed._bypass_serializer = True
        jvm = self.ctx._jvm
        with SCCallSiteSync(self.context):
            pairs = jvm.PairwiseRDD(keyed._jrdd.rdd()).asJavaPairRDD()
            jvm_partitioner = jvm.PythonPartitioner(count, id(hashed))
        values = jvm.PythonRDD.valueOfPair(pairs.partitionBy(jvm_partitioner))
        shuffled = module.RDD(values, self.ctx, BatchedSerializer(HeaderSerializer(inner)))
        shuffled.partitioner = partitioner
        session.scope.node_of(shuffled).make_shuffle(session.scope.node_of(keyed))
        return shuffled

    return partition_by


# -- two inputs -------------------------------------------------------------------------------------


def _join(*, keep_left: bool, keep_right: bool) -> Operation:
    def join(self: Any, other: Any, numPartitions: int | None = None) -> Any:
        def operator(serializer: Any, memory: float) -> Join:
            return Join(_lists(), memory, serializer, keep_left, keep_right)

        return _grouped_by_sides(self, other, operator, numPartitions)

    return join


def _subtract_by_key(self: Any, other: Any, numPartitions: int | None = None) -> Any:
    def operator(serializer: Any, memory: float) -> Subtract:
        return Subtract(_lists(), memory, serializer)

    return _grouped_by_sides(self, other, operator, numPartitions)


def _grouped_by_sides(
    left: Any,
    right: Any,
    operator: Callable[[Any, float], Join | Subtract],
    num_partitions: int | None,
) -> Any:
    """The records of both sides, each with its side, grouped by `operator(serializer, memory)`."""
    both = left.mapPartitionsWithIndex(Side(1), True).union(right.mapPartitionsWithIndex(Side(2), True))
    both._lineage_node.has_sides = True
    function = operator(plain_form(both), both._memory_limit())
    count = both._defaultReducePartitions() if num_partitions is None else num_partitions
    return both.partitionBy(count).mapPartitionsWithIndex(function, True)
