"""`lineage serve` as a process: it says where it is, answers, and leaves cleanly."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from lineage_service.cli.serve import CannotListenError, command
from lineage_service.settings import Settings

_DEADLINE_S = 120
#: The command with the twin in the place of the stores.
_PROGRAM = """
import argparse, sys, types
from pathlib import Path
from lineage_service.settings import Settings
from tests.support.flights_and_weather import questions

tracing = types.ModuleType("lineage_service.cli.stores")
tracing.open_queries = lambda settings, **options: questions()
tracing.open_materializer = lambda settings: None
sys.modules["lineage_service.cli.stores"] = tracing

from lineage_service.cli.serve import command

host, *more = sys.argv[2].split()
changes = dict(each.split("=") for each in more)
settings = Settings(home=Path(sys.argv[1]), api_host=host, api_port=0, **changes)
sys.exit(command(settings, argparse.Namespace()))
"""


@pytest.fixture
def started(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    host = getattr(request, "param", "127.0.0.1")
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(tmp_path), host],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    address = tmp_path / "api.json"
    deadline = time.monotonic() + _DEADLINE_S
    while not address.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail("".join(process.communicate()))
        time.sleep(0.05)
    yield process, address
    process.kill()
    process.communicate()


@pytest.fixture
def without_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = type(sys)("lineage_service.cli.stores")
    stores.open_queries = stores.open_materializer = None
    monkeypatch.setitem(sys.modules, "lineage_service.cli.stores", stores)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_where_it_says_and_leaves_on_a_signal(started, number):
    process, address = started
    written = json.loads(address.read_text())
    assert written["pid"] == process.pid
    assert httpx.get(f"{written['url']}/readyz").json() == {"status": "ok"}
    process.send_signal(number)
    output, errors = process.communicate(timeout=_DEADLINE_S)
    assert process.returncode == 0
    assert output.count("\n") == 1
    assert f"{written['url']}/docs" in output
    assert errors == ""
    assert not address.exists()


@pytest.mark.thorough
def test_with_a_home_that_cannot_be_written_it_answers_and_says_what_that_costs(tmp_path):
    (tmp_path / "file").touch()
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(tmp_path / "file"), f"127.0.0.1 store={tmp_path / 'flows'}"],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = process.stdout.readline().partition(" is at ")[2].split()[0]
        assert httpx.get(f"{url}/readyz").json() == {"status": "ok"}
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=_DEADLINE_S)
    assert process.returncode == 0
    assert f"warning: {tmp_path / 'file' / 'api.json'} cannot be written" in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize("started", ["0.0.0.0"], indirect=True)
def test_when_others_can_reach_it_it_makes_a_token_and_says_where_but_not_which(started):
    process, address = started
    url, file = json.loads(address.read_text())["url"], address.with_name("api.token")
    token = file.read_text().strip()
    assert httpx.get(f"{url}/api/applications").status_code == 401
    answer = httpx.get(f"{url}/api/applications", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    process.terminate()
    output, errors = process.communicate(timeout=_DEADLINE_S)
    assert errors == ""
    assert f"It asks for a token, which is in {file}\n" in output
    assert token not in output


@pytest.mark.thorough
@pytest.mark.parametrize("started", ["0.0.0.0 api_auth=off"], indirect=True)
def test_it_warns_when_others_can_reach_it_and_nobody_is_asked(started):
    process, address = started
    url = json.loads(address.read_text())["url"]
    assert httpx.get(f"{url}/api/applications").status_code == 200
    process.terminate()
    _, errors = process.communicate(timeout=_DEADLINE_S)
    assert errors.startswith("warning: ")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("started", ["127.0.0.1"], indirect=True)
def test_a_page_that_calls_itself_this_machine_reads_nothing(started):
    url = json.loads(started[1].read_text())["url"]
    answer = httpx.get(f"{url}/api/applications", headers={"Host": "rebound.example"})
    assert answer.status_code == 421


@pytest.mark.parametrize("started", ["127.0.0.1"], indirect=True)
def test_what_is_too_large_is_a_problem_over_a_socket_too(started):
    url = json.loads(started[1].read_text())["url"]
    assert status_of(url, f"/healthz?{'x' * 70_000}") == 414
    with httpx.Client() as client:
        assert client.get(f"{url}/healthz", headers={"X-Large": "x" * 70_000}).status_code == 431
        assert (
            client.post(f"{url}/api/applications/a/trace/graph", content=b"x" * 1_000_000).status_code == 413
        )
        head = client.head(f"{url}/api/applications")
        assert (head.status_code, head.content, int(head.headers["content-length"]) > 100) == (200, b"", True)


def status_of(url: str, target: str) -> int:
    """httpx sends no addresses of that length."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    try:
        connection.request("GET", target)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.thorough
@pytest.mark.parametrize("started", ["127.0.0.1"], indirect=True)
def test_it_leaves_the_address_of_another_server_alone(started):
    process, address = started
    other = json.dumps({"pid": os.getpid(), "url": "http://127.0.0.1:1"})
    address.write_text(other)
    process.terminate()
    process.communicate(timeout=_DEADLINE_S)
    assert address.read_text() == other


@pytest.mark.parametrize(
    ("host", "port"), [("127.0.0.1", 70_000), ("no.such.host.invalid", 0), ("192.0.2.1", 0)]
)
def test_an_impossible_address_is_one_clear_line(tmp_path, without_stores, host, port):
    settings = Settings(home=tmp_path, api_host=host, api_port=port)
    with pytest.raises(CannotListenError, match=f"{host} port {port} ") as raised:
        command(settings, None)
    assert "\n" not in str(raised.value)


def test_a_taken_port_is_one_clear_line(tmp_path, without_stores):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = Settings(home=tmp_path, api_port=port)
        with pytest.raises(CannotListenError, match=f"127.0.0.1 port {port} .*in use.*--api-port") as raised:
            command(settings, None)
    assert "\n" not in str(raised.value)
