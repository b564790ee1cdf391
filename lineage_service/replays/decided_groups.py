"""The rows that decided groups which a replay has too, though it has not these rows.

Such a group may be another one than it was: the smallest of fewer values, say. Nothing in the lineage of the
replay shows it, as the group has the same key. What it decides may be far from it: which records a
subtraction lets pass, for example. So the groups nearest to the first difference come first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from lineage_service.errors import LineageError
from lineage_service.queries import Queries, RowSetQuery, StartQuery
from lineage_service.replays.joined_rows import joined, rows_of
from lineage_service.replays.specification import Source, row_set_json
from lineage_service.replays.ways import Astray, RecordId, Ways

__all__ = ["Decided", "DecidedGroups"]

#: Operations whose groups are looked at, and groups of each.
_MOST_NODES, _MOST_GROUPS = 60, 200
#: Rows that are added without regard to how many there are.
_FEW = 16


@dataclass(frozen=True, slots=True)
class Decided:
    """The sources with `count` more rows, which decided groups of one operation."""

    node: int
    name: str
    count: int
    sources: tuple[Source, ...]


class DecidedGroups:
    """Of one application, `original`."""

    def __init__(self, queries: Queries, original: str) -> None:
        self._queries, self._original = queries, original

    def of(
        self, original: Ways, replayed: Ways, first: Astray | None, sources: Sequence[Source]
    ) -> Decided | None:
        """Those of the last operation before `first` whose groups have some; None where none have.

        `first` is a record at the first difference; None: all groups of the replay are looked at.
        """
        keys: dict[int, set[str]] = defaultdict(set)
        for record in _related(original, replayed, first):
            key = replayed.steps[record].key
            if key is not None and (first is None or record[0] < first.at):
                keys[record[0]].add(key)
        for node in sorted(keys, reverse=True)[:_MOST_NODES]:
            extended = self._extended(node, sorted(keys[node])[:_MOST_GROUPS], sources)
            count = len(rows_of(extended)) - len(rows_of(sources))
            if count:
                name, _ = replayed.nodes.get(node, ("an operation", ""))
                return Decided(node, name, count, tuple(extended))
        return None

    def _extended(self, node: int, keys: Sequence[str], sources: Sequence[Source]) -> list[Source]:
        """With what decided these groups; of many rows those of the groups that took the fewest."""
        before = rows_of(sources)
        budget = max(_FEW, len(before))
        together = self._decided(node, keys)
        if together is not None and len(rows_of(together) - before) <= budget:
            return joined(sources, together)
        of_groups = [of_group for key in keys if (of_group := self._decided(node, [key])) is not None]
        extended = list(sources)
        for of_group in sorted(of_groups, key=lambda of_group: len(rows_of(of_group) - before)):
            has_new = rows_of(extended) != before
            if has_new and len(rows_of(extended) | rows_of(of_group)) > len(before) + budget:
                break
            extended = joined(extended, of_group)
        return extended

    def _decided(self, node: int, keys: Iterable[str]) -> list[Source] | None:
        """None where the original has no such group, or what decided it was not found."""
        starts = tuple(StartQuery(node=str(node), key=key) for key in keys)
        try:
            row_set = self._queries.row_set(self._original, RowSetQuery(starts=starts, concise=True))
        except LineageError:
            return None
        sources: list[Source] = row_set_json(row_set)["sources"]
        return sources


def _related(original: Ways, replayed: Ways, first: Astray | None) -> Collection[RecordId]:
    """The records of a replay that were made of rows which the record at the first difference was made of."""
    if first is None:
        return replayed.steps.keys()
    origin = original.origin(first.record)
    same = [record for record in replayed.steps if replayed.origin(record) == origin]
    return replayed.behind(record for record in replayed.before(same) if not replayed.parents.get(record))
