"""`lineage slow`: which records of an application took long."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from rich.console import Console

from lineage_service.cli.query.output import Output, add_format_flags, plain, print_line, without_folders
from lineage_service.cli.query.start import add_application, add_limit_flag, store_queries
from lineage_service.lineage import Slow, SlowRecord
from lineage_service.newest_application import application_named
from lineage_service.queries import SlowQuery
from lineage_service.result_tables import SLOW_COLUMNS, slow_lines
from lineage_service.settings import Settings

__all__ = ["command", "configure"]

#: No record is known to have taken long.
_NOTHING = 3
#: Input rows, operations and partitions that are summed up at a terminal. JSON has all that are listed.
_MOST_SUMS = 5


def configure(parser: argparse.ArgumentParser) -> None:
    add_application(parser)
    add_limit_flag(parser, "list at most this many records")
    add_format_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    with output.working("looking"), store_queries(settings) as queries:
        slow = queries.slow(application_named(queries, options.application), SlowQuery(limit=options.limit))
    output.give(
        slow, SLOW_COLUMNS, slow_lines(slow), lambda console: _show(console, slow), list(_notes(slow))
    )
    return 0 if slow.records else _NOTHING


def _show(console: Console, slow: Slow) -> None:
    for record in slow.records:
        _show_record(console, record)
    for title, lines in _sums(slow):
        print_line(console, plain(f"by {title}", "dim"))
        for ms, records, text in lines:
            print_line(console, plain(f"{ms:>8,} ms  {records:>4} x  ", "dim") + plain(text))


def _show_record(console: Console, slow: SlowRecord) -> None:
    site = f" {without_folders(slow.call_site)}" if slow.call_site else ""
    print_line(
        console, plain(f"{slow.ms:>8,} ms  ", "dim") + plain(f"{slow.name}{site}, partition {slow.partition}")
    )
    if slow.record is not None:
        number = slow.record.node_id.rpartition("#")[2]
        texts = [text for text in (slow.record.key, slow.record.value) if text is not None]
        print_line(
            console,
            plain(f"             record {number}#{slow.record.record_id}", "cyan")
            + plain("".join(f"  {text}" for text in texts)),
        )
    for row in slow.sources:
        text = "" if row.text is None else f"  {row.text}"
        print_line(console, plain(f"             {row.path}:{row.line}", "cyan") + plain(text))
    if slow.sources_total > len(slow.sources):
        more = slow.sources_total - len(slow.sources)
        print_line(console, plain(f"             and {more:,} more input records", "dim"))
    if not slow.exact:
        print_line(console, plain(f"             not exact: {slow.reason}", "yellow"))


def _sums(slow: Slow) -> Iterator[tuple[str, list[tuple[int, int, str]]]]:
    """Of those that say more than the records alone."""
    inputs = [
        (one.ms, one.records, _place(one.source.path, one.source.line, one.source.text))
        for one in slow.inputs
    ]
    operations = [
        (one.ms, one.records, f"{one.name} {without_folders(one.call_site)}".rstrip())
        for one in slow.operations
    ]
    names = {one.node_id: one.name for one in slow.operations}
    partitions = [
        (one.ms, one.records, f"{names.get(one.node_id, one.node_id)}, partition {one.partition}")
        for one in slow.partitions
    ]
    for title, lines in (("input row", inputs), ("operation", operations), ("partition", partitions)):
        if any(records > 1 for _, records, _ in lines):
            yield title, lines[:_MOST_SUMS]


def _place(path: str, line: int, text: str | None) -> str:
    return f"{path}:{line}" + ("" if text is None else f"  {text}")


def _notes(slow: Slow) -> Iterator[str]:
    if slow.total > len(slow.records):
        yield f"{slow.total - len(slow.records):,} more are known: --limit"
    if slow.how:
        yield slow.how
