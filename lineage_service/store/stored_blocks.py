"""Which blocks are stored, so that a block that a producer sent twice is noticed.

Promises to know every block of a source's topic partition that is stored below the offset it is asked at;
all copies of a block are in one topic partition. Reads each receipt file at most once while it remembers the
application. Knows nothing of how a store writes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

import pyarrow.dataset

from lineage_service.decode.rows import BlockRows
from lineage_service.store.errors import translated_read_errors

#: Applications whose stored blocks are cached, about 100 bytes a block.
MAX_CACHED_APPLICATIONS = 32


class StoredBlocks:
    """Blocks as (run, seq) by application.

    They are up to date for a source while the source's offset is where this process brought it; else the
    receipts that are new are read.
    """

    def __init__(self, files: Callable[[str], list[str]]) -> None:
        """`files` gives the Parquet files of `blocks` that hold an application's receipts."""
        self._files = files
        self._offsets: dict[str, int | None] = {}
        self._applications: OrderedDict[str, _CachedApplication] = OrderedDict()

    def new_among(self, source: str, offset: int | None, blocks: Iterable[BlockRows]) -> list[BlockRows]:
        """The blocks that are neither stored nor come twice, where the store has `source` up to `offset`."""
        if self._offsets.get(source) != offset:
            self._offsets[source] = offset
            for cached in self._applications.values():
                cached.fresh_for.discard(source)
        new: dict[tuple[str, int, int], BlockRows] = {}
        for block in blocks:
            if (block.run, block.seq) not in self._blocks_of(source, block.application_id):
                new.setdefault((block.application_id, block.run, block.seq), block)
        return list(new.values())

    def add(self, source: str, next_offset: int, blocks: Iterable[BlockRows]) -> None:
        """The blocks are stored now, and the source's offset moved."""
        self._offsets[source] = next_offset
        for block in blocks:
            if block.application_id in self._applications:
                self._applications[block.application_id].blocks.add((block.run, block.seq))

    def _blocks_of(self, source: str, application_id: str) -> set[tuple[int, int]]:
        cached = self._applications.setdefault(application_id, _CachedApplication())
        self._applications.move_to_end(application_id)
        if source not in cached.fresh_for:
            self._read_new_receipts(application_id, cached)
            cached.fresh_for.add(source)
            while len(self._applications) > MAX_CACHED_APPLICATIONS:
                self._applications.popitem(last=False)
        return cached.blocks

    def _read_new_receipts(self, application_id: str, cached: _CachedApplication) -> None:
        files = [file for file in self._files(application_id) if file not in cached.files]
        if files:
            with translated_read_errors(f"what blocks has of {application_id}"):
                stored = pyarrow.dataset.dataset(files, format="parquet").to_table(columns=["run", "seq"])
            cached.blocks.update(zip(stored["run"].to_pylist(), stored["seq"].to_pylist(), strict=True))
            cached.files.update(files)


class _CachedApplication:
    def __init__(self) -> None:
        self.blocks: set[tuple[int, int]] = set()
        self.files: set[str] = set()
        self.fresh_for: set[str] = set()
