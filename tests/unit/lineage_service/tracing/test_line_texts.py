"""The records in lines of JSON: their texts, and where they cannot be counted."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.line_texts import records_in
from lineage_service.tracing.files.row_ends import MAX_ROW_BYTES
from lineage_service.tracing.files.row_formats import row_format_named

JSON = row_format_named("json")


@pytest.mark.parametrize(
    ("line", "records"),
    [
        (b'{"a": 1}', ['{"a": 1}']),
        (b' [{"a": 1.10}, {"a": 2}] x', ['{"a": 1.10}', '{"a": 2}']),
        (b"[]", []),
        (b"[1, 2]", ["[1, 2]"]),
        (b"[oops", ["[oops"]),
        (b"[" * 50_000, ["[" * 50_000]),
        (b'[{"a": "\\ud800"}]', ['{"a": "\\ud800"}']),
    ],
)
def test_a_line_holds_these_records(line: bytes, records: list[str]) -> None:
    assert records_in(JSON, [line]) == records
    assert pa.array(records, pa.string()).to_pylist() == records


@pytest.mark.parametrize(
    "line", [b"[" + b'{"a": 1},' * (MAX_ROW_BYTES // 9) + b'{"a": 1}]', b'[{"a": 1}, {a: 2}]']
)
def test_records_that_cannot_be_counted_are_not_taken_for_one(line: bytes) -> None:
    with pytest.raises(UnreadableError):
        records_in(JSON, [b'{"a": 0}', line])
