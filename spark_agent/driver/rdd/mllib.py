"""The algorithms of `pyspark.mllib`: a call that the JVM works for is an action, its result is one record.

It is made of all records of the RDDs that the call was given. Promises a gap where not all of their
partitions were seen: the library may have found some in a cache, which a task had filled before it failed. A
call that only makes another RDD is no action.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver.call_sites import called
from spark_agent.driver.module_imports import when_imported
from spark_agent.driver.monkeypatch import is_rdd, like
from spark_agent.driver.nodes import Node, failure_reason
from spark_agent.driver.operation_scope import is_left_out
from spark_agent.driver.rdd.batch_headers import is_pipelinable, through_worker

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

_MODULE, _FUNCTION = "pyspark.mllib.common", "callJavaFunc"


def install(session: Session) -> None:
    """Patch the door to the JVM, once the user's program has imported it."""

    def patch(module: Any) -> None:
        session.patches.replace(module, _FUNCTION, _call(session, getattr(module, _FUNCTION)))

    session.patches.waiting.append(when_imported(_MODULE, patch))


def _call(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def callJavaFunc(sc: Any, func: Any, *args: Any) -> Any:
        inputs = [argument for argument in args if is_rdd(argument)]
        if not inputs or session.scope.frames or any(map(is_left_out, inputs)):
            return original(sc, func, *args)
        sink = session.scope.new_node(
            called(),
            kind="sink",
            relation=contract.AGGREGATE,
            parents=[session.scope.node_of(dataset) for dataset in inputs],
        )
        with session.events.watching(sink.number) as seen:
            try:
                with (
                    session.scope.operation(sink.name, inputs, site=sink.site) as frame,
                    session.scope.serving(str(sink.number)),
                ):
                    result = original(sc, func, *(_readable(session, argument) for argument in args))
            except BaseException as error:
                _fail(session, sink, error)
                raise
        session.scope.finish(frame, result)
        if seen and not is_rdd(result):
            _publish(session, sink, inputs, seen)
        return result

    return like(original, hiding(callJavaFunc))


def _readable(session: Session, argument: Any) -> Any:
    """An RDD that Python workers read, so that its records have task runs; other arguments as they are."""
    is_in_jvm = is_rdd(argument) and not is_pipelinable(argument)
    return through_worker(session, argument) if is_in_jvm else argument


def _publish(
    session: Session, sink: Node, inputs: Sequence[Any], seen: set[tuple[frozenset[int], int]]
) -> None:
    for dataset, node in zip(inputs, sink.parents, strict=True):
        splits = {split for nodes, split in seen if node.number in nodes}
        if len(splits) < dataset.getNumPartitions():
            reason = f"of the partitions that {sink.name} read, not all were seen: records may be missing"
            sink.make_inexact(reason)
            session.events.gap(reason, sink.number)
    sink.describe = lambda: [{"split": 0}]  # the result is there
    session.nodes.publish(sink)
    session.nodes.describe(sink)
    session.events.action_ended(sink.number, sink.name)


def _fail(session: Session, sink: Node, error: BaseException) -> None:
    sink.make_inexact(failure_reason(sink.name))
    session.nodes.register(sink)
    session.events.action_ended(sink.number, sink.name, error)
