"""What is shown of records that are no rows: whole files, and records of one length in bytes."""

from __future__ import annotations

from typing import BinaryIO

from lineage_service.tracing.files.decompression import Check, FileBytes, Reader
from lineage_service.tracing.files.file_systems import FileSystems

__all__ = ["beginning", "record"]

#: How much of a record that is a whole file, or of bytes, is shown.
_SHOWN_BYTES = 4_096


def beginning(
    files: FileSystems, path: str, check: Check, *, is_decompressed: bool
) -> tuple[str, str | None]:
    """(the first bytes of a file as text, what is to be said of them). Raises UnreadableError.

    What is no text is shown as hexadecimal.
    """
    if is_decompressed:  # as wholeTextFiles does
        with FileBytes(path, files).reading(0, check) as reader:
            data = _read(reader, _SHOWN_BYTES + 1)
    else:
        with files.opened(path, at_length=False) as file:
            data = _read(file, _SHOWN_BYTES + 1)
    is_cut = len(data) > _SHOWN_BYTES
    data = data[:_SHOWN_BYTES]
    end = "…" if is_cut else ""
    text = data.decode("utf-8", "replace")
    if is_cut:
        text = text.removesuffix("\ufffd")  # a character that was cut
    if "\ufffd".encode() in data or ("\ufffd" not in text and "\0" not in text):
        return text + end, None
    return data.hex() + end, "the file is no UTF-8 text: its first bytes are shown as hexadecimal"


def record(file: BinaryIO, number: int, length: int) -> tuple[str | None, str | None]:
    """(a record's bytes as hexadecimal, what is to be said of them). Raises OSError."""
    file.seek(number * length)
    data = _read(file, min(length, _SHOWN_BYTES))
    if not data:
        return None, "the file has no such record"
    if len(data) < min(length, _SHOWN_BYTES):
        return data.hex(), "the file ends within this record"
    return data.hex() + ("…" if length > _SHOWN_BYTES else ""), None


def _read(file: Reader, size: int) -> bytes:
    """So many bytes, or all that there are."""
    data = b""
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data
