"""The rows of one input that fulfil a condition, those among them that its scan has left out.

Of a condition the parts are asked that name columns which the input has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from lineage_service.conditions.errors import ConditionError
from lineage_service.conditions.filters import Where
from lineage_service.conditions.tree import And, columns_of, conjuncts_of, text_of
from lineage_service.errors import InvalidQueryError, LineageError, NotFoundError
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import TEXT, format_of
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.row_finder import UnknownRowError
from lineage_service.tracing.missing.endings import RowStart
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.dataset_rows import DatasetRows
from lineage_service.tracing.query.missing_starts import start_at
from lineage_service.tracing.query.unread_rows import UnreadRows, has_rows_of_files

__all__ = ["AskedPart", "InputRows", "part_of"]

Opened = OpenedApplication[Snapshot]
#: Rows of an input that are counted.
_MOST = 100_000


@dataclass(frozen=True, slots=True)
class AskedPart:
    """What of a condition an input can be asked; None where it has none of the columns."""

    where: Where | None
    lacks: tuple[str, ...] = ()


def part_of(node: TopologyNode, where: Where) -> AskedPart:
    """The parts of a condition that name columns of an input, as far as its columns are known."""
    names = {column.name.casefold() for column in node.schema}
    if node.dataset is not None:
        names |= {name.casefold() for name in node.dataset.partitions}
    if not names and format_of(node) == TEXT and not node.by_id:
        names = {"value"}
    if not names:
        return AskedPart(where)
    lacks = tuple(
        dict.fromkeys(
            column.parts[0] for column in columns_of(where.tree) if column.parts[0].casefold() not in names
        )
    )
    parts = [
        part
        for part in conjuncts_of(where.tree)
        if all(column.parts[0].casefold() in names for column in columns_of(part))
    ]
    if not lacks:
        return AskedPart(where)
    if not parts:
        return AskedPart(None, lacks)
    return AskedPart(Where(text_of(parts[0] if len(parts) == 1 else And(tuple(parts)))), lacks)


class InputRows:
    """Finds them in one application."""

    def __init__(self, opened: Opened, locations: RecordLocations, rows: DatasetRows, check: Check) -> None:
        self._opened, self._locations, self._rows, self._check = opened, locations, rows, check
        self._unread = UnreadRows(opened, locations, check)
        self.warnings: dict[str, None] = {}

    def matches(
        self, node: TopologyNode, files: set[str] | None, where: Where, limit: int
    ) -> tuple[list[RowStart], int | None]:
        """The first ones, and how many there are; None if they are too many to count.

        Raises InvalidQueryError.
        """
        if not has_rows_of_files(node):
            places = self._rows.matches(self._opened, {node.number: files}, where, self._check, self.warnings)
            chosen = [
                start_at(self._opened, node, place.partition, place.offset) for place in islice(places, limit)
            ]
            return chosen, _total(len(chosen), places)
        rows = self._unread.matching(node, files, where, self.warnings)
        starts: list[RowStart] = []
        first = list(islice(rows, limit))
        total = _total(len(first), rows)
        for whole, file, at in first:
            starts += self._starts(node, whole, file, at)
        return starts, total

    def _starts(self, node: TopologyNode, whole: TopologyNode, file: int, at: int) -> list[RowStart]:
        """The records that a row of a file is; one without a place where it is none."""
        row = self._unread.at(whole, file, at)
        if row is None:
            return []
        topology = self._opened.graph.topology
        try:
            places = self._locations.find(
                topology, row.path, row.row, self._check, direction="forward", node=node.number
            )
        except UnknownRowError:
            raise
        except NotFoundError:
            return [RowStart(node, None, row=row)]
        return [start_at(self._opened, node, partition, offset) for _, partition, offset in places]


def _total(first: int, rest: Iterator[object]) -> int | None:
    more = sum(1 for _ in islice(rest, _MOST))
    return None if more == _MOST else first + more


def why_not_asked(error: LineageError) -> str:
    """A note in place of an error about one of several inputs."""
    if isinstance(error, ConditionError):
        return error.message
    return str(error).partition("\n")[0] if isinstance(error, InvalidQueryError) else str(error)
