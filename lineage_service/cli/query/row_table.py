"""Rows of files as an aligned table: a column for each of theirs, cut to a terminal, whole in a pipe."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.output import plain
from lineage_service.cli.query.records import line_of
from lineage_service.lineage import Column, Record
from lineage_service.tracing.files.partition_folders import folder_above, short_place

__all__ = ["print_records", "rounded"]

_INDENT, _GAP = "  ", "  "
#: Of a cell on a terminal, and how far cells in a pipe are padded.
_MOST_WIDTH = 40
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


class _Shown(NamedTuple):
    heading: str
    cells: list[str]
    is_right: bool


def print_records(
    console: Console,
    records: Sequence[Record],
    schema: Sequence[Column] | None,
    *,
    is_full: bool = False,
    has_ids: bool = False,
) -> None:
    """As a table where all are rows with columns, else each as its line."""
    rows = [record for record in records if record.source is not None and record.source.columns]
    if not rows or len(rows) < len(records):
        for record in records:
            place = plain(record.record_id, "dim") + Text("  ") if has_ids and record.source else Text()
            _print(console, Text(_INDENT if not has_ids else "") + place + line_of(record), is_full=is_full)
        return
    _print_table(console, rows, schema or (), is_full=is_full, has_ids=has_ids)
    for text, count in Counter(_notes(rows)).items():
        which = f"{count:,} of these rows: " if len(rows) > 1 else ""
        _print(console, plain(f"{_INDENT}({which}{text})", "yellow"), is_full=is_full)


def _print(console: Console, line: Text, *, is_full: bool) -> None:
    if console.is_terminal and not is_full:
        console.print(line, no_wrap=True, overflow="ellipsis")
    else:
        console.print(line, soft_wrap=True)


def _notes(rows: Sequence[Record]) -> Iterator[str]:
    for record in rows:
        if record.source is not None and record.source.warning:
            yield record.source.warning
        if record.source is not None and record.source.columns_cut:
            yield "cut, since it has many columns or long values"


def _print_table(
    console: Console, rows: Sequence[Record], schema: Sequence[Column], *, is_full: bool, has_ids: bool
) -> None:
    is_cut = console.is_terminal and not is_full
    columns = list(_columns(rows, schema, is_full=is_full, has_ids=has_ids))
    widths = [min(max(map(cell_len, (column.heading, *column.cells))), _MOST_WIDTH) for column in columns]
    left_out = 0
    if is_cut:
        while len(widths) > 1 and len(_INDENT) + sum(widths) + len(_GAP) * (len(widths) - 1) > console.width:
            widths.pop()
            left_out += 1
    shown = list(zip(columns, widths, strict=False))
    if len(folders := _folders(rows)) == 1 and not is_full:
        _print(console, plain(f"{_INDENT}in {folders.pop() or '/'}", "dim"), is_full=is_full)
    _print(console, Text(_line([c.heading for c in columns], shown, is_cut=is_cut), "bold"), is_full=is_full)
    for at in range(len(rows)):
        line = _line([column.cells[at] for column in columns], shown, is_cut=is_cut)
        _print(console, Text(line), is_full=is_full)
    if left_out:
        names = ", ".join(column.heading for column in columns[len(widths) :])
        _print(console, plain(f"{_INDENT}and {left_out:,} more columns: {names}", "dim"), is_full=False)


def _line(cells: Sequence[str], shown: Sequence[tuple[_Shown, int]], *, is_cut: bool) -> str:
    parts = []
    for cell, (column, width) in zip(cells, shown, strict=False):
        if is_cut and cell_len(cell) > width:
            cell = set_cell_size(cell, width - 1) + "…"
        blank = " " * (width - cell_len(cell))
        parts.append(blank + cell if column.is_right else cell + blank)
    return (_INDENT + _GAP.join(parts)).rstrip()


def _columns(
    rows: Sequence[Record], schema: Sequence[Column], *, is_full: bool, has_ids: bool
) -> Iterator[_Shown]:
    """Where each row stands, its key, then its columns: those of folders come first."""
    sources = [record.source for record in rows if record.source is not None]
    if has_ids:
        yield _Shown("record", [record.record_id for record in rows], False)
    is_short = not is_full and len(_folders(rows)) == 1
    places = [f"{short_place(source.path) if is_short else source.path}:{source.line}" for source in sources]
    yield _Shown("row", [_visible(place) for place in places], False)
    if any(record.key is not None for record in rows):
        yield _Shown("key", [_visible(record.key or "") for record in rows], False)
    types: Mapping[str, str] = {column.name: column.type for column in schema}
    names = dict.fromkeys(name for source in sources for name in source.columns or ())
    for name in names:
        values = [(source.columns or {}).get(name) for source in sources]
        present = [value for value in values if value is not None]
        is_right = types.get(name, "").startswith(_NUMBERS) or (
            bool(present)
            and all(isinstance(value, int | float) and not isinstance(value, bool) for value in present)
        )
        yield _Shown(_visible(name), [_cell(value, is_full=is_full) for value in values], is_right)


def _folders(rows: Sequence[Record]) -> set[str]:
    """In which the files are, without their partition folders."""
    return {folder_above(record.source.path) for record in rows if record.source is not None}


def _cell(value: Any, *, is_full: bool) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return _visible(value)
    if isinstance(value, float) and not is_full:
        return rounded(value)
    return _visible(json.dumps(value, ensure_ascii=False))


def _visible(text: str) -> str:
    return plain(text).plain


def rounded(value: float) -> str:
    """For reading: six digits, or those before the point and two."""
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.6g}"
    before = len(str(int(abs(value))))
    text = f"{value:.{max(6 - before, 2)}f}"
    whole, point, rest = text.partition(".")
    return f"{whole}{point}{rest.rstrip('0') or '0'}"
