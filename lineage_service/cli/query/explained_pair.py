"""`--same A B` of `lineage explain`: the two records that are asked about, and what they share."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.output import plain, print_line, without_folders
from lineage_service.cli.query.records import line_of
from lineage_service.cli.query.start import start_of
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import ExplainedRow, ExplainedSide, Meeting, MeetingPoint
from lineage_service.queries import StartQuery

__all__ = ["add_same", "holders_of", "pair_of", "show_meeting"]

#: Records that are shown of each side, and where they meet.
_MOST_RECORDS = 3


def add_same(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--same",
        nargs=2,
        metavar=("A", "B"),
        help="in place of START: why two records have the same key or value. Each is as START; with --node "
        "it is a key there",
    )


def pair_of(options: argparse.Namespace) -> tuple[StartQuery, StartQuery]:
    """Raises InvalidQueryError."""
    if options.start or options.key or options.where or options.failure:
        raise InvalidQueryError("--same names both records: leave out START, --key, --where and --failure")
    first, second = (
        StartQuery(**start_of(text, None, None))
        if options.node is None
        else StartQuery(key=text, node=options.node)
        for text in options.same
    )
    return first, second


def show_meeting(console: Console, meeting: Meeting) -> None:
    for name, side in (("A", meeting.a), ("B", meeting.b)):
        for line in _side(side):
            print_line(console, plain(f"{name}  ", "bold") + line)
    print_line(console, plain(_shared(meeting), "bold" if meeting.equal else "yellow"))
    if meeting.meets is None:
        print_line(console, plain("their explanations share no record", "yellow"))
    else:
        print_line(console, _point(meeting.meets))
    of_each = f"{meeting.a.total:,} for A, {meeting.b.total:,} for B, {meeting.both_total:,} for both"
    print_line(console, plain(f"input rows: {of_each}"))


def _side(side: ExplainedSide) -> Iterator[Text]:
    for start in side.starts:
        number = Text(f"{start.node_id.rpartition('#')[2]} ", "dim")
        yield from (number + line_of(record) for record in start.records[:_MOST_RECORDS])
        more = start.total - len(start.records[:_MOST_RECORDS])
        if more > 0:
            yield plain(f"and {more:,} more records", "dim")


def _shared(meeting: Meeting) -> str:
    if meeting.equal is None:
        return (
            "It is not known whether they have the same value: name rows of an output file, or capture "
            "values (spark.lineage.detailed=true)"
        )
    if not meeting.equal:
        return "They have nothing in common: no key, no value, no field. What follows is how each came about"
    return "Both have " + ", ".join(f"{shared.what} {shared.text!r}" for shared in meeting.shared)


def _point(point: MeetingPoint) -> Text:
    turn = (
        ""
        if point.turn is None
        else f" in turn {point.turn} of the loop at {without_folders(point.loop or '')}"
    )
    line = (
        plain(f"they meet{turn}: ") + Text(f"{point.node_id.rpartition('#')[2]} ", "dim") + plain(point.name)
    )
    for at, record in enumerate(point.records[:_MOST_RECORDS]):
        line += Text(", " if at else "  ") + line_of(record)
    more = point.total - len(point.records[:_MOST_RECORDS])
    return line + plain(f" and {more:,} more records", "dim") if more > 0 else line


def holders_of(row: ExplainedRow) -> Text:
    """Which of two records a row counts for; nothing where two were not asked about."""
    if row.counts_for is None:
        return Text("")
    return Text(" ".join(name if name in row.counts_for else " " for name in ("A", "B")) + "  ", "bold")
