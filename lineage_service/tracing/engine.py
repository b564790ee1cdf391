"""Walks a trace over a snapshot: all records that a start reaches, node by node, and the flows between them.

Nodes are numbered so that an operation has a larger number than what it reads; walking in that order visits
each node once, with its whole set. Steps of an operation are passed through and not listed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Timer

import duckdb

from lineage_service.answers import Direction, TimeBudgetError
from lineage_service.tracing.snapshot import Snapshot
from lineage_service.tracing.steps import Walk


@dataclass(frozen=True, slots=True)
class Position:
    """A record as it is shown: where it stands, and a run that holds it."""

    node: int
    split: int
    offset: int
    run: int


@dataclass(frozen=True, slots=True)
class Reached:
    """What a trace found at one public node; `positions` are the first in (split, offset) order."""

    node: int
    total: int
    positions: tuple[Position, ...]
    hops: int  # public operations between the start and here


@dataclass(frozen=True, slots=True)
class Walked:
    reached: tuple[Reached, ...]
    flows: tuple[tuple[Position, Position], ...]  # (input, output)
    is_exact: bool


@contextmanager
def time_budget(cursor: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[float]:
    """Interrupt `cursor` after `seconds`; TimeBudgetError instead of DuckDB's own."""
    timer = Timer(seconds, cursor.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield time.monotonic() + seconds
    except duckdb.InterruptException:
        raise TimeBudgetError(
            f"the question took longer than its {seconds:g} s; ask for fewer steps with depth= or to="
        ) from None
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
    depth: int | None,
    to: int | None,
) -> Walked:
    """Everything that the records `start` (run, position) of `node` reach in `direction`."""
    main = Walk(snapshot, "reached", cursor)
    main.add(node, [(0, run, position) for run, position in start])
    hops = {node: 0}
    allowed = _on_the_way(snapshot, direction, node, to)
    order: list[int] = []
    pending = {node}
    while pending:
        here = max(pending) if direction == "backward" else min(pending)
        pending.discard(here)
        order.append(here)
        is_last = here == to or (depth is not None and hops[here] >= depth and _is_public(snapshot, here))
        if not is_last:
            _step(main, direction, here)
        found = set(main.nodes()) - set(order)
        for each in found - pending:
            passed = _is_public(snapshot, each)
            hops[each] = hops[here] + (1 if passed else 0)
        pending = {each for each in found if each in allowed}
    reached = [
        _reached(snapshot, cursor, main, each, hops[each], limit)
        for each in order
        if _is_public(snapshot, each) or each == node
    ]
    listed = [each for each in reached if each.total]
    flows = _flows(snapshot, cursor, direction, listed)
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


def _reached(
    snapshot: Snapshot, cursor: duckdb.DuckDBPyConnection, main: Walk, node: int, hops: int, limit: int
) -> Reached:
    """One record may be held by several runs (two actions over one RDD): it counts once."""
    cursor.execute(
        "CREATE OR REPLACE TEMP TABLE found AS "
        f"SELECT runs.split AS split, f.pos AS pos, min(f.run) AS run FROM {main.table} f "
        "JOIN runs ON runs.run = f.run WHERE f.node = ? GROUP BY runs.split, f.pos",
        [node],
    )
    (total,) = cursor.execute("SELECT count(*) FROM found").fetchone() or (0,)
    rows = cursor.execute("SELECT split, pos, run FROM found ORDER BY split, pos LIMIT ?", [limit]).fetchall()
    return Reached(node, int(total), tuple(Position(node, split, pos, run) for split, pos, run in rows), hops)


def _flows(
    snapshot: Snapshot, cursor: duckdb.DuckDBPyConnection, direction: Direction, reached: list[Reached]
) -> list[tuple[Position, Position]]:
    """The flows between listed records, found by walking against the direction of the trace.

    A row with a million sources lists a few of them; each of those has few outputs. So the way against the
    direction is short, however long the trace was.
    """
    positions = [position for each in reached for position in each.positions]
    by_place = {(each.node, each.split, each.offset): index for index, each in enumerate(positions)}
    against: Direction = "forward" if direction == "backward" else "backward"
    pairs: set[tuple[int, int]] = set()
    for each in reached:
        if not each.positions:
            continue
        side = Walk(snapshot, "beside", cursor)
        side.add(
            each.node,
            [
                (by_place[p.node, p.split, p.offset], run.number, p.offset)
                for p in each.positions
                for run in snapshot.topology.runs_at(p.node, p.split)
                if run.number in snapshot.effective
            ],
        )
        done: set[int] = set()
        while pending := set(side.nodes()) - done:
            here = min(pending) if against == "forward" else max(pending)
            done.add(here)
            if here == each.node or not _is_public(snapshot, here):
                _step(side, against, here)
        found = cursor.execute(
            f"SELECT DISTINCT side.origin, side.node, runs.split, side.pos FROM {side.table} side "
            "JOIN runs ON runs.run = side.run WHERE side.node <> ?",
            [each.node],
        ).fetchall()
        for origin, node, split, offset in found:
            other = by_place.get((node, split, offset))
            if other is not None:
                pairs.add((origin, other) if against == "forward" else (other, origin))
    ordered = sorted(pairs)
    return [(positions[source], positions[target]) for source, target in ordered]
