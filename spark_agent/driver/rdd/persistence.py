"""What the driver does where an RDD is persisted or checkpointed: tasks then read what other tasks have left.

The batches that are persisted name the task runs that made them (`batch_headers.write_headers`). Where an RDD
of the JVM had been there before, its batches do not; so the driver says of every RDD that it was persisted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver.monkeypatch import like
from spark_agent.driver.nodes import Node
from spark_agent.driver.rdd.batch_formats import batches_in
from spark_agent.driver.rdd.batch_headers import write_headers
from spark_agent.worker.batch_serializers import OptionalHeaderSerializer

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

Operation = Callable[..., Any]

_PERSISTING = ("persist", "localCheckpoint", "checkpoint")  # `cache` calls `persist`
#: What else asks for the RDD of the JVM, which may be persisted afterwards.
_READING = (
    "getCheckpointFile", "getResourceProfile", "getStorageLevel", "id", "isCheckpointed",
    "isLocallyCheckpointed", "name", "setName", "toDebugString", "withResources",
)  # fmt: skip


def replacements(session: Session, original: Callable[[str], Operation]) -> dict[str, Operation]:
    """Name -> what runs in the place of `original(name)`."""
    return {
        **{name: _persisting(session, original(name)) for name in _PERSISTING},
        **{name: _reading(original(name)) for name in _READING},
    }


def _persisting(session: Session, original: Operation) -> Operation:
    def persist(self: Any, *args: Any, **kwargs: Any) -> Any:
        node = session.scope.node_of(self)
        if not node.is_persisted and not node.is_left_out:
            node.is_persisted = True
            session.events.emit(contract.PERSISTED, node=node.number)
        is_checkpoint = original.__name__ != "persist"
        if is_checkpoint:
            _describe_before(node)
        write_headers(self)
        result = original(self, *args, **kwargs)
        if is_checkpoint:
            session.recipes.cut(self)
        return result

    return like(original, hiding(persist))


def _reading(original: Operation) -> Operation:
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        write_headers(self)
        return original(self, *args, **kwargs)

    return like(original, hiding(read))


def checkpoint_file(original: Operation) -> Operation:
    """SparkContext._checkpointFile, which reads a checkpoint: its batches may have headers."""

    def _checkpointFile(self: Any, name: str, input_deserializer: Any) -> Any:
        from pyspark.serializers import BatchedSerializer

        if batches_in(input_deserializer) == 1:
            input_deserializer = BatchedSerializer(
                OptionalHeaderSerializer(input_deserializer.serializer), input_deserializer.batchSize
            )
        return original(self, name, input_deserializer)

    return like(original, hiding(_checkpointFile))


def _describe_before(node: Node) -> None:
    """Look at the partitions of a union or a coalesce now: Spark forgets what a checkpoint was made of."""
    describe = node.describe
    if describe is None or node.relation != contract.STATIC:
        return
    try:
        described = describe()
    except Exception:  # noqa: BLE001 - no such file, say: the action says so, when the user expects it
        return
    node.describe = lambda: described
