"""`lineage compare`: what changed between two runs of one job, and which input rows changed behind it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.output import Output, add_format_flags, moment, plain, print_line
from lineage_service.cli.query.start import add_limit_flag, line_of_file, store_queries
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import ChangedRow, ComparedRow, Comparison
from lineage_service.queries import CompareQuery, column_names
from lineage_service.result_tables import COMPARE_COLUMNS, comparison_lines
from lineage_service.settings import Settings

__all__ = ["command", "configure"]

#: Asked for, and not reached: rows that cannot be read any more are not compared.
_NOT_COMPARED = 3
_MOST_INPUTS = 5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "of",
        nargs="+",
        metavar="APP|DATASET",
        help="two applications, the earlier one first; or one dataset, for the last two complete runs that "
        "wrote it",
    )
    parser.add_argument(
        "--dataset", metavar="DATASET", help="which output of the two applications, if they have several"
    )
    parser.add_argument(
        "--key",
        metavar="A,B",
        help="the columns that name a row (default: none, and rows of equal input rows are paired)",
    )
    add_limit_flag(parser, "list at most this many rows of each kind")
    add_format_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    query = _query(options)
    with output.working("comparing"), store_queries(settings) as queries:
        comparison = queries.compare(query)
    output.give(
        comparison,
        COMPARE_COLUMNS,
        comparison_lines(comparison),
        lambda console: _show(console, comparison),
        list(_notes(comparison)),
    )
    return _NOT_COMPARED if comparison.same is None else 0


def _query(options: argparse.Namespace) -> CompareQuery:
    """Raises InvalidQueryError."""
    if len(options.of) > 2 or (len(options.of) == 1 and options.dataset is not None):
        raise InvalidQueryError("give two applications (and --dataset), or one dataset")
    key = () if options.key is None else column_names(options.key)
    if len(options.of) == 1:
        return CompareQuery(dataset=line_of_file(options.of[0])[0], key=key, limit=options.limit)
    before, after = options.of
    dataset = None if options.dataset is None else line_of_file(options.dataset)[0]
    return CompareQuery(before=before, after=after, dataset=dataset, key=key, limit=options.limit)


def _show(console: Console, comparison: Comparison) -> None:
    for word, run in zip(("was", "is "), comparison.runs, strict=True):
        rows = "rows not counted" if run.rows is None else f"{run.rows:,} row{'' if run.rows == 1 else 's'}"
        print_line(
            console,
            plain(f"{word} ", "dim")
            + plain(run.name, "bold")
            + plain(f" ({run.application_id}, {moment(run.started)}) wrote {rows} into {run.dataset}"),
        )
    if comparison.same is None:
        return
    print_line(
        console,
        plain(
            f"{comparison.changed_total:,} changed, {comparison.gone_total:,} gone, "
            f"{comparison.new_total:,} new, {comparison.same:,} the same",
            "bold",
        ),
    )
    for pair in comparison.changed:
        _show_changed(console, pair)
    for sign, style, rows_of in (("-", "red", comparison.gone), ("+", "green", comparison.new)):
        for row in rows_of:
            print_line(console, plain(f"{sign} ", style) + plain(_row(row.columns), style))
            _show_inputs(console, row, "the other run has its input rows, too")


def _show_changed(console: Console, pair: ChangedRow) -> None:
    named = pair.key or {name: pair.is_.get(name) for name in pair.is_ if name not in pair.columns}
    line = Text("~ ", "yellow") + plain(_row(named)) + Text(": " if named else "")
    changes = (
        f"{name} {_value(pair.was.get(name))} -> {_value(pair.is_.get(name))}" for name in pair.columns
    )
    print_line(console, line + plain(", ".join(changes), "yellow"))
    _show_inputs(console, pair, "its input rows are the same in both runs")


def _show_inputs(console: Console, differing: ChangedRow | ComparedRow, same: str) -> None:
    """`same` says that there are none."""
    inputs = differing.because or ()
    for row in inputs[:_MOST_INPUTS]:
        texts = plain("nothing" if row.was is None else row.was) + Text(" -> ")
        texts += plain("nothing" if row.is_ is None else row.is_)
        print_line(console, plain(f"    because {row.path}:{row.line}: ", "dim") + texts)
    if len(inputs) > _MOST_INPUTS:
        print_line(console, plain(f"    and {len(inputs) - _MOST_INPUTS:,} more input rows: --json", "dim"))
    if differing.because == () and not differing.because_note:
        print_line(console, plain(f"    {same}", "dim"))
    if differing.because_note:
        print_line(console, plain(f"    {differing.because_note}", "yellow"))


def _row(columns: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in columns.items())


def _value(value: Any) -> str:
    return "null" if value is None else str(value)


def _notes(comparison: Comparison) -> Iterator[str]:
    yield from comparison.warnings
    for run in comparison.runs:
        if not run.complete:
            yield f"The lineage of {run.application_id} is not complete: input rows may be missing."
    if comparison.truncated:
        yield "More rows differ than are listed: --limit"
