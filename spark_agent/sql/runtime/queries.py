"""What happens to each query of a session: rewritten where it is covered, told as it is where it is not.

Spark's optimiser calls `Queries.rewrite` with each plan, as its last rule. Promises that whatever goes wrong
leaves the plan untouched, and that the reason is told. What comes back from the JVM (runs that Spark
accepted, queries that ended) is published by a thread of its own.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from spark_agent import contract
from spark_agent.delivery import settings
from spark_agent.delivery.producer import logger
from spark_agent.driver import error_descriptions, partitions
from spark_agent.driver.callers import Callers
from spark_agent.driver.nodes import failure_reason
from spark_agent.sql import tables
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.files import commands, outputs
from spark_agent.sql.files.scans import FileScans
from spark_agent.sql.rerun import rerun
from spark_agent.sql.rerun.rerun import Again, LazyQueries
from spark_agent.sql.rewrite import explain, rewriter
from spark_agent.sql.rewrite.plan_nodes import PlanNode, PlanNodes, UncoveredError, publish
from spark_agent.sql.rewrite.plan_walk import Ids
from spark_agent.sql.runtime import frames, saves
from spark_agent.sql.runtime.coarse_queries import Unfollowed
from spark_agent.sql.runtime.persisted import KeptNodes
from spark_agent.sql.runtime.rdd_boundary import Borders
from spark_agent.sql.runtime.rdd_reads import ReadAgain, why_bound
from spark_agent.sql.runtime.saves import Saves
from spark_agent.sql.tables import Place, is_of_files
from spark_agent.sql.types import Expression, Places, Plan

if TYPE_CHECKING:
    from spark_agent.driver.session import Session
    from spark_agent.sql.jvm_gateway import Jvm

#: What the JVM waits at most for its next line before it looks whether the session has ended.
_POLL_MS = 500
#: Of the partitions of one event: a broker takes 900,000.
_MOST_BYTES = 800_000
#: Operators of a plan that nobody needs a Spark job for: nothing is captured of it, unless it is written.
_LOCAL = frozenset(("LocalRelation", "OneRowRelation", "CommandResult", "EmptyRelation"))
#: How those begin that stand for a name in a command.
_NAMES = "Resolved"
#: Methods of Spark SQL that plan a query for themselves or for people to read.
_NOT_CAPTURED = ("DataFrameReader.", "Dataset.explain", "ExplainCommand.")
#: Sinks of queries that may run, or run again.
_MOST_SINKS = 1_000
#: Those that read the rows of a plan as an RDD: what is kept, and what Python goes on with.
_READING = ("Dataset.checkpoint", "Dataset.localCheckpoint", "Dataset.javaToPython")
#: Operators that are not covered, in words.
_SAID = {
    each: f"what a library or a function of the JVM makes of the rows ({each})"
    for each in (commands.GIVING, "MapPartitions", "MapElements", "AppendColumns", "TypedFilter")
}
#: That which fills a cache with them, in the tasks of whatever reads them first.
_KEEPING = "Dataset.localCheckpoint"


class BrokenPlanError(Exception):
    """What was made of a plan cannot run; the text says why."""


class Queries:
    """The queries of one application."""

    def __init__(self, session: Session, jvm: Jvm, unfollowed: Unfollowed) -> None:
        self._session, self._jvm, self._unfollowed = session, jvm, unfollowed
        self._catalyst = Catalyst(session.context._jvm, jvm)
        self._kept = KeptNodes(self._catalyst)
        self._saves = Saves(self._kept)
        self._read_again = ReadAgain(
            session.scope.next_number, session.events.emit, session.events.publish_manifest
        )
        self._borders = Borders(session, jvm, self._catalyst, self._kept, self._read_again)
        self._scans = FileScans(self._catalyst, self._kept, self._borders)
        self._common: Any = None  # made for the first query: it waits for the topics
        self._lock = threading.Lock()
        self._outputs = outputs.Outputs()
        self._files: set[int] = set()  # scans of files
        self._sinks: dict[int, tuple[PlanNode, bool, str]] = {}  # with what they were when they were told
        self._described: dict[tuple[int, int], int] = {}  # (node, split) -> parts
        self._left_out: set[tuple[int, ...]] = set()  # columns of leaves
        self._lazy = LazyQueries(self._catalyst, session.context._jvm)
        self._again: dict[tuple[int, ...], Again] = {}  # by their columns
        self._marks: dict[int, threading.Event] = {}
        self._mark_numbers = itertools.count()
        self._is_ended = threading.Event()
        self._reader = threading.Thread(target=self._read, name="lineage-queries", daemon=True)
        self._reader.start()
        self._callers = Callers(is_pinned=jvm.is_pinned)
        self._callers.note(jvm.thread())
        self._rule = jvm.rule(self.rewrite)
        self._borders.install()
        explain.install(session.patches, self._rule, is_pinned=jvm.is_pinned)
        frames.install(session.patches, jvm.call_sites)

    def attach(self, java_session: Any) -> None:
        """Let the optimiser of a SparkSession of the JVM call us, and its listeners tell us of ends."""
        if java_session.experimental().extraOptimizations().contains(self._rule):
            return  # a clone (of a stream's session, say) has the rule and the listener
        self._jvm.install(java_session, self._rule)
        java_session.listenerManager().register(self._jvm.ends())

    def leave_out(self, plan: Plan) -> None:
        """Capture nothing of queries that read the leaves of this plan."""
        self._left_out.update(map(self._kept.output, self._catalyst.items(plan.collectLeaves())))

    # -- rewriting -----------------------------------------------------------------------------------

    def rewrite(self, plan: Plan, entry: str) -> Plan | None:
        """Called by the optimiser; None leaves the plan as it is. `entry` is what `Jvm.rule` says."""
        try:
            method, _, thread = entry.partition("@")
            return self._rewritten(plan, method, int(thread) if thread else None)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with us, the user's query goes on
            logger.debug("while it was rewritten", exc_info=True)
            self._query_failed(error, entry.partition("@")[0].partition(".")[2] or "query")
        return None

    def _query_failed(self, error: Exception, name: str) -> None:
        """Count a query that is not in the graph yet, and let a node stand for it. Never raises."""
        problem = _in_short(error)
        try:
            reason = f"its plan could not be looked at ({problem})"
            self._session.events.query_failed(problem, self._unfollowed.tell(Place(name), (), reason))
        except Exception:  # noqa: BLE001 - the JVM has gone, say
            self._session.events.query_failed(problem)

    def _rewritten(self, plan: Plan, entry: str, thread: int | None) -> Plan | None:
        kind = self._catalyst.kind(plan)
        cached, _, method = entry.rpartition(":")
        is_read = not cached and method.startswith(_READING)
        is_kept = bool(cached) or is_read
        if kind == "Subquery" or method.startswith(_NOT_CAPTURED) or plan.isStreaming():
            return None
        if written := commands.several(self._catalyst, plan, kind):
            both = [(each, self._rewritten(each, entry, thread)) for each in written]
            return self._catalyst.with_children(plan, [each if new is None else new for each, new in both])
        if saves.leaves(plan, kind, self._session.context._gateway):
            self._saves.begin(plan, method)
            return None
        query, around = commands.query_of(self._catalyst, plan, kind)
        place = self._place_of(plan, kind, query, method)
        if kind == commands.GIVING and place is not None:
            query, around = commands.given(self._catalyst, plan)
        if query is None or self._is_of_no_interest(query, is_run=is_kept or around is not None):
            return None
        name, call_site = self._callers.action(method, thread)
        name = "rdd" if is_read and method.endswith("javaToPython") else name
        fields: dict[str, Any] = {"kind": "operator"} if is_kept else {}
        output = outputs.of_command(self._catalyst, plan.plan() if kind == "WithCTE" else plan)
        if output is not None:
            fields.update(description=output.path, dataset=output.dataset)
        elif place is not None:
            fields.update(description=place.description, dataset=place.dataset)
        again = self._again.pop(self._kept.output(query), None) if self._again else None
        if again is not None:
            name, fields = "row found again", {"description": again.description}
        elif self._session.settings.dataframes_level != settings.EAGER:
            number = self._told(plan, query, call_site, name, rerun.REASON, fields)
            self._lazy.remember(number, plan.plan() if kind == "WithCTE" else plan, query)
            if is_read:
                self._borders.note_unfollowed(query, number)
            return None
        nodes = PlanNodes(self._session.scope.next_number, call_site)
        try:
            taps = self._taps(is_kept=bool(cached) or method.startswith(_KEEPING))
            made, node = self._captured(query, around, nodes, taps, name, fields, output, again)
            if is_read and name == "rdd":
                self._read_again.add(node.number)
            return made
        except Exception as error:  # noqa: BLE001 - the query runs as it is, whatever came of its rewriting
            is_uncovered = isinstance(error, UncoveredError)
            if is_uncovered:
                reason = f"{_SAID.get(str(error), str(error))} is not covered"
            else:
                reason = f"its plan could not be rewritten ({_in_short(error)})"
                logger.debug("while it was rewritten", exc_info=True)
            if again is not None:  # who asked is told, and what ran before is in the graph
                again.problem = reason
                return None
            reason += ": this query ran without its records being followed"
            number = self._told(plan, query, call_site, name, reason, fields)
            if is_uncovered:
                self._session.events.gap(reason, number)
            else:
                self._session.events.query_failed(_in_short(error), number)
            if is_read:
                self._borders.note_unfollowed(query, number)
            return None

    def _place_of(self, plan: Plan, kind: str, query: Plan | None, method: str) -> Place | None:
        """Where the rows of a plan go, if that is no folder of files that a command of Spark writes."""
        if kind == commands.GIVING:
            return self._saves.place_of(plan.child(), method)
        if query is None:
            return None
        written = tables.written_by(plan.plan() if kind == "WithCTE" else plan)
        return written or self._saves.place_of(query, method)

    def _told(
        self, plan: Plan, query: Plan, call_site: str, name: str, reason: str, fields: dict[str, Any]
    ) -> int:
        """Publish the operators of a query whose plan stays as it is; the number of its output."""
        nodes = PlanNodes(self._session.scope.next_number, call_site)
        walk = rewriter.walk_of(self._catalyst, _Taps(self._jvm, None), self._scans, nodes)
        rewriter.coarse(walk, query, name, reason, **fields)
        self._publish(nodes.made)
        output = nodes.made[-1]
        if output.kind == "sink":
            self._remember_sink(output)
            self._jvm.mark(plan, output.number)
        return output.number

    def _remember_sink(self, node: PlanNode) -> None:
        """For the end of its query."""
        self._sinks[node.number] = node, node.exact, node.reason
        if len(self._sinks) > _MOST_SINKS:
            self._sinks.pop(next(iter(self._sinks)), None)

    def _is_of_no_interest(self, query: Plan, *, is_run: bool) -> bool:
        """It needs no job of Spark's (with `is_run` it has one), or reads what was asked for of lineage."""
        if self._left_out:
            leaves = self._catalyst.items(query.collectLeaves())
            if any(self._kept.output(each) in self._left_out for each in leaves):
                return True
        if is_run:
            return False
        return all(kind in _LOCAL or kind.startswith(_NAMES) for kind in self._catalyst.leaf_kinds(query))

    def _captured(
        self,
        query: Plan,
        around: Callable[[Plan], Plan] | None,
        nodes: PlanNodes,
        taps: _Taps,
        name: str,
        fields: dict[str, Any],
        output: outputs.Output | None,
        again: Again | None,
    ) -> tuple[Plan, PlanNode]:
        walk, given = rewriter.walk_of(self._catalyst, taps, self._scans, nodes), query
        # Of an action only so many rows are counted as it gives; who reads all of them needs their places.
        is_action = around is None and "kind" not in fields
        limits, query = commands.limits_of(self._catalyst, query) if is_action else ([], query)
        places = None if output is None else output.places
        made, node = rewriter.output(walk, query, walk.rewrite(query), name, places=places, **fields)
        made = walk.pruned(made)
        for limit in reversed(limits):
            made = self._catalyst.with_children(limit, [made])
        if problem := self._jvm.problem(given, made):
            raise BrokenPlanError(problem)
        node.limit = commands.limit_of(self._catalyst, limits)
        if is_action and (reason := why_bound(name) or commands.why_bound(self._catalyst, limits)):
            node.exact, node.reason = False, reason
        if output is not None:
            self._outputs.begin(node.number, output)
        if node.kind == "sink":
            self._remember_sink(node)
        if again is not None:
            again.begin(node)
        self._publish(nodes.made)
        self._borders.note(node.number, nodes.parents(), is_limited=bool(limits))
        return made if around is None else around(made), node

    def _taps(self, *, is_kept: bool = False) -> _Taps:
        """With `is_kept` those of a plan whose rows are to be kept."""
        with self._lock:
            if self._common is None:
                session = self._session
                self._common = self._jvm.common(
                    session.application_id,
                    session.settings,
                    session.events.flow_partitions(),
                    session.notices.say,
                )
                self._jvm.ship()
        return _Taps(self._jvm, self._common, is_kept=is_kept)

    # -- queries that run again ----------------------------------------------------------------------

    def wrote(self, path: str) -> bool:
        """Can the query that wrote a file be run again for a row of it?"""
        return self._lazy.writer_of(path) is not None

    def run_again(self, path: str, row: int) -> tuple[int, str]:
        """(node of the records of a row, why they are a bound if they are). Raises CannotRunAgainError."""
        again = self._lazy.run_again(path, row, self._run_captured, self._leave_out_frame)
        assert again.node is not None
        return again.node.number, again.node.reason

    def _run_captured(self, frame: Any, again: Again) -> int:
        columns, found = self._kept.output(frame._jdf.queryExecution().analyzed()), 0
        self._again[columns] = again
        try:
            # All columns of them: of a group without its aggregates, Spark would leave out joins, too.
            found = int(frame._jdf.queryExecution().toRdd().count())
        finally:
            self._again.pop(columns, None)
            if again.node is not None:
                again.end(found)
                self._session.events.emit(contract.NODE_REGISTERED, **again.node.event())
        return found

    def _leave_out_frame(self, frame: Any) -> None:
        self.leave_out(frame._jdf.queryExecution().analyzed())

    def _publish(self, nodes: list[PlanNode]) -> None:
        self._files.update(
            node.number for node in nodes if node.kind == "source" and is_of_files(node.dataset)
        )
        publish(self._session.events.emit, nodes)

    # -- what comes back -----------------------------------------------------------------------------

    def _read(self) -> None:
        while True:
            is_ended = self._is_ended.is_set()
            try:
                line = self._jvm.manifests.poll(0 if is_ended else _POLL_MS)
            except Exception:  # noqa: BLE001 - the JVM has gone
                return
            if line is None:
                if is_ended:
                    return
                continue
            try:
                self._take(json.loads(line))
            except Exception as error:  # noqa: BLE001 - one line is not the others' fault
                self._session.events.gap(f"what the JVM told of a query is lost ({_in_short(error)})")

    def _take(self, told: dict[str, Any]) -> None:
        kind = told.pop("type")
        if kind == "mark":
            self._marks.get(told["number"], threading.Event()).set()
            return
        if kind == "gap":
            self._session.events.gap(told["reason"])
            return
        if kind == "end":
            for node in told["nodes"]:
                self._read_again.end(node, told["name"], is_failed=told["failed"])
                self._end_sink(node, is_failed=told["failed"], error=told.get("error"))
                self._describe(node, self._outputs.end(node, is_failed=told["failed"]))
            self._borders.describe()
            return
        parts = told.pop("parts", None)
        if parts and told["input"] in self._files:
            self._describe(told["input"], [_described(told["split"], parts)])
        files: dict[str, Any] = {name: told.pop(name, None) for name in ("places", "lines")}
        if not self._read_again.takes(told):
            self._session.events.publish_manifest(told)
        self._outputs.take(told["input"], told["split"], told["outputs"], files)

    def _end_sink(self, number: int, *, is_failed: bool, error: dict[str, str] | None) -> None:
        """Of a query that failed, which may run well another time, records are no result."""
        node, exact, reason = self._sinks.get(number, (None, True, ""))
        if node is None:
            return
        ended: dict[str, Any] = {"node": number, "state": contract.ACTION_COMPLETE}
        if is_failed:
            kind, message = (error or {}).get("type", ""), (error or {}).get("message", "")
            found = error_descriptions.of_jvm(
                kind, message, node.call_site, self._session.settings, node.name
            )
            ended = {"node": number, "state": contract.ACTION_FAILED, "error": found}
        self._session.events.emit(contract.ACTION_ENDED, **ended)
        said = (False, failure_reason(node.name)) if is_failed else (exact, reason)
        if said != (node.exact, node.reason):
            node.exact, node.reason = said
            self._session.events.emit(contract.NODE_REGISTERED, **node.event())

    def _describe(self, node: int, described: list[dict[str, Any]]) -> None:
        fresh = []
        for each in described:  # another task may have read more of a split
            place, parts = (node, each["split"]), len(each.get("parts", ()))
            if parts > self._described.get(place, -1):
                self._described[place] = parts
                fresh.append(each)
        for message in _messages(fresh):
            self._session.events.emit(contract.PARTITIONS, node=node, partitions=message)

    def settle(self, within_s: float) -> None:
        """Wait until all that the JVM has told so far is published. Never raises."""
        mark, number = threading.Event(), next(self._mark_numbers)
        self._marks[number] = mark
        try:
            self._jvm.manifests.add(json.dumps({"type": "mark", "number": number}))
        except Exception:  # noqa: BLE001 - the JVM has gone
            return
        mark.wait(within_s)
        self._marks.pop(number, None)

    def end(self) -> None:
        """Publish what there is still; bounded by what the JVM holds."""
        self._is_ended.set()
        self.settle(0)  # wakes the reader, which would else wait for a line that does not come
        self._reader.join(10)
        self._read_again.end_all()
        self._borders.describe()
        if problem := self._rule.takeProblem():
            self._session.events.query_failed(str(problem))
        for place in self._saves.unseen():
            self._unfollowed.tell(
                place, (), f"how the rows of a save ({place.name}) were written was not seen"
            )


def _messages(described: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """As many partitions at once as fit into an event; none of one that does not fit by itself."""
    held: list[dict[str, Any]] = []
    size = 0
    for each in described:
        more = len(json.dumps(each).encode())
        if size + more > _MOST_BYTES and held:
            yield held
            held, size = [], 0
        if more <= _MOST_BYTES:
            held.append(each)
            size += more
    if held:
        yield held


def _in_short(error: Exception) -> str:
    """The first line: py4j's errors have the JVM's stack behind it."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


class _Taps:
    """`Taps` made of the expressions of our jar."""

    def __init__(self, jvm: Jvm, common: Any, *, is_kept: bool = False) -> None:
        self._jvm, self._common, self._is_kept = jvm, common, is_kept

    def source(
        self, node: int, row_index: Expression | None, *, is_striped: bool, is_of_branch: bool
    ) -> Expression:
        return self._jvm.source(
            self._common, node, row_index, is_striped=is_striped, is_of_branch=is_of_branch
        )

    def tap(
        self,
        node: int,
        ids: Ids,
        key: Expression | None = None,
        steps: tuple[int, int] = (-1, -1),
        places: Places | None = None,
    ) -> Expression:
        columns, sources = [column for column, _ in ids], [source for _, source in ids]
        codes, keys = steps
        return self._jvm.tap(
            self._common,
            node,
            columns,
            sources,
            key=key,
            codes=codes,
            keys=keys,
            places=places,
            is_kept=self._is_kept,
        )


def _described(split: int, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """A partition of a scan, from what its task saw of files."""
    described = []
    for part in parts:
        path = partitions.local_path(unquote(part["path"]))
        told = {"path": path, "start": part["start"], "length": part["length"], "first": part["first"]}
        if "row" in part:
            told["row"] = part["row"]
        described.append({**told, **partitions.status(path)})
    return {"split": split, "parts": described}
