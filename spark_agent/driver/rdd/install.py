"""PySpark's RDD operations while lineage is on: puts the replacements in place and registers what they make.

`install` patches the classes; the replacements are in `transformations`, `keeping`, `actions` and `sources`.
An operation that is not captured keeps its own code; its node says that it is a bound and why.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver.capture_plan import captured
from spark_agent.driver.monkeypatch import is_rdd, like, rdd_module
from spark_agent.driver.nodes import inexact
from spark_agent.driver.rdd import actions, batch_headers, dstreams, persistence, sources, transformations
from spark_agent.worker import text_reader
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators.passthrough import Pass, PassTagged
from spark_agent.worker.operators.save import TextSink
from spark_agent.worker.operators.shuffle import TaggedSerializer
from spark_agent.worker.pipeline import Pipeline
from spark_agent.worker.serializer import CapturingSerializer

if TYPE_CHECKING:
    from spark_agent.driver.session import Session


def install(session: Session) -> None:
    """Patch RDD, PipelinedRDD and SparkContext for `session`."""
    from pyspark import SparkContext

    module = rdd_module()
    replace = session.patches.replace
    base, pipelined = module.RDD, module.PipelinedRDD
    stock = dict(base.__dict__)
    replace(base, "__init__", _jvm_rdd_init(session, base.__init__))
    replace(pipelined, "__init__", _pipelined_init(session, pipelined, pipelined.__init__))
    replace(pipelined, "_jrdd", batch_headers.jvm_rdd(pipelined.__dict__["_jrdd"].fget))
    replace(module, "_wrap_function", _wrap_function(session, module._wrap_function))
    for name, function in transformations.replaced(session, stock.__getitem__).items():
        replace(base, name, _operation(session, name, function, stock[name]))
    for name, action in actions.replaced(session, stock.__getitem__).items():
        replace(base, name, action)
    for name, keep in persistence.replaced(session, stock.__getitem__).items():
        replace(base, name, keep)
    for name in sources.SOURCES:
        replace(SparkContext, name, sources.source(session, name, SparkContext.__dict__[name]))
    replace(SparkContext, "union", transformations.context_union(session, SparkContext.union))
    replace(SparkContext, "runJob", actions.run_job(session, SparkContext.runJob))
    replace(SparkContext, "stop", _stop(session, SparkContext.stop))
    replace(SparkContext, "_checkpointFile", persistence.checkpoint_file(SparkContext._checkpointFile))
    dstreams.install(session)


def _inputs(self: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> list[Any]:
    given = [self, *args, *kwargs.values()]
    flat = [one for each in given for one in (each if isinstance(each, list) else [each])]
    return [each for each in flat if is_rdd(each)]


def _operation(
    session: Session, name: str, function: Callable[..., Any], stock: Callable[..., Any]
) -> Callable[..., Any]:
    """A transformation: what it makes is one public node and its steps."""
    function.__qualname__ = stock.__qualname__  # Python names it where the arguments are wrong

    def operation(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.scope.frames:
            return function(self, *args, **kwargs)
        with session.scope.operation(name, _inputs(self, args, kwargs)) as frame:
            result = function(self, *args, **kwargs)
        session.scope.finish(frame, result)
        return result

    return like(stock, hiding(operation))


def _stop(session: Session, stock: Callable[..., Any]) -> Callable[..., Any]:
    def stop(self: Any) -> None:
        try:
            if self is session.context:
                session.stop()
        finally:
            stock(self)

    return like(stock, stop)


# -- where RDDs are made ----------------------------------------------------------------------------


def _jvm_rdd_init(session: Session, stock: Callable[..., Any]) -> Callable[..., Any]:
    """RDDs that the JVM computes: a bound on their inputs until the operation says better."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        stock(self, *args, **kwargs)
        frames = session.scope.frames
        if frames:
            name = frames[-1].name
            node = session.scope.new_node(name, parents=list(frames[-1].inputs))
            node.relation, node.exact = contract.DATASET, False
            node.reason = inexact(name, contract.DATASET)
            self._lineage_node = node

    return like(stock, __init__)


def _pipelined_init(session: Session, pipelined: Any, stock: Callable[..., Any]) -> Callable[..., Any]:
    """RDDs that Python computes: the chain stays flat, each function with its node."""

    def __init__(
        self: Any, prev: Any, func: Any, preservesPartitioning: bool = False, isFromBarrier: bool = False
    ) -> None:
        is_first = not isinstance(prev, pipelined) or not prev._is_pipelinable()
        stock(self, prev, func, preservesPartitioning, isFromBarrier)
        frames = session.scope.frames
        begin_sink = frames[-1].sink if frames else None
        if begin_sink is not None:
            func = TextSink(func)
        node = session.scope.new_node(
            _step_name(func, frames), parents=[session.scope.node_of(prev)], is_piped=True
        )
        node.is_unread = isinstance(func, (Pass, PassTagged))
        if isinstance(func, Operator):
            func.node = node.number
            node.relation = func.relation
        else:
            node.relation, node.exact = contract.PARTITION, False
            node.reason = inexact(node.name, contract.PARTITION)
        self._lineage_node, self._lineage_lock = node, threading.RLock()
        if is_first:
            self.func = Pipeline((func,), (node,), node.parents[0])
        elif isinstance(prev.func, Pipeline):
            before = prev.func
            self.func = Pipeline((*before.functions, func), (*before.nodes, node), before.input_node)
        if begin_sink is not None:
            begin_sink(node)

    return like(stock, __init__)


def _step_name(func: Any, frames: list[Any]) -> str:
    if isinstance(func, Operator):
        return type(func).__name__.lower()
    return frames[-1].name if frames else "mapPartitions"


def _wrap_function(session: Session, stock: Callable[..., Any]) -> Callable[..., Any]:
    def _wrap_function(sc: Any, func: Any, deserializer: Any, serializer: Any, profiler: Any = None) -> Any:
        if isinstance(func, Pipeline):
            has_headers = isinstance(getattr(serializer, "serializer", None), TaggedSerializer)
            func = captured(session, func, writes_headers=has_headers)
            deserializer = text_reader.in_place_of(deserializer)
            serializer = CapturingSerializer(serializer, session.manifests)
        return stock(sc, func, deserializer, serializer, profiler)

    return like(stock, _wrap_function)
