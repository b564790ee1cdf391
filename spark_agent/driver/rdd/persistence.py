"""What the driver does where an RDD is persisted or checkpointed: tasks then read what other tasks have left.

The batches that are kept tell the runs that made them (`tagging.name_runs`). And the driver says
which RDDs were ever kept, for those whose batches do not: their RDD of the JVM had been there before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver.monkeypatch import like
from spark_agent.driver.nodes import Node
from spark_agent.driver.rdd.batch_headers import name_runs
from spark_agent.worker.operators.passthrough import batches_in
from spark_agent.worker.operators.shuffle import MaybeTagged

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

Operation = Callable[..., Any]

_KEEPING = ("persist", "localCheckpoint", "checkpoint")  # `cache` calls `persist`
#: What else asks for the RDD of the JVM, which may be persisted afterwards.
_ASKING = (
    "getCheckpointFile", "getResourceProfile", "getStorageLevel", "id", "isCheckpointed",
    "isLocallyCheckpointed", "name", "setName", "toDebugString", "withResources",
)  # fmt: skip


def replaced(session: Session, stock: Callable[[str], Operation]) -> dict[str, Operation]:
    """Name -> what runs in the place of `stock(name)`."""
    kept = {name: _kept(session, stock(name)) for name in _KEEPING}
    return {**kept, **{name: _asking(stock(name)) for name in _ASKING}}


def _kept(session: Session, stock: Operation) -> Operation:
    def keep(self: Any, *args: Any, **kwargs: Any) -> Any:
        node = session.scope.node_of(self)
        if not node.is_kept:
            node.is_kept = True
            session.events.emit(contract.PERSISTED, node=node.number)
        if stock.__name__ != "persist":
            _describe_before(node)
        name_runs(self)
        return stock(self, *args, **kwargs)

    return like(stock, hiding(keep))


def _asking(stock: Operation) -> Operation:
    def ask(self: Any, *args: Any, **kwargs: Any) -> Any:
        name_runs(self)
        return stock(self, *args, **kwargs)

    return like(stock, hiding(ask))


def checkpoint_file(stock: Operation) -> Operation:
    """SparkContext._checkpointFile, by which programs look into a checkpoint: its batches may have tags."""

    def _checkpointFile(self: Any, name: str, input_deserializer: Any) -> Any:
        from pyspark.serializers import BatchedSerializer

        if batches_in(input_deserializer) == 1:
            input_deserializer = BatchedSerializer(
                MaybeTagged(input_deserializer.serializer), input_deserializer.batchSize
            )
        return stock(self, name, input_deserializer)

    return like(stock, hiding(_checkpointFile))


def _describe_before(node: Node) -> None:
    """Look at the partitions of a union or a coalesce now: Spark forgets what a checkpoint was made of."""
    describe = node.describe
    if describe is None or node.relation != contract.STATIC:
        return
    try:
        known = describe()
    except Exception:  # noqa: BLE001 - no such file, say: the action says so, when the user expects it
        return
    node.describe = lambda: known
