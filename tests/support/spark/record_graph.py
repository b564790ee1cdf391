"""The stupid way to see where rows end: every record is an object that knows what it was made of.

A step takes records and gives others; of a record that is in nothing that a step gave, the step is an end.
Knows nothing of Spark, partitions or positions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Item:
    value: Any
    parents: Sequence[Item] = ()
    children: list[Item] = field(default_factory=list)


Made = tuple[Any, Sequence[Item]]
"""(value, the records that it is made of)."""


class RecordGraph:
    """Of one program."""

    def __init__(self) -> None:
        self._ended: dict[Item, set[int]] = defaultdict(set)
        self._before: dict[int, set[int]] = {}  # step -> steps whose records it takes, and those before

    def step(
        self, number: int, before: Collection[int], taken: Iterable[Item], made: Iterable[Made]
    ) -> list[Item]:
        """What step `number` gives; `before` are the steps whose records it has taken."""
        items = [Item(value, tuple(parents)) for value, parents in made]
        kept = {parent for item in items for parent in item.parents}
        for item in items:
            for parent in dict.fromkeys(item.parents):
                parent.children.append(item)
        for item in taken:
            if item not in kept:
                self._ended[item].add(number)
        self._before[number] = {*before, *(step for one in before for step in self._before.get(one, ()))}
        return items

    def ends(self, row: Item, last: int, outputs: Collection[Item]) -> set[int] | None:
        """The steps at which a row ended on its way to what step `last` gave; None if it is in there."""
        on_way = {last, *self._before.get(last, ())}
        seen, stack = {row}, [row]
        ends: set[int] = set()
        while stack:
            item = stack.pop()
            ends |= self._ended.get(item, set()) & on_way
            for child in item.children:
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
        return None if seen.intersection(outputs) else ends
