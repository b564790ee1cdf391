"""Every input has an end: addresses, headers, bodies, parameters; HEAD; questions that wait for a place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import httpx
import pytest

from lineage_api.app import create_app
from lineage_api.limits import MAX_HEADER_BYTES, MAX_HEADERS, MAX_TARGET
from lineage_service.testing.queries import MemoryQueries
from tests.support.api_client import Client
from tests.support.flights_and_weather import APP, RUNNING, materialize, questions

BASE = f"/api/applications/{APP}"
TRACE = {"direction": "backward", "node": "8", "partition": 0, "offset": 0}


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(create_app(questions(), materialize=materialize))


def refused(answer: httpx.Response, status: int) -> str:
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    return str(answer.json()["detail"])


def test_an_address_that_is_too_long_is_414(client):
    longest = MAX_TARGET - len("/healthzx=")
    assert client.get("/healthz", params={"x": "x" * longest}).status_code == 422
    answer = client.get("/healthz", params={"x": "x" * (longest + 1)})
    assert f"{MAX_TARGET:,} bytes" in refused(answer, 414)


def test_the_longest_parameters_fit(client):
    answer = client.get(f"{BASE}/nodes/8/records", params={"text": "\N{SNOWMAN}" * 4096})
    assert answer.status_code == 200
    answer = client.get(f"{BASE}/nodes/8/records", params={"text": "\N{GRINNING FACE}" * 4097})
    assert "query.text" in refused(answer, 422)


@pytest.mark.parametrize(
    "headers",
    [{"X-Large": "x" * MAX_HEADER_BYTES}, {f"X-{number}": "x" for number in range(MAX_HEADERS)}],
    ids=["large", "many"],
)
def test_headers_that_are_too_large_or_too_many_are_431(client, headers):
    refused(client.get("/healthz", headers=headers), 431)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_body_is_413_and_never_read(client, method):
    def endless() -> Iterator[bytes]:
        raise AssertionError("it was read")
        yield b""

    for content in (b"direction=backward", endless()):
        options = (
            {"content": content}
            if isinstance(content, bytes)
            else {"headers": {"Transfer-Encoding": "chunked"}}
        )
        response = client.request(method, f"{BASE}/trace/graph", **options)
        assert "belong in the address" in refused(response, 413)
    assert client.request("POST", f"{BASE}/trace/graph", params=TRACE, content=b"").status_code == 200


@pytest.mark.parametrize("path", [f"{BASE}/nodes/8/records?text=%ff", "/api/applications/%c3%28", "/%80"])
def test_an_address_that_is_no_utf8_is_400(client, path):
    assert "UTF-8" in refused(client.get(path), 400)


@pytest.mark.parametrize(
    ("path", "where"),
    [
        (f"/api/applications/{APP}%0a", "path.app"),
        ("/api/applications/%00", "path.app"),
        (f"{BASE}/nodes/a%09%238/records", "path.node"),
        (f"{BASE}/trace?direction=backward&path=/data/%00&row=1", "query.path"),
        (f"{BASE}/trace?direction=backward&node=8&key=a&to=%1b%238", "query.to"),
        (f"{BASE}/trace?direction=backward&node=8&key=a&cursor=%20", "query.cursor"),
        (f"{BASE}/values?record=a%00%230%230%230", "query.record"),
        (f"{BASE}/values?record={APP}%23%C2%B2%230%230", "query.record"),
        (f"{BASE}/values?record=read%230%23{'9' * 19}", "query.record"),
        (f"{BASE}/nodes/8/records?partition={1 << 64}", "query.partition"),
        (f"{BASE}/nodes/8/records?limit={'9' * 5000}", "query.limit"),
        (f"{BASE}/nodes/8/records?limit=1e3", "query.limit"),
        (f"{BASE}/nodes/8/records?limit=NaN", "query.limit"),
        ("/api/applications?limit=0", "query.limit"),
        ("/api/applications?cursor=7", "query.cursor"),
        ("/api/applications?status=running", "query.status"),
        ("/healthz?verbose=1", "query.verbose"),
        ("/metrics?name=up", "query.name"),
        (f"{BASE}?limit=3", "query.limit"),
        (f"{BASE}/graph?depth=3", "query.depth"),
        (f"{BASE}/nodes/8/records?limit=3&limit=4", "query.limit"),
        (f"{BASE}/nodes/8/records?limit=3&limit=3", "query.limit"),
    ],
)
def test_what_a_parameter_may_not_hold_is_422_and_named(client, path, where):
    answer = client.get(path)
    refused(answer, 422)
    assert where in [error["where"] for error in answer.json()["errors"]]


def test_an_answer_to_thousands_of_wrong_parameters_stays_short(client):
    answer = client.get("/healthz?" + "&".join(f"p{number}{'x' * 200}" for number in range(300)))
    refused(answer, 422)
    assert len(answer.content) < 5_000


def test_searched_texts_may_hold_anything(client):
    for text in ("\x00", "\t", "\N{SNOWMAN}", "%", "'--", "\\"):
        assert (
            client.get(f"{BASE}/nodes/8/records", params={"text": text, "key": text}).json()["records"] == []
        )


@pytest.mark.parametrize(
    "path",
    ["/api/applications", BASE, f"{BASE}/nodes/0/records", "/healthz", "/", "/static/nothing.js", "/nowhere"],
)
def test_head_has_the_headers_of_get_and_no_body(client, path):
    get, head = client.get(path), client.request("HEAD", path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    assert head.headers["content-length"] == get.headers["content-length"]
    assert head.headers["content-type"] == get.headers["content-type"]


def test_where_get_is_allowed_head_is(client):
    assert client.request("DELETE", "/api/applications").headers["allow"] == "GET, HEAD"
    head = client.request("HEAD", f"{BASE}/trace/graph")
    assert (head.status_code, head.headers["allow"]) == (405, "POST")


def test_pages_of_applications_follow_the_link(client):
    first = client.get("/api/applications?limit=1")
    assert [application["application_id"] for application in first.json()["applications"]] == [RUNNING]
    second = client.get(str(httpx.URL("/api/applications?limit=1").join(first.links["next"]["url"])))
    assert [application["application_id"] for application in second.json()["applications"]] == [APP]
    assert second.json()["next"] is None
    assert "link" not in second.headers


@pytest.mark.parametrize("accept", ["application/json", "text/csv"])
@pytest.mark.parametrize(
    ("path", "more"),
    [
        (f"{BASE}/nodes/0/records?text=U&limit=100", 2),
        (f"{BASE}/trace?direction=backward&node=10&partition=1&offset=0&limit=9", 2),
    ],
)
def test_pages_follow_the_link_to_the_end_in_json_and_csv(client, path, more, accept):
    url, pages, seen = httpx.URL(f"http://lineage{path}"), 0, set()
    while True:
        answer = client.get(str(url), headers={"Accept": accept})
        assert answer.status_code == 200
        assert answer.text not in seen
        seen.add(answer.text)
        if "next" not in answer.links:
            break
        url, pages = url.join(answer.links["next"]["url"]), pages + 1
    assert pages == more


class Slow(MemoryQueries):
    """Notes how many ask at the same time; each answer takes a while."""

    def __init__(self) -> None:
        super().__init__()
        self.asking = self.most = 0
        self.go = threading.Event()
        self._lock = threading.Lock()

    def applications(self):
        with self._lock:
            self.asking += 1
            self.most = max(self.most, self.asking)
        self.go.wait(60)
        with self._lock:
            self.asking -= 1
        return ()


def ask_at_once(
    slow: Slow, clients: int, *, wait_s: float, opens_after_s: float = 0.2
) -> list[httpx.Response]:
    """The answers to all; the first ones get theirs so long after they are all in there."""

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(create_app(slow, max_queries=3, wait_s=wait_s))
        async with httpx.AsyncClient(transport=transport, base_url="http://lineage") as client:
            asked = [asyncio.create_task(client.get("/api/applications")) for _ in range(clients)]
            while slow.asking < 3:
                await asyncio.sleep(0.01)
            assert (await client.get("/healthz")).status_code == 200  # nobody waits for that one
            await asyncio.sleep(opens_after_s)
            slow.go.set()
            return list(await asyncio.gather(*asked))

    return asyncio.run(ask())


def test_so_many_questions_are_asked_at_a_time_and_others_wait():
    slow = Slow()
    answers = ask_at_once(slow, 16, wait_s=60)
    assert [answer.status_code for answer in answers] == [200] * 16
    assert slow.most == 3


def test_who_has_waited_in_vain_is_told_to_come_again():
    answers = ask_at_once(Slow(), 5, wait_s=0.2, opens_after_s=1)
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 503, 503]
    (refusal, _) = (answer for answer in answers if answer.status_code == 503)
    assert refusal.headers["retry-after"] == "1"
    assert refusal.json()["type"] == "urn:lineage-master:unavailable"


def test_when_very_many_wait_nobody_else_does():
    answers = ask_at_once(Slow(), 110, wait_s=60)
    assert [answer.status_code for answer in answers].count(503) == 7
