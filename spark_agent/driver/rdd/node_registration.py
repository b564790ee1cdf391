"""The nodes of RDDs, made where PySpark makes the RDDs.

An RDD that the JVM computes begins with an upper bound on its inputs, until its operation knows better. The
functions of an RDD that Python computes stay in one flat chain, each with its node.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.driver.monkeypatch import like
from spark_agent.driver.nodes import Node, bound_reason
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators.passthrough import HeaderPassthrough, Passthrough
from spark_agent.worker.operators.save import TextSink
from spark_agent.worker.pipeline import Pipeline

if TYPE_CHECKING:
    from spark_agent.driver.session import Session


def jvm_rdd_init(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    """RDD.__init__."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        frames = session.scope.frames
        if frames:
            name = frames[-1].name
            self._lineage_node = session.scope.new_node(
                name,
                parents=list(frames[-1].inputs),
                relation=contract.DATASET,
                exact=False,
                reason=bound_reason(name, contract.DATASET),
            )

    return like(original, __init__)


def pipelined_rdd_init(session: Session, pipelined: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """PipelinedRDD.__init__."""

    def __init__(
        self: Any, prev: Any, func: Any, preservesPartitioning: bool = False, isFromBarrier: bool = False
    ) -> None:
        is_first = not isinstance(prev, pipelined) or not prev._is_pipelinable()
        original(self, prev, func, preservesPartitioning, isFromBarrier)
        frames = session.scope.frames
        begin_sink = frames[-1].sink if frames else None
        if begin_sink is not None:
            func = TextSink(func)
        node = _node_of_function(session, func, prev)
        if session.replay is not None and session.replay.functions is not None:
            session.replay.functions[node.number] = func
        self._lineage_node, self._lineage_lock = node, threading.RLock()
        if is_first:
            self.func = Pipeline((func,), (node,), node.parents[0])
        elif isinstance(prev.func, Pipeline):
            before = prev.func
            self.func = Pipeline((*before.functions, func), (*before.nodes, node), before.input_node)
        if begin_sink is not None:
            begin_sink(node)

    return like(original, __init__)


def _node_of_function(session: Session, function: Any, parent: Any) -> Node:
    """The node of what `function` makes of the partitions of `parent`."""
    parents = [session.scope.node_of(parent)]
    if isinstance(function, Operator):
        return session.scope.new_node(
            function.node_name,
            parents=parents,
            relation=function.relation,
            is_in_python=True,
            is_passthrough=isinstance(function, (Passthrough, HeaderPassthrough)),
        )
    frames = session.scope.frames
    name = frames[-1].name if frames else "mapPartitions"
    return session.scope.new_node(
        name,
        parents=parents,
        relation=contract.PARTITION,
        exact=False,
        reason=bound_reason(name, contract.PARTITION),
        is_in_python=True,
    )
