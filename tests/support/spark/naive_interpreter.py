"""The stupid second way: a pipeline over lists, each record with the set of input rows that it comes from.

Follows the design's table of what a source of a row is. Knows nothing of Spark, partitions or positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Sources = frozenset[tuple[str, int]]
Data = list[tuple[Any, Sources]]


def text_file(path: Path) -> Data:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(line, frozenset({(path.name, row)})) for row, line in enumerate(lines)]


def map_(data: Data, function: Callable[[Any], Any]) -> Data:
    return [(function(value), sources) for value, sources in data]


def filter_(data: Data, function: Callable[[Any], bool]) -> Data:
    return [(value, sources) for value, sources in data if function(value)]


def flat_map(data: Data, function: Callable[[Any], Iterable[Any]]) -> Data:
    return [(element, sources) for value, sources in data for element in function(value)]


def map_values(data: Data, function: Callable[[Any], Any]) -> Data:
    return [((key, function(value)), sources) for (key, value), sources in data]


def reduce_by_key(data: Data, function: Callable[[Any, Any], Any]) -> Data:
    groups: dict[Any, tuple[Any, Sources]] = {}
    for (key, value), sources in data:
        if key in groups:
            before, of_before = groups[key]
            groups[key] = (function(before, value), of_before | sources)
        else:
            groups[key] = (value, sources)
    return [((key, value), sources) for key, (value, sources) in groups.items()]


def distinct(data: Data) -> Data:
    groups = reduce_by_key([((value, None), sources) for value, sources in data], lambda x, _: x)
    return [(key, sources) for (key, _), sources in groups]


def join(left: Data, right: Data, *, keep_left: bool = False, keep_right: bool = False) -> Data:
    joined: Data = []
    for (key, value), sources in left:
        matches = [(other, of_other) for (its_key, other), of_other in right if its_key == key]
        joined += [((key, (value, other)), sources | of_other) for other, of_other in matches]
        if not matches and keep_left:
            joined.append(((key, (value, None)), sources))
    if keep_right:
        keys = [key for (key, _), _ in left]
        joined += [((key, (None, value)), of_it) for (key, value), of_it in right if key not in keys]
    return joined


def group(data: Data) -> dict[Any, tuple[list[Any], Sources]]:
    """Key -> (values in order, sources of all of them)."""
    groups: dict[Any, tuple[list[Any], Sources]] = {}
    for (key, value), sources in data:
        values, of_all = groups.get(key, ([], frozenset()))
        groups[key] = ([*values, value], of_all | sources)
    return groups


def group_by_key(data: Data) -> Data:
    return [((key, sorted(values)), sources) for key, (values, sources) in group(data).items()]


def cogroup(*sides: Data) -> Data:
    groups = [group(side) for side in sides]
    none: tuple[list[Any], Sources] = ([], frozenset())
    return [
        (
            (key, [sorted(side.get(key, none)[0]) for side in groups]),
            frozenset().union(*(side.get(key, none)[1] for side in groups)),
        )
        for key in dict.fromkeys(key for side in groups for key in side)
    ]


def subtract_by_key(left: Data, right: Data) -> Data:
    keys = {key for (key, _), _ in right}
    return [(kv, sources) for kv, sources in left if kv[0] not in keys]


def intersection(left: Data, right: Data) -> Data:
    sides = [dict(distinct(side)) for side in (left, right)]
    return [(value, sources | sides[1][value]) for value, sources in sides[0].items() if value in sides[1]]


def product(left: Data, right: Data) -> Data:
    return [((one, other), s | t) for one, s in left for other, t in right]
