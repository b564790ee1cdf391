"""ETags over a real flow store: the same answer is not made twice, and another one is never taken for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineage_api.app import create_app
from lineage_api.etags import etag_function, is_current
from lineage_service.decode.batches import event_batch
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from spark_agent.emitter.lineage_api import LineageApi
from tests.support.api_client import Client
from tests.support.lineage_messages import event, messages
from tests.support.own_program import APP, Wire, cut_wire, two_sources

BASE = f"/api/applications/{APP}"
TAGGED = (BASE, f"{BASE}/graph")


class Counting(LineageQueries):
    """Counts what it is asked."""

    asked = 0

    def application(self, application_id: str):
        self.asked += 1
        return super().application(application_id)

    def graph(self, application_id: str):
        self.asked += 1
        return super().graph(application_id)


class Bench:
    def __init__(self, folder: Path) -> None:
        self.store = DeltaFlowStore(folder / "flows")
        self.questions = Counting(DeltaFlowStore(folder / "flows"), time_budget_s=60)
        self.client = self.another_client("1")

    def another_client(self, release: str) -> Client:
        return Client(create_app(self.questions, etag_of=etag_function(self.store, release)))


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    return cut_wire(monkeypatch)


@pytest.fixture
def bench(wire: Wire, tmp_path: Path) -> Bench:
    with LineageApi(APP, "") as lineage:
        two_sources(lineage)
    wire.questions(tmp_path)
    return Bench(tmp_path)


@pytest.mark.parametrize("path", TAGGED)
def test_who_holds_the_answer_is_told_so_without_the_work(bench, path):
    first = bench.client.get(path)
    tag = first.headers["etag"]
    assert tag.startswith('"')
    assert first.headers["cache-control"] == "private, no-cache"
    asked = bench.questions.asked
    for given in (tag, f"W/{tag}", f'"another", {tag}'):
        for method in ("GET", "HEAD"):
            again = bench.client.request(method, path, headers={"If-None-Match": given})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
            assert again.headers["cache-control"] == "private, no-cache"
    assert bench.questions.asked == asked
    for given in ('"another"', tag.strip('"'), ""):
        assert bench.client.get(path, headers={"If-None-Match": given}).content == first.content


def test_answers_of_another_release_have_tags_of_their_own(bench):
    tag = bench.client.get(BASE).headers["etag"]
    other = bench.another_client("2").get(BASE, headers={"If-None-Match": tag})
    assert other.status_code == 200
    assert other.headers["etag"] != tag


def test_another_process_over_the_store_gives_the_same_tag(bench, tmp_path):
    again = Bench(tmp_path).client.get(BASE)
    assert again.headers["etag"] == bench.client.get(BASE).headers["etag"]


def test_the_compressed_answer_has_a_tag_of_its_own_and_either_is_known(bench):
    path = f"{BASE}/graph"
    plain = bench.client.get(path, headers={"Accept-Encoding": "identity"})
    small = bench.client.get(path, headers={"Accept-Encoding": "gzip"})
    assert small.headers["content-encoding"] == "gzip"
    assert {"Accept-Encoding"} == {each.headers["vary"] for each in (plain, small)}
    assert plain.content == small.content  # as httpx unpacks it
    tags = [each.headers["etag"] for each in (plain, small)]
    assert tags[1] == f'{tags[0][:-1]}-gzip"'
    for tag in tags:
        again = bench.client.get(path, headers={"If-None-Match": tag, "Accept-Encoding": "gzip"})
        assert (again.status_code, again.headers["etag"]) == (304, tag)


@pytest.mark.parametrize("path", TAGGED)
def test_whatever_is_written_of_the_application_makes_another_answer(bench, path):
    tag = bench.client.get(path).headers["etag"]
    late = event(contract.NODE_REGISTERED, application_id=APP, node=77, name="late")
    bench.store.write_events(event_batch("group/node-1", messages(late)))
    again = bench.client.get(path, headers={"If-None-Match": tag})
    assert again.status_code == 200
    assert again.headers.get("etag") != tag


@pytest.mark.parametrize("path", TAGGED)
def test_what_was_deleted_is_gone_for_who_holds_it_too(bench, path):
    tag = bench.client.get(path).headers["etag"]
    bench.store.delete(APP)
    assert bench.client.get(path, headers={"If-None-Match": tag}).status_code == 404


@pytest.mark.parametrize("path", TAGGED)
def test_an_application_that_is_not_complete_has_no_tag(wire, tmp_path, path):
    wire.lost = contract.FLOW_TOPIC
    with LineageApi(APP, "") as lineage:
        two_sources(lineage)
    wire.questions(tmp_path)
    answer = Bench(tmp_path).client.get(path)
    assert answer.status_code == 200
    assert "etag" not in answer.headers
    assert answer.headers["cache-control"] == "no-store"


def test_answers_that_show_rows_of_files_or_all_applications_have_no_tag(bench):
    for path in (
        "/api/applications",
        f"{BASE}/nodes/9/records",
        f"{BASE}/trace?direction=backward&node=9&partition=0&offset=0",
        f"{BASE}/values?record=write%230%230",
    ):
        answer = bench.client.get(path)
        assert answer.status_code == 200, answer.text
        assert "etag" not in answer.headers
        assert answer.headers["cache-control"] == "no-store"


def test_a_star_is_no_tag():
    assert not is_current("*", '"a"')
    assert is_current('"b" , W/"a"', '"a"')


@pytest.mark.parametrize("tail", ["", "/graph"])
def test_what_is_held_of_last_is_not_taken_for_a_newer_application(bench, tail):
    last = f"/api/applications/last{tail}"
    tag = bench.client.get(last).headers["etag"]
    assert tag == bench.client.get(BASE + tail).headers["etag"]
    assert bench.client.get(last, headers={"If-None-Match": tag}).status_code == 304
    newer = event(contract.APPLICATION_STARTED, application_id="newer", time=1 << 42, name="newer")
    bench.store.write_events(event_batch("group/node-2", messages(newer)))
    changed = bench.client.get(last, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.json()["application_id"] == "newer"
