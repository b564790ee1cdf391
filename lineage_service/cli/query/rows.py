"""`lineage rows`: which input rows records were made of, as a row set, or as files of just these rows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.output import Output, add_format_flags, plain, print_line, without_folders
from lineage_service.cli.query.start import (
    add_application,
    add_limit_flag,
    store_lineage,
    store_queries,
)
from lineage_service.cli.query.starts import add_starts, start_queries
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import AskedRecord, RowSet, RowSetFile, RowSetSource
from lineage_service.newest_application import application_named
from lineage_service.queries import RowSetQuery
from lineage_service.result_json import json_bytes, json_value
from lineage_service.result_tables import ROW_SET_COLUMNS, row_set_lines
from lineage_service.settings import Settings

if TYPE_CHECKING:
    from lineage_service.tracing.query.row_extraction import Extraction

__all__ = ["command", "configure"]

#: Some of what was asked for was not written.
_NOT_ALL = 3
#: Ranges of one file that are shown.
_MOST_RANGES = 20


def configure(parser: argparse.ArgumentParser) -> None:
    add_application(parser)
    add_starts(parser)
    add_limit_flag(parser, "show the texts of at most this many rows of each input")
    add_format_flags(parser)
    parser.add_argument(
        "--concise",
        action="store_true",
        help="only the rows that decided what the records are, as `lineage explain`",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="also write the row set as JSON into a file of mode 0600"
    )
    parser.add_argument(
        "--extract",
        type=Path,
        metavar="DIR",
        help="also write the rows into files of the same shape, below a new folder",
    )
    parser.add_argument(
        "--without",
        action="store_true",
        help="with --extract: all rows but these, of the inputs that have some of them",
    )
    parser.add_argument(
        "--anyway", action="store_true", help="with --extract: also of inputs that have changed since"
    )


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    if options.extract is None and (options.without or options.anyway):
        raise InvalidQueryError("--without and --anyway are for --extract DIR")
    output = Output(options)
    query = RowSetQuery(starts=start_queries(options), concise=options.concise, limit=options.limit)
    extraction: Extraction | None = None
    if options.extract is None:
        with output.working("tracing"), store_queries(settings) as queries:
            row_set = queries.row_set(application_named(queries, options.application), query)
    else:
        with output.working("copying"), store_lineage(settings) as lineage:
            row_set = lineage.row_set(application_named(lineage, options.application), query)
            extraction = lineage.extraction.extract(
                json_value(row_set),
                options.extract,
                is_without=options.without,
                takes_changed=options.anyway,
            )
    if options.output is not None:
        _write(options.output, row_set)
    output.give(
        row_set,
        ROW_SET_COLUMNS,
        row_set_lines(row_set),
        lambda console: _show(console, row_set),
        [row_set.how] if row_set.how else [],
    )
    if extraction is None:
        return 0
    _show_extraction(extraction, Console(file=sys.stderr) if options.json or options.csv else output.console)
    return _NOT_ALL if extraction.left_out else 0


def _write(path: Path, row_set: RowSet) -> None:
    """Raises LineageError."""
    from lineage_service.tracing.files.new_folders import written_file

    written_file(path, json_bytes(row_set, indent=2) + b"\n")


def _show(console: Console, row_set: RowSet) -> None:
    for asked in row_set.asked[:_MOST_RANGES]:
        text = "" if asked.text is None else f"  {asked.text}"
        print_line(console, plain(_place(asked), "cyan") + plain(text))
    if len(row_set.asked) > _MOST_RANGES:
        print_line(console, plain(f"and {len(row_set.asked) - _MOST_RANGES:,} more records", "dim"))
    for source in row_set.sources:
        print_line(console, Text(f"{source.node} ", "dim") + plain(source.name, "bold") + _heading(source))
        for file in source.files:
            print_line(console, plain(f"  {file.path}:{_ranges(file)}", "cyan"))
        for row in source.listed:
            text = "" if row.text is None else f"  {row.text}"
            note = f"  ({row.warning})" if row.warning else ""
            print_line(console, plain(f"    {row.line}", "dim") + plain(text) + plain(note, "yellow"))
        more = source.count - len(source.listed)
        if source.listed and more > 0:
            print_line(console, plain(f"    and {more:,} more", "dim"))


def _heading(source: RowSetSource) -> Text:
    site = f" at {without_folders(source.call_site)}" if source.call_site else ""
    if source.whole:
        return plain(f"{site}: all rows ({source.why})")
    total = "" if source.total is None else f" of {source.total:,}"
    note = f" ({source.why})" if source.why else ""
    return plain(f"{site}: {source.count:,}{total} records{note}")


def _ranges(file: RowSetFile) -> str:
    """Lines, counted from 1."""
    shown = [
        f"{first + 1}" if count == 1 else f"{first + 1}-{first + count}"
        for first, count in file.rows[:_MOST_RANGES]
    ]
    return ",".join([*shown, *(["..."] if len(file.rows) > _MOST_RANGES else [])])


def _place(asked: AskedRecord) -> str:
    if asked.path is None or asked.row is None:
        return f"{asked.node}#{asked.record_id}"
    return f"{asked.path}:{asked.row + 1}"


def _show_extraction(extraction: Extraction, console: Console) -> None:
    for line in _extracted(extraction):
        print_line(console, line)


def _extracted(extraction: Extraction) -> Iterator[Text]:
    for file in extraction.files:
        rows = "all of" if file.rows is None else f"{file.rows:,} row{'' if file.rows == 1 else 's'} of"
        yield plain("wrote ", "dim") + plain(file.target, "cyan") + plain(f"  {rows} {file.path}", "dim")
    for what, why in extraction.left_out.items():
        yield plain(f"not written: {what}: {why}", "yellow")
