"""Parquet files of the flow store, which may stay open for readers to come.

Files of a Delta table never change.
"""

from __future__ import annotations

import resource
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq

from lineage_service.store.errors import translated_read_errors

__all__ = ["IdleFiles", "StoredFile"]

#: Idle files at most, and their share of the files that the process may have open: to open one anew takes as
#: long as to read a column of it.
_MOST_OPEN, _SHARE_OF_OPEN = 1024, 4


class IdleFiles:
    """Open files that are not being read: the last ones, each for one reader. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._opened: OrderedDict[str, pq.ParquetFile] = OrderedDict()
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = _MOST_OPEN if allowed < 0 else min(_MOST_OPEN, allowed // _SHARE_OF_OPEN)

    def take(self, path: str) -> pq.ParquetFile | None:
        with self._lock:
            return self._opened.pop(path, None)

    def give_back(self, path: str, opened: pq.ParquetFile) -> None:
        with self._lock:
            self._opened[path] = opened
            if len(self._opened) > self._most:
                self._opened.popitem(last=False)


class StoredFile:
    """One file. Threads may share it."""

    def __init__(self, path: str, idle: IdleFiles, repeated_texts: Sequence[str] = ()) -> None:
        """`repeated_texts`: columns of few different texts, to be read as dictionaries.

        Raises StoreUnavailableError when it is gone or damaged.
        """
        self.path, self._idle, self._repeated_texts = path, idle, list(repeated_texts)
        with translated_read_errors(path):
            opened = self._opened()
            self.metadata: pq.FileMetaData = opened.metadata
        idle.give_back(path, opened)
        self.columns = {name: index for index, name in enumerate(self.metadata.schema.names)}

    def read(self, row_group: int, columns: Sequence[str]) -> pa.Table:
        """Raises StoreUnavailableError when it is gone or damaged."""
        opened = self._idle.take(self.path)
        with translated_read_errors(self.path):
            if opened is None:
                opened = self._opened(self.metadata)
            table = opened.read_row_group(row_group, columns=list(columns), use_threads=False)
        self._idle.give_back(self.path, opened)
        return table

    def _opened(self, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
        # Given a path, pyarrow looks for a file system first, which takes longer.
        return pq.ParquetFile(
            pa.memory_map(self.path),
            metadata=metadata,
            pre_buffer=False,
            read_dictionary=self._repeated_texts or None,
        )
