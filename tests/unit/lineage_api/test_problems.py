"""Every error is one shape, says what to do, and shows no stack trace."""

from __future__ import annotations

import asyncio
import logging

import pytest

from lineage_api.app import create_app
from lineage_service.errors import (
    InvalidQueryError,
    LineageError,
    NotFoundError,
    TimeBudgetError,
    UnavailableError,
)
from lineage_service.testing.queries import MemoryQueries
from tests.support.api_client import Client
from tests.support.flights_and_weather import APP, materialize, questions

BASE = f"/api/applications/{APP}"
START = {"direction": "backward", "node": "8", "partition": "0", "offset": "0"}


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(create_app(questions(), materialize=materialize))


def problem(answer, status: int, kind: str) -> dict:
    """The problem, after the parts that all have."""
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert set(body) - {"errors"} == {"type", "title", "status", "detail", "instance"}
    assert body["status"] == status
    assert body["type"] == ("about:blank" if kind == "about:blank" else f"urn:lineage-master:{kind}")
    assert "Traceback" not in answer.text
    return body


class Failing(MemoryQueries):
    """Questions that all fail in one way."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def applications(self):
        raise self._error


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (NotFoundError("no such row in /data/flights.csv"), 404, "not-found"),
        (InvalidQueryError("say which node"), 422, "invalid-query"),
        (TimeBudgetError("30 s are spent"), 504, "time-budget"),
        (UnavailableError("the flow store cannot be read"), 503, "unavailable"),
    ],
)
@pytest.mark.parametrize("path", ["/api/applications", "/readyz"])
def test_an_error_of_the_service_becomes_its_problem(error, status, kind, path):
    body = problem(Client(create_app(Failing(error))).get(path), status, kind)
    assert body["detail"] == str(error)
    assert body["instance"] == path


@pytest.mark.parametrize("error", [ZeroDivisionError("secret"), LineageError("secret")])
def test_what_nobody_foresaw_is_logged_and_not_shown(error, caplog):
    with caplog.at_level(logging.ERROR):
        answer = Client(create_app(Failing(error))).get("/api/applications")
    body = problem(answer, 500, "unexpected")
    assert "secret" not in answer.text
    (logged,) = caplog.records
    assert logged.exc_info[1] is error
    assert logged.args[0] in body["detail"]


def test_a_request_that_the_servers_end_cuts_short_is_told_so():
    body = problem(Client(create_app(Failing(asyncio.CancelledError()))).get("/readyz"), 503, "unavailable")
    assert "stopping" in body["detail"]


def test_liveness_does_not_depend_on_the_stores():
    assert Client(create_app(Failing(UnavailableError("gone")))).get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api/applications/nothing-like-it",
        "/api/applications/nothing-like-it/graph",
        f"{BASE}/nodes/99/records",
        f"{BASE}/nodes/other%238/records",
        f"{BASE}/trace?direction=backward&node=8&partition=0&offset=9999",
        f"{BASE}/trace?direction=forward&path=/data/flights.csv&row=9999",
        f"{BASE}/values?record=read%230%239999",
    ],
)
def test_what_is_not_there_is_404(client, path):
    problem(client.get(path), 404, "not-found")


@pytest.mark.parametrize(
    "path", ["/nowhere", "/api", "/api/applications/a/b/c", "/api/lags", "/static/none.js"]
)
def test_an_unknown_address_is_404(client, path):
    assert path in problem(client.get(path), 404, "about:blank")["detail"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/applications"), ("DELETE", BASE), ("GET", f"{BASE}/trace/graph"), ("POST", "/")],
)
def test_an_unknown_method_is_405_and_names_the_known(client, method, path):
    answer = client.request(method, path)
    problem(answer, 405, "about:blank")
    assert answer.headers["allow"]


def test_the_instance_is_a_uri_reference(client):
    answer = client.get(f"{BASE}/nodes/other%238/records")
    assert answer.json()["instance"] == f"{BASE}/nodes/other%238/records"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"direction": "sideways"}, "query.direction"),
        ({"direction": None}, "query.direction"),
        ({"partition": "-1"}, "query.partition"),
        ({"partition": str(1 << 31)}, "query.partition"),
        ({"offset": "-1"}, "query.offset"),
        ({"offset": str(1 << 53)}, "query.offset"),
        ({"offset": "1.5"}, "query.offset"),
        ({"node": "eight"}, "query.node"),
        ({"node": "1" * 513}, "query.node"),
        ({"to": "nowhere"}, "query.to"),
        ({"depth": "0"}, "query.depth"),
        ({"depth": "10001"}, "query.depth"),
        ({"limit": "0"}, "query.limit"),
        ({"limit": "10001"}, "query.limit"),
        ({"limit": "many"}, "query.limit"),
        ({"cursor": ""}, "query.cursor"),
        ({"cursor": "x" * 16385}, "query.cursor"),
        ({"values": "perhaps"}, "query.values"),
        ({"record": ""}, "query.record"),
        ({"record": "x" * 4609}, "query.record"),
        ({"path": "x" * 4097}, "query.path"),
        ({"row": "-1"}, "query.row"),
        ({"key": "x" * 4097}, "query.key"),
        ({"drection": "backward"}, "query.drection"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_trace_parameter_beyond_its_limits_is_422(client, method, change, where):
    parameters = {name: value for name, value in {**START, **change}.items() if value is not None}
    path = f"{BASE}/trace" if method == "GET" else f"{BASE}/trace/graph"
    body = problem(client.request(method, path, params=parameters), 422, "invalid-query")
    assert where in [error["where"] for error in body["errors"]]
    assert where in body["detail"]
    assert "x" * 100 not in body["detail"]


@pytest.mark.parametrize(
    "start",
    [
        {},
        {"node": "8"},
        {"node": "8", "partition": "0"},
        {"node": "8", "offset": "0"},
        {"partition": "0", "offset": "0"},
        {"key": "ORD 06h"},
        {"path": "/data/flights.csv"},
        {"row": "3"},
        {"record": "write#0#0", "key": "ORD 06h"},
        {"node": "8", "partition": "0", "offset": "0", "key": "ORD 06h"},
        {"node": "8", "key": "ORD 06h", "path": "/data/flights.csv", "row": "3"},
    ],
)
def test_a_trace_needs_exactly_one_start(client, start):
    answer = client.get(f"{BASE}/trace", params={"direction": "backward", **start})
    assert "name one start" in problem(answer, 422, "invalid-query")["detail"]


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=10001", "partition=-1", f"text={'x' * 4097}", f"key={'x' * 4097}", "txt=storm"],
)
def test_a_record_parameter_beyond_its_limits_is_422(client, query):
    problem(client.get(f"{BASE}/nodes/8/records?{query}"), 422, "invalid-query")


@pytest.mark.parametrize(
    "path",
    [
        f"/api/applications/{'a' * 513}",
        f"{BASE}/nodes/eight/records",
        f"{BASE}/values",
        f"{BASE}/values?record={'x' * 4609}",
        f"{BASE}/values?record=0%230&limit=3",
    ],
)
def test_paths_and_values_have_limits_too(client, path):
    problem(client.get(path), 422, "invalid-query")


def test_an_ambiguous_record_and_a_foreign_cursor_are_422(client):
    ambiguous = client.get(f"{BASE}/trace?direction=backward&record=write%230%230")
    assert "say which node" in problem(ambiguous, 422, "invalid-query")["detail"]
    problem(client.get(f"{BASE}/nodes/8/records?cursor=stolen"), 422, "invalid-query")


def test_without_neo4j_a_trace_cannot_be_put_there():
    answer = Client(create_app(questions())).post(f"{BASE}/trace/graph", params=START)
    assert "LINEAGE_NEO4J_URI" in problem(answer, 503, "unavailable")["detail"]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_sites_page_may_not_write(client, site):
    answer = client.post(f"{BASE}/trace/graph", params=START, headers={"Sec-Fetch-Site": site})
    problem(answer, 403, "about:blank")


def test_the_own_page_may_write(client):
    answer = client.post(f"{BASE}/trace/graph", params=START, headers={"Sec-Fetch-Site": "same-origin"})
    assert answer.status_code == 200
