"""Inputs of jobs on graphs: lines `ONE<TAB>OTHER`, an edge each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count

LINKS = 3
#: A node links to earlier ones, more often to the first: number * share ** PREFERENCE.
PREFERENCE = 3
#: One node of so many begins a component of its own.
COMPONENT = 1_000


def edges(seed: int) -> Iterator[str]:
    """Endless edges, three a node, of a graph with a few hubs and many nodes of few edges."""
    share = random.Random(seed).random
    first = 0
    for number in count(1):
        if number % COMPONENT == 0:
            first = number
            continue
        for _ in range(LINKS):
            yield f"n{number}\tn{first + int((number - first) * share() ** PREFERENCE)}"
