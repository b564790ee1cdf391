"""What became of rows that are in no output: of one row, of those that fulfil a condition, of an output's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lineage_service.conditions.filters import Where
from lineage_service.errors import (
    InvalidQueryError,
    NotFoundError,
    NothingMatchesError,
    TimeBudgetError,
)
from lineage_service.lineage import AskedInput, Choice, Choices, Missing, MissingRow, ReachedRow
from lineage_service.queries import MissingQuery, RowQuery
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.missing.endings import RowStart
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.dataset_rows import DatasetRows, Sought
from lineage_service.tracing.query.input_rows import InputRows, part_of, why_not_asked
from lineage_service.tracing.query.missing_starts import sources_before, starts_of
from lineage_service.tracing.query.reading_applications import ReadingApplications
from lineage_service.tracing.query.row_endings import RowEndings
from lineage_service.tracing.query.shown_records import Show
from lineage_service.tracing.query.ways_to_outputs import MOST_APPLICATIONS, Way, WaysToOutputs
from lineage_service.tracing.tables.table_versions import TableVersions
from lineage_service.tracing.walk.dataset_links import FilesOfApplications
from spark_agent import contract

__all__ = ["MissingRows"]

Opened = OpenedApplication[Snapshot]
ChoicesOf = Callable[[Opened, RowQuery, Where], Choices]


@dataclass(slots=True)
class _Answer:
    """What was gathered so far."""

    rows: list[MissingRow] = field(default_factory=list)
    reached: list[ReachedRow] = field(default_factory=list)
    inputs: list[AskedInput] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    is_complete: bool = True
    is_truncated: bool = False


class MissingRows:
    """Of one flow store."""

    def __init__(
        self,
        open_application: Callable[[str], Opened],
        locations: RecordLocations,
        show: Show,
        files: FilesOfApplications,
        versions: TableVersions,
        choices_of: ChoicesOf,
        *,
        time_budget_s: float,
    ) -> None:
        self._open, self._locations, self._show, self._files = open_application, locations, show, files
        self._versions = versions
        self._rows = DatasetRows(locations, time_budget_s=time_budget_s)
        self._choices_of, self._time_budget_s = choices_of, time_budget_s
        self._ways = WaysToOutputs(open_application, files)
        self._readers = ReadingApplications(open_application, files, locations)

    def missing(self, application_id: str, query: MissingQuery) -> Missing:
        """Raises NotFoundError, InvalidQueryError, NothingMatchesError, TimeBudgetError."""
        where = None if query.where is None else Where(query.where)
        opened = self._open(application_id)
        answer = _Answer()
        present: tuple[Choice, ...] | None = None
        with time_budget(opened.snapshot.cursor(), self._time_budget_s) as check:
            self._files.refresh()
            way = self._ways.to(opened, query)
            if where is None:
                starts = starts_of(opened, self._locations, query, check)
                nodes, way = self._ways.leading(opened, [start.node for start in starts], way, query)
                starts = [start for start in starts if start.node in nodes]
                self._follow(opened, starts, way, answer, check)
            else:
                sought = self._rows.sought(opened, query.path, query.node, query.direction)
                if sought.direction == "forward":
                    self._of_inputs(opened, sought, where, way, query, answer, check)
                else:
                    present = self._present(opened, query, where)
                    self._of_output(opened, sorted(sought.first), where, query, answer, check)
        return Missing(
            application_id=application_id,
            name=opened.application.name,
            rows=tuple(answer.rows),
            reached=tuple(answer.reached),
            complete=answer.is_complete,
            inputs=None if present is None else tuple(answer.inputs),
            present=present,
            truncated=answer.is_truncated,
            warnings=tuple(answer.warnings),
        )

    def _follow(
        self, opened: Opened, starts: Sequence[RowStart], way: Way, answer: _Answer, check: Check
    ) -> None:
        """What became of some rows, also in applications that read the outputs that they are in."""
        answer.is_complete &= opened.application.complete
        endings = RowEndings(opened, self._locations, self._versions, self._show, check)
        for start in starts:
            rows, reached = endings.of(start, way.outputs)
            answer.rows += rows
            answer.reached += [reached] if reached is not None else []
            if not rows and reached is None and way.named is None:
                answer.warnings[
                    f"no output is made of what node {start.node.number} ({start.node.name}) has read"
                ] = None
            if reached is not None and way.is_followed:
                self._follow_on(opened, start, way, answer, check)

    def _follow_on(self, opened: Opened, start: RowStart, way: Way, answer: _Answer, check: Check) -> None:
        reads = self._readers.of(opened, start, check)
        answer.warnings.update(dict.fromkeys(reads.warnings))
        answer.is_truncated |= reads.is_truncated
        for reader, read in reads.starts:
            outputs = way.outputs_in(reader)
            if outputs == ():
                continue
            answer.is_complete &= reader.application.complete
            endings = RowEndings(reader, self._locations, self._versions, self._show, check)
            rows, reached = endings.of(read, outputs)
            answer.rows += rows if reads.is_exact else [_perhaps(row) for row in rows]
            if reached is not None:
                answer.reached.append(reached if reads.is_exact else _perhaps_reached(reached))

    # -- rows of inputs ----------------------------------------------------------------------------

    def _of_inputs(
        self,
        opened: Opened,
        sought: Sought,
        where: Where,
        way: Way,
        query: MissingQuery,
        answer: _Answer,
        check: Check,
    ) -> None:
        """All rows of inputs that fulfil a condition. Raises NothingMatchesError."""
        inputs = InputRows(opened, self._locations, self._rows, check)
        is_any = False
        nodes = [opened.graph.topology.nodes[number] for number in sorted(sought.files_of)]
        read = [node for node in nodes if node.kind != "sink"]
        read, way = self._ways.leading(opened, read, way, query)
        for node in read:
            starts, total = inputs.matches(node, sought.files_of[node.number], where, query.limit)
            is_any |= bool(starts)
            answer.is_truncated |= total is None or total > len(starts)
            self._follow(opened, starts, way, answer, check)
        answer.warnings.update(inputs.warnings)
        if not is_any:
            but = "".join(f"; {warning}" for warning in inputs.warnings)
            raise NothingMatchesError(f"no row of this input fulfils {where.text}{but}")

    # -- rows that an output should have -----------------------------------------------------------

    def _present(self, opened: Opened, query: MissingQuery, where: Where) -> tuple[Choice, ...]:
        """The rows of the output that fulfil the condition. Raises InvalidQueryError."""
        rows = RowQuery(
            where=query.where, dataset=query.path, node=query.node, direction="backward", limit=query.limit
        )
        try:
            return self._choices_of(opened, rows, where).choices
        except NothingMatchesError:
            return ()

    def _of_output(
        self,
        opened: Opened,
        sinks: Sequence[int],
        where: Where,
        query: MissingQuery,
        answer: _Answer,
        check: Check,
    ) -> None:
        """The inputs of its sinks, and of what applications before wrote that have no such row."""
        waiting = {opened.application.application_id: set(sinks)}
        meant: dict[str, tuple[int, ...]] = {}
        while waiting and len(meant) < MOST_APPLICATIONS:
            name = next(iter(waiting))
            current = opened if name == opened.application.application_id else self._open(name)
            outputs = tuple(sorted(waiting.pop(name)))
            way = Way(outputs, is_followed=query.across and bool(meant), meant=dict(meant))
            meant[name] = tuple(sorted({*meant.get(name, ()), *outputs}))
            for number in sources_before(current.graph.topology, outputs):
                if self._asked(current, number, way, where, query.limit, answer, check):
                    continue
                for writer, written in self._writers(current, number).items():
                    new = set(written).difference(meant.get(writer, ()))
                    if new:
                        waiting.setdefault(writer, set()).update(new)
        if waiting:
            answer.warnings[
                f"more than {MOST_APPLICATIONS} applications are before this output: others were not asked"
            ] = None

    def _asked(
        self,
        opened: Opened,
        number: int,
        way: Way,
        where: Where,
        limit: int,
        answer: _Answer,
        check: Check,
    ) -> bool:
        """Look at one input, and follow its rows. Has it such rows?"""
        node = opened.graph.topology.nodes[number]
        part = part_of(node, where)
        starts: list[RowStart] = []
        total: int | None = 0
        note = ""
        if part.where is not None:
            inputs = InputRows(opened, self._locations, self._rows, check)
            try:
                starts, total = inputs.matches(node, None, part.where, limit)
                note = "; ".join(inputs.warnings)
            except TimeBudgetError:
                raise
            except (InvalidQueryError, NotFoundError) as error:
                note, part = why_not_asked(error), replace(part, where=None)
        answer.inputs.append(_asked_input(opened, node, part.where, part.lacks, total, note))
        answer.is_truncated |= total is None or total > len(starts)
        self._follow(opened, starts, way, answer, check)
        return bool(starts)

    def _writers(self, opened: Opened, number: int) -> dict[str, tuple[int, ...]]:
        """The applications that wrote what a source read, and the sinks that did."""
        writers: dict[str, set[int]] = {}
        for read in self._files.of(opened.application.application_id, number):
            written = self._files.writer_of(read)
            if written is not None:
                writers.setdefault(written.application_id, set()).add(written.node)
        return {name: tuple(sorted(nodes)) for name, nodes in writers.items()}


def _perhaps(row: MissingRow) -> MissingRow:
    """Of an application that read what may be made of the row that was asked for."""
    doubt = "an operation before is an upper bound: it is not known that this was made of the row"
    return replace(row, exact=False, reason="; ".join(filter(None, (doubt, row.reason))))


def _perhaps_reached(row: ReachedRow) -> ReachedRow:
    return replace(row, outputs=tuple(replace(output, exact=False) for output in row.outputs))


def _asked_input(
    opened: Opened,
    node: TopologyNode,
    where: Where | None,
    lacks: tuple[str, ...],
    matches: int | None,
    note: str,
) -> AskedInput:
    application_id = opened.application.application_id
    return AskedInput(
        application_id=application_id,
        node_id=contract.node_id(application_id, node.number),
        name=node.name,
        dataset=node.location or node.description,
        condition=None if where is None else where.text,
        lacks=lacks,
        matches=matches,
        note=note,
    )
