"""What went into each operation of a replay and came out, on the way of what was asked for.

The replay captures values, also where the original did not. It is searched for the record that stands for
what was asked: by what it is made of, else by its text. Needs the lineage of the replay in the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lineage_service.errors import LineageError
from lineage_service.lineage import AskedRecord, Direction, Failure, ReplayStep
from lineage_service.queries import Queries, RecordQuery, StartQuery, TraceQuery
from lineage_service.replays.arrival import Arrival
from lineage_service.replays.specification import Plan
from lineage_service.replays.step_records import error_step, steps_of
from lineage_service.replays.ways import RecordId, Ways, ways_of
from lineage_service.tracing.query.dataset_rows import MOST_STARTS
from spark_agent.contract.row_sets import rows_in

__all__ = ["AskedOutput", "StepReader", "Stepped"]

#: Records of each operation that are followed to find one, and that are listed with values.
_MOST_FOLLOWED, _MOST_VALUES = 50_000, 1_000
#: Records that may stand for one.
_MOST_STANDING = 5


@dataclass(frozen=True, slots=True)
class AskedOutput:
    """A record of the original, the replay's number of its sink, and the text that came out there."""

    record: AskedRecord
    node: int
    text: str | None


@dataclass(frozen=True, slots=True)
class Stepped:
    """`steps` are None where they are not known. `notes` say what is missing."""

    steps: tuple[ReplayStep, ...] | None
    notes: tuple[str, ...] = ()


class StepReader:
    """Of replays of one application, `original`."""

    def __init__(self, queries: Queries, original: str, arrival: Arrival) -> None:
        self._queries, self._original, self._arrival = queries, original, arrival

    def steps(
        self, plan: Plan, replayed: str | None, asked: Sequence[AskedOutput], failure: Failure | None
    ) -> Stepped:
        """Of what was asked for; of a failure; without either forward from the rows of the plan."""
        if replayed is None:
            return Stepped(None, ("no steps: no Spark application ran",))
        why_not = self._arrival.why_not(replayed)
        if why_not:
            return Stepped(None, (f"no steps: {why_not}",))
        try:
            if failure is not None:
                return self._of_failure(replayed, failure)
            if asked:
                return self._of_outputs(plan, replayed, asked)
            return self._of_rows(plan, replayed)
        except LineageError as error:
            return Stepped(None, (f"no steps: {error}",))

    def _of_failure(self, replayed: str, failure: Failure) -> Stepped:
        same = [
            other
            for other in self._queries.failures(replayed).failures
            if (other.error, other.message, other.name) == (failure.error, failure.message, failure.name)
        ]
        if not same:
            return Stepped(None, ("no steps: no task of the replay failed in this way",))
        stepped = self._stepped(replayed, failure=same[0].failure)
        return replace(stepped, steps=(*(stepped.steps or ()), error_step(replayed, same[0])))

    def _of_outputs(self, plan: Plan, replayed: str, asked: Sequence[AskedOutput]) -> Stepped:
        standing = _Standing(self._queries, self._original, replayed, plan, asked)
        starts: dict[RecordId, None] = {}
        notes: list[str] = []
        for output in asked:
            records, note = standing.records(output)
            starts |= dict.fromkeys(records)
            notes += [note] if note else []
        if not starts:
            return Stepped(None, tuple(notes))
        stepped = self._stepped(replayed, starts=_starts(starts))
        return replace(stepped, notes=(*notes, *stepped.notes))

    def _of_rows(self, plan: Plan, replayed: str) -> Stepped:
        starts = _rows_in_replay(plan)
        if not 0 < len(starts) <= MOST_STARTS:
            return Stepped(None, (f"no steps: {len(starts):,} rows are too few or too many to follow",))
        return self._stepped(replayed, direction="forward", starts=starts)

    def _stepped(self, replayed: str, *, direction: Direction = "backward", **start: Any) -> Stepped:
        query = TraceQuery(direction=direction, across=False, limit=_MOST_VALUES, values=True, **start)
        trace = self._queries.trace(replayed, query)
        steps = steps_of(
            trace, {node.node_id: node.call_site for node in self._queries.graph(replayed).nodes}
        )
        return Stepped(steps, tuple(_lacking(steps)))


def _lacking(steps: Iterable[ReplayStep]) -> Iterator[str]:
    names = [
        f"{step.name} ({step.node_id.rpartition('#')[2]})"
        for step in steps
        if step.kind == "operator" and any(record.value is None for record in step.records)
    ]
    if names:
        listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        yield f"steps: not all values of {listed} are known, since no Python worker had these records"


class _Standing:
    """The records of a replay that stand for records of the original: of the same origin and text."""

    def __init__(
        self, queries: Queries, original: str, replayed: str, plan: Plan, asked: Sequence[AskedOutput]
    ) -> None:
        self._queries, self._replayed = queries, replayed
        starts = _starts(_identity(output) for output in asked)
        self._was = _followed(queries, original, None, direction="backward", starts=starts)
        rows = _rows_in_replay(plan)
        self._now = Ways({}, {})
        if 0 < len(rows) <= MOST_STARTS:
            self._now = _followed(queries, replayed, plan, direction="forward", starts=rows)

    def records(self, output: AskedOutput) -> tuple[list[RecordId], str]:
        """These, and what is to be said of them."""
        place, same = _place(output.record), self._same(output)
        if output.text is None:
            if not same:
                return [], f"no steps of {place}: no record of the replay stands for it"
            return same[:_MOST_STANDING], f"steps of {place}: found by its input rows, not by its text"
        alike = self._alike(output.node, output.text)
        records = [record for record in alike if record in same] or alike or same
        if not records:
            return [], f"no steps of {place}: no record of the replay stands for it"
        listed = records[:_MOST_STANDING]
        shown = f", {len(listed)} are shown" if len(listed) < len(records) else ", and all are shown"
        several = f"steps of {place}: {len(records):,} records look the same{shown}"
        return listed, several if len(records) > 1 else ""

    def _same(self, output: AskedOutput) -> list[RecordId]:
        """The records of the same origin."""
        record = _identity(output)
        if record not in self._was.steps:
            return []
        origin = self._was.origin(record)
        return sorted(
            other
            for other in self._now.steps
            if other[0] == output.node and self._now.origin(other) == origin
        )

    def _alike(self, node: int, text: str) -> list[RecordId]:
        """The records of a sink that are rows with this text."""
        page = self._queries.records(
            self._replayed, RecordQuery(node=str(node), text=text, limit=_MOST_VALUES)
        )
        return [
            (node, record.record_id)
            for record in page.records
            if record.source is not None and record.source.text == text
        ]


def _identity(output: AskedOutput) -> RecordId:
    return output.record.node, output.record.record_id


def _followed(queries: Queries, application: str, plan: Plan | None, **start: Any) -> Ways:
    """A trace, its rows named by their places in the original; nothing where it is too long."""
    trace = queries.trace(application, TraceQuery(across=False, limit=_MOST_FOLLOWED, **start))
    return Ways({}, {}) if trace.truncated else _by_place(ways_of(trace), plan)


# -- the rows of a plan, in both runs ---------------------------------------------------------------------


def _rows_in_replay(plan: Plan) -> tuple[StartQuery, ...]:
    return tuple(
        StartQuery(node=str(source["node"]), partition=split["split"], offset=offset)
        for source in (plan.restricted if plan.mode == "only" else plan.watched)
        for split in source.get("splits", ())
        for offset in plan.places(source, split)
    )


def _by_place(ways: Ways, plan: Plan | None) -> Ways:
    """The same, its source records named by their places in the original. None: it is the original."""
    kept: dict[tuple[int, int], list[int]] = {}
    if plan is not None and plan.mode == "only" and not plan.keeps_positions:
        kept = {
            (source["node"], split["split"]): list(rows_in(split["positions"]))
            for source in plan.restricted
            for split in source.get("splits", ())
        }

    def place(node: int, partition: int, offset: int) -> tuple[str, int]:
        positions = kept.get((node, partition))
        is_kept = positions is not None and offset < len(positions)
        return f"{node}#{partition}", positions[offset] if positions and is_kept else offset

    steps = {
        record: replace(step, source=place(step.node, step.partition, step.offset))
        if ways.nodes.get(step.node, ("", ""))[1] == "source"
        else step
        for record, step in ways.steps.items()
    }
    return Ways(steps, ways.parents, ways.nodes)


def _starts(records: Iterable[RecordId]) -> tuple[StartQuery, ...]:
    return tuple(StartQuery(node=str(node), record=record_id) for node, record_id in records)


def _place(record: AskedRecord) -> str:
    if record.path is not None and record.row is not None:
        return f"{record.path}:{record.row + 1}"
    return f"{record.node}#{record.record_id}"
