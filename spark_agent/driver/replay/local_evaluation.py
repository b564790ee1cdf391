"""What a saved row becomes without each of the input rows that it was made of, computed in the driver.

Follows the operations of the graph from the sink up to one text source: maps, filters and aggregations by
key, with the functions of the user's. The first aggregation is folded (`leave_one_out`); what is behind it is
computed again for each row. Promises an answer only where all rows together give the very row, and says why
there is none else: the caller then runs the job.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from spark_agent.contract.half_groups import Estimate, NoEstimateError, estimate
from spark_agent.contract.row_alignment import are_close, form
from spark_agent.contract.row_counterparts import Counterpart, counterpart
from spark_agent.driver.nodes import Node
from spark_agent.driver.replay.leave_one_out import (
    NOTHING,
    Merger,
    NotAssociativeError,
    are_alike,
    own_copy,
    together,
    without_one,
)
from spark_agent.worker.operators.adapters import Order
from spark_agent.worker.operators.aggregate import Combine, CombineLists, Group, Merge
from spark_agent.worker.operators.narrow import Filter, FlatMap, Map
from spark_agent.worker.operators.save import TextSink
from spark_agent.worker.operators.shuffle import ShuffleWrite

__all__ = [
    "LargeGroupError",
    "Merger",
    "NotLocalError",
    "StatefulFunctionError",
    "estimated_influence",
    "influence",
    "influence_of",
    "operations_before",
]

#: Calls of the user's functions behind the first aggregation, and records of groups that are copied.
MOST_CALLS = 3_000_000
#: Rows of one group whose function takes all its values at once.
MOST_LISTED = 2_000

Function = Callable[[int, Any], Iterable[Any]]


class NotLocalError(Exception):
    """The row cannot be computed here. The text says why."""


class LargeGroupError(NotLocalError):
    """A group has too many values for a function that takes them at once."""


class StatefulFunctionError(NotLocalError):
    """A function gives something else when it is called again: what it gives may depend on other rows."""


class Aggregation(NamedTuple):
    """An operation by key; `is_of_lists`: it is groupByKey."""

    merger: Merger
    is_of_lists: bool


Step = Function | Aggregation


def influence_of(
    sink: Node, functions: Mapping[int, Any], sources: Iterable[Mapping[str, Any]], text: str
) -> dict[str, Any]:
    """For the sandbox: the source's number and what the row is without each of its rows, or why not."""
    try:
        source, steps = operations_before(sink, functions)
        lines = next((entry.get("texts") for entry in sources if entry["node"] == source.number), None)
        if lines is None:
            raise NotLocalError(f"the lines of {source.name} are not in the spec")
        rows = [line for split in sorted(lines, key=int) for line in lines[split]]
        try:
            return {"node": source.number, "without": influence(steps, rows, text)}
        except LargeGroupError:
            halves = estimated_influence(steps, rows, text)
            return {"node": source.number, "without": halves.without, "estimated": halves.changes}
    except NotLocalError as reason:
        return {"why": str(reason), "others": isinstance(reason, StatefulFunctionError)}
    except Exception as error:  # noqa: BLE001 - a function of the user's, which may need a worker
        return {"why": f"a function of the job raised {type(error).__name__}: {error}"}


def operations_before(sink: Node, functions: Mapping[int, Any]) -> tuple[Node, list[Step]]:
    """The text source of a sink, and what is done with its records. Raises NotLocalError."""
    steps: list[Step] = []
    node = sink
    while node.kind != "source":
        if len(node.parents) != 1:
            raise NotLocalError(f"{node.name} has several inputs, or is not followed")
        function = functions.get(node.number)
        if isinstance(function, Merge):
            pass  # its map side says all of it
        elif isinstance(function, Combine):
            merger = Merger(*(getattr(function.functions, name) for name in Merger._fields))
            steps.append(Aggregation(merger, isinstance(function, CombineLists)))
        elif isinstance(function, (Map, FlatMap, Filter)):
            steps.append(function)
        elif not (node.is_shuffle or isinstance(function, (Order, ShuffleWrite, TextSink, Group))):
            raise NotLocalError(f"{node.name} is none of map, flatMap, filter and aggregations by key")
        node = node.parents[0]
    return node, steps[::-1]


def influence(steps: Sequence[Step], rows: Sequence[str], text: str) -> list[str | None]:
    """What the saved row `text` is without each of the rows; None where it is gone. Raises NotLocalError."""
    narrow, rest = _parted(steps)
    records = _records(narrow, rows)
    if rest is None:
        return _of_single_rows(records, text)
    aggregation, behind = rest[0], rest[1:]
    assert isinstance(aggregation, Aggregation)
    parts: dict[Any, dict[int, list[Any]]] = defaultdict(dict)
    for number, of_row in enumerate(records):
        for key, value in of_row:
            parts[key].setdefault(number, []).append(value)
    try:
        groups = {key: _Group(aggregation, of_key) for key, of_key in parts.items()}
    except NotAssociativeError:
        raise NotLocalError("a function of an aggregation is not associative") from None
    return _Behind(behind, groups, text).without_each(len(rows))


def estimated_influence(steps: Sequence[Step], rows: Sequence[str], text: str) -> Estimate:
    """The same by random halves of the rows, where a group is too large. Raises NotLocalError."""
    narrow, rest = _parted(steps)
    assert rest is not None
    records = _records(narrow, rows)

    def groups(numbers: Iterable[int]) -> dict[Any, Any]:
        return dict(
            _aggregated(rest[0], {None: [record for number in numbers for record in records[number]]})
        )

    whole = groups(range(len(rows)))
    saved = _saved(rest[1:], whole.items())
    key, at = _place_of(text, saved)
    _check_all_in(rest[1:], whole, key)
    before = [_shown(record) for record in saved[key]]

    def row(numbers: Sequence[int]) -> Counterpart:
        of_key = _saved(rest[1:], groups(numbers).items()).get(key, ())
        return _row_among(before, at, [_shown(record) for record in of_key])

    try:
        return estimate(row, len(rows), text)
    except NoEstimateError as reason:
        raise NotLocalError(str(reason)) from None


def _parted(steps: Sequence[Step]) -> tuple[list[Function], list[Step] | None]:
    """What is before the first aggregation, and from it on."""
    narrow: list[Function] = []
    for at, step in enumerate(steps):
        if isinstance(step, Aggregation):
            return narrow, list(steps[at:])
        narrow.append(step)
    return narrow, None


def _narrow(functions: Sequence[Function], records: Iterable[Any]) -> list[Any]:
    for function in functions:
        records = function(0, iter(records))
    return list(records)


def _records(functions: Sequence[Function], rows: Sequence[str]) -> list[list[Any]]:
    """What each row gives. Raises StatefulFunctionError."""
    records = [_narrow(functions, [row]) for row in rows]
    _check_alike(records[::-1], [_narrow(functions, [row]) for row in reversed(rows)])
    return records


def _check_alike(one: Any, other: Any) -> None:
    if not are_alike(one, other):
        raise StatefulFunctionError("a function of the job gives something else when it is called again")


def _of_single_rows(records: Sequence[Sequence[Any]], text: str) -> list[str | None]:
    """Each saved row is made of one row."""
    makers = [any(_is_text(record, text) for record in of_row) for of_row in records]
    if sum(makers) != 1:
        raise NotLocalError("the row does not come out of its rows alone, or more than once")
    return [None if is_maker else text for is_maker in makers]


class _Group:
    """A group of the first aggregation: what it is, and what it is without each row that is in it."""

    def __init__(self, aggregation: Aggregation, parts: Mapping[int, Sequence[Any]]) -> None:
        flat = [value for part in parts.values() for value in part]
        if aggregation.is_of_lists:
            if len(flat) > MOST_LISTED:
                raise LargeGroupError(
                    f"a group has more than {MOST_LISTED:,} values, which are taken at once"
                )
            self.whole: Any = flat
            self.without: dict[int, Any] = {number: _rest(parts, number) or NOTHING for number in parts}
            return
        self.whole = together(aggregation.merger, flat)
        rests = without_one(aggregation.merger, list(parts.values()))
        self.without = dict(zip(parts, rests, strict=True))


def _rest(parts: Mapping[int, Sequence[Any]], number: int) -> list[Any]:
    """The values of all rows but one."""
    return [value for other, part in parts.items() if other != number for value in part]


class _Behind:
    """What comes behind the first aggregation."""

    def __init__(self, steps: Sequence[Step], groups: Mapping[Any, _Group], text: str) -> None:
        self._steps, self._groups, self._text = steps, groups, text
        self._is_narrow = not any(isinstance(step, Aggregation) for step in steps)
        rows = self._saved({})
        _check_alike(rows, self._saved({}))
        self._key, self._at = _place_of(text, rows)
        self._before = [_shown(record) for record in rows[self._key]]
        _check_all_in(steps, {key: group.whole for key, group in groups.items()}, self._key)

    def without_each(self, count: int) -> list[str | None]:
        touched: dict[int, dict[Any, Any]] = defaultdict(dict)
        for key, group in self._groups.items():
            if not self._is_narrow or key == self._key:
                for number, rest in group.without.items():
                    touched[number][key] = rest
        calls = len(touched) * (1 if self._is_narrow else len(self._groups)) * max(len(self._steps), 1)
        if calls > MOST_CALLS:
            raise NotLocalError(f"it takes more than {MOST_CALLS:,} calls behind the first aggregation")
        return [
            self._row(self._saved(touched[number])) if number in touched else self._text
            for number in range(count)
        ]

    def _row(self, rows: Mapping[Any, Sequence[Any]]) -> str | None:
        row = _row_among(self._before, self._at, [_shown(record) for record in rows.get(self._key, ())])
        if not row.is_sure:
            raise NotLocalError("its group gives several rows, and which one stands for it is not known")
        return self._text if row.text == self._before[self._at] else row.text

    def _saved(self, changed: Mapping[Any, Any]) -> dict[Any, list[Any]]:
        """The saved records by the key of their last aggregation, with some groups changed."""
        groups = {key: changed.get(key, group.whole) for key, group in self._groups.items()}
        if changed and self._is_narrow:
            groups = {key: groups[key] for key in changed}
        pairs = [(key, value) for key, value in groups.items() if value is not NOTHING]
        return _saved(self._steps, pairs)


def _saved(steps: Sequence[Step], pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """What comes of aggregated groups, by the key of the last aggregation."""
    narrow, rest = _parted(steps)
    by_key = {key: _narrow(narrow, [(key, own_copy(value))]) for key, value in pairs}
    if rest is None:
        return by_key
    return _saved(rest[1:], _aggregated(rest[0], by_key))


def _aggregated(aggregation: Step, by_key: Mapping[Any, Sequence[Any]]) -> Iterator[tuple[Any, Any]]:
    """The groups of an aggregation of the records that other groups give."""
    assert isinstance(aggregation, Aggregation)
    groups: dict[Any, list[Any]] = defaultdict(list)
    for records in by_key.values():
        for key, value in records:
            groups[key].append(value)
    for key, values in groups.items():
        yield key, values if aggregation.is_of_lists else together(aggregation.merger, values)


def _row_among(before: Sequence[str], at: int, now: Sequence[str]) -> Counterpart:
    """What has become of one of the rows of a group."""
    if len(now) == 1 == len(before) or _are_told_apart(before, now):
        return Counterpart(now[at], is_sure=True)
    return counterpart(before[at], before, now)


def _are_told_apart(before: Sequence[str], now: Sequence[str]) -> bool:
    """Have both the same rows but for their numbers, each in a form of its own?"""
    if len(before) != len(now):
        return False
    forms = list(map(form, before))
    return len(set(forms)) == len(forms) and forms == list(map(form, now))


def _place_of(text: str, saved: Mapping[Any, Sequence[Any]]) -> tuple[Any, int]:
    """The key and the place of a saved record. Raises NotLocalError unless there is one."""
    places = [
        (key, at) for key, of_key in saved.items() for at, one in enumerate(of_key) if _is_text(one, text)
    ]
    if len(places) != 1:
        raise NotLocalError("the row does not come out of its rows alone, or more than once")
    return places[0]


def _check_all_in(steps: Sequence[Step], groups: Mapping[Any, Any], last: Any) -> None:
    """Raises NotLocalError."""
    if not _are_all_in(steps, groups, last):
        raise NotLocalError(
            "its rows are also in groups that are not in it, and whose other rows are not here"
        )


def _are_all_in(steps: Sequence[Step], groups: Mapping[Any, Any], last: Any) -> bool:
    """Do aggregated groups all go into the group `last` of the last aggregation?

    Of those that do, all rows are here. Another one may have more, and go there, too, without one of them.
    """
    narrow, rest = _parted(steps)
    if rest is None:
        return True
    by_key = {key: _narrow(narrow, [(key, own_copy(value))]) for key, value in groups.items()}
    if any(isinstance(step, Aggregation) for step in rest[1:]):
        return all(by_key.values()) and _are_all_in(rest[1:], dict(_aggregated(rest[0], by_key)), last)
    return all(any(key == last for key, _ in records) for records in by_key.values())


def _shown(record: Any) -> str:
    """As saveAsTextFile writes it."""
    return record.decode("utf-8", "replace") if isinstance(record, bytes) else str(record)


def _is_text(record: Any, text: str) -> bool:
    """Is it the row, but for numbers with fractions that were added in another order?"""
    return are_close(_shown(record), text)
