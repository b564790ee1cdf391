"""Queries of which no record is followed: published as coarse nodes, with what they read and wrote.

There is a node for each query and one for each of its sources, `exact: false` with the reason, and a gap, so
that the application is not complete. `CoarseQueries` needs no jar: where the agent has no strategy in Spark's
planner, a listener that Spark calls behind each query reports it. Plans stay as they are.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spark_agent.delivery.log import logger
from spark_agent.sql import tables
from spark_agent.sql.plan_schemas import schema_of_plan
from spark_agent.sql.rewrite.plan_nodes import PlanNodes, publish
from spark_agent.sql.runtime.re_executions import action_of
from spark_agent.sql.tables import Endpoint, class_name

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

#: Of the sources of one query. More make no graph that people read.
_MOST_SOURCES = 100
#: Of the queries of one application.
_MOST_QUERIES = 1_000
#: How the listener shows itself.
_LISTENER = "the lineage listener"
#: Leaves of plans whose rows stand in the plan itself.
_LOCAL = frozenset(("LocalRelation", "OneRowRelation", "CommandResult", "EmptyRelation", "LocalTableScan"))
#: What Spark's listeners call any command.
_COMMAND = "command"


class CoarseQueries:
    """The queries of one application that are not followed. Thread-safe."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._watched: list[tuple[Any, str]] = []  # sessions of the JVM, and why none of their queries is
        self.count = 0

    def publish(
        self,
        query: Endpoint,
        sources: Sequence[Endpoint],
        reason: str,
        *,
        call_site: str = "",
        is_failed: bool = False,
    ) -> int | None:
        """Publish a query with its sources; the number of its node. The application has a gap then.

        None for one query too many: a job that goes on for ever would make a graph without end.
        """
        with self._lock:
            self.count += 1
            if self.count > _MOST_QUERIES:
                query, sources = Endpoint(""), ()
        if not query.name:
            self._session.events.gap(
                f"more than {_MOST_QUERIES} queries were not followed: the others have no node"
            )
            return None
        why, reason = reason, f"{reason} ({query.name} failed)" if is_failed else reason
        nodes = PlanNodes(self._session.scope.next_number, call_site)
        parents = [
            nodes.operator(
                source.name,
                source.description,
                [],
                kind="source",
                dataset=source.dataset,
                schema=source.schema,
                exact=False,
                reason=reason,
            ).number
            for source in sources[:_MOST_SOURCES]
        ]
        sink = nodes.operator(
            query.name,
            query.description,
            parents,
            kind="sink",
            dataset=query.dataset,
            schema=query.schema,
            exact=False,
            reason=reason,
        )
        publish(self._session.events.emit, nodes.nodes)
        self._session.events.gap(why, sink.number)
        return sink.number

    def watch(self, java_session: Any, reason: str) -> None:
        """Publish each query of a SparkSession of the JVM from now on. Never raises."""
        try:
            from pyspark.java_gateway import ensure_callback_server_started

            manager = java_session.listenerManager()
            if any(str(listener.toString()) == _LISTENER for listener in manager.listListeners()):
                return  # a clone of a session (of a stream, say) has its listeners
            ensure_callback_server_started(self._session.context._gateway)
            manager.register(_Listener(self, reason))
            with self._lock:
                self._watched.append((java_session, reason))
        except Exception as error:  # noqa: BLE001 - an agent bug: the user's job goes on
            logger.debug("queries cannot be listened to: %r", error)
            self._session.events.gap(reason)  # whether there are any is not known

    def ended(self, name: str, execution: Any, reason: str, *, is_failed: bool) -> None:
        """Spark has run a query. Raises what py4j raises."""
        plan = execution.analyzed()
        if plan.isStreaming():
            return  # a batch of a stream, which has a node
        written = _written(plan)
        if name == _COMMAND and written is None:
            return  # a statement that moves no rows: a view is defined, a partition is dropped
        leaves = _leaves(plan)
        if written is None and all(class_name(leaf) in _LOCAL for leaf in leaves):
            return  # rows that stand in the query itself: it needs no job
        sources = [read_by(leaf) for leaf in leaves if class_name(leaf) not in _LOCAL]
        sink = replace(written or Endpoint(action_of(name)), schema=schema_of_plan(_rows(plan)))
        self.publish(sink, sources, reason, is_failed=is_failed)

    def end(self) -> None:
        """Leave a gap for executions that no listener reported. Never raises."""
        with self._lock:
            unreported = self._watched if not self.count else []
        for java_session, reason in unreported:
            gap_if_executed(self._session, java_session, reason)


def gap_if_executed(session: Session, java_session: Any, reason: str) -> None:
    """Leave a gap if Spark counts an execution of a query. Never raises."""
    try:
        is_used = java_session.sharedState().statusStore().executionsCount() > 0
    except Exception as error:  # noqa: BLE001 - the JVM may have gone
        logger.debug("executions cannot be counted: %r", error)
        is_used = True  # there is a SparkSession, and nobody knows better
    if is_used:
        session.events.gap(reason)


class _Listener:
    """Python's side of a QueryExecutionListener."""

    def __init__(self, coarse_queries: CoarseQueries, reason: str) -> None:
        self._coarse_queries, self._reason = coarse_queries, reason

    def onSuccess(self, name: str, execution: Any, nanoseconds: int) -> None:
        self._report(name, execution, is_failed=False)

    def onFailure(self, name: str, execution: Any, error: Any) -> None:
        self._report(name, execution, is_failed=True)

    def _report(self, name: str, execution: Any, *, is_failed: bool) -> None:
        try:
            self._coarse_queries.ended(str(name), execution, self._reason, is_failed=is_failed)
        except Exception as error:  # noqa: BLE001 - one that failed before it had a plan, or the JVM has gone
            logger.debug("a query could not be reported: %r", error)
            self._coarse_queries.publish(
                Endpoint(action_of(str(name))), (), self._reason, is_failed=is_failed
            )

    def toString(self) -> str:
        return _LISTENER

    class Java:
        implements = ("org.apache.spark.sql.util.QueryExecutionListener",)


def read_by(leaf: Any) -> Endpoint:
    """What a leaf of a plan reads, with its columns. Never raises."""
    return replace(tables.read_by(leaf), schema=schema_of_plan(leaf))


def _rows(plan: Any) -> Any:
    """The plan that gives the rows: of a command that of its query."""
    query, children = _query(plan), plan.children()
    if query is None and not plan.output().isEmpty():
        return plan
    return children.apply(0) if query is None and not children.isEmpty() else query or plan


def _leaves(plan: Any) -> list[Any]:
    """The leaves of a plan; of a command that hides its query, those of the query."""
    query = _query(plan)
    leaves = (plan if query is None else query).collectLeaves()
    return [leaves.apply(index) for index in range(min(leaves.size(), _MOST_SOURCES))]


def _query(plan: Any) -> Any:
    """The query of a command that is no child of it; None of other plans."""
    inner = plan.innerChildren()
    return inner.apply(0) if plan.children().isEmpty() and inner.size() == 1 and _is_plan(inner) else None


def _is_plan(inner: Any) -> bool:
    return bool(hasattr(inner.apply(0), "collectLeaves"))


def _written(plan: Any) -> Endpoint | None:
    """Where a plan writes, of whatever kind its command is; None of one that does not."""
    if class_name(plan) == "InsertIntoHadoopFsRelationCommand":
        return tables.of_files(str(plan.fileFormat().toString()), str(plan.outputPath().toString()))
    return tables.written_by(plan)
