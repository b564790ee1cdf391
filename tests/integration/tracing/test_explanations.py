"""Explanations from what is stored: rows with their texts, pages, a plain trace beside, what is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.errors import InvalidQueryError, LineageError, NotFoundError, TimeBudgetError
from lineage_service.queries import ExplanationQuery, RowSetQuery, StartQuery, TraceQuery
from lineage_service.result_json import json_value
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.explain import ways
from lineage_service.tracing.query import explanations, how_texts
from lineage_service.tracing.query.service import LineageQueries
from lineage_service.tracing.walk.cross_application import CrossApplicationTrace
from spark_agent import contract
from tests.support.failed_applications import StoredFailures, run_failed
from tests.support.file_applications import APP as FAILED_APP
from tests.support.file_applications import splits_of
from tests.support.lineage_messages import APP, block, event, messages

SOURCE, MERGE, SINK, STOP, RUN = 0, 1, 12, 13, 7
ROWS = ["1,17", "1,23", "2,40", "1,90", "2,8"]
#: The input rows of each key; the last key has one of them.
GROUPS = ((0, 1, 3), (2, 4))


def stored(
    folder: Path,
    *,
    winners: Sequence[tuple[int, int]] = (),
    exact: bool = True,
    ended: bool = True,
    seconds: float = 30.0,
    actions: Mapping[int, tuple[str, str]] = MappingProxyType({}),
) -> LineageQueries:
    """A job that merges the rows of `in.csv` by key; `winners` are (output, input), with sites.

    `actions`: number -> (name, call site) of further ones on the same rows.
    """
    folder.mkdir(exist_ok=True)
    path = folder / "in.csv"
    path.write_text("".join(f"{row}\n" for row in ROWS))
    code = [next(key for key, rows in enumerate(GROUPS) if row in rows) for row in range(len(ROWS))]
    blocks = [block(RUN, 0, contract.CODES, {"code": code}, node=MERGE)]
    if winners:
        columns = {"out": [out for out, _ in winners], "in": [row for _, row in winners]}
        blocks.append(block(RUN, 1, contract.WINNERS, columns, node=MERGE))
    merge: dict[str, Any] = {"exact": exact, "reason": "" if exact else "unseen"}
    merge |= {"site": {"path": ["labels.py:1@4"], "loops": [], "visit": 0}} if winners else {}
    events = [
        event(contract.APPLICATION_STARTED, name="labels"),
        node(SOURCE, "textFile", "source", contract.SOURCE, dataset=dataset(path)),
        node(MERGE, "reduceByKey", "operator", contract.FLOWS, **merge),
        node(SINK, "collect", "sink", contract.IDENTITY),
        node(STOP, "textFile", "source", contract.SOURCE, dataset=dataset(folder / "stop.txt")),
        *(
            node(number, name, "sink", contract.AGGREGATE, call_site=site)
            for number, (name, site) in actions.items()
        ),
        *(event(contract.LINK, source=SOURCE, target=number) for number in actions),
        event(contract.LINK, source=SOURCE, target=MERGE),
        event(contract.LINK, source=MERGE, target=SINK),
        event(contract.PARTITIONS, node=SOURCE, partitions=splits_of(path)),
        event(
            contract.RUN_COMMITTED,
            **{"run": RUN, "split": 0, "action": SINK, "input": SOURCE, "nodes": [MERGE, SINK]},
            **{"inputs": len(ROWS), "outputs": len(GROUPS), "blocks": len(blocks)},
        ),
        *([event(contract.APPLICATION_ENDED, time=1 << 41)] if ended else []),
    ]
    store = DeltaFlowStore(folder / "flows")
    store.write_events(event_batch("group/node-0", messages(*events)))
    store.write_flows(flow_batch("group/flow-0", messages(*blocks)))
    return LineageQueries(store, time_budget_s=seconds)


def node(number: int, name: str, kind: str, relation: str, **fields: Any) -> bytes:
    about = {"node": number, "name": name, "kind": kind, "relation": relation}
    return event(
        contract.NODE_REGISTERED, **about, **{"exact": True, "call_site": f"labels.py:{number}", **fields}
    )


def dataset(path: Path) -> dict[str, Any]:
    return {"namespace": "file", "name": str(path), "format": "text"}


def query_of(*keys: int, **fields: Any) -> ExplanationQuery:
    return ExplanationQuery(
        starts=tuple(StartQuery(node=str(SINK), partition=0, offset=key) for key in keys), **fields
    )


def rows_of_a_trace(queries: LineageQueries, key: int) -> list[int]:
    query = TraceQuery(direction="backward", node=str(SINK), partition=0, offset=key)
    return [
        record.offset
        for traced in queries.trace(APP, query).nodes
        if traced.kind == "source"
        for record in traced.records
    ]


@pytest.mark.parametrize("key", range(len(GROUPS)))
def test_without_winners_the_rows_are_those_of_a_trace_and_it_says_so(tmp_path: Path, key: int) -> None:
    queries = stored(tmp_path)
    answer = queries.explanation(APP, query_of(key))
    assert [row.row for row in answer.rows] == list(GROUPS[key]) == rows_of_a_trace(queries, key)
    assert [row.text for row in answer.rows] == [ROWS[row] for row in GROUPS[key]]
    assert (answer.total, answer.plain_total, answer.of) == (len(GROUPS[key]), len(GROUPS[key]), len(ROWS))
    assert (answer.kind, answer.exact, answer.complete, answer.next) == ("bound", True, True, None)
    assert len(answer.reasons) == 1
    assert (answer.rules, answer.turns) == ((), ())


def test_a_winner_alone_explains_its_key_and_the_rule_says_what_it_left_out(tmp_path: Path) -> None:
    queries = stored(tmp_path, winners=[(0, 1)])
    answer = queries.explanation(APP, query_of(0))
    (row,) = answer.rows
    assert (row.path, row.row, row.line, row.text) == (str(tmp_path / "in.csv"), 1, 2, ROWS[1])
    assert (row.node_id, row.name, row.record_id) == (f"{APP}#{SOURCE}", "textFile", "read#0#1")
    assert (answer.kind, answer.total, answer.plain_total) == ("concise", 1, 3)
    (rule,) = answer.rules
    assert (rule.node_id, rule.rule, rule.kept, rule.of) == (f"{APP}#{MERGE}", "winner", 1, 3)
    (start,) = answer.starts
    assert (start.kind, start.total, start.records[0].record_id) == ("sink", 1, "write#0#0")
    both = queries.explanation(APP, query_of(0, 1))
    assert [row.row for row in both.rows] == [1, 2, 4]


@pytest.mark.parametrize("winners", [[(0, 1)], []])
def test_a_concise_row_set_has_the_rows_of_the_explanation_and_they_become_files(
    winners: list[tuple[int, int]], tmp_path: Path
) -> None:
    queries = stored(tmp_path, winners=winners)
    query = RowSetQuery(starts=query_of(0).starts, concise=True, limit=10)
    row_set = queries.row_set(APP, query)
    explained = [row.row for row in queries.explanation(APP, query_of(0)).rows]
    assert explained == ([1] if winners else list(GROUPS[0]))
    merged, stop = row_set.sources
    assert [row.row for row in merged.listed] == explained
    assert (row_set.exact, row_set.complete, stop.whole) == (True, True, True)
    assert ("those of a plain trace" in (row_set.how or "")) == (not winners)
    (asked,) = row_set.asked
    assert (asked.node, asked.record_id) == (SINK, "write#0#0")
    folder = tmp_path / "fixture"
    queries.extraction.extract(json_value(row_set), folder)
    assert (folder / "in.csv").read_text() == "".join(f"{ROWS[row]}\n" for row in explained)


def test_a_source_off_the_way_is_given(tmp_path: Path) -> None:
    (source,) = stored(tmp_path).explanation(APP, query_of(0)).given_values
    assert (source.node_id, source.path) == (f"{APP}#{STOP}", str(tmp_path / "stop.txt"))


def test_results_that_the_program_had_before_are_given_by_call_site(tmp_path: Path) -> None:
    """Not what it saved or printed, and not what it had later."""
    actions = {
        3: ("takeSample", "kmeans.py:61"),
        4: ("collect", "kmeans.py:73"),
        5: ("foreach", "kmeans.py:70"),
        6: ("collect", "kmeans.py:73"),
        SINK + 2: ("count", "kmeans.py:90"),
    }
    *results, stop = stored(tmp_path, actions=actions).explanation(APP, query_of(0)).given_values
    assert [(result.name, result.call_site, result.results, result.path) for result in results] == [
        ("takeSample", "kmeans.py:61", 1, None),
        ("collect", "kmeans.py:73", 2, None),
    ]
    assert [result.node_id for result in results] == [f"{APP}#3", f"{APP}#4"]
    assert (stop.node_id, stop.results) == (f"{APP}#{STOP}", None)


def test_nothing_is_given_of_a_row_that_was_only_read(tmp_path: Path) -> None:
    query = ExplanationQuery(starts=(StartQuery(node=str(SOURCE), partition=0, offset=0),))
    answer = stored(tmp_path, actions={3: ("collect", "kmeans.py:73")}).explanation(APP, query)
    assert [values.results for values in answer.given_values] == [None]


def test_two_records_share_rows_and_the_last_record_that_both_need(tmp_path: Path) -> None:
    queries = stored(tmp_path, winners=[(0, 1)])
    label = StartQuery(node=str(MERGE), partition=0, offset=0)
    answer = queries.explanation(APP, ExplanationQuery(starts=(*query_of(0).starts, label), same=True))
    assert [(row.row, row.counts_for) for row in answer.rows] == [(1, ("A", "B"))]
    assert answer.same is not None
    assert (answer.same.a.total, answer.same.b.total, answer.same.both_total) == (1, 1, 1)
    assert [start.node_id for start in answer.same.b.starts] == [f"{APP}#{MERGE}"]
    assert answer.same.meets is not None
    assert (answer.same.meets.name, answer.same.meets.total) == ("reduceByKey", 1)
    assert (answer.same.equal, answer.same.shared) == (None, ())  # no values were captured


def test_two_records_that_share_nothing_say_so(tmp_path: Path) -> None:
    queries = stored(tmp_path, winners=[(0, 1)])
    query = query_of(0, 1, same=True, limit=2)
    answer = queries.explanation(APP, query)
    assert [(row.row, row.counts_for) for row in answer.rows] == [(1, ("A",)), (2, ("B",))]
    assert answer.same is not None
    assert (answer.same.a.total, answer.same.b.total, answer.same.both_total) == (1, 2, 0)
    assert answer.same.meets is None
    further = queries.explanation(APP, replace(query, cursor=answer.next))
    assert [(row.row, row.counts_for) for row in further.rows] == [(4, ("B",))]
    assert further.same is None
    rows = tuple(StartQuery(path=str(tmp_path / "in.csv"), row=row) for row in (0, 1))
    answer = queries.explanation(APP, ExplanationQuery(starts=rows, same=True))
    assert answer.same is not None
    assert answer.same.equal is True  # 1,17 and 1,23
    assert [(shared.what, shared.text) for shared in answer.same.shared] == [("field 1", "1")]


def demanding(folder: Path, *rows: int, name: str = "in.csv") -> dict[str, Any]:
    return {"demanded": tuple(StartQuery(path=str(folder / name), row=row) for row in rows)}


def test_a_demanded_row_of_the_trace_is_in_the_explanation_with_its_way(tmp_path: Path) -> None:
    queries = stored(tmp_path, winners=[(0, 1)])
    answer = queries.explanation(APP, query_of(0, **demanding(tmp_path, 3)))
    assert [(row.row, row.demanded) for row in answer.rows] == [(1, None), (3, True)]
    assert (answer.total, answer.plain_total, answer.kind) == (2, 3, "concise")
    assert answer.demanded is not None
    (row,) = answer.demanded
    assert (row.row, row.text, row.in_trace, row.exact, row.note) == (3, ROWS[3], True, True, "")
    assert [step.name for step in row.way] == ["textFile", "reduceByKey", "collect"]
    assert [step.record.record_id for step in row.way] == ["read#0#3", "0#0", "write#0#0"]


def test_a_demanded_row_that_is_no_part_of_the_trace_is_named(tmp_path: Path) -> None:
    queries = stored(tmp_path, winners=[(0, 1)])
    (tmp_path / "stop.txt").write_text("the\n")
    answer = queries.explanation(APP, query_of(0, **demanding(tmp_path, 2)))
    assert [row.row for row in answer.rows] == [1]
    assert answer.demanded is not None
    (row,) = answer.demanded
    assert (row.row, row.in_trace, row.way) == (2, False, ())
    assert row.note == "It is no part of the trace: these records were not made of it."


def test_a_row_that_may_not_lead_there_says_so(tmp_path: Path) -> None:
    queries = stored(tmp_path, winners=[(0, 1)])
    answer = queries.explanation(APP, query_of(0, **demanding(tmp_path, 0), limit=1))
    assert answer.demanded is not None
    further = queries.explanation(APP, query_of(0, **demanding(tmp_path, 0), limit=1, cursor=answer.next))
    assert [(row.row, row.demanded) for row in (*answer.rows, *further.rows)] == [(0, True), (1, None)]
    assert further.demanded is None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ways, "MOST_LOOKED_AT", 1)
        answer = queries.explanation(APP, query_of(0, **demanding(tmp_path, 0)))
    assert answer.demanded is not None
    assert [(row.in_trace, row.way) for row in answer.demanded] == [(True, ())]
    assert "no way was looked for" in answer.demanded[0].note
    assert [row.row for row in answer.rows] == [0, 1]


def test_how_rows_are_needed_together_is_an_expression_and_a_graph(tmp_path: Path) -> None:
    queries = stored(tmp_path, winners=[(0, 1)])
    answer = queries.explanation(APP, query_of(0, 1, how=True, limit=1))
    assert answer.how == "in.csv:2\nin.csv:3 · in.csv:5"
    graph = answer.how_graph
    assert graph is not None
    assert not graph.truncated
    names = {fact.fact: (fact.name, fact.record.record_id) for fact in graph.facts}
    derived = {names[one.fact]: sorted(map(names.__getitem__, one.inputs)) for one in graph.derivations}
    assert derived == {
        ("collect", "write#0#0"): [("reduceByKey", "0#0")],
        ("collect", "write#0#1"): [("reduceByKey", "0#1")],
        ("reduceByKey", "0#0"): [("textFile", "read#0#1")],
        ("reduceByKey", "0#1"): [("textFile", "read#0#2"), ("textFile", "read#0#4")],
    }
    further = queries.explanation(APP, query_of(0, 1, how=True, limit=1, cursor=answer.next))
    assert (further.how, further.how_graph) == (None, None)


def test_many_rows_end_an_expression_with_an_ellipsis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(how_texts, "MOST_TERMS", 2)
    answer = stored(tmp_path).explanation(APP, query_of(0, how=True))
    assert answer.how == "in.csv:1 · in.csv:2 · …"
    assert answer.how_graph is not None
    assert answer.how_graph.truncated


def test_pages_have_each_row_once_and_in_order(tmp_path: Path) -> None:
    queries = stored(tmp_path)
    rows: list[int | None] = []
    query = query_of(0, 1, limit=2, plain=False)
    for _ in range(len(ROWS)):
        answer = queries.explanation(APP, query)
        assert (answer.total, answer.plain_total, answer.rules) == (len(ROWS), None, ())
        rows += [row.row for row in answer.rows]
        if answer.next is None:
            break
        query = replace(query, cursor=answer.next)
    assert rows == list(range(len(ROWS)))


def test_a_row_of_a_file_that_is_gone_has_a_warning(tmp_path: Path) -> None:
    queries = stored(tmp_path)
    (tmp_path / "in.csv").unlink()
    for row in queries.explanation(APP, query_of(0)).rows:
        assert row.text is None
        assert "is gone" in (row.warning or "")


def test_an_upper_bound_and_an_open_application_say_so(tmp_path: Path) -> None:
    answer = stored(tmp_path, winners=[(0, 1)], exact=False, ended=False).explanation(APP, query_of(0))
    assert (answer.kind, answer.exact, answer.complete) == ("bound", False, False)
    assert any("rows may be missing" in reason for reason in answer.reasons)


def test_the_record_of_a_failure_is_explained(tmp_path: Path) -> None:
    failures = StoredFailures(tmp_path, [])
    failures.add(run_failed(11, 10))
    query = ExplanationQuery(starts=(StartQuery(failure=1),))
    answer = failures.queries.explanation(FAILED_APP, query)
    assert [row.row for row in answer.rows] == [2]
    with pytest.raises(NotFoundError, match="no failure 2"):
        failures.queries.explanation(FAILED_APP, replace(query, starts=(StartQuery(failure=2),)))


def test_without_time_the_plain_trace_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = stored(tmp_path, winners=[(0, 1)])
    monkeypatch.setattr(explanations, "PLAIN_SECONDS", 0)
    answer = queries.explanation(APP, query_of(0))
    assert (answer.total, answer.plain_total, answer.reasons) == (1, None, ())
    monkeypatch.undo()
    assert queries.explanation(APP, query_of(0)).plain_total == 3
    late = stored(tmp_path / "late", seconds=1e-9)
    with pytest.raises(TimeBudgetError, match="the explanation was not found within"):
        late.explanation(APP, query_of(0))
    with pytest.raises(TimeBudgetError, match="the explanation was not found within"):
        late.row_set(APP, RowSetQuery(starts=query_of(0).starts, concise=True))


@pytest.mark.parametrize("error", [TimeBudgetError, InvalidQueryError])
def test_what_fails_in_the_plain_trace_fails_no_explanation(
    error: type[LineageError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def advance(*_: object) -> None:
        raise error

    queries = stored(tmp_path, winners=[(0, 1)])
    monkeypatch.setattr(CrossApplicationTrace, "advance", advance)
    answer = queries.explanation(APP, query_of(0))
    assert (answer.total, answer.plain_total) == (1, None)


@pytest.mark.parametrize(
    ("query", "error", "said"),
    [
        (ExplanationQuery(starts=()), InvalidQueryError, "say which records"),
        (query_of(0, cursor="x"), InvalidQueryError, "was not given by this endpoint"),
        (query_of(0, cursor="1:2"), InvalidQueryError, "was not given by this endpoint"),
        (query_of(9), NotFoundError, "offset 9 is not there"),
        (query_of(0, same=True), InvalidQueryError, "A and B, and 1 are named"),
        (query_of(0, 1, same=True, demanded=query_of(0).starts), InvalidQueryError, "two questions"),
        (
            query_of(0, demanded=query_of(0).starts),
            InvalidQueryError,
            "names rows of inputs, and operation 12",
        ),
        (query_of(0, demanded=query_of(0).starts * 21), InvalidQueryError, "20 at once are the most"),
        (query_of(0, demanded=(StartQuery(path="/x.csv", row=0),)), NotFoundError, "x.csv"),
        (query_of(0, 0, same=True), InvalidQueryError, "are the same record"),
        (
            ExplanationQuery(starts=(StartQuery(failure=1), StartQuery(failure=2)), same=True),
            InvalidQueryError,
            "the record of a failure was not",
        ),
    ],
)
def test_what_cannot_be_understood_is_an_error_in_words(
    query: ExplanationQuery, error: type[LineageError], said: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        stored(tmp_path).explanation(APP, query)


def recorded(folder: Path, positions: list[list[int]], *, at: int = 1 << 42, **fields: Any) -> LineageQueries:
    """As `stored` has it, with one more event: a job gave the first record again on these rows."""
    queries = stored(folder, winners=[(0, 1), (1, 2)])
    record = {"node": SINK, "split": 0, "position": 0, "run": RUN}
    said = {
        "records": [record],
        "rows": [{"node": SOURCE, "split": 0, "positions": positions}],
        "runs": 3,
        "added": 0,
        "minimal": False,
    }
    checked = event(contract.EXPLANATION_CHECKED, time=at, **{**said, **fields})
    store = DeltaFlowStore(folder / "flows")
    store.write_events(event_batch("group/node-0", messages(checked, first=100)))
    store.write_events(event_batch("group/node-0", messages(checked, first=200)))  # sent twice
    return queries


def asked(offset: int = 0, **fields: Any) -> ExplanationQuery:
    return ExplanationQuery(starts=(StartQuery(node=str(SINK), partition=0, offset=offset),), **fields)


def test_rows_that_were_run_are_verified_and_no_others(tmp_path: Path) -> None:
    queries = recorded(tmp_path, [[1, 1]], notes=["close"])
    explanation = queries.explanation(APP, asked())
    assert explanation.kind == "verified"
    assert explanation.verified is not None
    assert (explanation.verified.runs, explanation.verified.minimal) == (3, False)
    [check] = explanation.checks
    assert (check.these_rows, check.checked_at, check.total, check.notes) == (True, 1 << 42, 1, ("close",))
    assert (check.added, check.added_total, check.left_out_total) == ((), 0, 0)
    demanded = StartQuery(node=str(SOURCE), partition=0, offset=3)
    others = {
        "another record": asked(1),
        "two records": ExplanationQuery(starts=(*asked().starts, *asked(1).starts)),
        "further rows": asked(demanded=(demanded,)),
    }
    for name, query in others.items():
        explanation = queries.explanation(APP, query)
        assert (explanation.kind, explanation.verified) == ("concise", None), name
    [check] = explanation.checks
    assert (check.these_rows, check.left_out_total, check.added_total) == (False, 1, 0)
    assert queries.application(APP).complete


def test_what_was_verified_with_further_rows_names_these(tmp_path: Path) -> None:
    queries = recorded(tmp_path, [[0, 2], [3, 1]], added=2, minimal=True)
    explanation = queries.explanation(APP, asked())
    assert (explanation.kind, explanation.verified) == ("concise", None)
    [check] = explanation.checks
    assert [row.text for row in check.added] == ["1,17", "1,90"]
    assert (check.these_rows, check.total, check.added_total, check.minimal) == (False, 3, 2, True)
    first = StartQuery(node=str(SOURCE), partition=0, offset=0)
    last = StartQuery(node=str(SOURCE), partition=0, offset=3)
    explanation = queries.explanation(APP, asked(demanded=(first, last)))
    assert explanation.kind == "verified"
    assert explanation.verified is not None
    assert explanation.verified.added == 2
    assert queries.explanation(APP, asked(demanded=(first, last), limit=1, cursor="0:0:1")).checks == ()


def test_a_check_of_a_record_that_another_run_computed_says_nothing(tmp_path: Path) -> None:
    record = {"node": SINK, "split": 0, "position": 0}
    for number, run in enumerate((RUN + 1, RUN, None)):
        queries = recorded(tmp_path / str(number), [[1, 1]], records=[{**record, "run": run}])
        assert queries.explanation(APP, asked()).kind == ("concise" if run == RUN + 1 else "verified")


def test_what_claims_to_have_more_rows_than_anybody_sends_is_left_alone(tmp_path: Path) -> None:
    queries = recorded(tmp_path, [[0, 1 << 50]])
    assert queries.explanation(APP, asked()).checks == ()
