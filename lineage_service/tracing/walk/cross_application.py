"""A trace that goes on from file to file: one segment, with a walk, for each application on its way.

Where a walk comes to a source, the records of the sink that wrote its file are a start in the application of
that sink; forward, the other way round. A start that comes late makes the walk go on from there. Within one
application too, where one job reads what another wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lineage_service.errors import NotFoundError
from lineage_service.lineage import Direction
from lineage_service.tracing.columns.application import AnySnapshot, OpenedApplication
from lineage_service.tracing.files.file_parts import CSV_WITH_HEADER, TEXT
from lineage_service.tracing.model.lineage_graph import LineageGraph
from lineage_service.tracing.walk.dataset_links import FilesOfApplications
from lineage_service.tracing.walk.linked_files import FileSplit
from lineage_service.tracing.walk.result import Walked

__all__ = ["CrossApplicationTrace", "RowsBefore", "Selection", "Walk"]

S = TypeVar("S", bound=AnySnapshot)
_BYTES_OF_PLACE = 120
_READ_UNSEEN = "{} has a query that was not followed, and may have read these records"
_WRITTEN_UNSEEN = "operation {1} of {0} may have written these records: it is not known what it wrote where"
A = TypeVar("A")
"""The records of one partition that a walk has reached, as its engine holds them."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Some records of a node as (partition, offset), in the order of their list; what was not looked at."""

    places: list[tuple[int, int]]
    warnings: tuple[str, ...] = ()


class Walk(Protocol[A]):
    """The walk of an engine within one application. A start that comes late makes it go on from there."""

    @property
    def bytes(self) -> int:
        """Memory of the positions that it holds."""

    @property
    def is_whole(self) -> bool:
        """There is nothing left to step from."""

    @property
    def has_results(self) -> bool:
        """At least one node is done."""

    def advance(self, check: Callable[[], None]) -> None:
        """Walk to the end. `check` is called now and then, and ends it by what it raises."""

    def done_nodes(self) -> list[int]:
        """The nodes whose records are known, in the order of the way."""

    def by_partition(self, node: int) -> Mapping[int, A]:
        """The records reached at a node."""

    def size(self, arrived: A) -> int:
        """How many they are."""

    def has(self, arrived: A, offset: int) -> bool:
        """One of them stands at this offset."""

    def start_range(self, node: int, run: int, first: int, count: int) -> None:
        """Begin at so many records from `first` on, too."""

    def start_moved(self, node: int, run: int, arrived: A, low: int, high: int, more: int) -> bool:
        """Begin at records of another walk of this engine, too: those from `low` to before `high`.

        `more` is added to their positions. False if there are none, or none may be there.
        """

    def page(
        self,
        limit: int,
        after: Mapping[int, tuple[int, int]] | None,
        check: Callable[[], None],
        among: Set[int] | None = None,
    ) -> Walked:
        """Up to `limit` records of each node that is done: the first, or those after a (partition, offset).

        With `among`, records of these nodes only; the others have their totals.
        """


class RowsBefore(Protocol):
    def __call__(self, path: str, start: int, check: Callable[[], None], *, format: str) -> int | None:
        """The rows of a file before the first one of the partition at `start`; None if unknown."""


class CrossApplicationTrace(Generic[S, A]):
    """All applications that a trace reaches. For one thread.

    What was interrupted goes on with the next `advance`.
    """

    def __init__(
        self,
        opened: OpenedApplication[S],
        walk: Walk[A],
        direction: Direction,
        *,
        open_application: Callable[[str], OpenedApplication[S]],
        new_walk: Callable[[S], Walk[A]],
        files: FilesOfApplications | None,
        rows_before: RowsBefore,
    ) -> None:
        """`walk` has its start. `files` None: the trace stays in its application."""
        self.segments: dict[str, tuple[OpenedApplication[S], Walk[A]]] = {
            opened.application.application_id: (opened, walk)
        }
        #: (who wrote, who read) of each link that was followed -> what to add to a position of who read.
        self.shift_of_link: dict[tuple[FileSplit, FileSplit], int] = {}
        self.is_exact = True  # of the dataset links
        #: (node id, condition, column, whether the largest come first) -> what is listed of it.
        self.selections: dict[tuple[str, str | None, str | None, bool], Selection] = {}
        self._first = walk
        self._direction = direction
        self._open, self._new_walk = open_application, new_walk
        self._files, self._rows_before = files, rows_before
        #: Link -> how many records led on when it was followed.
        self._followed: dict[tuple[FileSplit, FileSplit], int] = {}
        #: (application, node) -> why it is not known what comes beyond its files.
        self.unknown_beyond: dict[tuple[str, int], str] = {}

    @property
    def bytes(self) -> int:
        selected = sum(len(selection.places) for selection in self.selections.values())
        return sum(walk.bytes for _, walk in self.segments.values()) + _BYTES_OF_PLACE * selected

    @property
    def is_whole(self) -> bool:
        return all(walk.is_whole for _, walk in self.segments.values())

    @property
    def is_complete(self) -> bool:
        """It is known who wrote, or read, all files that were reached: see `unknown_beyond`.

        All applications could be asked for the files that they read and wrote.
        """
        return self._files is None or not (self._files.unread or self.unknown_beyond)

    @property
    def has_results(self) -> bool:
        """At least one node is done."""
        return self._first.has_results

    def is_current(self) -> bool:
        """Nothing more of its applications was stored since."""
        try:
            return all(
                self._open(name).snapshot is opened.snapshot for name, (opened, _) in self.segments.items()
            )
        except NotFoundError:  # one of them was deleted
            return False

    def advance(self, check: Callable[[], None]) -> None:
        """Walk to the end. `check` is called now and then, and ends it by what it raises."""
        if self._files is not None:
            self._files.refresh()
        is_new = True
        while is_new:
            is_new = False
            for _, walk in list(self.segments.values()):
                walk.advance(check)
            for application_id in list(self.segments):
                is_new |= self._follow(application_id, check)

    def page(
        self,
        limit: int,
        after: Mapping[str, tuple[int, int]] | None,
        check: Callable[[], None],
        only: str | None = None,
    ) -> list[tuple[OpenedApplication[S], Walked]]:
        """Up to `limit` records of each node that is done, application by application; see Walk.page.

        `after` has node ids. With `only`, a node id, records of that node.
        """
        pages = []
        for application_id, (opened, walk) in self.segments.items():
            mine = None
            if after is not None:
                names = (node_id.rpartition("#") for node_id in after)
                mine = {
                    int(number): after[f"{of}#{number}"]
                    for of, _, number in names
                    if of == application_id and number.isdigit()
                }
            among = None
            if only is not None:
                of, _, number = only.rpartition("#")
                among = {int(number)} if of == application_id else set()
            pages.append((opened, walk.page(limit, mine, check, among)))
        return pages

    def _follow(self, application_id: str, check: Callable[[], None]) -> bool:
        """Start where the files of this segment lead; whether anything new came of it."""
        is_new, walk = False, self.segments[application_id][1]
        for near, far, arrived in self._links(application_id):
            check()
            link, reached = (near, far), self._reached(walk, arrived, near, far)
            if self._followed.get(link, 0) == reached:
                continue
            read, written = (near, far) if self._direction == "backward" else (far, near)
            try:
                shift = self._shift(read, written, check)
                if shift is None:
                    self.is_exact = False
                else:
                    is_new |= self._go_on(near, far, arrived, shift)
                    self.shift_of_link[written, read] = shift
                self._followed[link] = reached
            except NotFoundError:  # deleted just now
                continue
        return is_new

    def _go_on(self, near: FileSplit, far: FileSplit, arrived: A, shift: int) -> bool:
        """Start at the records on the far side of a link; whether there are any."""
        is_backward, is_new = self._direction == "backward", False
        record = near.record if is_backward else far.record
        opened, walk = self._segment(far.application_id)
        for run in opened.graph.holders_of(far.node, far.partition, self._direction):
            count = opened.graph.count(far.node, run.number)
            if record is not None:
                first, records = (0, count) if is_backward else (record, 1)
                if first + records <= count and records:
                    walk.start_range(far.node, run.number, first, records)
                    is_new = True
            else:  # positions here that stand in both pieces
                more = shift if is_backward else -shift
                end = far.first + far.records(count) - more
                low = max(near.first, far.first - more)
                high = end if near.last is None else min(near.last, end)
                is_new |= walk.start_moved(far.node, run.number, arrived, low, high, more)
        return is_new

    @staticmethod
    def _reached(walk: Walk[A], arrived: A, near: FileSplit, far: FileSplit) -> int:
        """How many records lead on: a file that is one record is reached, or some of it is."""
        if near.record is not None:
            return int(walk.has(arrived, near.record))
        return walk.size(arrived) if far.record is None else 1

    def _shift(self, read: FileSplit, written: FileSplit, check: Callable[[], None]) -> int | None:
        """What to add to a position of who read for that of who wrote; None where that is not known."""
        if read.record is not None:
            return 0
        is_same = read.format == written.format
        before, missing = self._row(read), self._without_row(read, written)
        if before is None:
            before = self._rows_before(read.path, read.start, check, format=read.format if is_same else TEXT)
        if before is None or missing < 0:
            return None
        if not is_same:  # a line of one may be none of the other; where as many were read, all are
            header = int(read.format == CSV_WITH_HEADER)
            if missing != header:
                return None
            before += header if not read.start else 0
        return before - read.first + written.first - (written.row or 0)

    def _row(self, read: FileSplit) -> int | None:
        """The row of the file that its first position is, as far as that is known without a look at it."""
        if read.row is not None or read.format != TEXT:
            return read.row
        node = self._open(read.application_id).graph.topology.nodes[read.node]
        file_rows = node.file_rows.get(read.partition)
        return None if file_rows is None else file_rows.start

    def _links(self, application_id: str) -> Iterator[tuple[FileSplit, FileSplit, A]]:
        """(a file that the walk has reached, what it leads to, the records reached)."""
        if self._files is None:
            return
        opened, walk = self.segments[application_id]
        kind = "source" if self._direction == "backward" else "sink"
        for number in walk.done_nodes():
            if opened.graph.topology.nodes[number].kind != kind:
                continue
            reached, partitions = walk.by_partition(number), set()
            for near in self._files.of(application_id, number):
                if near.partition not in reached:
                    continue
                partitions.add(near.partition)
                if (application_id, number) not in self.unknown_beyond and (doubt := self._doubt(near)):
                    self.unknown_beyond[application_id, number] = doubt
                for far in self._others(near):
                    yield near, far, reached[near.partition]
            node = opened.graph.topology.nodes[number]
            if node.has_unknown_files and not reached.keys() <= partitions:
                self.unknown_beyond[application_id, number] = node.reason

    def _doubt(self, near: FileSplit) -> str:
        """Why it is not known who wrote what was read there, or read what was written; empty if it is."""
        assert self._files is not None
        if self._direction == "forward":
            reader = self._files.unseen_reader_of(near)
            return "" if reader is None else _READ_UNSEEN.format(reader.application_id)
        writer = self._files.unseen_writer_of(near)
        return "" if writer is None else _WRITTEN_UNSEEN.format(writer.application_id, writer.node)

    def _others(self, near: FileSplit) -> list[FileSplit]:
        """Who wrote what was read there, or read what was written."""
        assert self._files is not None
        if self._direction == "forward":
            return self._files.readers_of(near)
        return self._files.writers_of(near)

    def _segment(self, application_id: str) -> tuple[OpenedApplication[S], Walk[A]]:
        if application_id not in self.segments:
            opened = self._open(application_id)
            self.segments[application_id] = opened, self._new_walk(opened.snapshot)
        return self.segments[application_id]

    def _without_row(self, read: FileSplit, written: FileSplit) -> int:
        """How many records the writer of a file has more than its readers have seen rows."""
        assert self._files is not None
        file_splits = self._files.file_splits(read.application_id, read.path, read.node)
        reader, writer = self._open(read.application_id), self._open(written.application_id)
        seen = sum(_largest(reader.graph, file_split) for file_split in file_splits)
        wrote = sum(_largest(writer.graph, piece) for piece in self._files.pieces_of(written))
        return wrote - seen


def _largest(graph: LineageGraph, file_split: FileSplit) -> int:
    runs = graph.holders_of(file_split.node, file_split.partition, "forward")
    return file_split.records(max((graph.count(file_split.node, run.number) for run in runs), default=0))
