"""A result at a terminal: for people, or as JSON or CSV for programs.

JSON is what the HTTP API answers. Colours and the display of work under way are for terminals only: nothing
of them is in what is piped. Data of people's files cannot command the terminal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from lineage_service.lineage import ApplicationError, NodeError, Result
from lineage_service.result_json import json_bytes
from lineage_service.result_tables import csv_text

__all__ = [
    "Output",
    "add_format_flags",
    "error_text",
    "moment",
    "plain",
    "print_line",
    "print_table",
    "table",
    "without_folders",
]

_WIDE = 10_000
_CUT: Literal["ellipsis"] = "ellipsis"
#: Of a column that is cut.
_LEAST = 8
_GAP = 2  # between two columns, as rich pads them
_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {9: "\\t", 10: "\\n"}


def add_format_flags(parser: argparse.ArgumentParser) -> None:
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help="answer as the HTTP API does")
    formats.add_argument("--csv", action="store_true", help="answer as CSV with a header line")


class Output:
    """Where a command's result goes."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._is_json: bool = options.json
        self._is_csv: bool = options.csv
        # A pipe has no width, and a program that reads tables wants one line for each.
        width = None if sys.stdout.isatty() else _WIDE
        self.console = Console(width=width, highlight=False, markup=False, emoji=False)
        self._notes = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)

    @contextmanager
    def working(self, on: str) -> Iterator[None]:
        """Say on a terminal what is being worked on, for as long as it takes."""
        if not self._notes.is_terminal:
            yield
            return
        with self._notes.status(on):
            yield

    def give(
        self,
        answer: Result,
        columns: Sequence[str],
        lines: Iterable[Sequence[object]],
        show: Callable[[Console], None],
        notes: Sequence[str] = (),
    ) -> None:
        """Answer with a result.

        `show` prints it for people; `notes` are what a table cannot say, and go beside one.
        """
        if self._is_json:
            sys.stdout.buffer.write(json_bytes(answer, indent=2) + b"\n")
            return
        if self._is_csv:
            sys.stdout.buffer.write(csv_text(columns, lines).encode("utf-8", "backslashreplace"))
        else:
            show(self.console)
        sys.stdout.flush()
        for note in notes:
            (self._notes if self._is_csv else self.console).print(note, style="yellow")


def print_line(console: Console, text: Text) -> None:
    """One line: cut to a terminal's width, whole in a pipe."""
    if console.is_terminal:
        console.print(text, no_wrap=True, overflow="ellipsis")
    else:
        console.print(text, soft_wrap=True)


def table(*headings: str) -> Table:
    """With columns whose names end in `>` to the right; those in `~` are cut to a terminal's width."""
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        is_cut = heading.endswith("~")
        rows.add_column(
            heading.rstrip(">~"),
            justify="right" if heading.endswith(">") else "left",
            overflow=_CUT if is_cut else "fold",
            no_wrap=is_cut,
        )
    return rows


def print_table(console: Console, rows: Table) -> None:
    """A table; on a terminal the columns that may be cut share what the others leave of its width."""
    if console.is_terminal:
        widths = [max(map(_width, (column.header, *column.cells))) for column in rows.columns]
        cut = [at for at, column in enumerate(rows.columns) if column.overflow == _CUT]
        left = console.width - _GAP * (len(widths) - 1) - sum(widths) + sum(widths[at] for at in cut)
        for done, at in enumerate(sorted(cut, key=lambda at: widths[at])):  # narrow ones need no share
            rows.columns[at].max_width = min(widths[at], max(left // (len(cut) - done), _LEAST))
            left -= rows.columns[at].max_width or 0
    console.print(rows)


def _width(cell: RenderableType) -> int:
    return cell.cell_len if isinstance(cell, Text) else cell_len(str(cell))


def error_text(error: ApplicationError | NodeError) -> str:
    """TYPE: MESSAGE at FILE:LINE, and in which action, as far as it is known."""
    text = ": ".join(part for part in (error.type, error.message) if part) or "it is not known why"
    at = f" at {error.frame}" if error.frame else ""
    action = ""
    if isinstance(error, ApplicationError) and error.node_id is not None:
        number = error.node_id.rpartition("#")[2]
        action = f", in {number} {error.name}" + (f" ({error.call_site})" if error.call_site else "")
    return f"{text}{at}{action}"


def plain(text: str | None, style: str = "") -> Text:
    """The text with its control characters made visible."""
    return Text((text or "").translate(_VISIBLE), style)


def moment(unix_ms: int) -> str:
    """In the time of this machine."""
    return datetime.fromtimestamp(unix_ms / 1000).strftime("%Y-%m-%d %H:%M:%S")


def without_folders(call_site: str) -> str:
    """The places of a call site, each file without its folder."""
    return ", ".join(place.rpartition("/")[2] for place in call_site.split(", "))
