"""`--with ROW` of `lineage explain`: rows that the answer must have, and where they lead."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.output import plain, print_line, without_folders
from lineage_service.cli.query.records import line_of
from lineage_service.cli.query.start import start_of
from lineage_service.lineage import DemandedRow, WayRecord
from lineage_service.queries import StartQuery

__all__ = ["add_demanded", "demanded_of", "show_demanded"]

#: Records of a way that are shown: its first ones, and the last one.
_MOST_RECORDS = 8


def add_demanded(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--with",
        dest="demanded",
        action="append",
        default=[],
        metavar="ROW",
        help="a row of an input, FILE:LINE or a record id, that the answer must have, if the records were "
        "made of it, with what was joined with it; repeatable",
    )


def demanded_of(options: argparse.Namespace) -> tuple[StartQuery, ...]:
    """Raises InvalidQueryError."""
    return tuple(StartQuery(**start_of(text, None, None)) for text in options.demanded)


def show_demanded(console: Console, rows: tuple[DemandedRow, ...]) -> None:
    for row in rows:
        place = row.record_id if row.path is None else f"{row.path}:{row.line}"
        line = plain("with  ", "bold") + plain(place, "cyan")
        print_line(console, line if row.text is None else line + Text("  ") + plain(row.text))
        if row.note:
            print_line(console, plain(f"  {row.note}", "yellow"))
        way = row.way[1:]
        hidden = max(0, len(way) - _MOST_RECORDS)
        for at, record in enumerate(way):
            if at < _MOST_RECORDS - 1 or at == len(way) - 1:
                print_line(console, _step(record))
            elif at == _MOST_RECORDS - 1:
                print_line(console, plain(f"  and {hidden:,} more records", "dim"))


def _step(step: WayRecord) -> Text:
    number = step.node_id.rpartition("#")[2]
    loop = without_folders(step.loop or "")
    turn = "" if step.turn is None else f"  (turn {step.turn} of the loop at {loop})"
    line = plain(f"  went into {number} ", "dim") + plain(step.name) + Text("  ") + line_of(step.record)
    return line + plain(turn, "dim")
