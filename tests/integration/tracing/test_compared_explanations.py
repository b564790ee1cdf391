"""Explanations of one record in two runs of a job: which rows are gone, and which are new."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lineage_service.errors import InvalidQueryError, LineageError, NotFoundError
from lineage_service.lineage import ComparedExplanation
from lineage_service.queries import ExplanationQuery, StartQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query import compared_explanations
from lineage_service.tracing.query.service import LineageQueries
from tests.support.keyed_application import ROWS, SECOND, SINK, store_keyed

BEFORE, AFTER = "monday", "tuesday"
MONDAY = ["a,2", "b,5", "a,1"]


def stored(folder: Path, after: Sequence[str], **fields: Any) -> LineageQueries:
    store = DeltaFlowStore(folder / "flows")
    store_keyed(store, folder / BEFORE / "in.csv", MONDAY, application_id=BEFORE)
    store_keyed(store, folder / AFTER / "in.csv", after, application_id=AFTER, **fields)
    return LineageQueries(store, time_budget_s=30)


def compared(queries: LineageQueries, start: StartQuery, **fields: Any) -> ComparedExplanation:
    query = ExplanationQuery(starts=(start,), **{"compare": AFTER, **fields})
    answer = queries.explanation(BEFORE, query).compared
    assert answer is not None
    return answer


KEY_A = StartQuery(node=str(SECOND), key="a")


def test_a_row_that_decided_then_and_another_that_decides_now_came_and_went(tmp_path: Path) -> None:
    answer = compared(stored(tmp_path, ["b,5", "a,0", "a,1", "a,2"]), KEY_A)
    assert (answer.application_id, answer.name, answer.total) == (AFTER, AFTER, 1)
    assert [start.node_id for start in answer.starts] == [f"{AFTER}#{SECOND}"]
    assert [(row.path, row.line, row.text) for row in answer.gone] == [
        (str(tmp_path / BEFORE / "in.csv"), 3, "a,1")
    ]
    assert [(row.path, row.line, row.text) for row in answer.new] == [
        (str(tmp_path / AFTER / "in.csv"), 2, "a,0")
    ]
    assert (answer.same, answer.gone_total, answer.new_total) == (0, 1, 1)
    assert (answer.exact, answer.complete, answer.reasons) == (True, True, ())


def test_a_row_that_moved_in_its_file_is_the_same(tmp_path: Path) -> None:
    answer = compared(stored(tmp_path, ["a,1", "x,9", "b,5", "a,2"]), KEY_A)
    assert (answer.same, answer.gone_total, answer.new_total) == (1, 0, 0)


def test_a_record_without_a_key_is_found_by_its_text_or_named(tmp_path: Path) -> None:
    queries = stored(tmp_path, ["b,5", "a,1"])
    row = StartQuery(path=str(tmp_path / BEFORE / "in.csv"), row=1)
    answer = compared(queries, row)
    assert [start.records[0].record_id for start in answer.starts] == ["read#0#0"]
    sink = StartQuery(node=str(SINK), partition=0, offset=0)
    with pytest.raises(InvalidQueryError, match=r"neither a key nor a text .* is known"):
        compared(queries, sink)
    answer = compared(queries, sink, compare_starts=(StartQuery(node=str(SINK), partition=0, offset=1),))
    assert (answer.same, [row.text for row in answer.new]) == (1, [])


def test_rows_without_texts_are_compared_by_their_places_and_it_says_so(tmp_path: Path) -> None:
    queries = stored(tmp_path, ["a,1"])
    (tmp_path / AFTER / "in.csv").unlink()
    answer = compared(queries, KEY_A)
    assert (answer.gone_total, answer.new_total, answer.exact) == (1, 1, False)
    assert answer.reasons == (
        f"Texts of 1 rows of {AFTER} are not known: these were compared by their places.",
    )


def test_further_pages_are_not_compared_again(tmp_path: Path) -> None:
    queries = stored(tmp_path, ["a,1"])
    query = ExplanationQuery(
        starts=(KEY_A, StartQuery(node=str(SECOND), key="b")), compare=AFTER, limit=1, compare_starts=(KEY_A,)
    )
    first = queries.explanation(BEFORE, query)
    assert first.compared is not None
    assert [row.text for row in first.compared.gone] == ["b,5"]
    further = ExplanationQuery(starts=query.starts, compare=AFTER, limit=1, cursor=first.next)
    assert queries.explanation(BEFORE, further).compared is None


@pytest.mark.parametrize(
    ("start", "fields", "error", "said"),
    [
        (KEY_A, {"compare": BEFORE}, InvalidQueryError, "not compared with itself"),
        (KEY_A, {"compare": "sunday"}, NotFoundError, "sunday"),
        (StartQuery(node=str(SECOND), key="b"), {}, NotFoundError, "no record with the key 'b'"),
        (StartQuery(node=str(ROWS), partition=0, offset=1), {}, NotFoundError, "has no record 'b,5'"),
    ],
)
def test_what_cannot_be_compared_is_an_error_in_words(
    start: StartQuery, fields: dict[str, Any], error: type[LineageError], said: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        compared(stored(tmp_path, ["a,1"]), start, **fields)


def test_too_many_rows_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compared_explanations, "MOST_ROWS", 1)
    queries = stored(tmp_path, ["a,1", "b,5"])
    with pytest.raises(InvalidQueryError, match="up to 1 are compared"):
        compared(queries, StartQuery(where="value like '%'", node=str(ROWS)), compare_starts=(KEY_A,))
