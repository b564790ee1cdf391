"""Which batches leave Python with tags, and how an RDD of the JVM's is read through a worker to have them.

A tag (`shuffle.TAG`) names the run that made a batch, so whoever reads it later knows whose records these
are: behind what deals batches out, in a union or a coalesce, and where an RDD is kept. Promises that batches
have the records, the sizes and the order of stock PySpark, and that no record is unpickled for a tag alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver.monkeypatch import like, rdd_module
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators.narrow import Order
from spark_agent.worker.operators.passthrough import (
    Pass,
    PassTagged,
    are_products,
    batches_in,
    plain_form,
    tagged,
    untagged,
)
from spark_agent.worker.operators.shuffle import BatchesIn, PairsOfBatches, SameBatches, TaggedBatches

if TYPE_CHECKING:
    from spark_agent.driver.session import Session


_lock = threading.RLock()


def parts_of_union(session: Session, datasets: list[Any]) -> list[Any]:
    """The parts of a union, in one form as stock PySpark brings them into one, by a map where they differ.

    Where that costs nothing their batches have tags: what the union is made of may be kept and read again.
    """
    parts = [_placed(session, each) for each in datasets]
    forms = [plain_form(part) for part in parts]
    if any(form != forms[0] for form in forms):
        wanted = parts[0].ctx.serializer
        parts = [
            part if form == wanted else part._reserialize() for part, form in zip(parts, forms, strict=True)
        ]
    if all(has_tags(part) or _open_form(part) is not None for part in parts):
        for part in parts:
            name_runs(part)
    elif any(has_tags(part) for part in parts):
        parts = [part if has_tags(part) else piped_with_tags(session, part) for part in parts]
    return parts


def _placed(session: Session, dataset: Any) -> Any:
    """A part of a union: a static boundary can name the partitions of a file or of runs, not of a shuffle."""
    node = session.scope.node_of(dataset)
    if node.is_piped or node.relation in (contract.STATIC, contract.SOURCE):
        return dataset
    return piped_with_tags(session, dataset)


def name_runs(dataset: Any) -> None:
    """Let the batches of `dataset` tell their runs, if nobody has asked for its RDD of the JVM yet.

    So whoever reads what is kept of it knows which task has left it there.
    """
    if _open_form(dataset) is not None:
        with _lock_of(dataset):
            form = _open_form(dataset)  # another thread may have settled it meanwhile
            if form is not None:
                dataset._jrdd_deserializer = form


def _open_form(dataset: Any) -> Any:
    """The form with tags that an RDD can still be given; None where there is none."""
    is_open = isinstance(dataset, rdd_module().PipelinedRDD) and not dataset._jrdd_val
    return tagged(dataset._jrdd_deserializer) if is_open and not dataset._bypass_serializer else None


def jvm_rdd(stock: Callable[[Any], Any]) -> property:
    """PipelinedRDD._jrdd, which is made once, in the form that is settled when it is asked for first."""

    def _jrdd(self: Any) -> Any:
        if self._jrdd_val:
            return self._jrdd_val
        with _lock_of(self):
            return stock(self)

    return property(like(stock, hiding(_jrdd)))


def _lock_of(dataset: Any) -> threading.RLock:
    """Of an RDD whose making was not seen, that of all such."""
    lock: threading.RLock = getattr(dataset, "_lineage_lock", _lock)
    return lock


def has_tags(dataset: Any) -> bool:
    form = dataset._jrdd_deserializer
    return untagged(form) is not None and not isinstance(form, PairsOfBatches)


def side_of_product(session: Session, dataset: Any) -> Any:
    """`dataset` in tagged batches, of the sizes in which stock PySpark would hand it to the JVM.

    None where a Python worker would have to read records that it may not be able to read.
    """
    from pyspark.serializers import AutoBatchedSerializer

    stock = dataset._jrdd_deserializer
    inner = dataset.ctx._unbatched_serializer
    if is_pipelinable(dataset) and isinstance(stock, (AutoBatchedSerializer, TaggedBatches)):
        side = dataset.mapPartitionsWithIndex(Order(), True)
        side._jrdd_deserializer = TaggedBatches(inner, stock.bestSize)
        return side
    if batches_in(stock) == 1:  # which decide what reads them
        inner = stock.serializer
    elif untagged(stock) is not None and hasattr(stock, "serializer"):
        inner = stock.serializer.inner
    elif not session.scope.node_of(dataset).ends.are_plain:
        return None
    return same_batches(session, dataset, SameBatches(inner, getattr(stock, "batchSize", 1)))


def same_batches(session: Session, dataset: Any, serializer: Any) -> Any:
    """`dataset` read through a Python worker that keeps its batches and tags them; pickled ones unread."""
    stock = dataset._jrdd_deserializer
    is_tagged = has_tags(dataset)
    if is_tagged or batches_in(stock) == 1:
        return _passed(session, dataset, PassTagged(reads=is_tagged, writes=True), serializer)
    read = rdd_module().RDD(dataset._jrdd, dataset.ctx, BatchesIn(dataset._jrdd_deserializer))
    read._lineage_node = session.scope.node_of(dataset)
    made = read.mapPartitionsWithIndex(Order(), True)
    made._jrdd_deserializer = serializer
    return made


def piped(session: Session, dataset: Any) -> Any:
    """`dataset` read through a Python worker, so that its records have runs and are counted.

    Pickled batches pass it unread. Any other records only where every Python can read them.
    """
    stock = dataset._jrdd_deserializer
    every, plain = batches_in(stock), untagged(stock)
    if every:
        return _passed(session, dataset, Pass(every), stock)
    if plain is not None:
        passing = PassTagged(reads=True, writes=False, pairs=isinstance(stock, PairsOfBatches))
        return _passed(session, dataset, passing, plain)
    if are_products(stock):
        return _passed(session, dataset, PassTagged(reads=False, writes=False, pairs=True), stock)
    if can_be_piped(session, dataset):
        return dataset.mapPartitionsWithIndex(Order(), True)
    return dataset


def piped_with_tags(session: Session, dataset: Any) -> Any:
    """As `piped`, for what the JVM puts together: with tags, where the records are in pickled batches."""
    is_tagged = has_tags(dataset)
    stock = dataset._jrdd_deserializer
    form = tagged(untagged(stock) if is_tagged else stock)
    if form is None:
        return piped(session, dataset)
    return _passed(session, dataset, PassTagged(reads=is_tagged, writes=True), form)


def can_be_piped(session: Session, dataset: Any) -> bool:
    stock = dataset._jrdd_deserializer
    is_pickled = batches_in(stock) > 0 or untagged(stock) is not None or are_products(stock)
    return is_pickled or session.scope.node_of(dataset).ends.are_plain


def is_pipelinable(dataset: Any) -> bool:
    return isinstance(dataset, rdd_module().PipelinedRDD) and dataset._is_pipelinable()


def _passed(session: Session, dataset: Any, passing: Operator, deserializer: Any) -> Any:
    """The same batches through `passing`, to be read by `deserializer`."""
    from pyspark.serializers import NoOpSerializer

    rdd = rdd_module().RDD
    read = rdd(dataset._jrdd, dataset.ctx, NoOpSerializer())
    read._lineage_node = session.scope.node_of(dataset)
    passed = read.mapPartitionsWithIndex(passing, True)
    passed._bypass_serializer = True
    result = rdd(passed._jrdd, dataset.ctx, deserializer)
    result._lineage_node, result.partitioner = passed._lineage_node, dataset.partitioner
    return result
