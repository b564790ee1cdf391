from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from lineage_api.access import Access
from lineage_api.app import create_app
from lineage_service.lineage import Trigger
from lineage_service.settings import Settings
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.testing.queries import MemoryQueries
from lineage_service.triggering import decide
from tests.support.api_client import Client
from tests.support.api_store import build, service

JOB = "/api/jobs/Sums%20by%20shop"
TOKEN = "a-token-of-this-test"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("api")
    build(folder)
    return folder


@pytest.fixture
def client(folder: Path) -> Client:
    return Client(service(DeltaFlowStore(folder / "flows")))


def test_a_wave_has_one_answer_over_http(client: Client) -> None:
    first = client.post(f"{JOB}/decisions", params={"wave": "w1"}).json()
    assert (first["decision"], first["reason"], first["repeated"]) == ("run", "code", False)
    again = client.post(f"{JOB}/decisions", params={"wave": "w1", "code": "v1"}).json()
    assert again == {**first, "repeated": True}
    assert [wave["wave"] for wave in client.get(f"{JOB}/waves").json()["waves"]] == ["w1"]
    lines = client.get(f"{JOB}/waves", headers={"Accept": "text/csv"}).text.splitlines()
    assert [line.split(",")[1] for line in lines] == ["wave", "w1"]
    assert client.get(JOB).json()["waves"] == 1
    assert client.get("/api/jobs").json()["jobs"][0]["job"] == "Sums by shop"


@pytest.mark.parametrize("name", ["etl/daily", "waves/waves", "/a//b/", "50%2Foff/x", "ä/ö", "a/../b"])
def test_the_name_of_a_job_may_have_slashes(client: Client, name: str) -> None:
    address = f"/api/jobs/{quote(name, safe='')}"
    assert client.get(address).status_code == 404
    answer = client.post(f"{address}/decisions", params={"wave": "w1"}).json()
    assert (answer["job"], answer["reason"]) == (name, "never_ran")
    assert client.get(address).json()["job"] == name
    [wave] = client.get(f"{address}/waves").json()["waves"]
    assert (wave["job"], wave["wave"]) == (name, "w1")
    assert client.post(f"{address}/run-next").json()["run_next"] is True
    assert client.post(f"{address}/retrain").json()["job"] == name
    assert name in [entry["job"] for entry in client.get("/api/jobs").json()["jobs"]]
    assert client.get(f"{address}/decisions").status_code == 405
    assert client.get(f"{address}/elsewhere").status_code == 404


def test_the_next_wave_is_run_if_somebody_asks_for_it(client: Client) -> None:
    assert client.get(JOB).json()["run_next"] is False
    assert client.post(f"{JOB}/run-next").json()["run_next"] is True
    assert client.post(f"{JOB}/decisions", params={"wave": "asked"}).json()["reason"] == "asked"
    assert client.get(JOB).json()["run_next"] is False
    assert client.post("/api/jobs/nobody/run-next").status_code == 404


def test_a_job_trains_anew_if_somebody_asks_for_it(client: Client) -> None:
    client.post(f"{JOB}/decisions", params={"wave": "before"})
    assert client.get(JOB).json()["retrain"] is False
    assert client.post(f"{JOB}/retrain").json()["retrain"] is True
    client.post(f"{JOB}/decisions", params={"wave": "anew"})
    assert client.get(JOB).json()["retrain"] is False
    assert client.post("/api/jobs/nobody/retrain").status_code == 404


@pytest.mark.parametrize(
    ("parameters", "status"),
    [
        ({"at_least_every": "soon"}, 422),
        ({"inputs": "/etc"}, 422),
        ({"wave": ""}, 422),
        ({"bound": "0.1", "error": "os:getpid"}, 422),
        ({"bound": "0.1", "error": "/tmp/mine.py:f"}, 422),
        ({"ignore_inputs": '"'}, 422),
        ({"at_least_every": "24h", "ignore_inputs": "a,b", "deterministic": "true"}, 200),
    ],
)
def test_parameters_are_checked(client: Client, parameters: dict[str, str], status: int) -> None:
    answer = client.post("/api/jobs/other/decisions", params=parameters)
    assert answer.status_code == status, answer.text


def test_what_is_not_known_is_not_found(client: Client) -> None:
    assert client.get("/api/jobs/nobody").status_code == 404
    assert client.get("/api/jobs/nobody/waves").json()["waves"] == []
    assert client.get(f"{JOB}/decisions").status_code == 405


def test_a_decision_needs_the_token_and_a_page_of_its_own(client: Client, folder: Path) -> None:
    foreign = client.post(f"{JOB}/decisions", headers={"Sec-Fetch-Site": "cross-site"})
    assert foreign.status_code == 403
    locked = Client(create_app(MemoryQueries(), access=Access.of(TOKEN)))
    assert client.post(f"{JOB}/run-next", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    for method, address in (
        ("POST", f"{JOB}/decisions"),
        ("POST", f"{JOB}/run-next"),
        ("POST", f"{JOB}/retrain"),
        ("GET", "/api/jobs"),
        ("GET", f"{JOB}/waves"),
    ):
        assert locked.request(method, address).status_code == 401
    assert locked.get("/api/jobs", headers={"X-API-Key": TOKEN}).status_code == 503


def test_python_asks_with_the_words_of_the_command(folder: Path, tmp_path: Path) -> None:
    settings = Settings(store=str(folder / "flows"))
    answer = decide("Sums by shop", wave="w2", code="v1", settings=settings)
    assert isinstance(answer, Trigger)
    assert (answer.run, answer.reason) == (True, "code")
    assert decide("Sums by shop", at_least_every="soon", settings=settings).reason == "arguments"
    assert decide("", settings=settings).reason == "arguments"
    nowhere = decide("Sums by shop", settings=Settings(store=str(tmp_path / "nowhere")))
    assert (nowhere.run, nowhere.reason) == (True, "unavailable")
