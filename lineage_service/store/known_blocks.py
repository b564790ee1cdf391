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
from lineage_service.store.errors import reading_told

#: Applications of which the stored blocks are known without reading, about 100 bytes a block.
MAX_KNOWN_APPLICATIONS = 32


class KnownBlocks:
    """Blocks as (run, seq) by application. What is known is up to date for a source while the source's offset
    is where this process brought it; else the receipts that are new are read.
    """

    def __init__(self, files: Callable[[str], list[str]]) -> None:
        """`files` gives the Parquet files of `blocks` that hold an application's receipts."""
        self._files = files
        self._offsets: dict[str, int | None] = {}
        self._applications: OrderedDict[str, _KnownApplication] = OrderedDict()

    def new_among(self, source: str, held: int | None, blocks: Iterable[BlockRows]) -> list[BlockRows]:
        """The blocks that are neither stored nor come twice, where the store has `source` up to `held`."""
        if self._offsets.get(source) != held:
            self._offsets[source] = held
            for known in self._applications.values():
                known.fresh_for.discard(source)
        new: dict[tuple[str, int, int], BlockRows] = {}
        for block in blocks:
            if (block.run, block.seq) not in self._known(source, block.application_id):
                new.setdefault((block.application_id, block.run, block.seq), block)
        return list(new.values())

    def add(self, source: str, next_offset: int, blocks: Iterable[BlockRows]) -> None:
        """The blocks are stored now, and the source's offset moved."""
        self._offsets[source] = next_offset
        for block in blocks:
            if block.application_id in self._applications:
                self._applications[block.application_id].blocks.add((block.run, block.seq))

    def _known(self, source: str, application_id: str) -> set[tuple[int, int]]:
        known = self._applications.setdefault(application_id, _KnownApplication())
        self._applications.move_to_end(application_id)
        if source not in known.fresh_for:
            self._read_new_receipts(application_id, known)
            known.fresh_for.add(source)
            while len(self._applications) > MAX_KNOWN_APPLICATIONS:
                self._applications.popitem(last=False)
        return known.blocks

    def _read_new_receipts(self, application_id: str, known: _KnownApplication) -> None:
        files = [file for file in self._files(application_id) if file not in known.files]
        if files:
            with reading_told(f"what blocks has of {application_id}"):
                stored = pyarrow.dataset.dataset(files, format="parquet").to_table(columns=["run", "seq"])
            known.blocks.update(zip(stored["run"].to_pylist(), stored["seq"].to_pylist(), strict=True))
            known.files.update(files)


class _KnownApplication:
    def __init__(self) -> None:
        self.blocks: set[tuple[int, int]] = set()
        self.files: set[str] = set()
        self.fresh_for: set[str] = set()
