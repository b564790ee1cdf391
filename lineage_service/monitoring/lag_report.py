"""The lag for people at a terminal: what waits, for how long, until when, and what is not complete.

Knows nothing of where the numbers come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from lineage_service.lineage import ApplicationLag, GroupLag
from lineage_service.monitoring.incomplete_applications import IncompleteApplications

__all__ = ["show_applications", "show_group"]

#: More would push the rest off the screen; `GET /api/lag` has all.
_ROWS = 20


def show_group(console: Console, group: GroupLag) -> None:
    """A sentence or two on the whole group, and the partitions where something waits."""
    for line in _sentences(group):
        console.print(line, markup=False, highlight=False)
    waiting = sorted((lag for lag in group.partitions if lag.messages), key=lambda lag: -lag.messages)
    if waiting:
        table = _table("topic", "partition", "committed", "end", "messages", "seconds")
        for lag in waiting[:_ROWS]:
            committed = "never" if lag.committed is None else f"{lag.committed:,}"
            place = (lag.topic, str(lag.partition), committed, f"{lag.next:,}")
            table.add_row(*place, f"{lag.messages:,}", _seconds(lag.seconds))
        console.print(table, markup=False, highlight=False)
        _say_more(console, len(waiting) - _ROWS, "partitions")


def show_applications(console: Console, incomplete: IncompleteApplications) -> None:
    """Those that run or lack something; nothing where there are none."""
    if incomplete.applications:
        table = _table("application", "name", "state", "messages", "seconds", "missing")
        for lag in incomplete.applications[:_ROWS]:
            table.add_row(*_cells(lag))
        console.print("\nApplications that run or are not complete", markup=False, highlight=False)
        console.print(table, markup=False, highlight=False)
        _say_more(console, len(incomplete.applications) - _ROWS, "applications")
    if incomplete.unread:
        console.print(f"There was no time to read {incomplete.unread} more applications.", highlight=False)


def _sentences(group: GroupLag) -> Iterator[str]:
    yield f"\nConsumer group {group.name}: {_members(group.members)}"
    if not group.partitions:
        yield "Its topics are not there yet."
    elif all(lag.committed is None for lag in group.partitions):
        yield f"It never consumed anything. {_waiting(group)}"
    else:
        yield _waiting(group) + _pace(group)
    if group.dead_letters:
        yield f"{group.dead_letters:,} dead letters are in their topic."


def _members(count: int | None) -> str:
    if count is None:
        return "its members are not known now."
    return "nobody consumes now." if count == 0 else f"{count} process{'es' if count > 1 else ''}."


def _waiting(group: GroupLag) -> str:
    if not group.messages:
        return "No messages wait."
    oldest = "" if group.seconds is None else f", the first for {_seconds(group.seconds)} s"
    return f"{group.messages:,} messages wait{oldest}."


def _pace(group: GroupLag) -> str:
    if not group.messages or group.rate is None or group.incoming_rate is None:
        return ""
    pace = f" {group.rate:,.0f} a second are consumed, {group.incoming_rate:,.0f} come"
    if group.drain_seconds is None:
        return f"{pace}: they do not get fewer."
    return f"{pace}: none will wait in {_seconds(group.drain_seconds)} s."


def _cells(lag: ApplicationLag) -> Sequence[str]:
    return (
        lag.application_id,
        lag.name,
        lag.state,
        f"{lag.messages:,}",
        _seconds(lag.seconds),
        lag.missing,
    )


def _seconds(value: float | None) -> str:
    return "?" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _say_more(console: Console, more: int, what: str) -> None:
    if more > 0:
        console.print(f"and {more} more {what}", highlight=False)
