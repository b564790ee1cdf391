"""The rows of one input that fulfil a condition, those among them that its scan has left out.

Of a condition the parts are asked that name columns which the input has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from lineage_service.conditions.errors import ConditionError
from lineage_service.conditions.filters import Where
from lineage_service.conditions.tree import And, columns_of, conjuncts_of, text_of
from lineage_service.errors import InvalidQueryError, LineageError, NotFoundError
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import PARQUET, TEXT, format_of, paths_of
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.row_finder import UnknownRowError
from lineage_service.tracing.missing.endings import RowStart
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.dataset_rows import DatasetRows
from lineage_service.tracing.query.missing_starts import row_of, start_at

__all__ = ["AskedPart", "InputRows", "part_of"]

Opened = OpenedApplication[Snapshot]
#: Rows of an input that are counted.
_MOST = 100_000
_EVERY = 1 << 53


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
        self.warnings: dict[str, None] = {}

    def matches(
        self, node: TopologyNode, files: set[str] | None, where: Where, limit: int
    ) -> tuple[list[RowStart], int | None]:
        """The first ones, and how many there are; None if they are too many to count.

        Raises InvalidQueryError.
        """
        every = (
            self._of_parquet(node, files, where) if _is_parquet(node) else self._records(node, files, where)
        )
        starts = list(islice(every, limit))
        more = sum(1 for _ in islice(every, _MOST))
        return starts, None if more == _MOST else len(starts) + more

    def _records(self, node: TopologyNode, files: set[str] | None, where: Where) -> Iterator[RowStart]:
        places = self._rows.matches(self._opened, {node.number: files}, where, self._check, self.warnings)
        for place in places:
            yield start_at(self._opened, node, place.partition, place.offset)

    def _of_parquet(self, node: TopologyNode, files: set[str] | None, where: Where) -> Iterator[RowStart]:
        """A scan may give only some rows on, so files are searched as wholes."""
        paths = sorted({path for info in node.partitions.values() for path in paths_of(info)})
        parts: Mapping[int, Mapping[str, object]] = {
            at: {"split": at, "parts": [{"path": path, "first": 0, "row": 0}]}
            for at, path in enumerate(paths)
            if files is None or path in files
        }
        whole = replace(node, partitions=parts)
        with self._locations.search(whole, where, ended=self._opened.application.ended) as search:
            for at in parts:
                self._check()
                for row, is_match in search.matching(at, first=0, last=_EVERY, check=self._check):
                    if is_match:
                        yield from self._starts(node, paths[at], row)
            self.warnings.update(search.warnings)

    def _starts(self, node: TopologyNode, path: str, row: int) -> Iterator[RowStart]:
        topology = self._opened.graph.topology
        try:
            for number, partition, offset in self._locations.find(
                topology, path, row, self._check, direction="forward", node=node.number
            ):
                yield start_at(self._opened, topology.nodes[number], partition, offset)
        except UnknownRowError:
            raise
        except NotFoundError:
            source = row_of(self._opened, self._locations, node, path, row, self._check)
            yield RowStart(node, None, row=source)


def _is_parquet(node: TopologyNode) -> bool:
    return node.by_id and format_of(node) == PARQUET and bool(node.partitions)


def why_not_asked(error: LineageError) -> str:
    """A note in place of an error about one of several inputs."""
    if isinstance(error, ConditionError):
        return error.message
    return str(error).partition("\n")[0] if isinstance(error, InvalidQueryError) else str(error)
