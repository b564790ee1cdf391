"""What a saver writes while lineage is on: which rows of the file a record makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.worker.culprits import CulpritNote
from spark_agent.worker.operator import Operator

if TYPE_CHECKING:
    from spark_agent.worker.task_run import TaskRun

#: A sink looks for row ends in this many records at once; as many are held, so few.
LOOK = 64
#: In fewer where that many have more bytes together.
LOOK_BYTES = 1 << 16


class TextSink(Operator):
    """saveAsTextFile: output k is input k, but a record with row ends in it is several rows of the file.

    Encodes records as `original` does, PySpark's own function, in one step with looking at them.
    """

    notes_culprits = True
    relation = contract.IDENTITY
    node_name = "textsink"

    def __init__(self, original: Callable[[int, Any], Iterable[bytes]]) -> None:
        self.original = original

    def __call__(self, partition: int, records: Any) -> Iterable[bytes]:
        return self.original(partition, records)

    def capture(self, run: TaskRun, records: Any) -> Iterable[bytes]:
        ends = _RowEnds()

        def close() -> None:
            ends.look()
            if ends.several:
                run.override(self.node, contract.SPANS).extend(_rows_of(ends.several, ends.seen))

        run.at_close(close)
        run.pulled = lambda: ends.seen + len(ends.texts)
        return _encoded(self.node, records, ends)


class _RowEnds:
    """Looks for row ends in the records that have passed, many at once."""

    def __init__(self) -> None:
        self.several: list[tuple[int, int]] = []  # (input position, rows)
        self.texts: list[bytes] = []  # the records since the last look
        self.seen = 0
        self.batch_size = 1

    def look(self) -> None:
        together = b"".join(self.texts)
        is_small = len(together) < LOOK_BYTES
        self.batch_size = min(2 * self.batch_size, LOOK) if is_small else max(self.batch_size // 2, 1)
        if b"\n" in together or b"\r" in together:
            for position, text in enumerate(self.texts, self.seen):
                if b"\n" in text or b"\r" in text:
                    rows = physical_rows(text)
                    if rows > 1:
                        self.several.append((position, rows))
        self.seen += len(self.texts)
        self.texts.clear()


def _encoded(node: int, records: Iterable[Any], ends: _RowEnds) -> Iterator[bytes]:
    source, texts = iter(records), ends.texts
    note = CulpritNote(node, lambda _variables: ends.seen + len(texts))
    is_end = False
    while not is_end:
        with note:
            for record in islice(source, ends.batch_size):
                if isinstance(record, str):
                    text = record.encode("utf-8")
                elif isinstance(record, bytes):
                    text = record
                else:
                    text = str(record).encode("utf-8")
                texts.append(text)
                yield text
        is_end = len(texts) < ends.batch_size
        ends.look()


def physical_rows(text: bytes) -> int:
    """Rows that a record makes in a text file, by Spark's row ends: LF, CR LF, lone CR."""
    return (text + b"\n").replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")


def _rows_of(several: list[tuple[int, int]], records: int) -> list[tuple[int, int, int]]:
    """Spans (count, in, step): records of one row side by side, records of several rows on their own."""
    spans, start = [], 0
    for position, rows in several:
        if position > start:
            spans.append((position - start, start, 1))
        spans.append((rows, position, 0))
        start = position + 1
    if records > start:
        spans.append((records - start, start, 1))
    return spans
