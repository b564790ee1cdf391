"""Where traces begin, as parameters of as few queries of the API as possible."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["Start", "queries_of", "start_of"]

#: Of one query: its address is of that many bytes at most.
_STARTS_AT_ONCE, _BYTES_AT_ONCE = 1_000, 50_000

Start = tuple[tuple[str, Any], ...]
"""Where a trace begins, in the API's parameters."""


def start_of(**parameters: Any) -> Start:
    return tuple(sorted(parameters.items()))


def queries_of(starts: Iterable[Start]) -> Iterator[dict[str, Any]]:
    """As parameters of as few queries as possible. A key may stand for many records, so it has its own."""
    batch: list[dict[str, Any]] = []
    size = 0
    for start in starts:
        one = dict(start)
        if "key" in one:
            yield one
            continue
        if "offset" in one:
            number = str(one["node"]).rpartition("#")[2]
            one = {"record": f"{number}#{one['partition']}#{one['offset']}"}
        more = len(urllib.parse.quote(json.dumps(one, separators=(",", ":")))) + len("%2C")
        if batch and (len(batch) == _STARTS_AT_ONCE or size + more > _BYTES_AT_ONCE):
            yield _query_of(batch)
            batch, size = [], 0
        batch.append(one)
        size += more
    if batch:
        yield _query_of(batch)


def _query_of(starts: list[dict[str, Any]]) -> dict[str, Any]:
    if len(starts) == 1:
        return starts[0]
    return {"starts": json.dumps(starts, separators=(",", ":"))}
