"""The transformations that give records other partitions: unions, products, zips, coalesces, repartitionings.

The JVM executes them. So their nodes say which partitions of their parents a partition is made of, or batch
headers do. Each gives the rows of unmodified PySpark in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver import partitions
from spark_agent.driver.monkeypatch import is_rdd, like, rdd_module
from spark_agent.driver.nodes import Node
from spark_agent.driver.rdd.batch_formats import batches_in, plain_form, without_headers
from spark_agent.driver.rdd.batch_headers import (
    has_headers,
    parts_of_union,
    same_batches,
    side_of_product,
    through_worker,
    through_worker_with_headers,
    write_headers,
)
from spark_agent.worker.batch_serializers import HeaderSerializer, PairsOfBatches, SameSizeBatches
from spark_agent.worker.operators.adapters import Order

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

Operation = Callable[..., Any]

#: Records in a batch, as PySpark has them: of a zip whose sides have none of their own, of a repartitioning.
_ZIP_BATCH, _ROUND_ROBIN_BATCH = 100, 10


def replacements(session: Session, original: Callable[[str], Operation]) -> dict[str, Operation]:
    """Name -> what runs in the place of `original(name)`."""
    return {
        "union": _union(session, original("union")),
        "coalesce": _coalesce(session, original("coalesce")),
        "cartesian": _cartesian(session, original("cartesian")),
        "zip": _zip(session, original("zip")),
    }


# -- two inputs and more ----------------------------------------------------------------------------


def _union(session: Session, original: Operation) -> Operation:
    def union(self: Any, other: Any) -> Any:
        if not is_rdd(other):
            return original(self, other)  # which says so
        parts = parts_of_union(session, [self, other])
        result = original(*parts)
        _concatenate(session, result, parts)
        return result

    return union


def context_union(session: Session, original: Operation) -> Operation:
    """SparkContext.union."""

    def union(self: Any, rdds: list[Any]) -> Any:
        if session.scope.frames or not isinstance(rdds, (list, tuple)) or not all(map(is_rdd, rdds)):
            return original(self, rdds)
        with session.scope.operation("union", list(rdds)) as frame:
            parts = parts_of_union(session, rdds)
            result = original(self, parts)
            _concatenate(session, result, parts)
        session.scope.finish(frame, result)
        session.recipes.add("union", (list(rdds),), {}, result, is_of_context=True)
        return result

    return like(original, hiding(union))


def _concatenate(session: Session, result: Any, parts: list[Any]) -> None:
    node = result._lineage_node
    node.refine("union", contract.STATIC, [session.scope.node_of(part) for part in parts])
    jvm_rdd, jvm_parts = result._jrdd, [part._jrdd for part in parts]
    node.describe = lambda: partitions.union(jvm_rdd, jvm_parts)


def _cartesian(session: Session, original: Operation) -> Operation:
    def cartesian(self: Any, other: Any) -> Any:
        if not is_rdd(other):
            return original(self, other)  # which says so

        left, right = side_of_product(session, self), side_of_product(session, other)
        if left is None or right is None:
            return original(self, other)  # an upper bound
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
        node.refine("cartesian", contract.PRODUCT, sides)
        node.sides = tuple(side.number for side in sides)
        return result

    return cartesian


def _zip(session: Session, original: Operation) -> Operation:
    def zip_(self: Any, other: Any) -> Any:
        if not is_rdd(other):
            return original(self, other)  # which says so
        sides = [_counted(session, side) for side in _batched_alike([self, other])]
        nodes = [session.scope.node_of(side) for side in sides]
        if not all(map(_is_resolvable, nodes)):
            if not all(node.origins.are_plain for node in nodes):
                return original(*sides)  # an upper bound
            sides = _batched(sides, _ZIP_BATCH)
        result = original(*sides)
        parents = [session.scope.node_of(side) for side in sides]
        session.scope.node_of(result).refine("zip", contract.ZIP, parents)
        return result

    return zip_


def _batched_alike(sides: list[Any]) -> list[Any]:
    """Both sides in batches of one size. That is Spark's rule: the JVM zips whole batches."""
    from pyspark.serializers import BatchedSerializer

    sizes = [
        side._jrdd_deserializer.batchSize if isinstance(side._jrdd_deserializer, BatchedSerializer) else 1
        for side in sides
    ]
    if sizes[0] == sizes[1] and sizes[0]:
        return sides
    size = min(sizes)
    return _batched(sides, size if size > 0 else _ZIP_BATCH)


def _batched(sides: list[Any], size: int) -> list[Any]:
    from pyspark.serializers import BatchedSerializer, CPickleSerializer

    serializer = BatchedSerializer(CPickleSerializer(), size)
    return [
        side if without_headers(side._jrdd_deserializer) == serializer else side._reserialize(serializer)
        for side in sides
    ]


def _counted(session: Session, side: Any) -> Any:
    """One side of a zip, with task runs that count its records.

    The JVM zips element by element: what is an element of two batches must not become two elements.
    """
    is_counted = _is_resolvable(session.scope.node_of(side)) and not has_headers(side)
    if is_counted or batches_in(side._jrdd_deserializer) > 1:
        return side
    return through_worker(session, side)


def _is_resolvable(node: Node) -> bool:
    """Is it known from outside which records a partition of it has?"""
    return node.is_in_python or node.relation == contract.SOURCE


# -- one input in other partitions ------------------------------------------------------------------


def _coalesce(session: Session, original: Operation) -> Operation:
    def coalesce(self: Any, numPartitions: int, shuffle: bool = False) -> Any:
        if shuffle and numPartitions > 0:
            return _repartitioned(session, self, numPartitions)
        # A coalesce must know how many records each part has: the task runs say it.
        is_counted = session.scope.node_of(self).origins.are_counted
        part = self if is_counted else through_worker_with_headers(session, self)
        write_headers(part)
        result = original(part, numPartitions, shuffle)
        node = result._lineage_node
        node.refine("coalesce", contract.STATIC, [session.scope.node_of(part)])
        jvm_rdd = result._jrdd
        node.describe = lambda: partitions.coalesced(jvm_rdd)
        return result

    return coalesce


def _repartitioned(session: Session, dataset: Any, num_partitions: int) -> Any:
    """Round-robin partitioning: the JVM deals out batches of ten. Their headers say where each came from."""
    from pyspark.serializers import BatchedSerializer, CPickleSerializer

    size = min(_ROUND_ROBIN_BATCH, dataset.ctx._batchSize or 1024)
    inner = CPickleSerializer()
    if plain_form(dataset) == BatchedSerializer(inner, size):  # already as the JVM is to deal it out
        batches = same_batches(session, dataset, SameSizeBatches(inner, size))
    else:
        batches = dataset.mapPartitionsWithIndex(Order(), True)
        batches._jrdd_deserializer = BatchedSerializer(HeaderSerializer(inner), size)
    jvm_rdd = batches._jrdd.coalesce(num_partitions, True)
    result = rdd_module().RDD(jvm_rdd, dataset.ctx, batches._jrdd_deserializer)
    session.scope.node_of(result).make_shuffle(session.scope.node_of(batches))
    return result
