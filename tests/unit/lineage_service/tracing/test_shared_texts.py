"""What two records have in common is found in their keys, values, and fields at the same place."""

from __future__ import annotations

import pytest

from lineage_service.lineage import Record, SourceRow
from lineage_service.tracing.query.shared_texts import shared_texts

pytestmark = pytest.mark.unit


def record(value: str | None, kind: str = "str", key: str | None = None) -> Record:
    return Record(record_id="0#0", partition=0, offset=0, key=key, value=value, value_type=kind)


def row(text: str | None) -> Record:
    source = SourceRow(path="/data/part-00000", row=0, line=1, text=text, warning=None)
    return Record(record_id="write#0#0", partition=0, offset=0, source=source)


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (row("9913,17"), row("42,17"), [("field 2", "17")]),
        (row("(9913, 17)"), row("(42, 17)"), [("field 2", "17")]),
        (row("(9913, 'a b')"), record('["42", "a b"]', "json"), [("field 2", "a b")]),
        (row("9913 17"), row("42\t 17"), [("field 2", "17")]),
        (row('"a,b",1'), row('"a,b",2'), [("field 1", "a,b")]),
        (row('{"id": 1, "label": 17}'), row('{"id": 2, "label": 17}'), [("field label", "17")]),
        (row("17 "), row("17"), [("value", "17")]),
        (record("1", "int", key="a"), record("2", "int", key="a"), [("key", "a")]),
        (record(None, key="a"), record(None, key="a"), [("key", "a")]),
    ],
)
def test_what_is_equal_at_the_same_place_is_shared(
    one: Record, other: Record, shared: list[tuple[str, str]]
) -> None:
    equal, texts = shared_texts([one], [other])
    assert (equal, [(text.what, text.text) for text in texts]) == (True, shared)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (row("9913,17"), row("17,23"), False),
        (row("9913,17"), row("17,1"), False),
        (row("(1, 2"), row("(1, 3)"), False),
        (row(None), row("17"), None),
        (record(None, key="a"), record("1", key="b"), None),
        (record("withheld: the redaction function failed", "withheld"), row("17"), None),
    ],
)
def test_what_is_not_equal_or_not_known_is_said(one: Record, other: Record, equal: bool | None) -> None:
    assert shared_texts([one], [other]) == (equal, ())
    assert shared_texts([other], [one]) == (equal, ())
