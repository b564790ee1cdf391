"""PySpark's RDD operations while lineage is on: puts the replacements in place.

`install` patches the classes. The replacements are in `transformations`, `persistence`, `actions`, `sources`
and `dstreams`, and `node_registration` sees the RDDs that are made. An operation that is not captured keeps
its own code; its node says that it is an upper bound, and why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver.capture_plan import captured
from spark_agent.driver.monkeypatch import is_rdd, like, rdd_module
from spark_agent.driver.pickled_chains import PickledFunction
from spark_agent.driver.rdd import (
    actions,
    batch_headers,
    dstreams,
    mllib,
    node_registration,
    partition_transformations,
    persistence,
    sources,
    transformations,
)
from spark_agent.worker import text_reader
from spark_agent.worker.batch_serializers import HeaderSerializer
from spark_agent.worker.pipeline import Capture, Pipeline
from spark_agent.worker.serializer import CapturingSerializer

if TYPE_CHECKING:
    from spark_agent.driver.session import Session


def install(session: Session) -> None:
    """Patch RDD, PipelinedRDD and SparkContext for `session`."""
    from pyspark import SparkContext

    module = rdd_module()
    replace = session.patches.replace
    base, pipelined = module.RDD, module.PipelinedRDD
    original = dict(base.__dict__).__getitem__
    replace(base, "__init__", node_registration.jvm_rdd_init(session, base.__init__))
    replace(
        pipelined, "__init__", node_registration.pipelined_rdd_init(session, pipelined, pipelined.__init__)
    )
    replace(pipelined, "_jrdd", batch_headers.jvm_rdd(pipelined.__dict__["_jrdd"].fget))
    if session.keeps_pickled:
        noting = session.pickled.noting(module._prepare_for_python_RDD)
        replace(module, "_prepare_for_python_RDD", noting)
    replace(module, "_wrap_function", _wrap_function(session, module._wrap_function))
    for name, function in transformations.replacements(session, original).items():
        replace(base, name, _operation(session, name, function, original(name)))
    for name, action in actions.replacements(session, original).items():
        replace(base, name, action)
    for name, method in persistence.replacements(session, original).items():
        replace(base, name, method)
    for name in sources.SOURCES:
        replace(SparkContext, name, sources.source(session, name, SparkContext.__dict__[name]))
    replace(SparkContext, "union", partition_transformations.context_union(session, SparkContext.union))
    replace(SparkContext, "runJob", actions.run_job(session, SparkContext.runJob))
    replace(SparkContext, "stop", _stop(session, SparkContext.stop))
    replace(SparkContext, "_checkpointFile", persistence.checkpoint_file(SparkContext._checkpointFile))
    dstreams.install(session)
    mllib.install(session)


def _operation(
    session: Session, name: str, function: Callable[..., Any], original: Callable[..., Any]
) -> Callable[..., Any]:
    """A transformation: what it makes is one public node and its internal nodes."""
    function.__qualname__ = original.__qualname__  # Python names it where the arguments are wrong
    if session.replay is not None and session.replay.is_compact:
        from spark_agent.driver.replay.few_partitions import one_partition

        function = one_partition(function, original)

    def operation(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.scope.frames:
            return function(self, *args, **kwargs)
        with session.scope.operation(name, _rdds_in(self, *args, *kwargs.values())) as frame:
            result = function(self, *args, **kwargs)
        session.scope.finish(frame, result)
        session.recipes.add(name, (self, *args), kwargs, result, pickled=frame.pickled)
        return result

    return like(original, hiding(operation))


def _rdds_in(*arguments: Any) -> list[Any]:
    """The RDDs among some arguments, which may be lists of them."""
    flat = (
        value for argument in arguments for value in (argument if isinstance(argument, list) else [argument])
    )
    return [value for value in flat if is_rdd(value)]


def _stop(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def stop(self: Any) -> None:
        try:
            if self is session.context:
                session.stop()
        finally:
            original(self)

    return like(original, stop)


def _wrap_function(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def _wrap_function(sc: Any, func: Any, deserializer: Any, serializer: Any, profiler: Any = None) -> Any:
        pipeline = func
        if isinstance(func, Pipeline):
            has_headers = isinstance(getattr(serializer, "serializer", None), HeaderSerializer)
            frames = session.scope.frames
            is_of_action = bool(frames) and frames[0].name in actions.ACTIONS
            func = captured(session, func, writes_headers=has_headers, is_of_action=is_of_action)
            deserializer = text_reader.in_place_of(deserializer)
            serializer = CapturingSerializer(serializer, session.manifests)
        wrapped = original(sc, func, deserializer, serializer, profiler)
        if session.keeps_pickled and isinstance(func, Capture) and func.plan is not None:
            _keep_pickled(session, pipeline)
        return wrapped

    return like(original, _wrap_function)


def _keep_pickled(session: Session, pipeline: Pipeline) -> None:
    """A chain that captures was just pickled: each operation of it knows its part."""
    chain = session.pickled.latest()
    if chain is None:
        return
    frames = session.scope.frames
    for place, (node, function) in enumerate(zip(pipeline.nodes, pipeline.functions, strict=True)):
        pickled = PickledFunction(chain, place, function)
        if not session.recipes.note_pickled(node, pickled) and frames:
            frames[0].pickled.append(pickled)
