"""What the agent says of a format, and whether its files can be cut into records."""

from __future__ import annotations

from typing import Any

import pytest

from lineage_service.lineage import Column, Dataset
from lineage_service.tracing.files.row_formats import RowFormat, columns_of_records, row_format_of
from lineage_service.tracing.model.elements import TopologyNode


def node(format: str, **more: Any) -> TopologyNode:
    return TopologyNode(
        number=0,
        name="Scan",
        description="",
        kind="source",
        relation="source",
        exact=True,
        reason="",
        call_site="",
        dataset=Dataset(namespace="file", name="/data", format=format),
        parents=(),
        partitions={},
        **more,
    )


def of(format: str, options: dict[str, str] | None = None) -> RowFormat:
    return row_format_of(node(format, options=options))


@pytest.mark.parametrize(
    ("format", "options", "has_lines", "has_several"),
    [
        ("text", None, True, False),
        ("csv", None, True, False),
        ("csv+header", {}, True, False),
        ("csv+header with comments", {"comment": "#"}, True, False),
        ("csv with comments", None, False, False),
        ("csv of several lines", {"multiline": "true"}, False, True),
        ("csv+header of several lines", {"multiline": "true", "comment": "#"}, False, True),
        ("csv of several lines", None, False, False),
        ("csv of several lines", {"mode": "DROPMALFORMED"}, False, False),
        ("csv of several lines", {"linesep": "|"}, False, False),
        ("csv of several lines", {"unescapedquotehandling": "SKIP_VALUE"}, False, False),
        ("csv of several lines", {"encoding": "UTF-16"}, False, False),
        ("json of several lines", {}, False, True),
        ("csv", {"encoding": "ISO-8859-1"}, True, False),
        ("csv", {"encoding": "Shift_JIS"}, True, False),
        ("csv", {"encoding": "no such"}, False, False),
        ("csv", {"encoding": "UTF-7"}, False, False),
        ("csv without malformed lines", {"mode": "dropmalformed"}, False, False),
        ("parquet", None, False, False),
        ("csv of wide characters", {"encoding": "UTF-16"}, False, False),
        ("text of several lines", {}, False, False),
    ],
)
def test_a_format_is_cut_where_it_is_known_how(
    format: str, options: dict[str, str] | None, has_lines: bool, has_several: bool
) -> None:
    row_format = of(format, options)
    assert (row_format.has_lines, row_format.has_several) == (has_lines, has_several)
    assert row_format.has_header == (row_format.is_cut and "+header" in format)


def test_the_separator_that_an_older_agent_sent_with_expressions_counts() -> None:
    assert row_format_of(node("csv", expressions={"options": {"sep": ";"}})).dialect.delimiter == ";"
    assert of("csv").dialect.delimiter is None


def test_no_record_has_the_column_of_malformed_ones() -> None:
    schema = tuple(Column(name=name, type="string") for name in ("a", "_corrupt_record", "b"))
    names = {
        format: [column.name for column in columns_of_records(node(format, schema=schema))]
        for format in ("csv+header", "json of several lines", "parquet")
    }
    assert names == {
        "csv+header": ["a", "b"],
        "json of several lines": ["a", "b"],
        "parquet": ["a", "_corrupt_record", "b"],
    }
