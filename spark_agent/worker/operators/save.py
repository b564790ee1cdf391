"""What a saver writes while lineage is on: which rows of the file a record makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from spark_agent import contract
from spark_agent.worker import task_run
from spark_agent.worker.operator import Operator

#: A sink looks for row ends in this many records at once; as many are held, so few.
LOOK = 64
#: In fewer where that many have more bytes together.
LOOK_BYTES = 1 << 16


class TextSink(Operator):
    """saveAsTextFile: output k is input k, but a record with row ends in it is several rows of the file.

    Encodes records as the stock function does, in one step with looking at them.
    """

    relation = contract.IDENTITY

    def __init__(self, stock: Callable[[int, Any], Iterable[bytes]]) -> None:
        self.stock = stock

    def __call__(self, split: int, records: Any) -> Iterable[bytes]:
        run = task_run.current
        return self.stock(split, records) if run is None else self._rows(records, run)

    def _rows(self, records: Iterable[Any], run: task_run.Run) -> Iterator[bytes]:
        several: list[tuple[int, int]] = []  # (input position, rows)
        passed: list[bytes] = []  # the records since the last look
        seen, batch_size = 0, 1

        def look() -> None:
            nonlocal seen, batch_size
            together = b"".join(passed)
            batch_size = min(2 * batch_size, LOOK) if len(together) < LOOK_BYTES else max(batch_size // 2, 1)
            if b"\n" in together or b"\r" in together:
                for position, text in enumerate(passed, seen):
                    if b"\n" in text or b"\r" in text:
                        rows = physical_rows(text)
                        if rows > 1:
                            several.append((position, rows))
            seen += len(passed)
            passed.clear()

        def looked_at() -> Iterator[bytes]:
            source = iter(records)
            while True:
                for record in islice(source, batch_size):
                    if isinstance(record, str):
                        text = record.encode("utf-8")
                    elif isinstance(record, bytes):
                        text = record
                    else:
                        text = str(record).encode("utf-8")
                    passed.append(text)
                    yield text
                is_end = len(passed) < batch_size
                look()
                if is_end:
                    return

        def close() -> None:
            look()
            if several:
                run.override(self.node, contract.SPANS).extend(_rows_of(several, seen))

        run.at_close(close)
        run.pulled = lambda: seen + len(passed)
        return looked_at()


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
