"""What happens to each query of a session: rewritten where it is covered, published as it is where it is not.

Spark's planner calls `Queries.rewrite` with each optimised plan, and plans what it returns. Promises that
whatever goes wrong leaves the plan untouched, and that the reason is published.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from spark_agent.delivery import settings
from spark_agent.delivery.log import logger
from spark_agent.driver.callers import Callers
from spark_agent.driver.sites import Site
from spark_agent.sql import tables
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.database_keys import DatabaseKeys
from spark_agent.sql.files import commands, outputs
from spark_agent.sql.files.scans import FileScans
from spark_agent.sql.plan_schemas import schema_given
from spark_agent.sql.py4j_errors import in_short
from spark_agent.sql.python_functions import results_at_once
from spark_agent.sql.rerun.asked_queries import AskedQueries
from spark_agent.sql.rerun.replayed_queries import ReplayedQueries
from spark_agent.sql.rerun.rerun import LAZY_REASON, LazyQueries, Rerun
from spark_agent.sql.rewrite import plan_display, rewriter
from spark_agent.sql.rewrite.plan_nodes import PlanNode, PlanNodes, UncoveredError
from spark_agent.sql.rewrite.plan_walk import Rewritten, Walk
from spark_agent.sql.rewrite.row_paths import ROW_PYTHON
from spark_agent.sql.rewrite.taps import TapFactory
from spark_agent.sql.runtime import (
    dataframe_call_sites,
    function_calls,
    iceberg_deletes,
    saves,
    whole_file_deletes,
)
from spark_agent.sql.runtime.coarse_queries import CoarseQueries
from spark_agent.sql.runtime.executions import Executions
from spark_agent.sql.runtime.fits import Fits
from spark_agent.sql.runtime.iceberg_deletes import IcebergDeletes
from spark_agent.sql.runtime.jvm_events import JvmEvents
from spark_agent.sql.runtime.persisted_nodes import PersistedNodes
from spark_agent.sql.runtime.planned_query import PlannedQuery, PlanningCall
from spark_agent.sql.runtime.rdd_boundary import RddBoundary
from spark_agent.sql.runtime.re_executions import ReExecutions, upper_bound_reason
from spark_agent.sql.runtime.removed_rows import RemovedRows
from spark_agent.sql.runtime.reruns import Reruns
from spark_agent.sql.runtime.saves import Saves
from spark_agent.sql.runtime.whole_file_deletes import WholeFileDeletes
from spark_agent.sql.table_formats import (
    change_rows,
    delta_outputs,
    iceberg_outputs,
    row_level_commands,
    row_operations,
)
from spark_agent.sql.table_formats.change_rows import ChangeColumns
from spark_agent.sql.table_formats.delta_outputs import DeltaOutput
from spark_agent.sql.table_formats.iceberg_outputs import IcebergOutput
from spark_agent.sql.table_formats.log_files import LogFiles
from spark_agent.sql.table_formats.row_level_commands import RowLevelCommand
from spark_agent.sql.table_formats.row_operations import StatementPlan, StatementRows
from spark_agent.sql.tables import TABLE_WRITES, Endpoint
from spark_agent.sql.types import Expression, Plan

if TYPE_CHECKING:
    from spark_agent.driver.session import Session
    from spark_agent.sql.jvm_gateway import Jvm

#: Operators of a plan that nobody needs a Spark job for: nothing is captured of it, unless it is written.
_LOCAL = frozenset(("LocalRelation", "OneRowRelation", "CommandResult", "EmptyRelation"))
#: How those begin that stand for a name in a command.
_NAMES = "Resolved"
#: Operators that are not covered, in words.
_UNCOVERED_TEXTS = {
    kind: f"what a library or a function of the JVM makes of the rows ({kind})"
    for kind in ("ExternalRDD", "AppendColumns", "MapGroups", "CoGroup", "FlatMapGroupsWithState")
}


class BrokenPlanError(Exception):
    """What was made of a plan cannot run; the text says why."""


class Queries:
    """The queries of one application."""

    def __init__(self, session: Session, jvm: Jvm, coarse_queries: CoarseQueries) -> None:
        self._session, self._jvm, self._coarse_queries = session, jvm, coarse_queries
        events = session.events
        self._catalyst = Catalyst(session.context._jvm, jvm)
        self._persisted_nodes = persisted_nodes = PersistedNodes(self._catalyst)
        self._re_executions = ReExecutions(session.scope.next_number, events.emit, events.publish_manifest)
        self._fits = Fits(session, jvm.manifests.add, is_pinned=jvm.is_pinned)
        self._rdd_boundary = RddBoundary(
            session,
            jvm,
            self._catalyst,
            persisted_nodes,
            self._re_executions,
            self._fits,
            self._leave_out_frame,
        )
        self._database_keys = DatabaseKeys(self._catalyst, jvm, is_on=session.settings.jdbc_keys)
        self._scans = FileScans(self._catalyst, persisted_nodes, self._rdd_boundary, self._database_keys)
        self._taps = TapFactory(session, jvm)
        self._saves = Saves(self._catalyst)
        self._log_files = LogFiles(session.context)
        removed_rows = RemovedRows(session, coarse_queries)
        self._deletes = WholeFileDeletes(
            session, self._catalyst, removed_rows, jvm.deletion_vectors, self._log_files.read
        )
        self._iceberg_deletes = IcebergDeletes(session, self._catalyst, removed_rows)
        self._executions = Executions(
            session,
            self._re_executions,
            self._rdd_boundary,
            self._fits,
            self._deletes,
            self._iceberg_deletes,
        )
        self._jvm_events = JvmEvents(jvm.manifests, self._executions, events.gap)
        self._lazy_queries = LazyQueries(self._catalyst, session.context._jvm)
        self.asked = AskedQueries(self._catalyst, session.context._jvm, self._leave_out_frame)
        self.replayed = ReplayedQueries(
            self._catalyst, session.context._jvm, self.asked, self._leave_out_frame
        ).replayed
        self.reruns = Reruns(self._catalyst, self._lazy_queries, events.emit, self.leave_out)
        self._updates: dict[int | None, Plan] = {}  # under way, by the thread of the JVM
        self._left_out: set[tuple[int, ...]] = set()  # columns of scans
        self._callers = Callers(is_pinned=jvm.is_pinned)
        self._callers.note(jvm.thread())
        self._strategy = jvm.strategy(self.rewrite)
        self._rdd_boundary.install()
        self._fits.install()
        plan_display.install(session.patches, self._strategy, is_pinned=jvm.is_pinned)
        if session.replay is None:
            function_calls.install(session.patches)
        dataframe_call_sites.install(session.patches, jvm.call_sites)

    def attach(self, java_session: Any) -> None:
        """Let the planner of a SparkSession of the JVM call us, and its listeners report ends."""
        if java_session.experimental().extraStrategies().contains(self._strategy):
            return  # a clone (of a stream's session, say) has the strategy and the listener
        self._jvm.install(java_session, self._strategy)
        java_session.listenerManager().register(self._jvm.ends())

    def leave_out(self, plan: Plan) -> None:
        """Capture nothing of queries that read the scans of this plan."""
        columns = map(self._catalyst.column_ids, self._catalyst.items(plan.collectLeaves()))
        self._left_out.update(filter(None, columns))  # a leaf without columns is like any other

    def _leave_out_frame(self, frame: Any) -> None:
        self.leave_out(frame._jdf.queryExecution().analyzed())

    def flush(self, within_s: float) -> None:
        """Wait until all that the JVM has reported so far is published. Never raises."""
        self._jvm_events.flush(within_s)

    def end(self) -> None:
        """Publish what there is still; bounded by what the JVM holds."""
        self._jvm_events.end()
        self._executions.end()
        if problem := self._strategy.takeProblem():
            self._session.events.query_failed(str(problem))
        for endpoint in self._saves.unseen():
            reason = f"how the rows of a save ({endpoint.name}) were written was not seen"
            self._coarse_queries.publish(endpoint, (), reason)

    # -- what a plan is ------------------------------------------------------------------------------

    def rewrite(self, plan: Plan, entry: str) -> Plan | None:
        """Called by the planner; None leaves the plan as it is. `entry` is what `Jvm.strategy` says."""
        try:
            return self._rewritten(plan, PlanningCall.parse(entry))
        except Exception as error:  # noqa: BLE001 - an agent bug: the user's query goes on
            logger.debug("while it was rewritten", exc_info=True)
            self._query_failed(error, PlanningCall.parse(entry).spark_name)
        return None

    def _query_failed(self, error: Exception, name: str) -> None:
        """Count a query that is not in the graph yet, and let a node stand for it. Never raises."""
        problem = in_short(error)
        try:
            reason = f"its plan could not be looked at ({problem})"
            self._session.events.query_failed(
                problem, self._coarse_queries.publish(Endpoint(name), (), reason)
            )
        except Exception:  # noqa: BLE001 - the JVM has gone, say
            self._session.events.query_failed(problem)

    def _rewritten(self, plan: Plan, call: PlanningCall) -> Plan | None:
        kind = self._catalyst.kind(plan)
        if kind == row_operations.UPDATING:
            self._updates[call.thread] = plan
        is_removing = self._begin_removal(plan, kind, call)
        if is_removing or not call.is_captured or plan.isStreaming() or self.asked.is_asked(plan):
            return None
        if inserts := commands.several(self._catalyst, plan, kind):
            pairs = [(insert, self._rewritten(insert, call)) for insert in inserts]
            return self._catalyst.with_children(plan, [old if new is None else new for old, new in pairs])
        if kind == saves.CREATING:
            self._saves.begin_table(plan)
        if saves.is_left_to_source(plan, kind, self._session.context._gateway):
            self._saves.begin(plan, call.method)
            return None
        planned = self._planned(plan, kind, call)
        if planned is None:
            return None
        rerun = self.reruns.take(planned.query)
        if rerun is None and self._session.settings.dataframes_level != settings.EAGER:
            number = self._publish_coarse(planned, LAZY_REASON)
            self._lazy_queries.remember(number, plan, planned.query)
            return None
        return self._captured(planned, rerun)

    def _begin_removal(self, plan: Plan, kind: str, call: PlanningCall) -> bool:
        """Tell of a plan those who look out for statements that remove whole files.

        Is it one that does nothing else, without a plan that reads rows?
        """
        site = partial(self._callers.action, call.method, call.thread)
        self._deletes.see(plan, call, lambda: site().site)
        self._iceberg_deletes.see(call)
        if kind in whole_file_deletes.STATEMENTS:
            self._jvm.mark(plan, self._deletes.begin(plan, kind, call, site().site))
        if kind not in iceberg_deletes.STATEMENTS or not call.is_captured:
            return False
        number = self._iceberg_deletes.begin(plan, kind, call, site().site)
        if number is not None:
            self._jvm.mark(plan, number)
        return number is not None

    def _planned(self, plan: Plan, kind: str, call: PlanningCall) -> PlannedQuery | None:
        """None of a plan that is no query, or one that is of no interest."""
        is_deleting = call.work is not None and call.work.is_deleting
        query, into_command = commands.query_of(self._catalyst, plan, kind)
        if is_deleting:
            query, into_command = row_operations.deleted_rows(self._catalyst, plan)
        endpoint = None if is_deleting else self._endpoint(plan, kind, query, call)
        is_giving = not is_deleting and commands.is_giving(self._catalyst, plan, kind)
        if is_giving:
            query, into_command = commands.query_of_function(self._catalyst, plan)
        is_writing = call.work is not None and call.work.is_writing  # also rows that need no job
        is_run = call.gives_no_result or into_command is not None or is_writing
        if query is None or self._is_left_out(query) or not (is_run or self._needs_job(query)):
            return None
        name, call_site = self._callers.action(call.method, call.thread)
        statement = tables.statement_of(plan) if call.work is None else call.work.statement
        name = statement or name
        output = self._output(plan, kind, query, call)
        return PlannedQuery(
            plan=plan,
            query=query,
            into_command=into_command,
            call=call,
            action="rdd" if call.is_of_rdd else name,
            part_name=self._fits.part_name(call),
            call_site=call_site,
            output=output,
            endpoint=endpoint,
            database=None if endpoint is None else self._saves.database_of(query, call.method),
            is_given=is_giving and endpoint is None,
            deletion=self._deletion(plan, kind, query, call, output),
            changes=self._changes(query, output),
            site=self._site(call) if call.is_kept else None,
            schema=None
            if call.gives_no_result or output is not None
            else schema_given(self._catalyst, query),
        )

    def _output(self, plan: Plan, kind: str, query: Plan, call: PlanningCall) -> outputs.Output | None:
        """The files that the rows of a plan are written into."""
        if call.work is not None and call.work.is_deleting:
            return delta_outputs.of_deletion(self._catalyst, call.work, query, self._log_files.read)
        if call.work is not None and call.work.is_writing:
            self._saves.see_transaction()
            output = delta_outputs.of_write(self._catalyst, call.work, query, self._log_files.read)
            if output is None:
                self._session.events.gap("which files Delta Lake wrote is not known: it names no transaction")
            return output
        if kind in TABLE_WRITES:
            return self._iceberg_output(plan, kind, query)
        return outputs.of_command(self._catalyst, plan, self._saves.symlinks_of(query))

    def _iceberg_output(self, plan: Plan, kind: str, query: Plan) -> outputs.Output | None:
        """A table whose files cannot be known costs these alone: the rows of the query are followed."""
        try:
            return iceberg_outputs.of_command(self._catalyst, plan, kind, query)
        except iceberg_outputs.UnknownTableError as error:
            self._session.events.gap(f"which files of a table of Iceberg were written is not known ({error})")
            return iceberg_outputs.of_unknown(self._catalyst, plan, kind, query)

    def _deletion(
        self, plan: Plan, kind: str, query: Plan, call: PlanningCall, output: outputs.Output | None
    ) -> outputs.Output | None:
        """Where rows of a plan go that its statement leaves out, if it is one that may delete rows."""
        if isinstance(output, IcebergOutput):
            is_deleting = row_level_commands.may_leave_out(plan, kind)
            return iceberg_outputs.of_deletion(output) if is_deleting else None
        if call.work is None or not call.work.may_leave_out:
            return None
        return delta_outputs.of_deletion(self._catalyst, call.work, query, self._log_files.read)

    def _changes(self, query: Plan, output: outputs.Output | None) -> outputs.Output | None:
        """Where rows of a plan go that are of a change data feed, if there are some."""
        if not isinstance(output, DeltaOutput) or ChangeColumns.of(self._catalyst, query) is None:
            return None
        return delta_outputs.of_changes(output)

    def _site(self, call: PlanningCall) -> Site | None:
        """Where in the program a query was asked for; counts that."""
        scope = self._session.scope
        return scope.site_at(self._callers.frame(call.method, call.thread)) if scope.has_sites else None

    def _endpoint(self, plan: Plan, kind: str, query: Plan | None, call: PlanningCall) -> Endpoint | None:
        """Where the rows of a plan go, if that is no folder of files that a command of Spark writes."""
        if kind == commands.GIVING:
            return self._saves.endpoint_of(plan.child(), call.method)
        if query is None:
            return None
        written = tables.written_by(plan)
        return written or self._saves.endpoint_of(query, call.method)

    def _is_left_out(self, query: Plan) -> bool:
        """Does it read what was asked for of lineage?"""
        if not self._left_out:
            return False
        scans = self._catalyst.items(query.collectLeaves())
        return any(self._catalyst.column_ids(scan) in self._left_out for scan in scans)

    def _needs_job(self, query: Plan) -> bool:
        kinds = self._catalyst.leaf_kinds(query)
        if kinds == [self._catalyst.kind(query)] and self._catalyst.is_statement(query):
            return False  # one of a library, such as a new branch of a table
        if all(kind in _LOCAL or kind.startswith(_NAMES) for kind in kinds):
            return any(map(self._is_of_table, self._catalyst.items(query.collectLeaves())))
        return True

    def _is_of_table(self, leaf: Plan) -> bool:
        """Does what stands in the plan say something of a table?"""
        if self._catalyst.kind(leaf) != "LocalRelation":
            return False
        table = self._catalyst.table_behind(leaf)
        return table is not None and self._catalyst.kind(table) != "LocalRelation"

    # -- what becomes of it --------------------------------------------------------------------------

    def _captured(self, planned: PlannedQuery, rerun: Rerun | None) -> Plan | None:
        """The plan with lineage; None where it stays as it is, and the reason is published."""
        nodes = PlanNodes(self._session.scope.next_number, planned.call_site)
        try:
            with self._persisted_nodes.within(planned.transaction):
                return self._with_taps(planned, nodes, rerun)
        except Exception as error:  # noqa: BLE001 - the query runs as it is, whatever came of its rewriting
            is_uncovered = isinstance(error, UncoveredError)
            if is_uncovered:
                reason = f"{_UNCOVERED_TEXTS.get(str(error), str(error))} is not covered"
            else:
                reason = f"its plan could not be rewritten ({in_short(error)})"
                logger.debug("while it was rewritten", exc_info=True)
            if rerun is not None:  # who asked gets the reason, and what ran before is in the graph
                rerun.problem = reason
                return None
            reason += ": this query ran without its records being followed"
            number = self._publish_coarse(planned, reason)
            if is_uncovered:
                self._session.events.gap(reason, number)
            else:
                self._session.events.query_failed(in_short(error), number)
            return None

    def _with_taps(self, planned: PlannedQuery, nodes: PlanNodes, rerun: Rerun | None) -> Plan:
        """Raises UncoveredError, BrokenPlanError, and what py4j raises."""
        name, fields = planned.name, planned.node_fields() | self._written_columns(planned)
        if rerun is not None:
            name, fields = "row found again", {"description": rerun.description}
        taps = self._taps.taps(is_persisted=planned.is_persisted)
        walk = rewriter.walk_of(self._catalyst, taps, self._scans, nodes)
        # Of an action only so many rows are counted as it gives; who reads all of them needs their positions.
        query, output, is_action = planned.query, planned.output, planned.is_action
        limits, query = commands.limits_of(self._catalyst, query) if is_action else ([], query)
        names = self._database_keys.names_of_written(planned.database, query)
        if names is not None and names.reason:
            fields.setdefault("reason", names.reason)
        rows = self._rows(walk, query, planned)
        written = self._in_order(rows.written, output)
        if planned.changes is not None:
            written = self._with_changes(walk, query, planned, rows, written)
        rewritten, node = rewriter.output(
            walk,
            query,
            written,
            name,
            output_files=None if output is None else output.output_files,
            digest=self._digest(planned),
            left_out=None if output is None or output.left_out is None else output.left_out(),
            operation=rows.operation,
            record_names=names if names is not None and names.texts else None,
            **fields,
        )
        rewritten = walk.pruned(rewritten)
        for limit in reversed(limits):
            rewritten = self._catalyst.with_children(limit, [rewritten])
        if problem := self._jvm.problem(planned.query, rewritten):
            raise BrokenPlanError(problem)
        if is_action:
            self._note_limits(node, name, limits)
        self._begin_outputs(planned, rows, node)
        if rerun is not None:
            rerun.begin(node)
        is_streamed = not planned.is_persisted and walk.interleaved == 0
        taps.attend_calls(nodes.nodes)
        batch = self._python_batch(planned.query, nodes.nodes)
        self._executions.publish(nodes.nodes, is_streamed=is_streamed, batch=batch)
        if rerun is None:
            self.asked.remember(planned.query, nodes.nodes)
        if planned.is_given or planned.taker is not None:
            self._fits.give(node.number, planned.taker)
        self._rdd_boundary.note(node.number, nodes.parents(), is_limited=bool(limits))
        self._note_kept(planned, node.number)
        return rewritten if planned.into_command is None else planned.into_command(rewritten)

    def _with_changes(
        self, walk: Walk, query: Plan, planned: PlannedQuery, rows: StatementRows, written: Rewritten
    ) -> Rewritten:
        """With taps for the rows of a change data feed, and for those that the statement deletes."""
        columns, changes, gone = ChangeColumns.of(self._catalyst, query), planned.changes, planned.deletion
        if columns is None or changes is None:
            return written
        deletion = None if gone is None else gone.node_fields
        written, rows.changes, rows.deleted = change_rows.tapped(
            walk, columns, written, planned.name, changes.node_fields, changes.output_files, deletion
        )
        return written

    def _begin_outputs(self, planned: PlannedQuery, rows: StatementRows, node: PlanNode) -> None:
        """`node` is that of the rows that are written."""
        if rows.default is not None and node.dataset is not None:
            node.dataset = {**node.dataset, "operation": rows.default}
        if planned.output is not None:
            self._executions.begin_output(node.number, planned.output)
        if planned.changes is not None and rows.changes is not None:
            self._executions.begin_output(rows.changes.number, planned.changes)
        if planned.deletion is None:
            return
        if rows.deleted is not None:
            self._executions.begin_output(rows.deleted.number, planned.deletion)
        elif not rows.is_known and node.exact:
            node.reason = row_operations.NOT_KNOWN

    def _rows(self, walk: Walk, query: Plan, planned: PlannedQuery) -> StatementRows:
        """The rows of a query, and those that its statement deletes, if it is one that may."""
        work, gone = planned.call.work, planned.deletion
        sink = {} if gone is None else gone.node_fields
        if isinstance(planned.output, IcebergOutput):
            command = RowLevelCommand.of(self._catalyst, planned.plan, sink)
            if command is not None:
                return command.rewritten(walk, query)
            return StatementRows(walk.rewrite(query), default=None if work is None else work.written_as)
        if planned.changes is not None:
            self._updates.pop(planned.call.thread, None)
            return change_rows.rows_of(walk, query, None if work is None else work.statement)
        if work is None or work.statement is None or not work.is_writing:
            return StatementRows(walk.rewrite(query))
        if work.statement == "UPDATE" and planned.call.thread in self._updates:
            condition = self._updates.pop(planned.call.thread).condition()
            condition = condition.get() if condition.isDefined() else None
            return row_operations.rows_of_update(walk, query, condition)
        if gone is None:
            return StatementRows(walk.rewrite(query), default=work.written_as)
        return StatementPlan.of(self._catalyst, work.statement, query, sink).rewritten(walk, query)

    def _in_order(self, rows: Rewritten, output: outputs.Output | None) -> Rewritten:
        """The rows of each task in the order in which they are written."""
        if output is None or not output.order:
            return rows
        return Rewritten(self._catalyst.sorted_by(output.order, rows.plan), rows.ids, rows.node)

    def _note_kept(self, planned: PlannedQuery, node: int) -> None:
        """Rows that stay in the JVM are read by later plans."""
        if planned.call.is_of_rdd:
            self._re_executions.add(node)
        elif planned.call.is_materializing and planned.transaction is not None:
            self._persisted_nodes.remember_materialized(planned.transaction, planned.query, node)
            self._re_executions.add(node)

    def _written_columns(self, planned: PlannedQuery) -> dict[str, Any]:
        """Of a sink that writes files: the ids of its columns."""
        if planned.output is None:
            return {}
        return {"expressions": {"columns": [list(self._catalyst.column_ids(planned.query))]}}

    def _digest(self, planned: PlannedQuery) -> Expression | None:
        """An expression that gives the digest of a row of what a loop caches or checkpoints."""
        if planned.site is None or not planned.site.is_repeated or not self._session.digest_salt:
            return None
        return self._catalyst.digest(planned.query, self._session.digest_salt)

    def _python_batch(self, query: Plan, nodes: list[PlanNode]) -> int | None:
        """How many results of a function for rows Python gives back at once, if the query has one."""
        if not any(node.name == ROW_PYTHON for node in nodes):
            return None
        return results_at_once(partial(self._catalyst.conf, query))

    def _note_limits(self, node: PlanNode, name: str, limits: list[Plan]) -> None:
        node.limit = commands.limit_of(self._catalyst, limits)
        reason = upper_bound_reason(name) or commands.upper_bound_reason(self._catalyst, limits)
        if reason:
            node.exact, node.reason = False, reason

    def _publish_coarse(self, planned: PlannedQuery, reason: str) -> int:
        """Publish the operators of a query whose plan stays as it is; the number of its output."""
        nodes = PlanNodes(self._session.scope.next_number, planned.call_site)
        walk = rewriter.walk_of(self._catalyst, self._taps.none(), self._scans, nodes)
        rewriter.coarse(walk, planned.query, planned.name, reason, **planned.node_fields())
        self._executions.publish(nodes.nodes)
        self.asked.remember(planned.query, nodes.nodes)
        output = nodes.nodes[-1]
        if output.kind == "sink":
            self._jvm.mark(planned.plan, output.number)
        if planned.call.is_read_as_rdd:
            self._rdd_boundary.note_coarse(planned.query, output.number)
        if planned.taker is not None:
            self._fits.give_unknown(planned.taker, reason)
        return output.number
