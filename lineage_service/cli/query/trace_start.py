"""Where `lineage trace` begins: a record or a row of an application, or rows of a dataset by a condition."""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import datetime

from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.output import Output, plain, print_line
from lineage_service.cli.query.start import line_of_file, start_of, whole_number
from lineage_service.conditions.parser import parsed_timestamp
from lineage_service.dataset_trace import ChosenTrace, chosen_trace
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Choice, Choices, Direction
from lineage_service.newest_application import LAST, application_named, has_application
from lineage_service.queries import Queries, RowQuery, TraceQuery, version_named
from lineage_service.result_tables import CHOICE_COLUMNS, choice_lines

__all__ = ["add_start", "choose_one", "chosen_start", "give_choices", "is_application", "time_of"]


def add_start(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "of",
        metavar="APP|DATASET",
        help=f"an applicationId of `lineage apps`, or {LAST!r} for the newest; or a dataset: a file, "
        "folder, glob, URI or table that applications wrote or read, or FILE:LINE",
    )
    parser.add_argument(
        "direction",
        nargs="?",
        choices=("backward", "forward"),
        help="what it was made of, or what became of it; needed where APP has a start. Of a dataset: "
        "backward if it was written, forward if it was only read",
    )
    parser.add_argument(
        "start",
        nargs="?",
        help="FILE:LINE of an input or output file, lines counted from 1, or a record id such as write#0#12 "
        "or 30#write#0#12; with --where a dataset",
    )
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        help="begin at the row whose columns fulfil it: \"airport = 'EWR' and month = '2013-02'\"",
    )
    parser.add_argument("--all", action="store_true", help="with --where: begin at all rows that fulfil it")
    parser.add_argument(
        "--version",
        type=version_named,
        metavar="N",
        help="with --where, of a table: the version that the row is in (default: the newest); of Iceberg a "
        "snapshot, branch or tag",
    )
    parser.add_argument(
        "--app", metavar="APP", help="of a dataset: the application (default: the newest that wrote it)"
    )
    parser.add_argument(
        "--at",
        type=time_of,
        metavar="TIME",
        help="of a dataset: the newest application that began until then; of a table: its version then",
    )
    directions = parser.add_mutually_exclusive_group()
    directions.add_argument("--backward", action="store_true", help="what it was made of")
    directions.add_argument("--forward", action="store_true", help="what became of it")
    parser.add_argument(
        "--node",
        metavar="N",
        help="the operation of the record id, of FILE:LINE, of --key or of --where, by number",
    )
    parser.add_argument(
        "--failure",
        type=whole_number(1),
        metavar="N",
        help="of APP: begin at the record that made a task fail, as `lineage failures` numbers it",
    )
    parser.add_argument("--key", help="begin at all records of --node, or of a dataset, with this key")


def chosen_start(queries: Queries, options: argparse.Namespace, trace: TraceQuery) -> ChosenTrace | Choices:
    """Raises LineageError."""
    _check_flags(options)
    flag: Direction | None = "backward" if options.backward else "forward" if options.forward else None
    if options.direction and flag not in (None, options.direction):
        raise InvalidQueryError(f"{options.direction} and --{flag} say different things")
    direction: Direction | None = options.direction or flag
    if options.failure is not None:
        return _of_failure(queries, options, trace, direction)
    is_of_application = is_application(queries, options.of, options.start)
    if is_of_application and (options.app or options.at is not None):
        raise InvalidQueryError(f"--app and --at are for datasets, and {options.of} is an application")
    if is_of_application and options.where is None:
        start = start_of(options.start, options.key, options.node)
        if direction is None:
            raise InvalidQueryError("say backward (what it was made of) or forward (what became of it)")
        query = replace(trace, direction=direction, cursor=options.cursor, **start)
        return ChosenTrace(application_named(queries, options.of), query)
    dataset = options.start if is_of_application else options.of
    path, row = (None, None) if dataset is None else line_of_file(dataset)
    if row is None and options.where is None and options.key is None:
        raise InvalidQueryError(f"say which row of {dataset}: --where CONDITION, {dataset}:LINE, or --key")
    if row is not None and options.where is not None:
        raise InvalidQueryError(f"{dataset} is a row already: give --where or a line")
    cursor: str | None = options.cursor
    is_of_choices = cursor is not None and cursor.replace(":", "").isdigit()
    rows = RowQuery(
        dataset=path,
        row=row,
        where=options.where,
        version=options.version,
        application=options.of if is_of_application else options.app,
        at=options.at,
        node=options.node,
        direction=direction,
        limit=options.limit,
        cursor=cursor if is_of_choices else None,
    )
    trace = replace(trace, key=options.key, cursor=None if is_of_choices else cursor)
    return chosen_trace(queries, rows, trace, is_of_all=options.all)


def _check_flags(options: argparse.Namespace) -> None:
    """Raises InvalidQueryError where they do not belong together."""
    if options.all and options.where is None:
        raise InvalidQueryError("--all needs --where: all rows that fulfil it")
    if options.version is not None and options.where is None:
        raise InvalidQueryError("--version needs --where: the row that is in that version")
    if options.version is not None and options.at is not None:
        raise InvalidQueryError("--version and --at both say which version is meant: leave one out")


def _of_failure(
    queries: Queries, options: argparse.Namespace, trace: TraceQuery, direction: Direction | None
) -> ChosenTrace:
    """Raises LineageError."""
    others = {"--where": options.where, "--key": options.key, "--node": options.node, "--app": options.app}
    too_many = [name for name, value in {"START": options.start, **others}.items() if value is not None]
    if too_many:
        raise InvalidQueryError(f"--failure says where the trace begins: leave out {', '.join(too_many)}")
    query = replace(trace, direction=direction or "backward", failure=options.failure, cursor=options.cursor)
    return ChosenTrace(application_named(queries, options.of), query)


def is_application(queries: Queries, of: str, start: str | None) -> bool:
    """The first word is an application where a start stands behind it, or one is called so."""
    if start is not None or of == LAST:
        return True
    return "/" not in of and has_application(queries, of)


def give_choices(output: Output, choices: Choices, what_to_do: str) -> None:
    output.give(
        choices,
        CHOICE_COLUMNS,
        choice_lines(choices),
        lambda console: _show(console, choices),
        [*choices.warnings, what_to_do],
    )


def _show(console: Console, choices: Choices) -> None:
    total = "several" if choices.total is None else f"{choices.total:,}"
    wrote = "wrote" if choices.direction == "backward" else "read"
    began = datetime.fromtimestamp(choices.started / 1000).strftime("%Y-%m-%d %H:%M:%S")
    of = f"of what {choices.application_id} ({choices.name}, {began}) {wrote}"
    if choices.version is not None:
        of = f"in version {choices.version} of {choices.dataset}"
    print_line(console, plain(f"{total} rows fulfil it, {of}:", "bold"))
    for choice in choices.choices:
        print_line(console, Text("  ") + _line(choice))


def _line(choice: Choice) -> Text:
    place = choice.record_id if choice.path is None else f"{choice.path}:{choice.line}"
    line = plain(place, "cyan")
    if choice.text is not None:
        line += Text("  ") + plain(choice.text)
    if choice.warning:
        line += Text("  ") + plain(f"({choice.warning})", "yellow")
    return line


def choose_one(choices: Choices, others: str = "") -> str:
    """What to do where there are several. `others`: what else there is than to narrow the condition."""
    more = "" if choices.next is None else f"; there are more: --cursor {choices.next}"
    return f"Choose one: narrow the condition{others}{more}"


def time_of(text: str) -> int:
    """For argparse: Unix milliseconds of a time, of this machine's zone if it names none."""
    time = parsed_timestamp(text)
    if time is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write '2013-02-28' or '2013-02-28 13:00'")
    return int(time.timestamp() * 1000)
