"""Streams of positions: the integer columns that an operator fills, and the counters that it reads them from.

A stream is cut into blocks that stand on their own; operators append to its lists and flush now and then.
Nothing here reads ahead: a counter counts what somebody else pulls. Knows nothing of Kafka.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, repeat
from typing import TYPE_CHECKING, Any

from spark_agent import contract

if TYPE_CHECKING:
    from spark_agent.worker.block_sink import BlockSink

FOREVER = 1 << 62
#: Operators hand their positions over after this many inputs; between 2,048 and 8,192 is flat.
CHUNK = 4_096
#: What a block's preamble and header take at most.
HEADER_BYTES = 4_000


class Counter:
    """Counts what passes an iterator at C speed: `compress(it, ticks)`, about 10 ns a record."""

    __slots__ = ("_ticks", "left")

    def __init__(self) -> None:
        self._ticks = repeat(True, FOREVER)
        #: FOREVER less the count, for those who cannot afford a property.
        self.left = self._ticks.__length_hint__

    def through(self, records: Iterable[Any]) -> Iterator[Any]:
        return compress(records, self._ticks)

    @property
    def count(self) -> int:
        return FOREVER - self.left()


class ComputedCounter(Counter):
    """A count that follows from something else."""

    __slots__ = ("_compute",)

    def __init__(self, compute: Callable[[], int]) -> None:
        super().__init__()
        self._compute = compute

    @property
    def count(self) -> int:
        return self._compute()


def restarting(make: Callable[[list[bool]], Iterator[Any]]) -> Iterator[Any]:
    """An iterator over generators of `make` that goes on after one of them raised.

    A generator is dead once a user function raised in it; PySpark's own C iterators are not, and a user's
    `mapPartitions` may catch the error and pull the next record. `make(ended)` gives a generator over the
    rest of the same source and appends to `ended` when the source is used up.
    """
    ended: list[bool] = []

    def generators() -> Iterator[Iterator[Any]]:
        while not ended:
            yield make(ended)

    return chain.from_iterable(generators())


def last_read(outputs: Iterable[Any], inputs: Counter, stream: Stream) -> Iterator[Any]:
    """`outputs`, each noted in `stream` with the position of what `inputs` counted last."""
    positions = stream.buffers[0]
    for record in outputs:
        positions.append(inputs.count - 1)
        if len(positions) >= CHUNK:
            stream.flush()
        yield record


class Stream:
    """One stream of integer columns of one operator, cut into blocks that stand on their own.

    Operators append to the lists in `buffers` and call `flush` every few thousand records.
    """

    __slots__ = (
        "_arrays",
        "_base",
        "_names",
        "_relation",
        "_sink",
        "_summed",
        "buffers",
        "follower",
        "node",
        "total_in",
        "total_out",
    )

    def __init__(self, sink: BlockSink, node: int, relation: str) -> None:
        self._sink = sink
        self.node = node
        self._relation = relation
        names = contract.BLOCK_COLUMNS[relation]
        if relation == contract.SPANS and node in (sink.plan.input_node, *sink.plan.sides):
            names += contract.OPTIONAL_COLUMNS[relation]  # spans of what other runs wrote
        self._names = names
        self.buffers: tuple[list[int], ...] = tuple([] for _ in names)
        self._arrays = [array("I") for _ in names]
        #: Of counts: the array of which so many have been added up, how many, and their sum.
        self._summed: tuple[array[int], int, int] = (self._arrays[0], 0, 0)
        self.total_in = 0  # inputs and outputs that shipped blocks cover
        self.total_out = 0
        #: follower(column, first input) is called with what leaves. Of streams of one column alone.
        self.follower: Callable[[Sequence[int], int], None] | None = None
        if sink.observer is not None:
            sink.observer.opened(self, relation)

    def flush(self) -> None:
        """Move the buffers into compact arrays; ship a block when they are full."""
        if self._sink.observer is not None:
            self._sink.observer.flushing(self)
        for index, buffer in enumerate(self.buffers):
            if buffer:
                column = self._arrays[index]
                try:
                    column.extend(array(column.typecode, buffer))
                except OverflowError:  # numbers of runs, positions beyond 2**32
                    self._arrays[index] = array("Q", column)
                    self._arrays[index].extend(array("Q", buffer))
                buffer.clear()
        if max(map(len, self._arrays)) >= contract.MAX_COLUMN_VALUES - 2 * CHUNK:
            self._ship()

    def _ship(self) -> None:
        columns, self._arrays = self._arrays, [array("I") for _ in self._names]
        if not len(columns[0]):
            return
        for piece in _pieces(self._relation, columns):
            named = dict(zip(self._names, piece, strict=True))
            if self.follower is not None:
                self.follower(piece[0], self.total_in)
            self._sink.emit(self.node, self._relation, self.total_in, self.total_out, named)
            covered_in, covered_out = _coverage(self._relation, named)
            self.total_in += covered_in
            self.total_out += covered_out

    def inputs(self) -> int:
        """How many inputs were noted so far, in counts or codes."""
        return self.total_in + len(self._arrays[0]) + len(self.buffers[0])

    def outputs(self) -> int:
        """How many outputs were noted so far, in positions or counts."""
        if self._relation == contract.COUNTS:
            return self.total_out + self._sum() + sum(self.buffers[0])
        return self.total_out + len(self._arrays[0]) + len(self.buffers[0])

    def _sum(self) -> int:
        """Of the array, which only grows: `pace` asks for it often, in a thread of its own."""
        column = self._arrays[0]
        summed, before, total = self._summed
        if summed is not column:
            before = total = 0
        counts = column[before:]
        total += sum(counts)
        self._summed = column, before + len(counts), total
        return total

    def end_following(self) -> None:
        """Call the follower with what has come in up to here, and with nothing more."""
        self.flush()
        if self.follower is not None and self._arrays[0]:
            self.follower(self._arrays[0], self.total_in)
        self.follower = None

    def extend(self, rows: Iterable[Sequence[int]]) -> None:
        """Append rows, one value for each column."""
        for row in rows:
            for buffer, value in zip(self.buffers, row, strict=True):
                buffer.append(value)
        self.flush()

    def close(self) -> None:
        self.flush()
        self._ship()


def _pieces(relation: str, columns: list[array[int]]) -> Iterator[list[Sequence[int]]]:
    """Columns cut so that each piece fits a block; a gather piece never splits an output."""
    room = contract.MAX_BLOCK_BYTES - HEADER_BYTES
    is_short = max(map(len, columns)) <= contract.MAX_COLUMN_VALUES
    if is_short and sum(len(column) * column.itemsize for column in columns) <= room:
        yield list(columns)
        return
    limit = min(contract.MAX_COLUMN_VALUES, room // sum(column.itemsize for column in columns))
    if relation != contract.GATHER:
        for start in range(0, len(columns[0]), limit):
            yield [column[start : start + limit] for column in columns]
        return
    counts, inputs = columns
    start = taken = used = 0
    for index, count in enumerate(counts):
        if used + count - taken > limit or index - start == limit:
            yield [counts[start:index], inputs[taken:used]]
            start, taken = index, used
        used += count
    yield [counts[start:], inputs[taken:]]


def _coverage(relation: str, columns: dict[str, Sequence[int]]) -> tuple[int, int]:
    """(inputs, outputs) that a block of `relation` covers, for the bases of the next block."""
    if relation == contract.COUNTS:
        return len(columns["count"]), sum(columns["count"])
    if relation == contract.CODES:
        return len(columns["code"]), 0
    if relation == contract.SPANS:
        return 0, sum(columns["count"])
    return 0, len(columns[contract.BLOCK_COLUMNS[relation][0]])
