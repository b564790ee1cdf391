"""What a saver writes while lineage is on: which rows of the file a record makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from spark_agent import capture, contract
from spark_agent.capture import Counter, Operator


class TextSink(Operator):
    """saveAsTextFile: output k is input k, but a record with row ends in it is several rows of the file."""

    relation = contract.IDENTITY

    def __init__(self, stock: Callable[[int, Any], Iterable[bytes]]) -> None:
        self.stock = stock

    def __call__(self, split: int, records: Any) -> Iterable[bytes]:
        encoded, run = self.stock(split, records), capture.current
        return encoded if run is None else self._rows(encoded, run)

    def _rows(self, encoded: Iterable[bytes], run: capture.Run) -> Iterator[bytes]:
        counter = Counter()
        several: list[tuple[int, int]] = []  # (input position, rows)

        def close() -> None:
            if several:
                run.override(self.node, contract.SPANS).extend(_rows_of(several, counter.count))

        run.at_close(close)
        for text in counter.through(encoded):
            if b"\n" in text or b"\r" in text:
                rows = physical_rows(text)
                if rows > 1:
                    several.append((counter.count - 1, rows))
            yield text


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
