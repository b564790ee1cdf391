"""The sets of records of a walk on Spark: held by the driver where they are small, else kept by Spark.

Of a set that is not held, the driver knows how many records each run has in it. Spark computes such a set
once and keeps it without the plan that made it, so plans stay short. Knows nothing of relations and flows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lineage_service.tracing.spark.store import SparkSnapshot

#: Sets of at most so many records, the size of a page, are held by the driver.
HELD_RECORDS = 1_000
#: A set of so many records is sent to where the flows are; larger ones meet them in a shuffle.
BROADCAST_RECORDS = 500_000
_ALL = (1 << 62) - 1

Ranges = list[tuple[int, int, int, int, int]]
"""(run, first position, the one after the last, run of the result, what to add to a position)."""


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
    """Distinct records, in a frame or held as rows. `spread` says of each run in the set how many."""

    spread: Mapping[int, Spread]
    frame: DataFrame | None = None
    rows: tuple[Row, ...] = ()

    @property
    def is_held(self) -> bool:
        return self.frame is None

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
class SparkSets:
    """The sets of one walk, by node. With origins, many starts are walked at once and told apart."""

    snapshot: SparkSnapshot
    has_origins: bool = False
    is_reliable: bool = False  # sets are kept in the session's checkpoint folder
    broadcast_records: int = BROADCAST_RECORDS
    held_records: int = HELD_RECORDS
    is_exact: bool = True
    towards: Collection[int] | None = None  # the nodes that matter; None: all
    parts: dict[int, list[Part]] = field(default_factory=lambda: defaultdict(list))
    came: dict[int, int] = field(default_factory=lambda: defaultdict(int))  # node -> parts that it ever had
    _hops: int = 0

    @property
    def columns(self) -> list[str]:
        return ["origin", "run", "pos"] if self.has_origins else ["run", "pos"]

    def add(self, node: int, frontier: Frontier) -> None:
        """Put a set at `node`."""
        if frontier.spread:
            self._add_part(
                node, Part(self._hops, frontier.frame, frontier.rows, frontier, is_light=frontier.is_held)
            )

    def _add_found(self, node: int, frame: DataFrame, frontier: Frontier) -> None:
        """Put at `node` what was found from `frontier`."""
        self._add_part(node, Part(self._hops, frame.select(*self.columns), is_light=frontier.is_held))

    def _add_part(self, node: int, part: Part) -> None:
        self.parts[node].append(part)
        self.came[node] += 1

    def put(self, node: int, frontier: Frontier) -> None:
        """All of what stands at `node` is this set now."""
        self.parts[node] = [
            Part(self._hops, frontier.frame, frontier.rows, frontier, is_light=frontier.is_held)
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
        return self.counted(reduce(DataFrame.union, frames).distinct())

    def _some(self, frames: list[DataFrame]) -> set[Row] | None:
        """The rows, if these are not too many to hold."""
        if not frames:
            return set()
        if not self.held_records:
            return None
        most = 4 * self.held_records  # they may be repeated
        rows = reduce(DataFrame.union, frames).limit(most + 1).collect()
        return {tuple(row) for row in rows} if len(rows) <= most else None

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
        """A set that Spark keeps."""
        frame = self._kept(distinct)
        numbers = F.count("*").alias("records"), F.min("pos").alias("low"), F.max("pos").alias("high")
        rows = frame.groupBy("run").agg(*numbers).collect()
        spread = {row["run"]: Spread(row["records"], row["low"], row["high"]) for row in rows}
        if sum(run_spread.records for run_spread in spread.values()) <= self.held_records:
            return self.of_rows([tuple(row) for row in frame.collect()])
        return Frontier(spread, frame)

    def _kept(self, frame: DataFrame) -> DataFrame:
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

    def _small(self, frontier: Frontier) -> DataFrame:
        frame = self.frame(frontier)
        return F.broadcast(frame) if frontier.records <= self.broadcast_records else frame

    # -- moves that need no flows --------------------------------------------------------------------

    def beside_cached(self, node: int, frontier: Frontier, direction: str) -> Frontier:
        """A cached RDD is read by other runs than those that computed it: its records stand in both."""
        moves: Ranges
        if direction == "backward":
            links = [link for link in self.snapshot.graph.links_of.get(node, ()) if link.parent_node == node]
            moves = [(link.run, 0, _ALL, link.parent_run, 0) for link in links if link.run in frontier.spread]
        else:
            links = [link for link in self.snapshot.graph.links_from.get(node, ()) if link.node == node]
            moves = [
                (link.parent_run, 0, link.count, link.run, 0)
                for link in links
                if link.parent_run in frontier.spread
            ]
        if not moves:
            return frontier
        if frontier.is_held:
            return self.of_rows({*frontier.rows, *_moved_rows(frontier.rows, moves)})
        moved = self._moved(frontier, moves).select(*self.columns)
        return self.counted(self.frame(frontier).union(moved).distinct())

    def add_moved(self, node: int, frontier: Frontier, ranges: Ranges) -> None:
        """Put records of the ranges at `node`, at their new places. `frontier` may be of another walk."""
        if frontier.is_held:
            if rows := tuple(_moved_rows(frontier.rows, ranges)):
                self._add_part(node, Part(self._hops, rows=rows, is_light=True))
        else:
            self._add_found(node, self._moved(frontier, ranges), frontier)

    def _moved(self, frontier: Frontier, ranges: Ranges) -> DataFrame:
        """Records of the ranges, at their new places."""
        table = self.snapshot.table("of bigint, low bigint, high bigint, into bigint, more bigint", ranges)
        on = (F.col("run") == F.col("of")) & F.expr("pos >= low AND pos < high")
        origin = ["origin"] if self.has_origins else []
        moved = self.frame(frontier).join(F.broadcast(table), on)
        return moved.select(*origin, F.col("into").alias("run"), F.expr("pos + more").alias("pos"))


def _moved_rows(rows: Iterable[Row], ranges: Ranges) -> Iterator[Row]:
    by_run: dict[int, Ranges] = defaultdict(list)
    for run_range in ranges:
        by_run[run_range[0]].append(run_range)
    for *origin, run, position in rows:
        for _, low, high, into, more in by_run.get(run, ()):
            if low <= position < high:
                yield (*origin, into, position + more)
