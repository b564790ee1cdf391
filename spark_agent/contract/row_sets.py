"""Row sets: which rows of which inputs of an application. `lineage rows` writes them, replays read them.

A source is a node of the application. Its rows are named twice: for people as rows of files, for the agent
as positions in partitions. Ranges `[first, count]` are in order and do not touch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spark_agent.contract.errors import ContractError
from spark_agent.contract.field_types import (
    Boolean,
    Integer,
    ListOf,
    Object,
    Text,
    TupleOf,
)
from spark_agent.contract.ids import APPLICATION_ID, APPLICATION_ID_RULE
from spark_agent.contract.limits import MAX_NUMBER, MAX_POSITION, MAX_TIME

__all__ = ["RANGES", "ROW_SET", "ROW_SOURCE", "count_rows", "decode_row_set", "ranges_of", "rows_in"]

_TEXT, _NODE, _POSITION = Text(), Integer(MAX_NUMBER), Integer(MAX_POSITION)
#: `[[first, count], ...]`.
RANGES = ListOf(TupleOf({"first": _POSITION, "count": Integer(MAX_POSITION, 1)}))

#: The rows of a file, counted from 0; `size` in bytes and `modified` in Unix milliseconds when it was read.
_FILE = Object(
    {"path": _TEXT, "rows": RANGES}, {"size": _POSITION | None, "modified": Integer(MAX_TIME) | None}
)
#: The positions of records in a partition of the source.
_SPLIT = Object({"split": _NODE, "positions": RANGES})

#: A source of the application. `whole`: all its rows are meant, and `why` says for which reason.
ROW_SOURCE = Object(
    {"node": _NODE, "name": _TEXT, "whole": Boolean()},
    {
        "call_site": _TEXT | None,
        "path": _TEXT | None,
        "why": _TEXT | None,
        "partitions": _NODE | None,
        "total": _POSITION | None,
        "files": ListOf(_FILE),
        "splits": ListOf(_SPLIT, ascending="split"),
    },
)
#: An output row that the rows were traced from.
_ASKED = Object(
    {"node": _NODE, "record_id": _TEXT},
    {"path": _TEXT | None, "row": _POSITION | None, "text": _TEXT | None, "key": _TEXT | None},
)
ROW_SET = Object(
    {
        "application": Text(APPLICATION_ID.pattern, APPLICATION_ID_RULE),
        "sources": ListOf(ROW_SOURCE),
        "asked": ListOf(_ASKED),
    },
    {"exact": Boolean(), "complete": Boolean(), "how": _TEXT | None},
)


def decode_row_set(text: str | bytes) -> dict[str, Any]:
    """The row set that a file holds. Raises ContractError, which names the field."""
    try:
        row_set = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ContractError(f"the row set is not JSON: {error}") from None
    ROW_SET.check(row_set)
    for source in row_set["sources"]:
        for part in (*source.get("files", ()), *source.get("splits", ())):
            _check_order(part.get("rows", part.get("positions")), source["node"])
    return dict(row_set)


def _check_order(ranges: list[list[int]], node: int) -> None:
    end = -1
    for first, count in ranges:
        if first <= end:
            raise ContractError(f"the ranges of source {node} are not in order at row {first}")
        end = first + count


def ranges_of(numbers: Iterable[int]) -> list[list[int]]:
    """Ranges `[first, count]` of numbers in any order, once or several times."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and ranges[-1][0] + ranges[-1][1] == number:
            ranges[-1][1] += 1
        else:
            ranges.append([number, 1])
    return ranges


def rows_in(ranges: Iterable[list[int]]) -> Iterator[int]:
    """The numbers that ranges hold, in order."""
    for first, count in ranges:
        yield from range(first, first + count)


def count_rows(source: Mapping[str, Any]) -> int:
    """How many rows of a source its positions name."""
    return sum(count for split in source.get("splits", ()) for _, count in split["positions"])
