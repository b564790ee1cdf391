"""The texts of the records that stand in lines of text, CSV and JSON, as `record_lines` counts them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lineage_service.tracing.files.record_lines import BLANKS, json_records
from lineage_service.tracing.files.row_formats import RowFormat

__all__ = ["records_in"]


def records_in(format: RowFormat, lines: Sequence[bytes]) -> list[str]:
    """The records in lines that are no header, as `record_lines` counts them. Raises UnreadableError."""
    if not format.is_text:
        comment = format.dialect.comment.encode(format.encoding, "replace")
        lines = [line for line in lines if line.strip(BLANKS) and not (comment and line.startswith(comment))]
    if not lines:
        return []
    texts = b"\n".join(lines).decode(format.encoding, "replace").split("\n")
    if not format.is_json or not any(line.lstrip(BLANKS).startswith(b"[") for line in lines):
        return texts
    return [record for line in lines for record in json_records(line, format.encoding)]
