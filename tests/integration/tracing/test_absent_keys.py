"""Why an operation has no record with a key, from what is stored: who has it, and where it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lineage_service.errors import InvalidQueryError, LineageError, NotFoundError, TimeBudgetError
from lineage_service.queries import AbsenceQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from tests.support.keyed_application import FIRST, KEPT, SECOND, SINK, store_keyed

APP = "keyed"


def stored(folder: Path, *, seconds: float = 30.0, **fields: Any) -> LineageQueries:
    """The keys a and b; the filter drops b."""
    store = DeltaFlowStore(folder / "flows")
    rows = ["a,2", "b,5", "a,1", "b,7"]
    store_keyed(store, folder / "in.csv", rows, application_id=APP, keeps=lambda key: key != "b", **fields)
    return LineageQueries(store, time_budget_s=seconds)


def test_a_key_that_a_filter_dropped_ended_at_the_filter(tmp_path: Path) -> None:
    answer = stored(tmp_path).absence(APP, AbsenceQuery(node=str(SECOND), key="b"))
    assert (answer.asked.name, answer.key, answer.exact, answer.complete) == ("reduceByKey", "b", True, True)
    (holder,) = answer.holders
    assert (holder.node_id, holder.total) == (f"{APP}#{FIRST}", 1)
    assert [(record.record_id, record.key) for record in holder.records] == [("0#1", "b")]
    (end,) = holder.ended
    assert end.ended is not None
    assert (end.ended.node_id, end.ended.why) == (
        f"{APP}#{KEPT}",
        "filter: its function was not true of it",
    )
    assert [output.node_id for output in end.outputs] == [f"{APP}#{SECOND}"]
    assert (holder.became, holder.became_total, holder.other_sides) == ((), 0, ())
    assert (answer.without, answer.reasons) == ((), ())


def test_a_key_that_no_operation_has_is_not_known(tmp_path: Path) -> None:
    answer = stored(tmp_path).absence(APP, AbsenceQuery(node=str(SECOND), key="z"))
    assert (answer.holders, answer.exact) == ((), False)
    assert [one.node_id for one in answer.without] == [f"{APP}#{FIRST}"]
    assert len(answer.reasons) == 1
    assert "There is no operation before it that has the key" in answer.reasons[0]
    answer = stored(tmp_path / "first").absence(APP, AbsenceQuery(node=str(FIRST), key="z"))
    assert answer.without == ()
    assert "no operation before it whose keys are known" in answer.reasons[0]


def test_of_an_output_it_is_not_known_that_it_lacks_the_key(tmp_path: Path) -> None:
    answer = stored(tmp_path).absence(APP, AbsenceQuery(node=str(SINK), key="a"))
    assert "The keys of operation 4 (collect" in answer.reasons[0]
    assert "went into records with other keys" in answer.reasons[1]
    (holder,) = answer.holders
    assert holder.node_id == f"{APP}#{SECOND}"
    assert [record.record_id for record in holder.became] == ["write#0#0"]
    assert not answer.exact


def test_an_upper_bound_on_the_way_is_not_exact(tmp_path: Path) -> None:
    answer = stored(tmp_path, exact=False).absence(APP, AbsenceQuery(node=str(SECOND), key="b"))
    assert not answer.exact


@pytest.mark.parametrize(
    ("query", "error", "said"),
    [
        (AbsenceQuery(node=str(SECOND), key="a"), InvalidQueryError, "has records with the key 'a'"),
        (AbsenceQuery(node="77", key="a"), NotFoundError, "has no node 77"),
    ],
)
def test_what_cannot_be_answered_is_an_error_in_words(
    query: AbsenceQuery, error: type[LineageError], said: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        stored(tmp_path).absence(APP, query)


def test_without_time_it_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(TimeBudgetError, match="what became of the key was not found"):
        stored(tmp_path, seconds=1e-9).absence(APP, AbsenceQuery(node=str(SECOND), key="b"))
