"""The records that are reached from some, by loops: for tests of what is asked of stored lineage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Record = TypeVar("Record", bound=Hashable)


class NoTexts:
    """Of rows whose texts are not known."""

    texts = None


def reached(
    parents: Mapping[Record, Sequence[Record]], starts: Iterable[Record], *, forward: bool
) -> set[Record]:
    """The starts with all that they were made of, or that was made of them. `parents` by record."""
    steps = parents
    if forward:
        children: dict[Record, list[Record]] = defaultdict(list)
        for record, made_of in parents.items():
            for parent in made_of:
                children[parent].append(record)
        steps = children
    seen = set(starts)
    pending = list(seen)
    while pending:
        for other in steps.get(pending.pop(), ()):
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return seen
