"""What the driver says of RDDs that are persisted or checkpointed: from when on, and until when.

Tasks read from there what other tasks have left, and nothing in the records says which. So the driver tells
when an RDD is kept, which bounds who can have met (docs/architecture.md, "How records are identified"). A
period is never told as shorter than it is: its begin is told before Spark knows of it, its end afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.capture import hiding
from spark_agent.nodes import Node
from spark_agent.patches import like

if TYPE_CHECKING:
    from spark_agent.session import Session

Operation = Callable[..., Any]

_KEEPING = {
    "persist": contract.CACHED,
    "localCheckpoint": contract.CACHED,
    "checkpoint": contract.CHECKPOINTED,
}


def replaced(session: Session, stock: Callable[[str], Operation]) -> dict[str, Operation]:
    """Name -> what runs in the place of `stock(name)`. `cache` calls `persist`."""
    kept = {name: _kept(session, stock(name), how) for name, how in _KEEPING.items()}
    return {**kept, "unpersist": _unpersist(session, stock("unpersist"))}


def _kept(session: Session, stock: Operation, how: str) -> Operation:
    def keep(self: Any, *args: Any, **kwargs: Any) -> Any:
        _tell(session, self, how)
        if stock.__name__ != "persist":
            _describe_before(session.node_of(self))
        return stock(self, *args, **kwargs)

    return like(stock, hiding(keep))


def _unpersist(session: Session, stock: Operation) -> Operation:
    def unpersist(self: Any, blocking: bool = False) -> Any:
        result = stock(self, blocking)
        _tell(session, self, contract.DROPPED if blocking else contract.RELEASED)
        return result

    return like(stock, hiding(unpersist))


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


def _tell(session: Session, dataset: Any, how: str) -> None:
    session.emit(contract.PERSISTED, node=session.node_of(dataset).number, how=how)
