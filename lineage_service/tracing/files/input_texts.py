"""The lines of text sources as a job read them, to be given to it again: the very texts, or none.

A text that is only shown may be cut or repaired. Here it is refused, by a reason in words.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import TEXT, format_of, plain_path
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.partition_states import as_it_was, sizes_of
from lineage_service.tracing.files.row_ends import MAX_ROW_BYTES
from lineage_service.tracing.files.source_rows import change_of
from lineage_service.tracing.model.elements import TopologyNode

__all__ = ["MOST_BYTES", "MOST_ROWS", "InputTexts", "UnsureTextError"]

#: Of all sources that are given as texts.
MOST_ROWS, MOST_BYTES = 100_000, 64 << 20


class UnsureTextError(Exception):
    """Texts may not be what the job read; the message says why."""


class InputTexts:
    """Of sources of RDDs."""

    def __init__(self, rows: FileRows) -> None:
        self._rows = rows

    def of_partition(
        self, node: TopologyNode, split: int, positions: Sequence[int], ended: int | None, check: Check
    ) -> list[str]:
        """The texts of some records, in that order. Raises UnsureTextError."""
        info = as_it_was(node.partitions.get(split, {}), sizes_of(node), ended)
        is_range = {"path", "start"} <= info.keys() and not {"files", "record_length", "parts"} & info.keys()
        if not is_range or node.dataset is None or format_of(node) != TEXT or node.by_id:
            raise UnsureTextError("its records are no lines of text files")
        path = plain_path(str(info["path"]))
        try:
            state = self._rows.files.state(path)
            changed = change_of(state, info)
            if changed is not None:
                raise UnsureTextError(f"{path}: {changed}")
            begin = self._rows.text_start(path, state, int(info["start"]), check)
            data = self._rows.indexes.of(path, state, begin).read_bytes(positions, check)
        except UnreadableError as error:
            raise UnsureTextError(f"{path}: {error}") from None
        if not begin and data.get(0, b"").startswith(codecs.BOM_UTF8):
            raise UnsureTextError(f"{path} begins with a byte order mark, and its first row is among them")
        return [_text(path, position, data.get(position)) for position in positions]


def _text(path: str, position: int, data: bytes | None) -> str:
    if data is None:
        raise UnsureTextError(f"{path} has fewer rows than the job read")
    if len(data) > MAX_ROW_BYTES:
        raise UnsureTextError(f"{path} has a row of more than {MAX_ROW_BYTES:,} bytes among them")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UnsureTextError(f"{path} has a row among them that is not all UTF-8") from None
