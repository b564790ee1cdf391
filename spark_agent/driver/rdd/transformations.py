"""The transformations of RDDs that are replaced, or adapted, while lineage is on.

Each gives the rows of stock PySpark in the same order. Some are made anew of captured operators; others run
the stock code with its `mapPartitions` function wrapped by an operator that knows what it does. A
transformation that is not here is made of these (`NAMED`), or keeps the bound of `mapPartitions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import iadd
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver import partitions
from spark_agent.driver.monkeypatch import is_rdd, like, rdd_module
from spark_agent.driver.nodes import Node
from spark_agent.driver.rdd.batch_headers import (
    has_tags,
    name_runs,
    parts_of_union,
    piped,
    piped_with_tags,
    same_batches,
    side_of_product,
)
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators.aggregate import Combine, CombineLists, Functions, Group, Merge
from spark_agent.worker.operators.join import Join, Side, Subtract
from spark_agent.worker.operators.narrow import Filter, FlatMap, Known, LastRead, Map, Order, Sort, Whole
from spark_agent.worker.operators.passthrough import batches_in, plain_form, untagged
from spark_agent.worker.operators.shuffle import PairsOfBatches, SameBatches, ShuffleWrite, TaggedSerializer

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

Operation = Callable[..., Any]

#: Operations that only need their name; what they do is made of the captured ones, or is a bound.
NAMED = (
    "aggregateByKey", "cogroup", "distinct", "flatMapValues", "foldByKey", "groupBy", "groupWith",
    "intersection", "keyBy", "keys", "mapValues", "pipe", "reduceByKey", "repartition", "sortBy", "subtract",
    "values",
)  # fmt: skip


def replaced(session: Session, stock: Callable[[str], Operation]) -> dict[str, Operation]:
    """Name -> what runs in the place of `stock(name)`."""
    index_adapted = {
        "randomSplit": LastRead,
        "sample": LastRead,
        "sampleByKey": LastRead,
        "zipWithIndex": Known,
        "zipWithUniqueId": Known,
    }
    adapted = {
        "glom": _whole,
        "repartitionAndSortWithinPartitions": Sort,
        "sortByKey": Sort,
    }
    return {
        "map": _map,
        "flatMap": _flat_map,
        "filter": _filter,
        "mapPartitions": _map_partitions(session, stock("mapPartitions")),
        "mapPartitionsWithIndex": _map_partitions_with_index(session, stock("mapPartitionsWithIndex")),
        "combineByKey": _combine_by_key,
        "groupByKey": _group_by_key,
        "partitionBy": _partition_by(session),
        "subtractByKey": _subtract_by_key,
        "join": _join(keep_left=False, keep_right=False),
        "leftOuterJoin": _join(keep_left=True, keep_right=False),
        "rightOuterJoin": _join(keep_left=False, keep_right=True),
        "fullOuterJoin": _join(keep_left=True, keep_right=True),
        "union": _union(session, stock("union")),
        "coalesce": _coalesce(session, stock("coalesce")),
        "cartesian": _cartesian(session, stock("cartesian")),
        "zip": _zip(session, stock("zip")),
        **{name: _adapted(session, stock(name), "adapter", operator) for name, operator in adapted.items()},
        **{
            name: _adapted(session, stock(name), "indexed_adapter", operator)
            for name, operator in index_adapted.items()
        },
        **{name: stock(name) for name in NAMED},
    }


# -- one partition ----------------------------------------------------------------------------------


def _map(self: Any, f: Callable[[Any], Any], preservesPartitioning: bool = False) -> Any:
    return self.mapPartitionsWithIndex(Map(f), preservesPartitioning)


def _flat_map(self: Any, f: Callable[[Any], Iterable[Any]], preservesPartitioning: bool = False) -> Any:
    return self.mapPartitionsWithIndex(FlatMap(f), preservesPartitioning)


def _filter(self: Any, f: Callable[[Any], Any]) -> Any:
    return self.mapPartitionsWithIndex(Filter(f), True)


def _map_partitions(session: Session, stock: Operation) -> Operation:
    def map_partitions(self: Any, f: Callable[[Any], Any], preservesPartitioning: bool = False) -> Any:
        adapter = session.scope.frames[-1].adapter if session.scope.frames else None
        if adapter is not None:
            return self.mapPartitionsWithIndex(adapter(f), preservesPartitioning)
        with session.scope.adapting(indexed_adapter=None):  # the stock one calls mapPartitionsWithIndex
            return stock(self, f, preservesPartitioning)

    return map_partitions


def _map_partitions_with_index(session: Session, stock: Operation) -> Operation:
    def map_partitions(self: Any, f: Callable[[int, Any], Any], preservesPartitioning: bool = False) -> Any:
        adapter = session.scope.frames[-1].indexed_adapter if session.scope.frames else None
        if adapter is not None and not isinstance(f, Operator):
            f = adapter(f)
        return stock(self, f, preservesPartitioning)

    return map_partitions


def _adapted(session: Session, stock: Operation, kind: str, operator: Any) -> Operation:
    """`stock` with the functions that it gives to mapPartitions(WithIndex) wrapped by `operator`."""

    def adapted(self: Any, *args: Any, **kwargs: Any) -> Any:
        with session.scope.adapting(**{kind: operator}):
            return stock(self, *args, **kwargs)

    return adapted


def _whole(stock: Callable[[Any], Any]) -> Whole:
    return Whole(lambda _, records: stock(records))


# -- by key -----------------------------------------------------------------------------------------


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
    combining: type[Combine],
    merging: type[Merge],
    partitions_wanted: int | None,
    hashed: Callable[[Any], int] | None,
) -> Any:
    if partitions_wanted is None:
        partitions_wanted = dataset._defaultReducePartitions()
    serializer, memory = dataset.ctx.serializer, dataset._memory_limit()
    order = Order()
    combined = dataset.mapPartitionsWithIndex(combining(functions, memory * 0.9, serializer, order), True)
    ordered = combined.mapPartitionsWithIndex(order, True)
    shuffled = ordered.partitionBy(partitions_wanted, hashed or rdd_module().portable_hash)
    order = Order()
    merged = shuffled.mapPartitionsWithIndex(merging(functions, memory, serializer, order), True)
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
        shuffled = module.RDD(values, self.ctx, BatchedSerializer(TaggedSerializer(inner)))
        shuffled.partitioner = partitioner
        _settle_shuffle(session, shuffled, keyed)
        return shuffled

    return partition_by


def _settle(node: Node, name: str, relation: str, parents: list[Node]) -> None:
    """The operation knows better than the bound with which every JVM-side RDD begins."""
    node.name, node.relation, node.parents, node.exact, node.reason = name, relation, parents, True, ""


def _settle_shuffle(session: Session, shuffled: Any, written: Any) -> None:
    node = session.scope.node_of(shuffled)
    _settle(node, "shuffle", contract.FLOWS, [session.scope.node_of(written)])
    node.is_shuffle = True


# -- two inputs -------------------------------------------------------------------------------------


def _join(*, keep_left: bool, keep_right: bool) -> Operation:
    def join(self: Any, other: Any, numPartitions: int | None = None) -> Any:
        both, serializer, memory = _both_sides(self, other)
        joining = Join(_lists(), memory, serializer, keep_left, keep_right)
        return _by_sides(both, joining, numPartitions)

    return join


def _subtract_by_key(self: Any, other: Any, numPartitions: int | None = None) -> Any:
    both, serializer, memory = _both_sides(self, other)
    return _by_sides(both, Subtract(_lists(), memory, serializer), numPartitions)


def _both_sides(left: Any, right: Any) -> tuple[Any, Any, float]:
    """(both sides in one, each value with its side; serializer and memory for grouping them)."""
    both = left.mapPartitionsWithIndex(Side(1), True).union(right.mapPartitionsWithIndex(Side(2), True))
    both._lineage_node.has_sides = True
    return both, plain_form(both), both._memory_limit()


def _by_sides(both: Any, operator: Join | Subtract, partitions_wanted: int | None) -> Any:
    count = both._defaultReducePartitions() if partitions_wanted is None else partitions_wanted
    return both.partitionBy(count).mapPartitionsWithIndex(operator, True)


def _union(session: Session, stock: Operation) -> Operation:
    def union(self: Any, other: Any) -> Any:
        if not is_rdd(other):
            return stock(self, other)  # which says so
        parts = parts_of_union(session, [self, other])
        result = stock(*parts)
        _concatenate(session, result, parts)
        return result

    return union


def context_union(session: Session, stock: Operation) -> Operation:
    """SparkContext.union."""

    def union(self: Any, rdds: list[Any]) -> Any:
        if session.scope.frames or not isinstance(rdds, (list, tuple)) or not all(map(is_rdd, rdds)):
            return stock(self, rdds)
        with session.scope.operation("union", list(rdds)) as frame:
            parts = parts_of_union(session, rdds)
            result = stock(self, parts)
            _concatenate(session, result, parts)
        session.scope.finish(frame, result)
        return result

    return like(stock, hiding(union))


def _concatenate(session: Session, result: Any, parts: list[Any]) -> None:
    node = result._lineage_node
    _settle(node, "union", contract.STATIC, [session.scope.node_of(part) for part in parts])
    jvm_rdd, jvm_parts = result._jrdd, [part._jrdd for part in parts]
    node.describe = lambda: partitions.union(jvm_rdd, jvm_parts)


def _cartesian(session: Session, stock: Operation) -> Operation:
    def cartesian(self: Any, other: Any) -> Any:
        if not is_rdd(other):
            return stock(self, other)  # which says so

        left, right = side_of_product(session, self), side_of_product(session, other)
        if left is None or right is None:
            return stock(self, other)  # a bound
        pairs = PairsOfBatches(
            left._jrdd_deserializer.serializer.inner, right._jrdd_deserializer.serializer.inner
        )
        # Before the result: a node has a larger number than what it reads.
        sides = [
            session.scope.new_node(name, relation=contract.FLOWS, parents=[session.scope.node_of(side)])
            for name, side in (("left side", left), ("right side", right))
        ]
        result = rdd_module().RDD(left._jrdd.cartesian(right._jrdd), self.ctx, pairs)
        node = session.scope.node_of(result)
        _settle(node, "cartesian", contract.PRODUCT, sides)
        node.sides = tuple(side.number for side in sides)
        return result

    return cartesian


def _zip(session: Session, stock: Operation) -> Operation:
    def zip_(self: Any, other: Any) -> Any:
        if not is_rdd(other):
            return stock(self, other)  # which says so
        from pyspark.serializers import BatchedSerializer, CPickleSerializer

        def batched(sides: list[Any], size: int) -> list[Any]:
            wanted = BatchedSerializer(CPickleSerializer(), size)
            return [
                side if untagged(side._jrdd_deserializer) == wanted else side._reserialize(wanted)
                for side in sides
            ]

        sides = [self, other]
        sizes = [
            side._jrdd_deserializer.batchSize if isinstance(side._jrdd_deserializer, BatchedSerializer) else 1
            for side in sides
        ]
        if sizes[0] != sizes[1] or not sizes[0]:  # Spark's rule: the JVM zips whole batches
            size = min(sizes)
            sides = batched(sides, size if size > 0 else 100)
        # The JVM zips element by element: what is an element of two batches must not become two elements.
        sides = [
            side
            if (_has_known_records(session.scope.node_of(side)) and not has_tags(side))
            or batches_in(side._jrdd_deserializer) > 1
            else piped(session, side)
            for side in sides
        ]
        if not all(_has_known_records(session.scope.node_of(side)) for side in sides):
            if not all(session.scope.node_of(side).ends.are_plain for side in sides):
                return stock(*sides)  # a bound
            sides = batched(sides, 100)
        result = stock(*sides)
        _settle(
            session.scope.node_of(result),
            "zip",
            contract.ZIP,
            [session.scope.node_of(side) for side in sides],
        )
        return result

    return zip_


def _has_known_records(node: Node) -> bool:
    return node.is_piped or node.relation == contract.SOURCE


# -- other partitions -------------------------------------------------------------------------------


def _coalesce(session: Session, stock: Operation) -> Operation:
    def coalesce(self: Any, numPartitions: int, shuffle: bool = False) -> Any:
        if shuffle and numPartitions > 0:
            return _repartitioned(session, self, numPartitions)
        # A coalesce must know how many records each part has: the runs say it.
        part = self if session.scope.node_of(self).ends.are_counted else piped_with_tags(session, self)
        name_runs(part)
        result = stock(part, numPartitions, shuffle)
        node = result._lineage_node
        _settle(node, "coalesce", contract.STATIC, [session.scope.node_of(part)])
        jvm_rdd = result._jrdd
        node.describe = lambda: partitions.coalesced(jvm_rdd)
        return result

    return coalesce


def _repartitioned(session: Session, dataset: Any, partitions_wanted: int) -> Any:
    """The JVM deals out batches of ten; their tags say where each came from."""
    from pyspark.serializers import BatchedSerializer, CPickleSerializer

    size = min(10, dataset.ctx._batchSize or 1024)
    inner = CPickleSerializer()
    if plain_form(dataset) == BatchedSerializer(inner, size):  # already as the JVM is to deal it out
        dealt = same_batches(session, dataset, SameBatches(inner, size))
    else:
        dealt = dataset.mapPartitionsWithIndex(Order(), True)
        dealt._jrdd_deserializer = BatchedSerializer(TaggedSerializer(inner), size)
    jvm_rdd = dealt._jrdd.coalesce(partitions_wanted, True)
    result = rdd_module().RDD(jvm_rdd, dataset.ctx, dealt._jrdd_deserializer)
    _settle_shuffle(session, result, dealt)
    return result
