"""`lineage missing`: why a row of an input is not in the output."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.output import Output, add_format_flags, plain, print_line, without_folders
from lineage_service.cli.query.start import add_limit_flag, line_of_file, start_of, store_queries
from lineage_service.cli.query.trace_start import is_application, time_of
from lineage_service.dataset_trace import missing_of_dataset
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import (
    AskedInput,
    Duplicate,
    MissedOutput,
    Missing,
    MissingRow,
    RowEnd,
    RowOfInput,
)
from lineage_service.newest_application import LAST, application_named
from lineage_service.queries import MissingQuery, Queries, RowQuery
from lineage_service.result_tables import MISSING_COLUMNS, missing_lines
from lineage_service.settings import Settings

__all__ = ["command", "configure"]

#: No input has such a row, and no output.
_NOTHING = 3


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "of",
        metavar="APP|DATASET",
        help=f"an applicationId of `lineage apps`, or {LAST!r} for the newest; or FILE:LINE of an input, or "
        "with --where a dataset: a file, folder, glob or URI that applications read or wrote",
    )
    parser.add_argument(
        "start",
        nargs="?",
        help="of APP: FILE:LINE of an input, lines counted from 1, or a record id such as 0#read#0#12; with "
        "--where a dataset",
    )
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        help="of an input: the rows whose columns fulfil it. Of an output (also without DATASET): what it "
        "should have. Then the inputs are searched, as far as they have these columns",
    )
    parser.add_argument("--output", metavar="N|PATH", help="only on the way to this output")
    parser.add_argument(
        "--in-application",
        action="store_true",
        help="do not go on into applications that read the output files",
    )
    parser.add_argument(
        "--input", action="store_true", help="with --where: DATASET as an input, also if it was written"
    )
    parser.add_argument(
        "--app",
        metavar="APP",
        help="of a dataset: the application (default: the newest that read or wrote it)",
    )
    parser.add_argument(
        "--at",
        type=time_of,
        metavar="TIME",
        help="of a dataset: the newest application that began until then",
    )
    parser.add_argument(
        "--node", metavar="N", help="the operation that read FILE, or wrote what should have it"
    )
    add_limit_flag(parser, "at most this many rows of each input")
    add_format_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    with output.working("looking"), store_queries(settings) as queries:
        application_id, query = _asked(queries, options)
        missing = queries.missing(application_id, query)
    output.give(
        missing,
        MISSING_COLUMNS,
        missing_lines(missing),
        lambda console: _show(console, missing),
        list(_notes(missing)),
    )
    return 0 if missing.rows or missing.reached or missing.present else _NOTHING


def _asked(queries: Queries, options: argparse.Namespace) -> tuple[str, MissingQuery]:
    """(the application, the query). Raises LineageError."""
    is_of_application = is_application(queries, options.of, options.start)
    if is_of_application and (options.app or options.at is not None):
        raise InvalidQueryError(f"--app and --at are for datasets, and {options.of} is an application")
    if options.input and options.where is None:
        raise InvalidQueryError("--input needs --where: a row of FILE:LINE is one of an input")
    query = MissingQuery(
        where=options.where,
        node=options.node,
        output=options.output,
        direction="forward" if options.input else None,
        across=not options.in_application,
        limit=options.limit,
    )
    if is_of_application:
        return application_named(queries, options.of), _of_application(options, query)
    path, row = line_of_file(options.of)
    if (row is None) == (options.where is None):
        raise InvalidQueryError(f"say which row of {path}: {path}:LINE, or --where CONDITION")
    rows = RowQuery(dataset=path, application=options.app, at=options.at)
    return missing_of_dataset(queries, rows, _with(query, row=row))


def _of_application(options: argparse.Namespace, query: MissingQuery) -> MissingQuery:
    """Raises InvalidQueryError."""
    if options.where is None:
        if options.start is None:
            raise InvalidQueryError("say which row: FILE:LINE of an input, a record id, or --where CONDITION")
        return _with(query, **start_of(options.start, None, options.node))
    path, row = (None, None) if options.start is None else line_of_file(options.start)
    if row is not None:
        raise InvalidQueryError(f"{options.start} is a row already: give --where or a line")
    return _with(query, path=path)


def _with(query: MissingQuery, **fields: object) -> MissingQuery:
    from dataclasses import replace

    return replace(query, **fields)  # type: ignore[arg-type] # names of fields with their values


# -- for people -------------------------------------------------------------------------------------


def _show(console: Console, missing: Missing) -> None:
    for asked in missing.inputs or ():
        _show_input(console, asked)
    for present in missing.present or ():
        place = present.record_id if present.path is None else f"{present.path}:{present.line}"
        print_line(
            console, plain("the output has it: ", "green") + plain(place, "cyan") + _text(present.text)
        )
    before: tuple[object, ...] = ()
    for row in missing.rows:
        before = _show_row(console, row, before, missing.application_id)
        print_line(console, plain(f"  is not in {_outputs(row.outputs)}", "red"))
        _show_end(console, row)
    for row_in in missing.reached:
        before = _show_row(console, row_in, before, missing.application_id)
        print_line(console, plain(f"  is in {_outputs(row_in.outputs)}", "green"))
        for duplicate in row_in.duplicates:
            _show_duplicate(console, duplicate)


def _show_input(console: Console, asked: AskedInput) -> None:
    number = asked.node_id.rpartition("#")[2]
    line = plain(f"{number} ", "dim") + plain(asked.name, "bold") + plain(f" {asked.dataset}: ")
    lacks = f", without {', '.join(asked.lacks)}" if asked.lacks else ""
    if asked.condition is None:
        line += plain(f"not asked{lacks}" if lacks else "not asked", "dim")
    else:
        matches = (
            "many rows"
            if asked.matches is None
            else f"{asked.matches:,} row{'' if asked.matches == 1 else 's'}"
        )
        line += plain(f"{matches} with {asked.condition}{lacks}")
    print_line(console, line + plain(f" ({asked.note})" if asked.note else "", "yellow"))


def _show_row(
    console: Console, row: RowOfInput, before: tuple[object, ...], asked: str
) -> tuple[object, ...]:
    """A heading for each row; its identity, so that its entries stand below one."""
    identity = (row.application_id, row.path, row.row, row.node_id, row.record_id)
    if identity != before:
        number = row.node_id.rpartition("#")[2]
        place = f"{number}#{row.record_id}" if row.path is None else f"{row.path}:{row.line}"
        text = Text("") if row.text is None else _text(row.text)
        reader = number if row.application_id == asked else f"{row.application_id}#{number}"
        print_line(console, plain(place, "cyan") + text + plain(f"  (read by {reader})", "dim"))
    return identity


def _show_duplicate(console: Console, duplicate: Duplicate) -> None:
    number = duplicate.node_id.rpartition("#")[2]
    site = f" ({without_folders(duplicate.call_site)})" if duplicate.call_site else ""
    perhaps = "" if duplicate.exact else " (perhaps: an upper bound)"
    named = plain(f"{number} ", "dim") + plain(duplicate.name, "bold") + plain(site, "dim")
    print_line(console, plain("  one of several at ") + named + plain(f": {duplicate.why}{perhaps}"))
    others = [
        record.record_id if record.source is None else f"{record.source.path}:{record.source.line}"
        for record in duplicate.equal
    ]
    more = duplicate.total - 1 - len(others)
    if others:
        print_line(
            console,
            plain(f"  the others: {', '.join(others)}{f' and {more:,} more' if more > 0 else ''}", "dim"),
        )


def _show_end(console: Console, row: MissingRow) -> None:
    if row.ended is not None:
        word = "ended at" if row.exact else "may have ended at"
        print_line(console, plain(f"  {word} ", "bold") + _end(row.ended))
    for at, candidate in enumerate(row.candidates):
        print_line(
            console,
            plain(f"  {'ended at one of' if at == 0 else '             or'} ", "bold") + _end(candidate),
        )
    if row.reason:
        print_line(console, plain(f"  not exact: {row.reason}", "yellow"))
    values = [record.value for record in row.last if record.value is not None]
    if values and row.last_node_id != row.node_id:
        more = f" and {row.last_total - len(values):,} more" if row.last_total > len(values) else ""
        print_line(console, plain(f"  its last values: {', '.join(values)}{more}", "dim"))


def _end(end: RowEnd) -> Text:
    number = end.node_id.rpartition("#")[2]
    site = f" ({without_folders(end.call_site)})" if end.call_site else ""
    return plain(f"{number} ", "dim") + plain(end.name, "bold") + plain(site, "dim") + plain(f": {end.why}")


def _outputs(outputs: tuple[MissedOutput, ...]) -> str:
    return ", ".join(
        f"{output.node_id.rpartition('#')[2]} {output.name}"
        + (f" {output.description}" if output.description else "")
        + ("" if output.exact else " (perhaps: an upper bound)")
        for output in outputs
    )


def _text(text: str | None) -> Text:
    return plain(f"  {text}")


def _notes(missing: Missing) -> Iterator[str]:
    yield from missing.warnings
    if not missing.complete:
        yield (
            "This lineage is not complete: a row may be in an output all the same (`lineage apps` says what "
            "is missing)."
        )
    if missing.truncated:
        yield "More rows fulfil the condition than are listed: --limit, or a narrower condition."
    if not (missing.rows or missing.reached or missing.present):
        yield "No input has such a row."
