"""Inputs of jobs on graphs: lines `ONE<TAB>OTHER`, an edge each, and pairs that rank each other."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from itertools import count

LINKS = 3
#: Of a graph that grows as Barabasi and Albert say, each node links to so many earlier ones.
GROWN_LINKS = 5
#: A node links to earlier ones, more often to the first: number * share ** PREFERENCE.
PREFERENCE = 3
#: One node of so many begins a component of its own.
COMPONENT = 1_000
#: Who proposes, who is proposed to, and how many each of the first would take.
PROPOSERS, ACCEPTORS, CHOICES = 10_000, 15_000, 4


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


def grown_edges(seed: int) -> Iterator[str]:
    """Endless edges: a new node links to earlier ones, each as often as it has edges (Science 286, 1999)."""
    share = random.Random(seed).random
    ends = array("I", range(GROWN_LINKS))
    for number in count(GROWN_LINKS):
        chosen = dict.fromkeys(ends[int(len(ends) * share())] for _ in range(2 * GROWN_LINKS))
        for other in list(chosen)[:GROWN_LINKS]:
            ends.extend((number, other))
            yield f"n{number}\tn{other}"


def ranked_pairs(seed: int) -> Iterator[str]:
    """proposer, acceptor, the proposer's rank of it from 0, the acceptor's rank of the proposer."""
    rng = random.Random(seed)
    for proposer in range(PROPOSERS):
        for rank, acceptor in enumerate(rng.sample(range(ACCEPTORS), CHOICES)):
            yield f"p{proposer}\ta{acceptor}\t{rank}\t{rng.randrange(10**9)}"
