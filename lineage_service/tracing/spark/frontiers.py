"""The records that a walk on Spark has reached: held by the driver where they are few, else by Spark.

Of a set that the driver does not hold, it knows how many records each task run has in it. Spark computes such
a set once and persists it without the plan that made it, so plans stay short. Knows nothing of relations and
flows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lineage_service.tracing.spark.store import SparkSnapshot

#: Sets of at most so many records, the size of a page, are held by the driver.
HELD_RECORDS = 1_000
#: A set of so many records is sent to where the flows are; larger ones meet them in a shuffle.
BROADCAST_RECORDS = 500_000
_ALL = (1 << 62) - 1

#: A query reads at most so many parts: each may hold a broadcast table, which takes megabytes however small
#: it is.
_PARTS = 16

#: More records of a run are listed in pieces, so that a task never holds an array of all.
_PIECE = 1_000_000


class Move(NamedTuple):
    """From one run to another: records from position `low` to before `high`, with `shift` added."""

    run: int
    low: int
    high: int
    into: int
    shift: int


@dataclass(frozen=True, slots=True)
class Spread:
    """How many records of one run are in a set, and between which positions."""

    records: int
    first: int
    last: int


Row = tuple[int, ...]
"""A record in the order of a walk's columns."""


@dataclass(frozen=True, slots=True)
class Frontier:
    """The distinct records of a node, in a frame or held as rows. `spread` says of each run how many."""

    spread: Mapping[int, Spread]
    frame: DataFrame | None = None
    rows: tuple[Row, ...] = ()

    @property
    def is_held(self) -> bool:
        return self.frame is None

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last position in any run."""
        spreads = self.spread.values()
        return min(spread.first for spread in spreads), max(spread.last for spread in spreads)

    @property
    def records(self) -> int:
        return sum(spread.records for spread in self.spread.values())


@dataclass(frozen=True, slots=True)
class Part:
    """Records that came to a node after so many public operations, perhaps repeated: in a frame, or rows.

    `is_light`: they were found from rows, so that looking at them costs one pass over the flows.
    """

    hops: int
    frame: DataFrame | None = None
    rows: tuple[Row, ...] = ()
    set: Frontier | None = None
    is_light: bool = False


@dataclass
class SparkFrontiers:
    """The frontier of each node. With origins, many starts are walked at once and distinguished."""

    snapshot: SparkSnapshot
    has_origins: bool = False
    is_reliable: bool = False  # sets stand in the session's checkpoint folder
    broadcast_records: int = BROADCAST_RECORDS
    held_records: int = HELD_RECORDS
    is_exact: bool = True
    towards: Collection[int] | None = None  # the nodes that matter; None: all
    parts: dict[int, list[Part]] = field(default_factory=lambda: defaultdict(list))
    came: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # node -> parts that it ever had
    hops: int = 0  # after how many public operations what is added now was found

    @property
    def origin_columns(self) -> list[str]:
        return ["origin"] if self.has_origins else []

    @property
    def columns(self) -> list[str]:
        return [*self.origin_columns, "run", "pos"]

    def add(self, node: int, frontier: Frontier) -> None:
        """Put a set at `node`."""
        if frontier.spread:
            self.add_part(
                node, Part(self.hops, frontier.frame, frontier.rows, frontier, is_light=frontier.is_held)
            )

    def add_found(self, node: int, frame: DataFrame, frontier: Frontier) -> None:
        """Put at `node` what was found from `frontier`."""
        self.add_part(node, Part(self.hops, frame.select(*self.columns), is_light=frontier.is_held))

    def add_part(self, node: int, part: Part) -> None:
        self.parts[node].append(part)
        self.came[node] += 1

    def put(self, node: int, frontier: Frontier) -> None:
        """All of what stands at `node` is this set now."""
        self.parts[node] = [
            Part(self.hops, frontier.frame, frontier.rows, frontier, is_light=frontier.is_held)
        ]

    def at(self, node: int) -> Frontier:
        """The distinct records of `node`."""
        parts = self.parts[node]
        if len(parts) == 1 and parts[0].set is not None:
            return parts[0].set
        rows = {row for part in parts for row in part.rows}
        frames = [part.frame for part in parts if part.frame is not None]
        if all(part.is_light for part in parts):
            some = self._some(frames)
            if some is not None and len(some | rows) <= max(self.held_records, len(rows)):
                return self.of_rows(some | rows)
        if rows:
            frames.append(self._table(rows))
        while len(frames) > _PARTS:
            frames = [self.frame(self._distinct(some_frames)) for some_frames in _batches(frames, _PARTS)]
        return self._distinct(frames)

    def _distinct(self, frames: Sequence[DataFrame]) -> Frontier:
        return self.counted(reduce(DataFrame.union, frames).distinct())

    def _some(self, frames: list[DataFrame]) -> set[Row] | None:
        """The rows, if these are not too many to hold."""
        if not frames:
            return set()
        if not self.held_records:
            return None
        most = 4 * self.held_records  # they may be repeated
        distinct: set[Row] = set()
        for some_frames in _batches(frames, _PARTS):
            rows = reduce(DataFrame.union, some_frames).limit(most + 1).collect()
            distinct.update(map(tuple, rows))
            if len(rows) > most or len(distinct) > most:
                return None
        return distinct

    def hops_to(self, node: int) -> int:
        """After how many public operations the walk came to `node` first."""
        parts = self.parts[node]
        if len({part.hops for part in parts}) == 1:
            return parts[0].hops
        return next(
            part.hops for part in parts if part.rows or (part.frame is not None and not part.frame.isEmpty())
        )

    def frame(self, records: Frontier | Part) -> DataFrame:
        return records.frame if records.frame is not None else self._table(records.rows)

    def of_rows(self, rows: Collection[Row]) -> Frontier:
        """A set of these rows."""
        positions: dict[int, list[int]] = defaultdict(list)
        for *_, run, position in rows:
            positions[run].append(position)
        spread = {run: Spread(len(offsets), min(offsets), max(offsets)) for run, offsets in positions.items()}
        return Frontier(spread, rows=tuple(sorted(rows)))

    def counted(self, distinct: DataFrame) -> Frontier:
        """A set that Spark holds."""
        frame = self.computed_once(distinct)
        numbers = F.count("*").alias("records"), F.min("pos").alias("low"), F.max("pos").alias("high")
        rows = frame.groupBy("run").agg(*numbers).collect()
        spread = {row["run"]: Spread(row["records"], row["low"], row["high"]) for row in rows}
        if sum(run_spread.records for run_spread in spread.values()) <= self.held_records:
            return self.of_rows([tuple(row) for row in frame.collect()])
        return Frontier(spread, frame)

    def computed_once(self, frame: DataFrame) -> DataFrame:
        """What Spark computes once: here, on disk where memory is short, or in the checkpoint folder."""
        return frame.checkpoint() if self.is_reliable else frame.localCheckpoint(eager=False)

    def _table(self, rows: Collection[Row]) -> DataFrame:
        return self.snapshot.table(", ".join(f"{name} bigint" for name in self.columns), sorted(rows))

    def only(self, frontier: Frontier, runs: Collection[int]) -> Frontier:
        """The part of a set that is of these runs."""
        chosen = frontier.spread.keys() & set(runs)
        if len(chosen) == len(frontier.spread):
            return frontier
        if frontier.is_held:
            return self.of_rows([row for row in frontier.rows if row[-2] in chosen])
        spread = {run: frontier.spread[run] for run in chosen}
        return Frontier(spread, self.snapshot.among(self.frame(frontier), "run", chosen))

    def small(self, frontier: Frontier) -> DataFrame:
        frame = self.frame(frontier)
        return F.broadcast(frame) if frontier.records <= self.broadcast_records else frame

    # -- moves that need no flows --------------------------------------------------------------------

    def with_copies(self, node: int, frontier: Frontier, direction: str) -> Frontier:
        """A cached RDD is read by other runs than those that computed it: its records stand in both."""
        graph = self.snapshot.graph
        if direction == "backward":
            links = [link for link in graph.links_of.get(node, ()) if link.parent_node == node]
            copies = [Move(link.run, 0, _ALL, link.parent_run, 0) for link in links]
        else:
            links = [link for link in graph.links_from.get(node, ()) if link.node == node]
            copies = [Move(link.parent_run, 0, link.count, link.run, 0) for link in links]
        moves = [move for move in copies if move.run in frontier.spread]
        if not moves:
            return frontier
        if frontier.is_held:
            return self.of_rows({*frontier.rows, *_moved_rows(frontier.rows, moves)})
        moved = self._moved(frontier, moves).select(*self.columns)
        return self.counted(self.frame(frontier).union(moved).distinct())

    def add_moved(self, node: int, frontier: Frontier, moves: Sequence[Move]) -> None:
        """Put records at `node`, at their new places. `frontier` may be of another walk."""
        if frontier.is_held:
            if rows := tuple(_moved_rows(frontier.rows, moves)):
                self.add_part(node, Part(self.hops, rows=rows, is_light=True))
        else:
            self.add_found(node, self._moved(frontier, moves), frontier)

    def _moved(self, frontier: Frontier, moves: Sequence[Move]) -> DataFrame:
        """The records that move, at their new places."""
        table = self.snapshot.table("of bigint, low bigint, high bigint, into bigint, more bigint", moves)
        on = (F.col("run") == F.col("of")) & F.expr("pos >= low AND pos < high")
        moved = self.frame(frontier).join(F.broadcast(table), on)
        return moved.select(
            *self.origin_columns, F.col("into").alias("run"), F.expr("pos + more").alias("pos")
        )

    # -- all records ---------------------------------------------------------------------------------

    def add_every_record(
        self, node: int, frontier: Frontier, runs: Iterable[int], *, is_exact: bool = False
    ) -> None:
        """Put all records of a node in `runs` there, for whatever is in the set."""
        if not frontier.spread:
            return
        self.is_exact &= is_exact
        records = self._listed(node, runs)
        if self.has_origins:
            records = records.crossJoin(F.broadcast(self.frame(frontier).select("origin").distinct()))
        self.add_found(node, records, frontier)

    def add_every_record_of_each(self, node: int, frontier: Frontier, *, is_exact: bool = False) -> None:
        """Put all records of a node there, of each run that is in the set."""
        if not frontier.spread:
            return
        self.is_exact &= is_exact
        records = self._listed(node, frontier.spread)
        if self.has_origins:
            origins = self.frame(frontier).select("origin", "run").distinct()
            records = records.join(F.broadcast(origins), "run")
        self.add_found(node, records, frontier)

    def ranged(self, run: int, first: int, count: int) -> Frontier:
        """A set of so many records of a run that stand side by side."""
        if count <= max(self.held_records, 1):
            return self.of_rows([(run, position) for position in range(first, first + count)])
        return Frontier({run: Spread(count, first, first + count - 1)}, self._ranges([(run, first, count)]))

    def _listed(self, node: int, runs: Iterable[int]) -> DataFrame:
        """All records of a node in runs."""
        return self._ranges((run, 0, self.snapshot.graph.count(node, run)) for run in runs)

    def _ranges(self, ranges: Iterable[tuple[int, int, int]]) -> DataFrame:
        """So many records of each (run, first position, number of records)."""
        pieces = [
            (run, low, min(low + _PIECE, first + count) - 1)
            for run, first, count in ranges
            for low in range(first, first + count, _PIECE)
        ]
        table = self.snapshot.table("run bigint, low bigint, high bigint", pieces)
        if sum(high - low for _, low, high in pieces) > _PIECE:  # each task lists some
            table = table.repartition(min(len(pieces), 200), "run", "low")
        return table.select("run", F.explode(F.expr("sequence(low, high)")).alias("pos"))


def _batches(frames: Sequence[DataFrame], size: int) -> Iterator[Sequence[DataFrame]]:
    return (frames[first : first + size] for first in range(0, len(frames), size))


def _moved_rows(rows: Iterable[Row], moves: Sequence[Move]) -> Iterator[Row]:
    by_run: dict[int, list[Move]] = defaultdict(list)
    for move in moves:
        by_run[move.run].append(move)
    for *origin, run, position in rows:
        for move in by_run.get(run, ()):
            if move.low <= position < move.high:
                yield (*origin, move.into, position + move.shift)
