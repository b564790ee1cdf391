"""Which batches leave Python with headers, and how an RDD of the JVM is read through a worker to have them.

A batch header (`worker.batch_header`) names the task run that made the batch. So whoever reads the batch
later knows whose records these are: behind a repartitioning, in a union or a coalesce, and where an RDD is
persisted. Promises that batches have the records, the sizes and the order of unmodified PySpark, and that no
record is unpickled for a header alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver.monkeypatch import like, rdd_module
from spark_agent.driver.rdd.batch_formats import (
    are_products,
    batches_in,
    plain_form,
    with_headers,
    without_headers,
)
from spark_agent.worker.batch_serializers import (
    AutoHeaderBatches,
    BatchSizeReader,
    PairsOfBatches,
    SameSizeBatches,
)
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators.adapters import Order
from spark_agent.worker.operators.passthrough import HeaderPassthrough, Passthrough

if TYPE_CHECKING:
    from spark_agent.driver.session import Session


#: Of RDDs whose making was not seen.
_lock = threading.RLock()


def parts_of_union(session: Session, datasets: list[Any]) -> list[Any]:
    """The parts of a union, all with one deserializer, as unmodified PySpark gives it to them.

    Where that costs nothing their batches have headers: the parts of a union may be persisted and read again.
    """
    parts = [_resolvable_part(session, dataset) for dataset in datasets]
    deserializers = [plain_form(part) for part in parts]
    if any(deserializer != deserializers[0] for deserializer in deserializers):
        common = parts[0].ctx.serializer
        parts = [
            part if deserializer == common else part._reserialize()
            for part, deserializer in zip(parts, deserializers, strict=True)
        ]
    if all(has_headers(part) or _form_with_headers(part) is not None for part in parts):
        for part in parts:
            write_headers(part)
    elif any(has_headers(part) for part in parts):
        parts = [part if has_headers(part) else through_worker_with_headers(session, part) for part in parts]
    return parts


def _resolvable_part(session: Session, dataset: Any) -> Any:
    """A part of a union whose partitions a static node can name: those of files or of task runs."""
    node = session.scope.node_of(dataset)
    if node.is_in_python or node.relation in (contract.STATIC, contract.SOURCE):
        return dataset
    return through_worker_with_headers(session, dataset)


def write_headers(dataset: Any) -> None:
    """Let the batches of `dataset` name their task runs, if nobody has asked for its RDD of the JVM yet.

    So whoever reads what is persisted of it knows which task has left it there.
    """
    if _form_with_headers(dataset) is not None:
        with _lock_of(dataset):
            form = _form_with_headers(dataset)  # another thread may have asked for the RDD meanwhile
            if form is not None:
                dataset._jrdd_deserializer = form


def _form_with_headers(dataset: Any) -> Any:
    """The deserializer with headers that an RDD can still be given; None where there is none."""
    is_open = isinstance(dataset, rdd_module().PipelinedRDD) and not dataset._jrdd_val
    return with_headers(dataset._jrdd_deserializer) if is_open and not dataset._bypass_serializer else None


def jvm_rdd(original: Callable[[Any], Any]) -> property:
    """PipelinedRDD._jrdd, which is made once, with the deserializer that the RDD then has."""

    def _jrdd(self: Any) -> Any:
        if self._jrdd_val:
            return self._jrdd_val
        with _lock_of(self):
            return original(self)

    return property(like(original, hiding(_jrdd)))


def _lock_of(dataset: Any) -> threading.RLock:
    lock: threading.RLock = getattr(dataset, "_lineage_lock", _lock)
    return lock


def has_headers(dataset: Any) -> bool:
    """Do its batches name their task runs?"""
    deserializer = dataset._jrdd_deserializer
    return without_headers(deserializer) is not None and not isinstance(deserializer, PairsOfBatches)


def side_of_product(session: Session, dataset: Any) -> Any:
    """`dataset` in batches with headers, of the sizes in which unmodified PySpark hands it to the JVM.

    None where a Python worker would have to read records that it may not be able to read.
    """
    from pyspark.serializers import AutoBatchedSerializer

    deserializer = dataset._jrdd_deserializer
    inner = dataset.ctx._unbatched_serializer
    if is_pipelinable(dataset) and isinstance(deserializer, (AutoBatchedSerializer, AutoHeaderBatches)):
        side = dataset.mapPartitionsWithIndex(Order(), True)
        side._jrdd_deserializer = AutoHeaderBatches(inner, deserializer.bestSize)
        return side
    if batches_in(deserializer) == 1:  # which decide what reads them
        inner = deserializer.serializer
    elif without_headers(deserializer) is not None and hasattr(deserializer, "serializer"):
        inner = deserializer.serializer.inner
    elif not session.scope.node_of(dataset).origins.are_plain:
        return None
    return same_batches(session, dataset, SameSizeBatches(inner, getattr(deserializer, "batchSize", 1)))


def same_batches(session: Session, dataset: Any, serializer: SameSizeBatches) -> Any:
    """`dataset` read through a Python worker that adds headers to its batches; pickled ones unread."""
    deserializer = dataset._jrdd_deserializer
    reads_headers = has_headers(dataset)
    if reads_headers or batches_in(deserializer) == 1:
        return _passthrough(session, dataset, HeaderPassthrough(reads=reads_headers, writes=True), serializer)
    source = rdd_module().RDD(dataset._jrdd, dataset.ctx, BatchSizeReader(deserializer, serializer.sizes))
    source._lineage_node = session.scope.node_of(dataset)
    result = source.mapPartitionsWithIndex(Order(), True)
    result._jrdd_deserializer = serializer
    return result


def through_worker(session: Session, dataset: Any) -> Any:
    """`dataset` read through a Python worker, so that its records have task runs and are counted.

    Pickled batches pass it unread. Any other records only where every Python can read them.
    """
    deserializer = dataset._jrdd_deserializer
    batches, plain = batches_in(deserializer), without_headers(deserializer)
    if batches:
        return _passthrough(session, dataset, Passthrough(batches), deserializer)
    if plain is not None:
        operator = HeaderPassthrough(reads=True, writes=False, pairs=isinstance(deserializer, PairsOfBatches))
        return _passthrough(session, dataset, operator, plain)
    if are_products(deserializer):
        operator = HeaderPassthrough(reads=False, writes=False, pairs=True)
        return _passthrough(session, dataset, operator, deserializer)
    if can_go_through_worker(session, dataset):
        return dataset.mapPartitionsWithIndex(Order(), True)
    return dataset


def through_worker_with_headers(session: Session, dataset: Any) -> Any:
    """As `through_worker`, for what is executed in the JVM; pickled batches get headers."""
    reads_headers = has_headers(dataset)
    deserializer = dataset._jrdd_deserializer
    form = with_headers(without_headers(deserializer) if reads_headers else deserializer)
    if form is None:
        return through_worker(session, dataset)
    return _passthrough(session, dataset, HeaderPassthrough(reads=reads_headers, writes=True), form)


def can_go_through_worker(session: Session, dataset: Any) -> bool:
    """Can any Python worker hand on its records?"""
    deserializer = dataset._jrdd_deserializer
    is_pickled = (
        batches_in(deserializer) > 0
        or without_headers(deserializer) is not None
        or are_products(deserializer)
    )
    return is_pickled or session.scope.node_of(dataset).origins.are_plain


def is_pipelinable(dataset: Any) -> bool:
    return isinstance(dataset, rdd_module().PipelinedRDD) and dataset._is_pipelinable()


def _passthrough(session: Session, dataset: Any, operator: Operator, deserializer: Any) -> Any:
    """The same batches through `operator`, to be read by `deserializer`."""
    from pyspark.serializers import NoOpSerializer

    rdd = rdd_module().RDD
    source = rdd(dataset._jrdd, dataset.ctx, NoOpSerializer())
    source._lineage_node = session.scope.node_of(dataset)
    chain = source.mapPartitionsWithIndex(operator, True)
    chain._bypass_serializer = True
    result = rdd(chain._jrdd, dataset.ctx, deserializer)
    result._lineage_node, result.partitioner = chain._lineage_node, dataset.partitioner
    return result
