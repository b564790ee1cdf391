"""Where a row of an input ended in queries of the running session, as `LineageRecords.missing` gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_agent.sql.rerun.asked_queries import AskedQuery

__all__ = ["MissingRow", "Operation", "missing_rows"]


@dataclass(frozen=True)
class Operation:
    """An operation of the session. `node_id` is that of the graph, if it is known; `why` tells of one row."""

    name: str
    description: str
    call_site: str
    node_id: str | None
    why: str = ""

    def __str__(self) -> str:
        text = " ".join(part for part in (self.name, self.description) if part)
        return f"{text} at {self.call_site}" if self.call_site else text


@dataclass(frozen=True)
class MissingRow:
    """A row on its way to one output. `ended` is None where it is not missing, or that is not known.

    Exact: the query gave the same again, and the operation is the one. Else `reason` says what may differ.
    """

    path: str
    row: int
    output: Operation
    ended: Operation | None
    exact: bool
    reason: str = ""
    duplicates: tuple[Operation, ...] = ()  # where it was one of several equal rows

    def __str__(self) -> str:
        doubt = f" (perhaps: {self.reason})" if self.reason else ""
        if self.ended is None:
            came = "is not known to be missing from" if self.reason else "went into"
            alike = "".join(f"; at {one}: {one.why}" for one in self.duplicates)
            return f"row {self.row} {came} {self.output}{alike}{doubt}"
        why = f": {self.ended.why}" if self.ended.why else ""
        return f"row {self.row} did not reach {self.output}; it ended at {self.ended}{why}{doubt}"


def missing_rows(application_id: str, path: str, row: int, asked: Sequence[AskedQuery]) -> list[MissingRow]:
    return [_missing_row(application_id, path, row, one) for one in asked]


def _missing_row(application_id: str, path: str, row: int, asked: AskedQuery) -> MissingRow:
    sink, end, node = asked.sink, asked.end, asked.operator
    output = Operation(sink.name, sink.description, sink.call_site, f"{application_id}#{sink.number}")
    ended = None
    if end is not None and end.operator is not None:
        node_id = None if node is None else f"{application_id}#{node.number}"
        ended = Operation(end.name, end.description, end.call_site, node_id, end.why)
    duplicates = tuple(
        Operation(one.name, one.description, one.call_site, None, one.why)
        for one in (() if end is None else end.duplicates)
    )
    return MissingRow(path, row, output, ended, not asked.reason, asked.reason, duplicates)
