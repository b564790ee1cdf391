"""What people type for rows: FILE:LINE or FILE:LINE-LINE, with further ones behind commas. Pure.

Lines count from 1, and rows from 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from lineage_service.errors import InvalidQueryError

__all__ = ["MOST_NAMED", "named_rows", "replacement"]

#: Rows that are named one by one.
MOST_NAMED = 100_000
_LINES = re.compile(r"(?:(?P<path>.+):)?(?P<first>[0-9]{1,18})(?:-(?P<last>[0-9]{1,18}))?", re.DOTALL)
_REPLACEMENT = re.compile(r"(?P<path>.+?):(?P<line>[0-9]{1,18})=(?P<text>.*)", re.DOTALL)


def named_rows(text: str, whole: Callable[[str], str] = str) -> list[tuple[str, int]]:
    """(path, row) of `sales.csv:4,sales.csv:7-9` or `sales.csv:4,7-9`. Raises InvalidQueryError.

    `whole` makes of a path what jobs call it. A path with a comma in it is one if what is before it is not
    lines of a file.
    """
    rows: dict[tuple[str, int], None] = {}
    path, pending = "", ""
    for part in text.split(","):
        pending = f"{pending},{part}" if pending else part
        match = _LINES.fullmatch(pending)
        if match is None or not (match["path"] or path):
            continue
        path = match["path"] or path
        for row in _rows(pending, match):
            rows[whole(path), row] = None
            if len(rows) > MOST_NAMED:
                raise InvalidQueryError(
                    f"more than {MOST_NAMED:,} rows are named: write them into a row set (`lineage rows`)"
                )
        pending = ""
    if pending or not rows:
        raise InvalidQueryError(
            f"{text[:200]!r} names no rows: give the file of a row set (`lineage rows ... --json`), or "
            "FILE:LINE,FILE:LINE-LINE"
        )
    return list(rows)


def _rows(text: str, match: re.Match[str]) -> range:
    first = int(match["first"])
    last = int(match["last"] or first)
    if first < 1:
        raise InvalidQueryError(f"{text}: lines count from 1")
    if last < first:
        raise InvalidQueryError(f"{text}: the last line is before the first one")
    return range(first - 1, last)


def replacement(text: str, whole: Callable[[str], str] = str) -> tuple[str, int, str]:
    """(path, row, new text) of `sales.csv:4=Graz,19.90`. Raises InvalidQueryError."""
    match = _REPLACEMENT.fullmatch(text)
    if match is None:
        raise InvalidQueryError(f"{text[:200]!r} replaces no row: write FILE:LINE=TEXT")
    if int(match["line"]) < 1:
        raise InvalidQueryError(f"{match['path']}:{match['line']}: lines count from 1")
    if any(end in match["text"] for end in "\r\n"):
        raise InvalidQueryError(f"{match['path']}:{match['line']}: a line cannot be replaced by several")
    return whole(match["path"]), int(match["line"]) - 1, match["text"]
