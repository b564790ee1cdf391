"""Notes the sources of each output of a user's `mapPartitions` function where `row_by_row` knows how it
reads.

An output is made of the row that was read last, of no row at all, or of the rows in a buffer. The length of
the buffer is looked at whenever a row is read and an output comes: it says which rows are in it. If anything
is not as expected, the run's outputs are given back to the upper bound."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from types import FrameType, GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar

from spark_agent import contract
from spark_agent.delivery.log import logger
from spark_agent.worker.position_streams import CHUNK, FOREVER, Counter, Stream
from spark_agent.worker.reading.decision import Decision
from spark_agent.worker.reading.static_lookup import Unknown, variables_of
from spark_agent.worker.row_by_row import PartitionReading, listing_in, reading_of

if TYPE_CHECKING:
    from spark_agent.worker.task_run import TaskRun

T = TypeVar("T")
#: If the outputs of a run name more rows than this, they become an upper bound: n outputs that are made of
#: all of n rows name n * n.
MAX_NAMED = 1 << 26
#: The position of the last row that was read, plus what its counter has left.
LAST = FOREVER - 1


def outputs_of_user(run: TaskRun, node: int, function: Callable[[int, Any], Any], records: Any) -> Any:
    """What a user's function makes of a partition. `records` is an iterator."""
    partition, stage = Partition(), run.stages[-1]
    stage.pulled, stage.is_at_row = lambda: partition.counter.count, lambda: partition.is_at_row
    rows = partition.through(records)
    result = function(run.partition, rows)
    stage.gave(result)
    reading = _guarded(lambda: reading_of(result, rows))
    if reading is None or (partition.is_started and not _guarded(reading.is_met)):
        if partition.listing is not None and partition.listing.is_of(result):
            _note_listing(run, node, partition.listing)
        return result
    if partition.is_started and reading.outer is not None:
        return result
    relation = contract.POSITIONS if reading.outer is None else contract.GATHER
    sources = Sources(run, run.override(node, relation), partition)
    if reading.outer is None:
        partition.gives_of_last_row = True
        return sources.of_last_rows(result, None if partition.is_started else reading)
    partition.buffers = Buffers(reading.outer, partition.counter)
    return sources.of_sites(result, partition.buffers, reading)


def _note_listing(run: TaskRun, node: int, listing: Listing) -> None:
    run.override(node, contract.POSITIONS).extend(zip(listing.positions(), strict=True))
    if run.observer is not None:  # it decides by what comes while outputs are read; here all has come
        run.observer.withdrawn(node)


def _guarded(decide: Callable[[], T]) -> T | None:
    """What `decide` says; None if it fails, as on an object of the user's that cannot be looked at."""
    try:
        return decide()
    except Exception as error:  # noqa: BLE001 - how a function reads is no reason for a job to fail
        logger.debug("how a function reads its partition is not known: %r", error)
        return None


class Partition:
    """The rows that a function reads, counted. It holds nothing of the function once it was looked at."""

    def __init__(self) -> None:
        self.counter = Counter()
        self._rows = 0  # their id: to hold them would be a cycle
        self.is_started = self.is_ended = False
        #: Is each output made of the row that was read last, and of no other?
        self.gives_of_last_row = False
        self.buffers: Buffers | None = None
        self.listing: Listing | None = None
        self._reading: PartitionReading | None = None
        self._sources: Sources | None = None

    @property
    def is_at_row(self) -> bool:
        """Is the row that was read last, and no other, the one that the function is at?"""
        is_by_row = self.gives_of_last_row or self.listing is not None
        return is_by_row and self.is_started and not self.is_ended

    def through(self, records: Iterable[Any]) -> Iterator[Any]:
        rows = self.counter.through(chain.from_iterable(self._parts(records)))
        self._rows = id(rows)
        return rows

    def begin(self, reading: PartitionReading, sources: Sources) -> None:
        """`reading` is to be checked when the first row is read."""
        self._reading, self._sources = reading, sources

    def end(self) -> None:
        """No more outputs are read."""
        self._reading = self._sources = None
        if self.buffers is not None:
            self.buffers.release()

    def _parts(self, records: Iterable[Any]) -> Iterator[Iterable[Any]]:
        """Runs when the first row is read."""
        self.is_started = True
        if self._reading is None:
            frame = sys._getframe().f_back
            self.listing = None if frame is None else self._listing_in(frame)
            del frame
        else:
            self._check()
        look = self.listing.look if self.listing is not None else None
        if self.buffers is not None and self.buffers.by_name:
            look = self.buffers.look
        yield records if look is None else WatchedRows(records, look)
        self.is_ended = True

    def _listing_in(self, frame: FrameType) -> Listing | None:
        outputs = _guarded(lambda: listing_in(frame, self._rows))
        return None if outputs is None else Listing(outputs, self.counter)

    def _check(self) -> None:
        reading, sources = self._reading, self._sources
        self._reading = self._sources = None
        if reading is not None and sources is not None and not _guarded(reading.is_met):
            sources.withdraw()


class Listing:
    """The rows that the items of a list are made of, which a function fills row by row."""

    def __init__(self, outputs: list[Any], counter: Counter) -> None:
        self._outputs = outputs
        self._left = counter.left
        self._positions: list[int] = []

    def look(self) -> None:
        """A row is about to be read: what came into the list since is of the row before."""
        more = len(self._outputs) - len(self._positions)
        if more > 0:
            self._positions += [LAST - self._left()] * more

    def is_of(self, result: object) -> bool:
        """Is the list, or an iterator over it, the result?"""
        is_iterator = type(result) is type(iter([])) and self._outputs in gc.get_referents(result)
        return result is self._outputs or is_iterator

    def positions(self) -> list[int]:
        self.look()
        return self._positions


class WatchedRows:
    """Rows before each of which the buffers are looked at. An iterator, which goes on after an error."""

    def __init__(self, records: Iterable[Any], look: Callable[[], None]) -> None:
        self._next = iter(records).__next__
        self._look = look

    def __iter__(self) -> WatchedRows:
        return self

    def __next__(self) -> Any:
        self._look()
        return self._next()


class Sources:
    """The stream of one run's outputs of a node, until it is withdrawn."""

    def __init__(self, run: TaskRun, stream: Stream, partition: Partition) -> None:
        self._run = run
        self._stream = stream
        self._partition = partition
        self._named = 0
        self._is_withdrawn = False

    def withdraw(self) -> None:
        """The outputs are not known after all."""
        self._is_withdrawn = True
        self._partition.gives_of_last_row = False
        self._run.withdraw(self._stream)

    def of_last_rows(self, outputs: Iterable[Any], reading: PartitionReading | None) -> Iterator[Any]:
        """`outputs`, each made of the row that was read last, if `reading` is met."""
        left, stream = self._partition.counter.left, self._stream
        positions = stream.buffers[0]
        try:
            self._begin(reading)
            del reading
            for record in outputs:
                if not self._is_withdrawn:
                    positions.append(LAST - left())
                    if len(positions) >= CHUNK:
                        stream.flush()
                yield record
        finally:
            self._partition.end()

    def of_sites(
        self, outputs: GeneratorType[Any], buffers: Buffers, reading: PartitionReading | None
    ) -> Iterator[Any]:
        """`outputs`, each made of what the place of its yield says, if `reading` is met."""
        sources = buffers.sources
        try:
            self._begin(reading)
            del reading
            buffers.hold(outputs.gi_frame)
            for record in outputs:
                if not self._is_withdrawn:
                    self._note(sources())
                yield record
        finally:
            self._partition.end()

    def _begin(self, reading: PartitionReading | None) -> None:
        if reading is not None and self._partition.is_started:  # read by somebody else meanwhile
            self.withdraw()
        elif reading is not None:
            self._partition.begin(reading, self)

    def _note(self, positions: Sequence[int] | None) -> None:
        if positions is None or self._named + len(positions) > MAX_NAMED:
            self.withdraw()
            return
        counts, inputs = self._stream.buffers
        counts.append(len(positions))
        inputs += positions
        self._named += len(positions)
        if len(inputs) >= CHUNK or len(counts) >= CHUNK:
            self._stream.flush()


class Buffers:
    """Which rows are in the buffers of a suspended generator."""

    def __init__(self, decision: Decision, counter: Counter) -> None:
        self._frame: FrameType | None = None
        self._sites = decision.sites
        self._left = counter.left
        adds_first = decision.adds_first
        self._variables = {name: name for name in decision.buffers} | dict(decision.lists_of_rows)
        self.by_name = {
            name: Buffer(name in adds_first) if name == variable else LastRows()
            for name, variable in self._variables.items()
        }

    def hold(self, frame: FrameType | None) -> None:
        """`frame`, of the generator, is looked at until the buffers are released."""
        self._frame = frame

    def look(self) -> None:
        """A row is about to be read, or an output came."""
        if self._frame is None:
            return
        try:
            variables = variables_of(self._frame, self._variables.values())
        except Unknown:
            self.release()
            return
        row = LAST - self._left()
        for name, buffer in self.by_name.items():
            buffer.look(variables.get(self._variables[name]), row)

    def sources(self) -> Sequence[int] | None:
        """The rows that the output which has just come is made of; None if they are not known."""
        site = None if self._frame is None else self._sites.get(self._frame.f_lasti)
        if site is None:
            return None
        row = LAST - self._left()
        if not site.buffers and not site.flushed:
            return (row,) if site.has_row else ()
        self.look()
        if self._frame is None:
            return None
        parts = [self.by_name[name].rows for name in site.buffers]
        parts += [self.by_name[name].flushed_at(row) for name in site.flushed]
        rows = parts[0] if len(parts) == 1 else sorted(set(chain.from_iterable(parts)))
        if site.has_row and (not rows or rows[-1] != row):
            rows = [*rows, row]
        return None if rows and rows[0] < 0 else rows

    def release(self) -> None:
        self._frame = None


class LastRows:
    """The rows in a list that has been filled with the next rows at once."""

    def __init__(self) -> None:
        self.rows: Sequence[int] = ()

    def look(self, records: Any, row: int) -> None:
        self.rows = range(row + 1 - (0 if records is None else len(records)), row + 1)

    def flushed_at(self, _row: int) -> Sequence[int]:
        return [-1]


class Buffer:
    """The rows in one list. Only the row at hand is ever added to it.

    The list is known by its id, and not held: the user's code lets go of it once, between two looks.
    """

    def __init__(self, adds_first: bool) -> None:
        self._adds_first = adds_first
        self._list = id(None)
        self._length = 0
        self.rows: list[int] = []
        self._flushed: list[int] = []
        self._flushed_in = -1

    def look(self, records: Any, row: int) -> None:
        """The variable has the list `records` now, while `row` is the last one that was read."""
        length = 0 if records is None else len(records)
        if id(records) != self._list or length < self._length:
            self._flushed = [*self.rows, row] if self._adds_first and self.rows[-1:] != [row] else self.rows
            self._flushed_in = row
            self._list, self._length, self.rows = id(records), 0, []
        if length > self._length and self.rows[-1:] != [row]:
            self.rows.append(row)
        self._length = length

    def flushed_at(self, row: int) -> list[int]:
        """The rows that the buffer had when it was emptied in the turn of `row`; [-1] if it was not."""
        return self._flushed if self._flushed_in == row else [-1]
