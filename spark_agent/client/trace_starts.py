"""Where traces begin, as parameters of as few queries of the API as possible."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["PLAIN", "Start", "batches_of", "queries_of", "query_of", "query_of_all", "start_of"]

#: Of one query: its address is of that many bytes at most.
_STARTS_AT_ONCE, _BYTES_AT_ONCE = 4_000, 50_000
#: What is between numbers. It is not quoted in an address.
PLAIN = ","
#: What numbers the records of a place, and the same of several of them.
_NUMBERS = {"row": "rows", "offset": "offsets"}

Start = tuple[tuple[str, Any], ...]
"""Where a trace begins, in the API's parameters."""


class _Place(NamedTuple):
    """A file, or a partition of an operation, and the name of the numbers that its records have."""

    name: str
    parameters: Start

    def with_numbers(self, numbers: Sequence[int]) -> dict[str, Any]:
        return {**dict(self.parameters), _NUMBERS[self.name]: numbers}


def start_of(**parameters: Any) -> Start:
    return tuple(sorted(parameters.items()))


def queries_of(starts: Iterable[Start]) -> Iterator[dict[str, Any]]:
    """As parameters of as few queries as possible."""
    return map(query_of, batches_of(starts))


def batches_of(starts: Iterable[Start]) -> Iterator[list[Start]]:
    """The starts of each query: those of one place beside each other, in order.

    A key may stand for many records, so it has a query of its own.
    """
    by_place: dict[_Place, dict[int, Start]] = {}
    for start in starts:
        numbered = _numbered(start)
        if numbered is None:
            yield [start]
        else:
            place, number = numbered
            by_place.setdefault(place, {})[number] = start
    batch: list[Start] = []
    size = 0
    for place, at_place in by_place.items():
        of_place = len(urllib.parse.quote(_json([place.with_numbers(())]), safe=PLAIN))
        size += of_place
        for number in sorted(at_place):
            more = len(f"{number}{PLAIN}")
            if batch and (len(batch) == _STARTS_AT_ONCE or size + more > _BYTES_AT_ONCE):
                yield batch
                batch, size = [], of_place
            batch.append(at_place[number])
            size += more
    if batch:
        yield batch


def query_of(batch: Sequence[Start]) -> dict[str, Any]:
    """The query that begins at all of these."""
    if len(batch) == 1:
        return _one(batch[0])
    return {"starts": _json(_listed(batch))}


def query_of_all(starts: Iterable[Start]) -> dict[str, Any] | None:
    """One query that begins at all of these, keys among them; None where they are too many for an address."""
    batch = list(dict.fromkeys(starts))
    if len(batch) == 1:
        return _one(batch[0])
    keys = [dict(start) for start in batch if _numbered(start) is None]
    places = [start for start in batch if _numbered(start) is not None]
    query = {"starts": _json([*keys, *_listed(places)])}
    if len(urllib.parse.quote(query["starts"], safe=PLAIN)) > _BYTES_AT_ONCE:
        return None
    return query


def _listed(batch: Sequence[Start]) -> list[dict[str, Any]]:
    """Those of one place as one."""
    by_place: dict[_Place, list[tuple[int, Start]]] = {}
    for start in batch:
        numbered = _numbered(start)
        assert numbered is not None
        by_place.setdefault(numbered[0], []).append((numbered[1], start))
    return [
        _one(at_place[0][1]) if len(at_place) == 1 else place.with_numbers([number for number, _ in at_place])
        for place, at_place in by_place.items()
    ]


def _numbered(start: Start) -> tuple[_Place, int] | None:
    """Where it is, and which record there; None of a key."""
    one = dict(start)
    name = next((name for name in _NUMBERS if name in one), None)
    if name is None:
        return None
    number = one.pop(name)
    if "node" in one:
        one["node"] = _short(one["node"])
    return _Place(name, start_of(**one)), number


def _one(start: Start) -> dict[str, Any]:
    one = dict(start)
    if "offset" in one:
        return {"record": f"{_short(one['node'])}#{one['partition']}#{one['offset']}"}
    return one


def _short(node: object) -> str:
    """A node's number, of its id."""
    return str(node).rpartition("#")[2]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
