"""SQL the stupid way: relational operators over lists of rows, each with the input rows that it comes from.

Follows the design's table of what a source of a row is, and SQL where Python differs: null equals nothing but
groups with itself, NaN equals NaN, -0.0 equals 0.0. Knows nothing of Spark, plans or positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Sources = frozenset[tuple[str, int]]
"""(file name, row number) of each."""
Data = list[tuple[Any, Sources]]

NOTHING: Sources = frozenset()


def alike(value: Any) -> Any:
    """Equal for values that SQL puts into one group."""
    if isinstance(value, tuple):
        return tuple(alike(item) for item in value)
    if isinstance(value, float):
        return ("NaN",) if value != value else value + 0.0
    return value


def equal(one: Any, other: Any) -> bool:
    """As `=` in a condition: null equals nothing."""
    return one is not None and other is not None and alike(one) == alike(other)


def all_of(rows: Iterable[tuple[Any, Sources]]) -> Sources:
    return frozenset().union(*(sources for _, sources in rows))


def select(data: Data, function: Callable[[Any], Any]) -> Data:
    return [(function(row), sources) for row, sources in data]


def where(data: Data, condition: Callable[[Any], bool | None]) -> Data:
    return [(row, sources) for row, sources in data if condition(row)]


def explode(data: Data, function: Callable[[Any], Iterable[Any]]) -> Data:
    return [(element, sources) for row, sources in data for element in function(row)]


def groups(data: Data, key: Callable[[Any], Any]) -> Iterator[tuple[Any, Data]]:
    """(key of the first row, rows) of each group."""
    grouped: dict[Any, tuple[Any, Data]] = {}
    for row, sources in data:
        grouped.setdefault(alike(key(row)), (key(row), []))[1].append((row, sources))
    yield from grouped.values()


def aggregate(
    data: Data, key: Callable[[Any], tuple[Any, ...]], function: Callable[[list[Any]], Any]
) -> Data:
    """key(row) is a tuple, function(rows of the group) too: their sum is the row."""
    return [
        (positive_zeros(of_group) + function([row for row, _ in rows]), all_of(rows))
        for of_group, rows in groups(data, key)
    ]


def positive_zeros(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """What Spark shows of the key of a group."""
    return tuple(value + 0.0 if isinstance(value, float) else value for value in key)


def aggregate_all(data: Data, function: Callable[[list[Any]], tuple[Any, ...]]) -> Data:
    """One row, of no rows too."""
    return [(function([row for row, _ in data]), all_of(data))]


def distinct(data: Data) -> Data:
    return aggregate(data, lambda row: tuple(row), lambda _: ())


def grouping_sets(
    data: Data,
    key: Callable[[Any], tuple[Any, ...]],
    sets: Iterable[tuple[int, ...]],
    function: Callable[[list[Any]], Any],
) -> Data:
    """Keys outside of a set are null. An empty set is a group of all rows, if there are any."""

    def of(kept: tuple[int, ...]) -> Callable[[Any], tuple[Any, ...]]:
        return lambda row: tuple(value if at in kept else None for at, value in enumerate(key(row)))

    return [group for kept in sets for group in aggregate(data, of(kept), function)]


def join(
    left: Data,
    right: Data,
    on: Callable[[Any, Any], bool | None] = lambda _one, _other: True,
    *,
    keep_left: bool = False,
    keep_right: bool = False,
) -> Data:
    """Pairs (left row, right row); None stands where a kept row has no match."""
    pairs = [
        (i, j) for i, (one, _) in enumerate(left) for j, (other, _) in enumerate(right) if on(one, other)
    ]
    joined: Data = [((left[i][0], right[j][0]), left[i][1] | right[j][1]) for i, j in pairs]
    if keep_left:
        met = {i for i, _ in pairs}
        joined += [((row, None), sources) for i, (row, sources) in enumerate(left) if i not in met]
    if keep_right:
        met = {j for _, j in pairs}
        joined += [((None, row), sources) for j, (row, sources) in enumerate(right) if j not in met]
    return joined


def semi(left: Data, right: Data, on: Callable[[Any, Any], bool | None]) -> Data:
    """Rows that have matches, with their matches."""
    return [(row, sources) for row, sources in matched(left, right, on) if any(on(row, r) for r, _ in right)]


def matched(left: Data, right: Data, on: Callable[[Any, Any], bool | None]) -> Data:
    """All rows of the left, each with its matches, if any."""
    return [
        (row, sources | all_of((other, of_it) for other, of_it in right if on(row, other)))
        for row, sources in left
    ]


def anti(left: Data, right: Data, on: Callable[[Any, Any], bool | None]) -> Data:
    return [(row, sources) for row, sources in left if not any(on(row, other) for other, _ in right)]


def same(one: Any, other: Any) -> bool:
    """As INTERSECT and EXCEPT compare: null is like null."""
    return bool(alike(one) == alike(other))


def intersect(left: Data, right: Data) -> Data:
    return distinct(semi(left, right, same))


def except_(left: Data, right: Data) -> Data:
    return distinct(anti(left, right, same))


def copies(
    data: Data, other: Data, count: Callable[[int, int], int]
) -> Iterator[tuple[Any, Data, Data, int]]:
    """(row, equal ones here, equal ones there, how often it comes out) of each different row."""
    for row, rows in groups(data, lambda row: row):
        matches = where(other, lambda other_row, row=row: same(other_row, row))
        yield row, rows, matches, count(len(rows), len(matches))


def intersect_all(left: Data, right: Data) -> Data:
    """Equal rows cannot be told apart: each copy comes from all of them."""
    return [
        (row, all_of(rows) | all_of(matches))
        for row, rows, matches, times in copies(left, right, min)
        for _ in range(times)
    ]


def except_all(left: Data, right: Data) -> Data:
    return [
        (row, all_of(rows))
        for row, rows, _, times in copies(
            left, right, lambda left_times, right_times: left_times - right_times
        )
        for _ in range(times)
    ]


def window(
    data: Data,
    partition: Callable[[Any], Any],
    function: Callable[[Any, list[Any]], Any],
    frame: Callable[[Any, Any], bool] = lambda _row, _other: True,
) -> Data:
    """function(row, rows of its frame), from these; frame(row, other): other is in the frame of row."""
    result: Data = []
    for _, rows in groups(data, partition):
        for row, _ in rows:
            framed = where(rows, lambda other, row=row: frame(row, other))
            result.append((function(row, [framed_row for framed_row, _ in framed]), all_of(framed)))
    return result


def total(values: Iterable[int | None]) -> int | None:
    """As sum(): nulls do not count, and nothing has no sum."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None


def count_distinct(values: Iterable[Any]) -> int:
    return len({alike(value) for value in values if value is not None})
