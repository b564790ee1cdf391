"""Walks a trace over a snapshot: all records that a start reaches, node by node, and the flows between them.

Nodes are numbered so that an operation has a larger number than what it reads; walking in that order visits
each node once, with its whole set. Steps of an operation are passed through and not listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Timer
from time import monotonic

import duckdb
import numpy as np

from lineage_service.answers import Direction, TimeBudgetError
from lineage_service.tracing.snapshot import Snapshot
from lineage_service.tracing.steps import Integers, Walk

_ORIGIN = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class Position:
    """A record as it is shown: where it stands, and a run that holds it."""

    node: int
    split: int
    offset: int
    run: int


@dataclass(frozen=True, slots=True)
class Reached:
    """What a trace found at one public node; `positions` are one page in (split, offset) order."""

    node: int
    total: int
    positions: tuple[Position, ...]


@dataclass(frozen=True, slots=True)
class Walked:
    reached: tuple[Reached, ...]
    flows: tuple[tuple[Position, Position], ...]  # (input, output)
    is_exact: bool


@contextmanager
def time_budget(cursor: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[Callable[[], None]]:
    """Interrupt `cursor` after `seconds`; TimeBudgetError instead of DuckDB's own.

    An interrupt between two queries is lost, and what is done there may take long too: what is yielded is to
    be called there, and raises the same.
    """
    timer = Timer(seconds, cursor.interrupt)
    timer.daemon = True
    timer.start()
    deadline = monotonic() + seconds
    spent = TimeBudgetError(
        f"the question took longer than its {seconds:g} s; ask for fewer steps with depth= or to="
    )

    def check() -> None:
        if monotonic() >= deadline:
            raise spent

    try:
        yield check
    except duckdb.InterruptException:
        raise spent from None
    finally:
        timer.cancel()


def walk(
    snapshot: Snapshot,
    cursor: duckdb.DuckDBPyConnection,
    direction: Direction,
    node: int,
    start: list[tuple[int, int]],
    *,
    limit: int,
    skip: int = 0,
    depth: int | None,
    to: int | None,
    check: Callable[[], None],
) -> Walked:
    """Everything that the records `start` (run, position) of `node` reach in `direction`.

    `check` is called now and then, and ends the walk by what it raises.
    """
    main = Walk(snapshot, cursor, check=check)
    for run, position in start:
        main.add(node, run, _ORIGIN, np.array([position], np.int64))
    hops = {node: 0}
    allowed = _on_the_way(snapshot, direction, node, to)
    order: list[int] = []
    while pending := (main.nodes() & allowed) - set(order):
        here = max(pending) if direction == "backward" else min(pending)
        order.append(here)
        if here != to and (depth is None or hops[here] < depth or not _is_public(snapshot, here)):
            _step(main, direction, here)
        for found in main.nodes():
            hops.setdefault(found, hops[here] + (1 if _is_public(snapshot, found) else 0))
    reached = [
        _reached(snapshot, main, each, skip, limit)
        for each in order
        if _is_public(snapshot, each) or each == node
    ]
    listed = [each for each in reached if each.total]
    flows = _flows(snapshot, cursor, listed, check)
    return Walked(tuple(listed), tuple(flows), main.is_exact)


def _is_public(snapshot: Snapshot, node: int) -> bool:
    return snapshot.topology.nodes[node].is_public


def _step(main: Walk, direction: Direction, node: int) -> None:
    if direction == "backward":
        main.backward(node)
    else:
        main.forward(node)


def _on_the_way(snapshot: Snapshot, direction: Direction, node: int, to: int | None) -> set[int]:
    """The nodes between `node` and `to`, or all nodes."""
    topology = snapshot.topology
    if to is None:
        return set(topology.nodes)

    def closure(begin: int, is_backward: bool) -> set[int]:
        seen, stack = {begin}, [begin]
        while stack:
            at = stack.pop()
            nearby = topology.nodes[at].parents if is_backward else topology.children.get(at, ())
            for each in nearby:
                if each not in seen and each in topology.nodes:
                    seen.add(each)
                    stack.append(each)
        return seen

    is_backward = direction == "backward"
    return closure(node, is_backward) & closure(to, not is_backward)


def _reached(snapshot: Snapshot, main: Walk, node: int, skip: int, limit: int) -> Reached:
    """One record may be held by several runs (two actions over one RDD): it counts once."""
    by_split: dict[int, dict[int, Integers]] = defaultdict(dict)
    for run, (_, positions) in main.at(node).items():
        by_split[snapshot.topology.runs[run].split][run] = positions
    total = 0
    first: list[Position] = []
    for split in sorted(by_split):
        held = by_split[split]
        distinct = (
            np.unique(np.concatenate(list(held.values()))) if len(held) > 1 else next(iter(held.values()))
        )
        begin = max(skip - total, 0)
        total += len(distinct)
        for offset in distinct[begin : begin + limit - len(first)].tolist():
            run = next(run for run, positions in sorted(held.items()) if _holds(positions, offset))
            first.append(Position(node, split, offset, run))
    return Reached(node, total, tuple(first))


def _holds(ascending: Integers, offset: int) -> bool:
    at = int(np.searchsorted(ascending, offset))
    return at < len(ascending) and int(ascending[at]) == offset


def _flows(
    snapshot: Snapshot,
    cursor: duckdb.DuckDBPyConnection,
    reached: list[Reached],
    check: Callable[[], None],
) -> list[tuple[Position, Position]]:
    """The flows between listed records: forward from each to the next public nodes.

    Always forward, whichever way the trace went: a group may have a million inputs, while a record mostly
    goes into few groups. So this stays short, however long the trace was.
    """
    positions = [position for each in reached for position in each.positions]
    by_place = {(each.node, each.split, each.offset): index for index, each in enumerate(positions)}
    pairs: set[tuple[int, int]] = set()
    for each in reached:
        check()
        side = beside(snapshot, cursor, each.node, _started_beside(snapshot, each, by_place))
        for node in side.nodes() - {each.node}:
            for run, (origins, offsets) in side.at(node).items():
                split = snapshot.topology.runs[run].split
                for origin, offset in zip(origins.tolist(), offsets.tolist(), strict=True):
                    other = by_place.get((node, split, offset))
                    if other is not None:
                        pairs.add((origin, other))
    return [(positions[source], positions[target]) for source, target in sorted(pairs)]


def beside(
    snapshot: Snapshot,
    cursor: duckdb.DuckDBPyConnection,
    node: int,
    start: Iterable[tuple[int, Integers, Integers]],
    most: int | None = None,
) -> Walk:
    """Forward from (run, origins, positions) of `node` to the next public nodes, and no further.

    Raises TooManyError.
    """
    side = Walk(snapshot, cursor, most)
    for run, origins, offsets in start:
        side.add(node, run, origins, offsets)
    done: set[int] = set()
    while pending := side.nodes() - done:
        here = min(pending)
        done.add(here)
        if here == node or not _is_public(snapshot, here):
            side.forward(here)
    return side


def _started_beside(
    snapshot: Snapshot, reached: Reached, by_place: dict[tuple[int, int, int], int]
) -> Iterator[tuple[int, Integers, Integers]]:
    """The listed records of one node, in every run that holds them, each its own origin."""
    by_split: dict[int, list[Position]] = defaultdict(list)
    for position in reached.positions:
        by_split[position.split].append(position)
    for split, found in by_split.items():
        origins = np.array([by_place[each.node, each.split, each.offset] for each in found], np.int64)
        offsets = np.array([each.offset for each in found], np.int64)
        for run in snapshot.topology.runs_at(reached.node, split):
            if run.number in snapshot.effective:
                yield run.number, origins, offsets
