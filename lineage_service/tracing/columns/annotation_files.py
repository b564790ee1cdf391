"""What an application says of single outputs beside flows: which input alone decided one, and digests.

Rows of `annotations` are (node, run, relation, pos, value), sorted so in each file. Row groups are chosen by
the bounds that Parquet keeps of each, and by an index of the records in each. The last ones read are cached
within a bound. Files of a Delta table never change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from lineage_service.store.tables import Bounds
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.record_row_groups import (
    RecordIndex,
    RecordRowGroup,
    RecordRowGroups,
    integers,
)
from lineage_service.tracing.columns.row_group_cache import RowGroupCache
from lineage_service.tracing.columns.stored_files import IdleFiles

__all__ = ["AnnotationCache", "AnnotationFiles"]

_STREAM = ("node", "run", "relation")
_CACHE_BYTES = 128 << 20

_Marks = npt.NDArray[np.bool_]


class AnnotationCache(RowGroupCache):
    """Row groups of `annotations`. Threads may share it."""

    def __init__(self, max_bytes: int = _CACHE_BYTES) -> None:
        super().__init__(max_bytes)


class AnnotationFiles:
    """All rows of `annotations` of one application. Threads may share it."""

    def __init__(
        self,
        files: Sequence[str],
        cache: AnnotationCache | None = None,
        idle: IdleFiles | None = None,
        bounds: Mapping[str, Bounds] | None = None,
    ) -> None:
        """`files` are Parquet files on this machine. `bounds`: by file, as far as they are known."""
        self._cache = cache or AnnotationCache()
        self._groups = RecordRowGroups(files, idle or IdleFiles(), _STREAM, ("relation",), bounds)

    def at(self, node: int, run: int, relation: str, positions: Integers) -> tuple[_Marks, Integers]:
        """(which of ascending positions have a value, the values of these).

        Raises StoreUnavailableError when a file is gone or damaged.
        """
        is_known = np.zeros(len(positions), bool)
        values = np.zeros(len(positions), np.int64)
        if not len(positions):
            return is_known, values
        for group in self._groups.near(node, run, positions):
            if group.may_have("relation", relation):
                indices, rows = self._index(group).find((node, run, relation), positions)
                if len(rows):
                    is_known[indices] = True
                    values[indices] = self._values(group)[rows]
                    if is_known.all():
                        break  # of each position one value is said
        return is_known, values[is_known]

    def occur(self, node: int, relation: str, values: Integers, check: Callable[[], None]) -> _Marks:
        """Which of a few values are said of any record of a node. `check` ends it by what it raises.

        Raises StoreUnavailableError.

        The values of a row group are looked through first: of which records they are is only asked where one
        of them is there.
        """
        are_there = np.zeros(len(values), bool)
        for group in self._groups.of(node):
            if group.may_have("relation", relation):
                check()
                of_group = self._values(group)
                left = np.flatnonzero(~are_there)
                may_be = [index for index in left.tolist() if bool((of_group == values[index]).any())]
                if may_be:
                    said = np.concatenate([_NONE, *self._said(group, node, relation)])
                    are_there[may_be] = np.isin(values[may_be], said)
        return are_there

    def every(self, node: int, relation: str) -> Iterator[Integers]:
        """The values of all records of a node, piece by piece. Raises StoreUnavailableError."""
        for group in self._groups.of(node):
            if group.may_have("relation", relation):
                yield from self._said(group, node, relation)

    def _said(self, group: RecordRowGroup, node: int, relation: str) -> Iterator[Integers]:
        index = self._index(group)
        for stream in index.parts:
            if (stream[0], stream[2]) == (node, relation):
                for rows in index.rows(stream):
                    yield self._values(group)[rows]

    def _index(self, group: RecordRowGroup) -> RecordIndex:
        return self._cache.part(group.path, group.number, "index", group.index)

    def _values(self, group: RecordRowGroup) -> Integers:
        def read() -> Integers:
            return integers(group.read(["value"]), "value")

        return self._cache.part(group.path, group.number, "value", read)


_NONE = np.zeros(0, np.int64)
