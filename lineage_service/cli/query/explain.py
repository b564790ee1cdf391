"""`lineage explain`: the few input rows that decided what a record is."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import groupby

from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.absence import absence_notes, absence_of, add_absent, show_absence
from lineage_service.cli.query.compared_explanation import (
    add_compare,
    compared_starts_of,
    show_compared,
)
from lineage_service.cli.query.demanded import add_demanded, demanded_of, show_demanded
from lineage_service.cli.query.explained_pair import add_same, holders_of, pair_of, show_meeting
from lineage_service.cli.query.output import Output, add_format_flags, plain, print_line, without_folders
from lineage_service.cli.query.proved_explanation import add_proof_flags, is_proved, proved
from lineage_service.cli.query.recorded_checks import proof_lines
from lineage_service.cli.query.records import line_of
from lineage_service.cli.query.start import add_application, add_page_flags, store_queries
from lineage_service.cli.query.starts import add_starts, start_queries
from lineage_service.lineage import (
    ExplainedRow,
    Explanation,
    ExplanationRule,
    ExplanationTurn,
    GivenValues,
    Record,
)
from lineage_service.newest_application import application_named
from lineage_service.queries import ExplanationQuery
from lineage_service.result_tables import (
    ABSENCE_COLUMNS,
    EXPLANATION_COLUMNS,
    absence_lines,
    explanation_lines,
)
from lineage_service.settings import Settings

__all__ = ["command", "configure"]

#: Records that are explained, and records and rows of one turn, that are shown.
_MOST_STARTS, _MOST_OF_TURN = 20, 3
#: The key is nowhere.
_NOTHING = 3
_KEPT_BY = {
    "winner": "what its merges gave back",
    "unchanged": "the same records a turn before",
}


def configure(parser: argparse.ArgumentParser) -> None:
    add_application(parser)
    add_starts(parser)
    add_same(parser)
    add_demanded(parser)
    add_compare(parser)
    add_absent(parser)
    add_page_flags(parser, "and as many records of each turn of a loop", "rows")
    parser.add_argument(
        "--how",
        action="store_true",
        help="also say which of the rows are needed together, and which are alternatives",
    )
    parser.add_argument("--no-plain", action="store_true", help="do not count the rows of a plain trace")
    add_proof_flags(parser)
    add_format_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    if options.absent is not None:
        return _absence(settings, options, output)
    query = ExplanationQuery(
        starts=start_queries(options) if options.same is None else pair_of(options),
        same=options.same is not None,
        demanded=demanded_of(options),
        compare=options.compare,
        compare_starts=compared_starts_of(options),
        how=options.how,
        plain=not options.no_plain,
        limit=options.limit,
        cursor=options.cursor,
    )
    code = 0
    if is_proved(options):
        with output.working("proving"):
            explanation, code = proved(settings, options, query)
    else:
        with output.working("explaining"), store_queries(settings) as queries:
            explanation = queries.explanation(application_named(queries, options.application), query)
    output.give(
        explanation,
        EXPLANATION_COLUMNS,
        explanation_lines(explanation),
        lambda console: _show(console, explanation),
        list(_notes(explanation, query)),
    )
    return code


def _absence(settings: Settings, options: argparse.Namespace, output: Output) -> int:
    """Raises LineageError."""
    asked = absence_of(options)
    with output.working("looking"), store_queries(settings) as queries:
        absence = queries.absence(application_named(queries, options.application), asked)
    output.give(
        absence,
        ABSENCE_COLUMNS,
        absence_lines(absence),
        lambda console: show_absence(console, absence),
        list(absence_notes(absence)),
    )
    return 0 if absence.holders else _NOTHING


def _show(console: Console, explanation: Explanation) -> None:
    if explanation.same is not None:
        show_meeting(console, explanation.same)
    else:
        for line in _starts(explanation):
            print_line(console, line)
    print_line(console, plain(_size(explanation), "bold"))
    for sentence in proof_lines(explanation):
        print_line(console, plain(sentence, "green"))
    for values in explanation.given_values:
        print_line(console, plain(_given(values), "dim"))
    _show_rows(console, explanation)
    for expression in (explanation.how or "").splitlines():
        print_line(console, plain("how  ", "bold") + plain(expression))
    show_demanded(console, explanation.demanded or ())
    _show_turns(console, explanation)
    if explanation.compared is not None:
        show_compared(console, explanation.compared)
    for rule in explanation.rules:
        print_line(console, plain(_rule(rule), "dim"))


def _show_rows(console: Console, explanation: Explanation) -> None:
    for (node_id, name), rows in groupby(explanation.rows, lambda row: (row.node_id, row.name)):
        print_line(console, Text(f"{_number(node_id)} ", "dim") + plain(name, "bold"))
        for row in rows:
            mark = Text("+ " if row.demanded else "  ", "bold")
            print_line(console, mark + holders_of(row) + _row(row))


def _show_turns(console: Console, explanation: Explanation) -> None:
    for loop, turns in groupby(explanation.turns, lambda turn: turn.loop):
        print_line(console, plain(f"loop at {without_folders(loop)}", "bold"))
        for number, of_turn in groupby(turns, lambda turn: turn.turn):
            for line in _turn(list(of_turn)):
                print_line(console, plain(f"  turn {number}", "dim") + line)


def _starts(explanation: Explanation) -> Iterator[Text]:
    starts = [(start, record) for start in explanation.starts for record in start.records]
    for start, record in starts[:_MOST_STARTS]:
        yield Text(f"{_number(start.node_id)} ", "dim") + line_of(record)
    more = sum(start.total for start in explanation.starts) - len(starts[:_MOST_STARTS])
    if more > 0:
        yield plain(f"and {more:,} more records", "dim")


def _size(explanation: Explanation) -> str:
    of = "" if explanation.of is None else f" of {explanation.of:,}"
    rows = "input row" if explanation.total == 1 and explanation.of is None else "input rows"
    size = f"{explanation.total:,}{of} {rows}"
    return size if explanation.plain_total is None else f"{size} (a plain trace: {explanation.plain_total:,})"


def _row(row: ExplainedRow) -> Text:
    line = plain(row.record_id if row.path is None else f"{row.path}:{row.line}", "cyan")
    if row.text is not None:
        line += Text("  ") + plain(row.text)
    if row.warning:
        line += Text("  ") + plain(f"({row.warning})", "yellow")
    return line


def _turn(turns: list[ExplanationTurn]) -> Iterator[Text]:
    """A line for each operation whose records one turn gave, and the rows that came in with it."""
    for turn in turns:
        listed = zip(turn.records[:_MOST_OF_TURN], turn.until, strict=False)
        records = [_record(record, turn.turn, until) for record, until in listed]
        yield (
            Text(f"  {_number(turn.node_id)} ", "dim")
            + plain(turn.name)
            + _listed(records, turn.total, "record")
        )
        if turn.rows_total:
            rows = [_row(row) for row in turn.rows[:_MOST_OF_TURN]]
            yield Text("  from", "dim") + _listed(rows, turn.rows_total, "row")


def _listed(lines: list[Text], total: int, what: str) -> Text:
    listed = Text()
    for at, line in enumerate(lines):
        listed += Text(", " if at else "  ") + line
    more = total - len(lines)
    return listed + plain(f" and {more:,} more {what}{'' if more == 1 else 's'}", "dim") if more else listed


def _record(record: Record, turn: int, until: int) -> Text:
    line = line_of(record)
    return line if until <= turn else line + plain(f" (unchanged to turn {until})", "dim")


def _rule(rule: ExplanationRule) -> str:
    site = f" at {without_folders(rule.call_site)}" if rule.call_site else ""
    return (
        f"{_number(rule.node_id)} {rule.name}{site}: {rule.kept:,} of {rule.of:,} inputs count, "
        f"{_KEPT_BY[rule.rule]}"
    )


def _given(values: GivenValues) -> str:
    site = f" at {without_folders(values.call_site)}" if values.call_site else ""
    if values.results is None:
        path = "" if values.path is None else f" of {values.path}"
        which = f"{_number(values.node_id)} {values.name}{site}{path}"
    else:
        results = "1 result" if values.results == 1 else f"{values.results:,} results"
        which = f"{results} of {values.name}{site}"
    return f"given: {which} (the program may have used values of it)"


def _notes(explanation: Explanation, query: ExplanationQuery) -> Iterator[str]:
    if explanation.kind == "bound":
        yield "This is an upper bound: not all of these rows need to have decided it."
    yield from explanation.reasons
    yield from () if explanation.compared is None else explanation.compared.reasons
    if explanation.plain_total is None and query.plain and query.cursor is None:
        yield "The rows of a plain trace were not counted within a second. Ask again, and the count goes on."
    if explanation.next is not None:
        yield f"there are more: --cursor {explanation.next}, or --limit"


def _number(node_id: str) -> str:
    return node_id.rpartition("#")[2]
