"""`explain` in a session reads the same answer as everybody, page by page."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from lineage_api.app import create_app
from lineage_service.testing.queries import MemoryQueries
from spark_agent.client import explanation, frames
from spark_agent.client.application import Application
from spark_agent.client.explanation import Explanation, explain
from spark_agent.client.http import TraceError
from spark_agent.client.lineage_records import LineageRecords
from spark_agent.client.trace_starts import query_of_all, start_of
from tests.support.api_client import Client
from tests.support.decided_labels import APP, LABELS, SINK, labels, node_id

NODE, OUTPUT = node_id(LABELS), node_id(SINK)


class Api:
    """The API over a lineage in memory; `asked` are the parameters of each query."""

    def __init__(self, **lineage: bool) -> None:
        self._client = Client(create_app(MemoryQueries([labels(**lineage)])))
        self.asked: list[dict[str, Any]] = []

    def get(self, *path: str, **query: Any) -> Any:
        parameters = {name: value for name, value in query.items() if value is not None}
        self.asked.append(parameters)
        answer = self._client.get("/api/" + "/".join(path), params=parameters)
        if answer.status_code != 200:
            raise TraceError(answer.json()["detail"])
        return answer.json()


def records(api: Api) -> LineageRecords:
    application = Application(api, APP, {NODE: {"node_id": NODE}}, [])  # type: ignore[arg-type]
    return LineageRecords(application, frozenset({NODE}))


def test_what_decided_a_record_is_asked_for_once() -> None:
    api = Api()
    explained = explain(records(api)).key("1")
    assert api.asked == []
    assert [str(row) for row in explained.collect()] == ["/data/edges.csv:1  1,17"]
    assert (explained.kind, explained.count(), explained.plain_total) == ("concise", 1, 3)
    assert (explained.exact, explained.complete, explained.reasons) == (True, True, [])
    [before, first] = explained.turns()
    assert (before.turn, before.records[0].until, before.sources) == (0, 0, ())
    assert str(first) == (
        "turn 1 of /jobs/labels.py:31, reduceByKey: 1 (unchanged to turn 14)\n    /data/edges.csv:1  1,17"
    )
    [rule] = explained.rules()
    assert str(rule) == "reduceByKey at /jobs/labels.py:31: 1 of 3 inputs count (winner)"
    assert explained.given_values == ["textFile at labels.py:33 of /data/stop.txt"]
    assert str(explained).splitlines()[:3] == [
        "1 of 3 input rows (a plain trace: 3), concise",
        "given: textFile at labels.py:33 of /data/stop.txt",
        "  /data/edges.csv:1  1,17",
    ]
    assert len(api.asked) == 1


def test_two_records_are_asked_about_together() -> None:
    api = Api()
    application = Application(api, APP, {NODE: {"node_id": NODE}, OUTPUT: {"node_id": OUTPUT}}, [])  # type: ignore[arg-type]
    label, row = (explain(LineageRecords(application, frozenset({node}))).at(0, 0) for node in (NODE, OUTPUT))
    explained = label.same(row)
    assert [str(row) for row in explained.collect()] == ["A B  /data/edges.csv:1  1,17"]
    met = explained.meeting
    assert met is not None
    assert (met.equal, met.rows_of_a, met.rows_of_b, met.rows_of_both) == (None, 1, 1, 1)
    assert str(explained).splitlines()[:3] == [
        "it is not known whether A and B have the same value",
        "they meet in turn 1 of /jobs/labels.py:31, at reduceByKey (1): 1",
        "input rows: 1 for A, 1 for B, 1 for both",
    ]
    assert label.meeting is None
    with pytest.raises(TraceError, match="0 and 1 are chosen"):
        explain(LineageRecords(application, frozenset())).at(0, 0).same(row).count()


def test_demanded_rows_are_there_with_their_ways() -> None:
    api = Api()
    explained = explain(records(api)).demand("/data/edges.csv", 2).key("1").demand("/data/stop.txt", 0)
    assert [str(row) for row in explained.collect()] == ["/data/edges.csv:1  1,17", "/data/edges.csv:3  1,90"]
    edge, stop = explained.demanded
    assert (edge.in_trace, edge.exact, edge.note) == (True, True, "")
    assert str(edge).splitlines() == [
        "with /data/edges.csv:3  1,90",
        "  went into reduceByKey (1): 1 in turn 1 of /jobs/labels.py:31",
    ]
    assert (stop.in_trace, stop.way) == (False, ())
    assert "no part of the trace" in str(explained)
    assert len(api.asked) == 1
    assert explain(records(Api())).key("1").how() == "edges.csv:1"


def test_an_absent_key_is_asked_for_at_the_operation() -> None:
    absence = explain(records(Api())).absent("7")
    assert (absence.key, absence.holders, absence.ended, absence.exact) == ("7", (), (), False)
    assert str(absence).splitlines()[0] == "no record with the key 7"
    with pytest.raises(TraceError, match="has records with the key '1'"):
        explain(records(Api())).absent("1")
    application = Application(Api(), APP, {}, [])  # type: ignore[arg-type]
    nowhere = explain(LineageRecords(application, frozenset()))
    with pytest.raises(TraceError, match="records of 0 operations"):
        nowhere.absent("1")


def test_what_cannot_be_compared_is_an_error_in_words() -> None:
    with pytest.raises(TraceError, match="not compared with itself"):
        explain(records(Api())).key("1").compared(APP)


def test_rows_come_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanation, "PAGE", 2)
    api = Api(has_winners=False)
    explained = Explanation(records(api)).at(0, 0)
    assert [row.row for row in explained.collect()] == [0, 1, 2]
    assert [asked.get("plain") for asked in api.asked] == [None, "false"]
    assert "Nothing was captured" in str(explained)
    given: list[Any] = []
    monkeypatch.setattr(frames, "rows_of_files", given.extend)
    explained.rows()
    assert given[0] == ("/data/edges.csv", 0, 1, "1,17")


def test_what_names_nothing_is_an_error_in_words() -> None:
    with pytest.raises(TraceError, match="choose the records to explain: with row"):
        explain(records(Api())).count()
    with pytest.raises(TraceError, match="no such record"):
        explain(records(Api())).key("99").count()
    with pytest.raises(TraceError, match="rows are counted in a file"):
        explain(records(Api())).row(3)


def test_several_records_are_one_query() -> None:
    starts = [start_of(node="app#3", partition=0, offset=at) for at in range(1_000)]
    query = query_of_all([*starts, start_of(node="app#3", key="k")])
    assert query is not None
    assert json.loads(query["starts"]) == [
        {"key": "k", "node": "app#3"},
        {"node": "3", "partition": 0, "offsets": list(range(1_000))},
    ]
    assert query_of_all(starts[:1]) == {"record": "3#0#0"}
    many = [start_of(node=NODE, key=f"a rather long key {at}") for at in range(5_000)]
    assert query_of_all(many) is None
    with pytest.raises(TraceError, match="5,000 records are too many for one query"):
        Explanation(replace(records(Api()), _starts=tuple(many))).count()
