"""Indexes of rows by file and start, for as long as the file stays as it is. Threads may share them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from lineage_service.tracing.files.bzip2_splits import text_starts
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_systems import FileState, FileSystems
from lineage_service.tracing.files.row_index import RowIndex

__all__ = ["RowIndexes"]


class RowIndexes:
    """The least used indexes go first."""

    def __init__(self, files: FileSystems, keep: int = 256) -> None:
        self.files = files
        self._keep = keep
        self._lock = threading.Lock()
        self._indexes: OrderedDict[tuple[str, FileState, int], RowIndex] = OrderedDict()
        self._text_starts: OrderedDict[tuple[str, FileState], dict[int, int]] = OrderedDict()

    def of(self, path: str, state: FileState, start: int = 0) -> RowIndex:
        """Reads nothing."""
        key = (path, state, start)
        with self._lock:
            index = self._indexes.get(key)
            if index is None:
                index = self._indexes[key] = RowIndex(path, start=start, files=self.files)
                while len(self._indexes) > self._keep:
                    self._indexes.popitem(last=False)
            self._indexes.move_to_end(key)
            return index

    def text_starts(
        self, path: str, state: FileState, starts: Iterable[int], check: Check
    ) -> Mapping[int, int]:
        """Where the splits of a bzip2 file begin in its text. Reads on from nothing: all before the last."""
        key = (path, state)
        with self._lock:
            begins = self._text_starts.get(key, {})
        missing = [start for start in starts if start not in begins]
        if missing:
            begins = {**begins, **text_starts(path, missing, self.files, check)}
            with self._lock:
                self._text_starts[key] = begins
                self._text_starts.move_to_end(key)
                while len(self._text_starts) > self._keep:
                    self._text_starts.popitem(last=False)
        return begins
