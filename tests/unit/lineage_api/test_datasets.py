"""Datasets over HTTP, of the flow store in memory."""

from __future__ import annotations

import csv
import io
from typing import Any
from urllib.parse import quote

import pytest

from lineage_api.app import create_app
from lineage_service.result_tables import DATASET_COLUMNS, HISTORY_COLUMNS
from lineage_service.store.errors import StoreUnavailableError
from tests.support.api_client import Client
from tests.support.dataset_applications import Job, dataset, queries_of

ODD = "/data/a b#c?d%20e/ü&f=/x;y"


@pytest.fixture(scope="module")
def client() -> Client:
    nightly = Job("app-1", "Nightly", 10)
    nightly.write("/data/monthly", [nightly.read("/in/*.csv", ["/in/a.csv", "/in/b.csv"], rows=4)], rows=4)
    report = Job("app-2", "Report", 20)
    report.write(ODD, [report.read("/data/monthly", ["/data/monthly/part-0"], rows=4)], rows=4)
    topic = Job("app-3", "Stream", 30)
    topic.write("", dataset=dataset("visits", "kafka", "kafka://b:9092"))
    return Client(create_app(queries_of(nightly.end(), report.end(), topic)))


def get(client: Client, address: str) -> dict[str, Any]:
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_datasets_are_listed(client: Client) -> None:
    answer = get(client, "/api/datasets")
    assert [one["path"] for one in answer["datasets"]] == [
        "kafka://b:9092/visits",
        ODD,
        "/data/monthly",
        "/in",
    ]
    monthly = answer["datasets"][2]
    assert (monthly["writers"], monthly["readers"], monthly["runs"]) == (1, 1, 1)
    assert monthly["written"]["name"] == "Nightly"
    assert monthly["written"]["rows"] == 4


def test_pages_are_linked(client: Client) -> None:
    answer = client.get("/api/datasets?limit=3")
    rest = get(client, f"/api/datasets?limit=3&cursor={answer.json()['next']}")
    assert f"cursor={answer.json()['next']}" in answer.headers["Link"]
    assert [one["path"] for one in rest["datasets"]] == ["/in"]
    assert rest["next"] is None


@pytest.mark.parametrize("name", [ODD, ODD.rpartition("/")[2], "visits", "monthly"])
def test_one_dataset_is_found_by_a_name_with_any_characters(client: Client, name: str) -> None:
    answer = get(client, f"/api/dataset?name={quote(name, safe='')}")
    assert answer["dataset"]["path"].endswith(name)
    assert answer["history"][0]["kind"] in ("write", "read")


def test_the_graph_crosses_applications(client: Client) -> None:
    answer = get(client, f"/api/dataset?name={quote(ODD)}&direction=backward")
    assert [(node["layer"], node["name"]) for node in answer["graph"]["nodes"]] == [
        (-4, "/in"),
        (-3, "Nightly"),
        (-2, "/data/monthly"),
        (-1, "Report"),
        (0, ODD),
    ]
    assert get(client, f"/api/dataset?name={quote(ODD)}&depth=1")["graph"]["truncated"] is True


def test_csv_has_a_line_for_each(client: Client) -> None:
    as_csv = {"Accept": "text/csv"}
    listed = client.get("/api/datasets?limit=2", headers=as_csv)
    assert listed.headers["Lineage-Total"] == "4"
    assert listed.headers["Lineage-Next"]
    rows = list(csv.reader(io.StringIO(listed.text)))
    assert rows[0] == list(DATASET_COLUMNS)
    assert len(rows) == 3
    assert {len(row) for row in rows} == {len(DATASET_COLUMNS)}
    history = list(csv.reader(io.StringIO(client.get("/api/dataset?name=monthly", headers=as_csv).text)))
    assert history[0] == list(HISTORY_COLUMNS)
    assert [row[0] for row in history[1:]] == ["read", "write"]


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("/api/dataset?name=/data/monthyl", 404, "nearest: /data/monthly"),
        ("/api/dataset?name=a&namespace=nowhere", 404, "no application wrote or read a dataset 'a'"),
        ("/api/dataset", 422, "name"),
        ("/api/dataset?name=", 422, "name"),
        ("/api/dataset?name=monthly&direction=up", 422, "direction"),
        ("/api/dataset?name=monthly&depth=-1", 422, "depth"),
        ("/api/dataset?name=monthly&cursor=abc", 422, "cursor"),
        ("/api/datasets?cursor=abc", 422, "cursor"),
        ("/api/datasets?limit=0", 422, "limit"),
        ("/api/datasets?txt=a", 422, "txt"),
    ],
)
def test_bad_input_is_one_problem(client: Client, address: str, status: int, said: str) -> None:
    answer = client.get(address)
    assert answer.status_code == status
    assert said in answer.text


def test_a_store_that_does_not_answer_is_a_503(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = queries_of()

    def fails() -> None:
        raise StoreUnavailableError("the flow store cannot be read")

    monkeypatch.setattr(queries._datasets, "state", fails)
    assert Client(create_app(queries)).get("/api/datasets").status_code == 503
