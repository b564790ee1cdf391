"""Every endpoint over the in-memory twin: the shapes, the forms of a start, CSV, limits, the page's files."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin

import pytest
from fastapi import FastAPI

from lineage_api.app import create_app
from lineage_api.csv import RECORD_COLUMNS, TRACE_COLUMNS, prefers_csv, records_as_csv
from lineage_api.page import HEADERS, add_page
from lineage_page import built_folder
from lineage_service.lineage import RecordPage
from lineage_service.monitoring.incomplete_applications import IncompleteWatch
from lineage_service.monitoring.lag import LagWatch
from lineage_service.monitoring.metrics import LagMetrics, new_registry
from lineage_service.queries import RecordQuery
from lineage_service.result_tables import ROW_COLUMNS
from lineage_service.testing.flow_store import MemoryFlowStore
from lineage_service.testing.group import MemoryGroup
from lineage_service.testing.queries import MemoryQueries
from scripts import page_types
from tests.support.api_client import Client
from tests.support.flights_and_weather import (
    APP,
    CHANGED,
    NAME,
    RUNNING,
    materialize,
    questions,
    run,
    with_an_old_one_called_last,
)

BASE = f"/api/applications/{APP}"
FIRST_OUTPUT = {"direction": "backward", "node": "8", "partition": 0, "offset": 0}


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(create_app(questions(), materialize=materialize))


def test_applications_are_listed_newest_first(client):
    answer = client.get("/api/applications")
    assert answer.status_code == 200
    listed = answer.json()["applications"]
    assert [each["application_id"] for each in listed] == [RUNNING, APP]
    assert listed[0]["state"] == "running"
    assert listed[0]["ended"] is None
    assert listed[0]["complete"] is False
    assert listed[0]["counters"]["dropped"] == 40


def test_one_application_answers_as_in_the_list(client):
    listed = client.get("/api/applications").json()["applications"]
    assert client.get(BASE).json() == listed[1]


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({"text": "TWEETS"}, [RUNNING]),
        ({"text": "local-"}, [APP]),
        ({"text": "neither"}, []),
        ({"state": "ended"}, [APP]),
        ({"complete": "false"}, [RUNNING]),
        ({"complete": "true", "state": "running"}, []),
    ],
)
def test_applications_are_searched_by_name_or_id_state_and_completeness(client, parameters, found):
    answer = client.get("/api/applications", params=parameters).json()
    assert [application["application_id"] for application in answer["applications"]] == found
    assert answer["next"] is None


def test_a_search_for_applications_goes_on_behind_its_cursor(client):
    first = client.get("/api/applications", params={"text": "e", "limit": 1}).json()
    assert [application["application_id"] for application in first["applications"]] == [RUNNING]
    second = client.get("/api/applications", params={"text": "e", "limit": 1, "cursor": first["next"]}).json()
    assert [application["application_id"] for application in second["applications"]] == [APP]
    assert second["next"] is None


def test_the_graph_has_nodes_with_datasets_and_edges_with_flows(client):
    graph = client.get(f"{BASE}/graph").json()
    assert [node["node"] for node in graph["nodes"]] == list(range(11))
    source, join = graph["nodes"][0], graph["nodes"][6]
    place = {"namespace": "file", "name": "/data/flights.csv", "format": "text"}
    assert source["dataset"] == {**place, "partitions": [], "symlinks": [], "version": None}
    assert (source["kind"], source["records"], source["exact"], source["reason"]) == ("source", 261, True, "")
    assert join["dataset"] is None
    assert {edge["source"] for edge in graph["edges"] if edge["target"] == f"{APP}#6"} == {
        f"{APP}#2",
        f"{APP}#5",
    }
    assert all(edge["flows"] > 0 for edge in graph["edges"])
    assert {edge["target"] for edge in graph["edges"] if edge["shuffle"]} == {f"{APP}#6"}


@pytest.mark.parametrize("node", ["8", f"{APP}%238"])
def test_a_node_is_its_number_or_its_whole_id_percent_encoded(client, node):
    page = client.get(f"{BASE}/nodes/{node}/records?limit=3").json()
    assert page["node_id"] == f"{APP}#8"
    assert [record["record_id"] for record in page["records"]] == ["write#0#0", "write#0#1", "write#0#2"]


def test_pages_of_records_follow_the_cursor_to_the_end(client):
    found, cursor, total = [], None, None
    while True:
        page = client.get(
            f"{BASE}/nodes/0/records", params={"limit": 100, **({"cursor": cursor} if cursor else {})}
        )
        found += [record["record_id"] for record in page.json()["records"]]
        total, cursor = page.json()["total"], page.json()["next"]
        if cursor is None:
            break
    assert len(found) == len(set(found)) == total == 261


def test_records_are_filtered_by_text_key_and_partition(client):
    def ids(node: int, **filters: object) -> list[str]:
        page = client.get(f"{BASE}/nodes/{node}/records", params=filters).json()
        return [record["record_id"] for record in page["records"]]

    assert ids(0, text="ua1001,ord") == ["read#0#2"]
    assert ids(5, key="ORD 06h") == ["0#0"]
    assert all(each.startswith("write#2#") for each in ids(8, partition=2))
    assert ids(0, text="no such flight") == []
    assert ids(8, partition=2, offset=3)[0] == "write#2#3"
    assert client.get(f"{BASE}/nodes/8/records", params={"offset": 3}).status_code == 422


def test_a_record_leaves_out_what_it_has_not_and_keeps_what_is_null(client):
    mapped = client.get(f"{BASE}/trace", params=FIRST_OUTPUT).json()["nodes"][1]["records"][0]
    assert set(mapped) == {"record_id", "partition", "offset"}
    gone = client.get(f"/api/applications/{RUNNING}/nodes/0/records").json()["records"][0]["source"]
    assert gone["text"] is None
    assert gone["warning"].endswith("is gone")


@pytest.mark.parametrize(
    "start",
    [
        {"record": f"{APP}#8#write#0#0"},
        {"record": "write#0#0", "node": "8"},
        {"node": "8", "partition": 0, "offset": 0},
        {"node": f"{APP}#8", "partition": 0, "offset": 0},
        {"path": "/data/delayed/part-00000", "row": 0},
    ],
)
def test_each_form_of_a_start_finds_the_same_origins(client, start):
    trace = client.get(f"{BASE}/trace", params={"direction": "backward", **start}).json()
    assert trace["start_node"] == f"{APP}#8"
    assert [record["record_id"] for record in trace["start"]] == ["write#0#0"]
    assert (trace["complete"], trace["exact"], trace["truncated"], trace["next"]) == (True, True, False, None)
    assert trace["nodes"][0]["node_id"] == f"{APP}#8"
    origins = {node["node_id"]: node for node in trace["nodes"] if node["kind"] == "source"}
    assert set(origins) == {f"{APP}#0", f"{APP}#3"}
    flight, weather = (origins[f"{APP}#{number}"]["records"][0]["source"] for number in (0, 3))
    assert flight["text"].split(",")[1:3] == weather["text"].split(",")[:2]
    assert (flight["row"], flight["line"], flight["warning"]) == (2, 3, None)
    assert weather["warning"] == CHANGED


def test_the_flows_of_a_trace_join_the_records_that_it_lists(client):
    trace = client.get(f"{BASE}/trace", params=FIRST_OUTPUT).json()
    listed = {
        f"{node['node_id']}#{record['record_id']}" for node in trace["nodes"] for record in node["records"]
    }
    assert len(trace["flows"]) == len(listed) - 1
    for flow in trace["flows"]:
        assert {flow["hash_in"], flow["hash_out"]} <= listed
        assert flow["hash_out"].startswith(f"{flow['node_id']}#")


def test_a_key_starts_at_all_its_records_and_goes_forward(client):
    trace = client.get(f"{BASE}/trace", params={"direction": "forward", "node": "6", "key": "ORD 06h"}).json()
    assert len(trace["start"]) > 1
    assert {node["node_id"] for node in trace["nodes"] if node["kind"] == "sink"} == {f"{APP}#8", f"{APP}#10"}
    assert trace["exact"] is False


def test_a_truncated_trace_says_so_and_keeps_its_totals(client):
    start = {"direction": "backward", "node": "10", "partition": 1, "offset": 0}
    whole = client.get(f"{BASE}/trace", params=start).json()
    page = client.get(f"{BASE}/trace", params={**start, "limit": 2}).json()
    assert page["truncated"] is True
    assert [node["total"] for node in page["nodes"]] == [node["total"] for node in whole["nodes"]]
    assert max(len(node["records"]) for node in page["nodes"]) == 2
    second = client.get(f"{BASE}/trace", params={**start, "limit": 2, "cursor": page["next"]}).json()
    assert second["nodes"][-1]["records"] == whole["nodes"][-1]["records"][2:4]


def test_an_incomplete_application_has_incomplete_traces(client):
    start = {"direction": "backward", "record": "write#0#0"}
    assert client.get(f"/api/applications/{RUNNING}/trace", params=start).json()["complete"] is False


def test_values_come_when_asked_for(client):
    trace = client.get(f"{BASE}/trace", params={**FIRST_OUTPUT, "values": "true"}).json()
    mapped = trace["nodes"][1]["records"][0]
    values = client.get(f"{BASE}/values", params={"record": "write#0#0", "node": "8"}).json()
    assert values["captured"] is True
    assert values["steps"][-1] == {
        "node_id": f"{APP}#7",
        "application_id": APP,
        "application_name": NAME,
        "name": "map",
        "record_id": "0#0",
        "type": "str",
        "value": mapped["value"],
        "cut": False,
    }
    assert mapped["value_type"] == "str"


def test_values_that_were_not_captured_say_how_to_capture_them(client):
    values = client.get(f"/api/applications/{RUNNING}/values", params={"record": "write#0#0"}).json()
    assert values["captured"] is False
    assert "spark.lineage.detailed=true" in values["how"]


def test_a_trace_goes_into_neo4j_with_the_same_parameters(client):
    made = client.post(f"{BASE}/trace/graph", params=FIRST_OUTPUT).json()
    assert set(made) == {"records", "links", "truncated", "query"}
    assert (made["records"], made["links"], made["truncated"]) == (9, 8, False)


def test_the_probes_answer(client):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ok"}


def lag_client(group: MemoryGroup) -> Client:
    watch = LagWatch(
        group,
        IncompleteWatch(MemoryFlowStore),
        name="g",
        topics=["flow"],
        dead_letter_topic="dead",
        now=lambda: 1_000.0,
    )
    return Client(create_app(questions(), read_lag=watch.look, metrics=new_registry(LagMetrics(watch))))


def test_the_lag_has_messages_and_seconds_by_partition():
    group = MemoryGroup(
        stamps={("flow", 0): [990_000, 995_000], ("flow", 1): [], ("dead", 0): [0]},
        committed={("flow", 0): 1},
        members=2,
    )
    answer = lag_client(group).get("/api/lag")
    assert answer.headers["cache-control"] == "no-store"
    partition = {"topic": "flow", "partition": 0, "committed": 1, "first": 0, "next": 2}
    assert answer.json() == {
        "group": {
            "name": "g",
            "members": 2,
            "messages": 1,
            "seconds": 5.0,
            "rate": None,
            "incoming_rate": None,
            "drain_seconds": None,
            "dead_letters": 1,
            "partitions": [
                {**partition, "messages": 1, "seconds": 5.0},
                {**partition, "partition": 1, "committed": None, "next": 0, "messages": 0, "seconds": 0.0},
            ],
        },
        "applications": [],
        "unread_applications": 0,
    }


def test_a_lag_that_nobody_knows_is_a_problem(client):
    for each in (client, lag_client(MemoryGroup(is_away=True))):
        answer = each.get("/api/lag")
        assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
        assert "Kafka" in answer.json()["detail"]


def test_metrics_are_prometheus_text_or_openmetrics_for_who_accepts_it():
    client = lag_client(MemoryGroup(stamps={("flow", 0): [0]}))
    plain = client.get("/metrics")
    assert plain.headers["content-type"].startswith("text/plain; version=")
    assert plain.headers["content-type"].count("charset") == 1
    assert 'kafka_consumergroup_lag{consumergroup="g",partition="0",topic="flow"} 1.0' in plain.text
    other = client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert other.headers["content-type"].startswith("application/openmetrics-text")
    assert other.text.endswith("# EOF\n")


def test_without_metrics_nothing_is_there(client):
    assert client.get("/metrics").status_code == 404


def test_a_trace_is_csv_on_request_and_still_says_what_it_lacks(client):
    start = {"direction": "backward", "node": "10", "partition": 1, "offset": 0, "limit": 2}
    answer = client.get(f"{BASE}/trace", params=start, headers={"Accept": "text/csv"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    assert answer.headers["cache-control"] == "no-store"
    assert "Accept" in answer.headers["vary"]
    claims = [answer.headers[f"lineage-{name}"] for name in ("complete", "exact", "truncated", "next")]
    assert claims == ["true", "false", "true", "2"]
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert tuple(rows[0]) == TRACE_COLUMNS
    as_json = client.get(f"{BASE}/trace", params=start).json()
    listed = [record for node in as_json["nodes"] for record in node["records"]]
    assert [row["record_id"] for row in rows] == [record["record_id"] for record in listed]
    assert rows[-1]["text"] == listed[-1]["source"]["text"]
    assert {row["exact"] for row in rows if row["name"] == "mapPartitions"} == {"false"}


def test_rows_of_one_operation_are_a_table_of_their_own_columns(client):
    start = {**FIRST_OUTPUT, "node": "10", "columns": "*", "only": "0", "sort": "delay", "desc": "true"}
    answer = client.get(f"{BASE}/trace", params=start, headers={"Accept": "text/csv"})
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert tuple(rows[0]) == (*ROW_COLUMNS, "flight", "airport", "hour", "delay")
    delays = [int(row["delay"]) for row in rows]
    assert delays == sorted(delays, reverse=True)
    as_json = client.get(f"{BASE}/trace", params=start).json()
    (source,) = [node for node in as_json["nodes"] if node["records"]]
    assert [column["name"] for column in source["schema"]] == ["flight", "airport", "hour", "delay"]
    assert [record["source"]["columns"]["flight"] for record in source["records"]] == [
        row["flight"] for row in rows
    ]
    chosen = client.get(f"{BASE}/nodes/0/records?columns=hour&limit=2", headers={"Accept": "text/csv"})
    assert chosen.text.splitlines()[0] == ",".join((*ROW_COLUMNS, "hour"))
    plain = client.get(f"{BASE}/trace", params={**FIRST_OUTPUT, "node": "10"}).json()
    assert all("columns" not in r.get("source", {}) for node in plain["nodes"] for r in node["records"])


def test_a_list_of_columns_that_is_none_is_refused(client):
    answer = client.get(f"{BASE}/nodes/0/records?columns=a,,b")
    assert answer.status_code == 422
    assert "is no list of columns: write a,b" in answer.json()["detail"]


def test_a_table_of_records_says_what_a_search_could_not_look_at():
    warnings = ("partition 1 was not searched to its end: /data/\u00fc\r\nX-Evil: 1 is gone", "x" * 5_000)
    page = RecordPage(node_id="app#1", total=None, records=(), next=None, warnings=warnings)
    told = records_as_csv(page, RecordQuery(node="1")).headers["Lineage-Warning"]
    assert told.startswith("partition 1 was not searched to its end: /data/\\xfc\\r\\nX-Evil: 1 is gone; xx")
    assert len(told) == 2_000
    assert told.isascii()
    assert told.isprintable()
    assert "Lineage-Warning" not in records_as_csv(replace(page, warnings=()), RecordQuery(node="1")).headers


def test_records_are_csv_on_request(client):
    answer = client.get(f"{BASE}/nodes/3/records?limit=5", headers={"Accept": "text/csv"})
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert tuple(rows[0]) == RECORD_COLUMNS
    assert [row["line"] for row in rows] == ["1", "2", "3", "4", "5"]
    assert (answer.headers["lineage-total"], answer.headers["lineage-next"]) == ("25", "5")


@pytest.mark.parametrize(
    ("accept", "is_csv"),
    [
        (None, False),
        ("*/*", False),
        ("text/html, */*;q=0.8", False),
        ("application/json", False),
        ("text/csv", True),
        ("TEXT/CSV; charset=utf-8", True),
        ("text/*", True),
        ("application/json;q=0.5, text/csv", True),
        ("text/csv;q=0.1, application/json", False),
        ("text/csv;q=nonsense", False),
    ],
)
def test_the_accept_header_is_weighed(accept, is_csv):
    assert prefers_csv(accept) is is_csv


def test_long_answers_are_compressed_for_clients_that_accept_it(client):
    url = f"{BASE}/nodes/0/records"
    assert client.get(url, headers={"Accept-Encoding": "gzip"}).headers["content-encoding"] == "gzip"
    assert "content-encoding" not in client.get(url, headers={"Accept-Encoding": "identity"}).headers


@pytest.mark.parametrize("accept", ["application/json", "text/csv"])
@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_caches_are_told_what_an_answer_depends_on(client, accept, encoding):
    answer = client.get(f"{BASE}/nodes/0/records", headers={"Accept": accept, "Accept-Encoding": encoding})
    assert {part.strip() for part in answer.headers["vary"].split(",")} == {"Accept", "Accept-Encoding"}
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_compression_pays_where_it_is_used(client):
    url = f"{BASE}/nodes/0/records?limit=10000"
    plain = client.get(url, headers={"Accept-Encoding": "identity"})
    small = client.get(url, headers={"Accept-Encoding": "gzip"})
    assert small.content == plain.content  # as httpx unpacks it
    assert int(small.headers["content-length"]) < int(plain.headers["content-length"]) / 5
    probe = client.get("/healthz", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in probe.headers


def test_answers_are_not_cached_nor_given_to_other_sites(client):
    answer = client.get("/api/applications", headers={"Origin": "https://elsewhere.example"})
    assert answer.headers["cache-control"] == "no-store"
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def served_from(folder: Path) -> Client:
    app = FastAPI()
    add_page(app, folder)
    return Client(app)


def test_the_page_and_its_files_are_served_with_their_policy(tmp_path):
    (tmp_path / "static").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "static" / "main.js").write_text("0")
    client = served_from(tmp_path)
    page, script = client.get("/"), client.get("/static/main.js")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    for answer in (page, script):
        assert answer.status_code == 200
        assert {key: answer.headers[key] for key in HEADERS} == HEADERS
    assert client.get("/static/index.html").status_code == 404


def test_a_sentence_stands_in_the_place_of_a_page_that_is_not_built(tmp_path):
    answer = served_from(tmp_path / "dist").get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "make page" in answer.text
    assert "/docs" in answer.text


def test_the_page_is_told_what_every_answer_holds():
    assert page_types.FILE.read_text(encoding="utf-8") == page_types.typescript(), (
        "the API's answers have changed: python -m scripts.page_types"
    )


def test_the_pages_sources_make_no_markup_of_data_and_load_nothing_from_elsewhere():
    sources = built_folder().parents[1]
    for path in [sources / "index.html", *sources.glob("src/**/*.*"), *sources.glob("public/**/*.*")]:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, path
        assert "https://" not in text, path
        assert "innerHTML" not in text, path
    index = (sources / "index.html").read_text(encoding="utf-8")
    assert "<style" not in index
    assert index.count("<script") == index.count('<script type="module" src=') == 1


@pytest.mark.parametrize(
    "path",
    [
        "/static/..%2f__init__.py",
        "/static/%2e%2e/__init__.py",
        "/static/%2e%2e%2f%2e%2e%2fpyproject.toml",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/",
    ],
)
def test_nothing_beside_the_page_is_served(client, path):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/graph",
        "/nodes/8/records?limit=2",
        "/trace?direction=backward&record=8%23write%230%230",
        "/values?record=8%23write%230%230",
    ],
)
def test_last_is_the_newest_application(path):
    client = Client(create_app(MemoryQueries([run(20)]), materialize=materialize))
    named = client.get(f"{BASE}{path}")
    newest = client.get(f"/api/applications/last{path}")
    assert (newest.status_code, newest.content) == (200, named.content)


def test_last_can_be_put_into_neo4j():
    put: list[str] = []

    def noting(application_id, query):
        put.append(application_id)
        return materialize(application_id, query)

    client = Client(create_app(MemoryQueries([run(20)]), materialize=noting))
    answer = client.post("/api/applications/last/trace/graph", params=FIRST_OUTPUT)
    assert (answer.status_code, put) == (200, [APP])


def test_an_application_that_is_called_last_wins():
    client = Client(create_app(with_an_old_one_called_last()))
    assert client.get("/api/applications").json()["applications"][0]["application_id"] == APP
    assert client.get("/api/applications/last").json()["application_id"] == "last"


def test_last_of_no_applications_is_not_found():
    answer = Client(create_app(MemoryQueries())).get("/api/applications/last")
    assert answer.status_code == 404
    assert "no application yet" in answer.json()["detail"]


@pytest.mark.parametrize(
    "path",
    [
        "/nodes/8/records?limit=2",
        f"/nodes/{APP}%238/records?limit=2",
        "/trace?direction=forward&path=/data/weather.csv&row=1&limit=1",
    ],
)
def test_the_pages_of_last_go_on_with_the_same_application(path):
    client = Client(create_app(MemoryQueries([run(260)])))
    asked = f"/api/applications/last{path}"
    link = client.get(asked).headers["link"]
    following = urljoin(f"http://host{asked}", link[1 : link.index(">")])
    assert following.startswith(f"http://host{BASE}/")
    second = client.get(following.removeprefix("http://host"))
    assert second.status_code == 200
    assert second.json() != client.get(asked).json()
