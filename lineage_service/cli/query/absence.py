"""`--absent KEY` of `lineage explain`: why an operation has no record with a key."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from shlex import quote

from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.output import plain, print_line, without_folders
from lineage_service.cli.query.records import line_of
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Absence, KeyedOperation, KeyHolder, MissingRow
from lineage_service.queries import AbsenceQuery

__all__ = ["absence_notes", "absence_of", "add_absent", "show_absence"]

_MOST_RECORDS, _MOST_OPERATIONS = 3, 5
_HAS = {True: "has the key", False: "does not have the key", None: "its keys are not known"}


def add_absent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--absent",
        metavar="KEY",
        help="in place of START, with --node: why that operation has no record with this key",
    )


def absence_of(options: argparse.Namespace) -> AbsenceQuery:
    """Raises InvalidQueryError."""
    if options.node is None:
        raise InvalidQueryError("--absent needs --node: the operation that has no record with the key")
    names = ("start", "key", "where", "failure", "same", "demanded", "compare", "compare_start", "how")
    if any(getattr(options, name) for name in ("sufficient", "minimal", "save", "words", "cursor")):
        raise InvalidQueryError("--absent runs and saves nothing, and has no pages: leave these flags out")
    if any(getattr(options, name) for name in names):
        raise InvalidQueryError("--absent is a question of its own: leave out START and all but --node")
    return AbsenceQuery(node=options.node, key=options.absent, limit=options.limit)


def show_absence(console: Console, absence: Absence) -> None:
    print_line(console, _operation(absence.asked) + plain(f" has no record with the key {absence.key}"))
    for holder in absence.holders:
        total = f"{holder.total:,} record{'' if holder.total == 1 else 's'}"
        print_line(console, _operation(holder) + plain(f" has the key: {total}", "bold"))
        for record in holder.records[:_MOST_RECORDS]:
            print_line(console, Text("  ") + line_of(record))
        for line in _ends(holder):
            print_line(console, line)
    if not absence.holders and absence.without:
        names = [_operation(one).plain for one in absence.without[:_MOST_OPERATIONS]]
        more = len(absence.without) - len(names)
        listed = ", ".join(names) + (f" and {more:,} more" if more else "")
        print_line(console, plain(f"these do not have it, either: {listed}", "dim"))


def _ends(holder: KeyHolder) -> Iterator[Text]:
    ends: dict[str, int] = {}
    for row in holder.ended:
        for text in _end(row):
            ends[text] = ends.get(text, 0) + 1
    for text, count in ends.items():
        of = "" if count == len(holder.records) else f" ({count:,} of them)"
        yield plain(f"  {text}{of}", "red")
    for side in holder.other_sides:
        has = _HAS[side.has_key]
        yield plain("  the other side: ", "dim") + _operation(side) + plain(f", {has}", "dim")
    for record in holder.became[:_MOST_RECORDS]:
        yield plain("  went into  ", "dim") + line_of(record)
    more = holder.became_total - len(holder.became[:_MOST_RECORDS])
    if more > 0:
        yield plain(f"  and into {more:,} more records", "dim")


def _end(row: MissingRow) -> Iterator[str]:
    ends = row.candidates or (() if row.ended is None else (row.ended,))
    ended = "may have ended" if row.candidates or not row.exact else "ended"
    for end in ends:
        site = f" at {without_folders(end.call_site)}" if end.call_site else ""
        yield f"{ended} at {end.node_id.rpartition('#')[2]} {end.name}{site}: {end.why}"
    if not ends:
        yield f"ended, and it is not known where: {row.reason}"


def absence_notes(absence: Absence) -> Iterator[str]:
    yield from absence.reasons
    yield from dict.fromkeys(row.reason for holder in absence.holders for row in holder.ended if row.reason)
    if not absence.complete:
        yield "The lineage is not complete: a record with the key may be there."
    for holder in absence.holders:
        number = holder.node_id.rpartition("#")[2]
        command = f"lineage explain {absence.application_id} --node {number} --key {quote(absence.key)}"
        yield f"why it had the key: {command}"


def _operation(operation: KeyedOperation) -> Text:
    site = f" at {without_folders(operation.call_site)}" if operation.call_site else ""
    number = operation.node_id.rpartition("#")[2]
    return Text(f"{number} ", "dim") + plain(operation.name) + plain(site, "dim")
