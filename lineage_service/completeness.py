"""Has everything of an application arrived, and is it still there? Counted from its events, from the receipts
of its blocks, and from how many rows these made.

Promises never to say "complete" while a block of a committed run, a manifest, another event or the
application's end is not stored, when the agent had to drop something or did not follow something, or when the
store has lost rows of stored blocks. Pure functions of what the flow store holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from spark_agent import contract

#: So many reasons of gaps are listed, each of so many characters at most; the others are counted.
MAX_REASONS, MAX_REASON_CHARACTERS = 3, 300


@dataclass(frozen=True, slots=True)
class Receipt:
    """One stored block, as the `blocks` table has it."""

    run: int
    seq: int
    node: int
    relation: str
    rows: int


class StoreReader(Protocol):
    """What of a `flow_store.FlowStore` says, beside its events, how complete an application is."""

    def blocks(self, application_id: str) -> Collection[Receipt]: ...

    def rows(self, application_id: str) -> Mapping[str, int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCompleteness:
    """One committed run: it made `blocks`, of which `stored` are here; the agent gave up on `dropped`.

    A block that the agent stopped waiting for may come late: it is not counted as dropped once it is here.
    """

    run: int
    split: int
    blocks: int
    stored: int
    dropped: int
    waiting: int = 0  # of the missing: they are on a disk, to be delivered
    host: str = ""  # whose disk
    problem: str = ""  # why the agent gave up, in its words

    @property
    def missing(self) -> int:
        return self.blocks - self.stored

    @property
    def is_complete(self) -> bool:
        return not self.missing and not self.dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """One application. `missing_runs` were committed, says its end, but have no manifest here.

    `missing_events` are all others that are not here: nodes, links, partitions, the start. `events` are those
    with a number of the agent's that are here. `starts`: how many executions have begun under its id.
    `lost_rows`: how many rows of stored blocks each table lacks. `gaps`: what the agent did not follow, each
    reason once.
    """

    starts: int
    has_ended: bool
    missing_runs: int
    missing_events: int
    events: int
    runs: tuple[RunCompleteness, ...]
    lost_rows: Mapping[str, int] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()

    @property
    def missing_blocks(self) -> int:
        return sum(run.missing for run in self.runs)

    @property
    def waiting_blocks(self) -> int:
        return sum(run.waiting for run in self.runs)

    @property
    def dropped(self) -> int:
        return sum(run.dropped for run in self.runs)

    @property
    def is_complete(self) -> bool:
        return self.is_final and self.starts <= 1 and not self.gaps

    @property
    def is_final(self) -> bool:
        """Is all that was sent here? What still lacks then, nothing can bring any more."""
        is_reported = self.has_ended and not self.missing_runs and not self.missing_events
        return is_reported and not self.lost_rows and all(run.is_complete for run in self.runs)

    def describe(self) -> str:
        """What is missing, for people; empty when nothing is."""
        if not self.starts and not self.has_ended and not self.runs:
            return "nothing of it has arrived"
        parts = [] if self.has_ended else ["its end has not arrived"]
        if self.missing_runs:
            parts.append(f"missing manifests of committed runs: {self.missing_runs}")
        if self.missing_events:
            parts.append(f"missing events (nodes, links, partitions): {self.missing_events}")
        parts += _waiting(self.runs)
        lacking = [run for run in self.runs if run.missing > run.waiting]
        if lacking:
            first = lacking[0]
            parts.append(
                f"missing blocks: {self.missing_blocks - self.waiting_blocks}, "
                f"of {len(lacking)} of {len(self.runs)} task runs "
                f"(task run {first.run} of partition {first.split}: "
                f"{first.stored} of {first.blocks} are stored)"
            )
        if self.dropped:
            why = next((f" ({run.problem})" for run in self.runs if run.dropped and run.problem), "")
            parts.append(f"blocks that the agent dropped: {self.dropped}{why}")
        if self.lost_rows:
            lost = ", ".join(f"{rows} of {table}" for table, rows in self.lost_rows.items())
            parts.append(f"rows that the flow store has lost: {lost} (operations.md#a-damaged-flow-store)")
        if self.gaps:
            parts.append(f"not followed: {_reasons(self.gaps)}")
        if self.starts > 1:
            parts.append(
                f"{self.starts} executions have this id, and their records are mixed: give each its own"
            )
        return "; ".join(parts)


def _waiting(runs: Iterable[RunCompleteness]) -> list[str]:
    """How many blocks wait on each host."""
    by_host: dict[str, int] = {}
    for run in runs:
        if run.waiting:
            by_host[run.host] = by_host.get(run.host, 0) + run.waiting
    return [
        f"{blocks} blocks wait on {host or 'a host'} to be delivered (operations.md#the-spool)"
        for host, blocks in sorted(by_host.items())
    ]


def _reasons(gaps: Sequence[str]) -> str:
    shown = [_cut(" ".join(reason.split())) for reason in gaps[:MAX_REASONS]]
    more = len(gaps) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _cut(reason: str) -> str:
    return reason if len(reason) <= MAX_REASON_CHARACTERS else reason[: MAX_REASON_CHARACTERS - 1] + "…"


def lost_rows(receipts: Iterable[Receipt], stored: Mapping[str, int]) -> dict[str, int]:
    """Table -> how many rows of stored blocks it lacks, for those that lack some.

    `stored`: how many rows there are of the application, counted after the receipts were read. Rows are
    written before their receipt, so there may be more of them than receipts speak of, and never fewer: then
    a commit of the table is gone. Blocks of runs that Spark never accepted count, their rows are stored too.
    """
    received = {"flows": 0, "records": 0, "annotations": 0}
    for block in {(block.run, block.seq): block for block in receipts}.values():
        if block.relation in contract.TEXT_BLOCKS:
            received["records"] += block.rows
        elif block.relation in contract.ANNOTATION_BLOCKS:
            received["annotations"] += block.rows
        elif block.relation not in contract.OTHER_BLOCKS:
            received["flows"] += block.rows
    return {
        table: rows - stored.get(table, 0) for table, rows in received.items() if rows > stored.get(table, 0)
    }


def completeness_of(
    store: StoreReader, application_id: str, events: Iterable[Mapping[str, Any]]
) -> Completeness:
    """How complete an application is in the store that had these events. Raises what the store raises."""
    blocks = store.blocks(application_id)  # first: see `lost_rows`
    return completeness_of_contents(events, blocks, store.rows(application_id))


def completeness_of_contents(
    events: Iterable[Mapping[str, Any]], receipts: Collection[Receipt], rows: Mapping[str, int] | None
) -> Completeness:
    """The same of what was read. `rows` of each table were counted after the receipts, if at all."""
    lost = None if rows is None else lost_rows(receipts, rows)
    return completeness(events, ((receipt.run, receipt.seq) for receipt in receipts), lost)


def completeness(
    events: Iterable[Mapping[str, Any]],
    receipts: Iterable[tuple[int, int]],
    lost: Mapping[str, int] | None = None,
) -> Completeness:
    """How complete one application is, from its decoded events and the (run, seq) of its stored blocks.

    Events and receipts may repeat and come in any order. Blocks of runs without a manifest do not count:
    Spark never accepted them. `lost` is what `lost_rows` says of it.
    """
    committed: dict[int, Mapping[str, Any]] = {}
    starts: set[int] = set()
    gaps: dict[str, None] = {}
    numbers: set[int] = set()  # of an agent that numbers events; of two with one number, one is a repetition
    ended = None
    for event in events:
        if event["type"] == contract.RUN_COMMITTED:
            committed[event["run"]] = event
        elif event["type"] == contract.APPLICATION_STARTED:
            starts.add(event["time"])
        elif event["type"] == contract.APPLICATION_ENDED:
            ended = event
        elif event["type"] == contract.GAP:
            gaps[event["reason"]] = None
        if isinstance(event.get("event"), int):
            numbers.add(event["event"])
    stored: dict[int, set[int]] = {run: set() for run in committed}
    for run, seq in receipts:
        if run in committed and seq < committed[run]["blocks"]:
            stored[run].add(seq)
    missing_runs = max(_counter(ended, "runs") - len(committed), 0)
    failed_queries = _counter(ended, "queries_failed")
    if failed_queries and not gaps:  # an agent from before there were gaps
        gaps[f"queries whose plans could not be rewritten: {failed_queries}"] = None
    return Completeness(
        starts=len(starts),
        has_ended=ended is not None,
        missing_runs=missing_runs,
        missing_events=max(_missing_numbers(ended, numbers) - missing_runs, 0),
        events=len(numbers),
        runs=tuple(_run(event, len(stored[run])) for run, event in sorted(committed.items())),
        lost_rows=lost or {},
        gaps=tuple(gaps),
    )


def _counter(ended: Mapping[str, Any] | None, name: str) -> int:
    """What the agent counted: by `runs` a lost manifest is noticed. 0 of agents that do not count."""
    count = None if ended is None else ended["counters"].get(name)
    return max(count, 0) if isinstance(count, int) else 0


def _missing_numbers(ended: Mapping[str, Any] | None, numbers: Collection[int]) -> int:
    """How many events up to the end's have not arrived; 0 where events are not numbered."""
    last = None if ended is None else ended.get("event")
    return last + 1 - sum(0 <= number <= last for number in numbers) if isinstance(last, int) else 0


def _run(event: Mapping[str, Any], stored: int) -> RunCompleteness:
    dropped, late, problem = event["dropped"], event.get("unconfirmed"), event.get("problem")
    spooled, host = event.get("spooled"), event.get("host")
    arrived_late = 0
    if isinstance(late, int):  # of those that the agent gave up on: on their way, as far as it knew
        arrived_late = min(late, max(dropped - (event["blocks"] - stored), 0))
    return RunCompleteness(
        run=event["run"],
        split=event["split"],
        blocks=event["blocks"],
        stored=stored,
        dropped=dropped - arrived_late,
        waiting=min(spooled, event["blocks"] - stored) if isinstance(spooled, int) else 0,
        host=host if isinstance(host, str) else "",
        problem=problem if isinstance(problem, str) else "",
    )
