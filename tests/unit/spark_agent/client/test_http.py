from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from spark_agent.client.http import DEFAULT, ApiClient, TraceError, default_address

Asked = list[tuple[str, str | None]]
"""(path with its query, Authorization)."""


class Answers(BaseHTTPRequestHandler):
    """Gives the prepared (status, body) one after the other."""

    asked: Asked
    prepared: list[tuple[int, bytes]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["Authorization"]))
        status, body = self.prepared.pop(0)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def api() -> Iterator[tuple[str, type[Answers]]]:
    handler = type("Prepared", (Answers,), {"asked": [], "prepared": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", handler
        server.shutdown()
        thread.join()


def test_pages_are_joined_and_names_are_quoted(api: tuple[str, type[Answers]]) -> None:
    url, handler = api
    handler.prepared[:] = [
        (200, json.dumps({"records": [each], "next": cursor}).encode())
        for each, cursor in (({"offset": 0}, "0:0"), ({"offset": 1}, None))
    ]
    assert [record["offset"] for record in ApiClient(url + "/").records("app", "app#7")] == [0, 1]
    paths = [path for path, _ in handler.asked]
    assert paths == [
        "/api/applications/app/nodes/app%237/records?limit=10000",
        "/api/applications/app/nodes/app%237/records?limit=10000&cursor=0%3A0",
    ]


def test_the_token_of_the_environment_is_sent_and_never_shown(
    api: tuple[str, type[Answers]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, handler = api
    monkeypatch.setenv("LINEAGE_API_TOKEN", "s3cret")
    handler.prepared[:] = [(200, b"{}"), (401, b'{"detail": "no"}')]
    client = ApiClient(url)
    client.get("applications")
    with pytest.raises(TraceError, match="LINEAGE_API_TOKEN") as refused:
        client.get("applications")
    assert [token for _, token in handler.asked] == ["Bearer s3cret"] * 2
    assert "s3cret" not in repr(client) + str(refused.value)


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (422, b'{"title": "Unprocessable", "detail": "row 9 is not there"}', "row 9 is not there"),
        (500, b"<html>", "HTTP 500"),
        (200, b"<html>", "no lineage API answers"),
        (200, b"[]", "is no lineage API"),
    ],
)
def test_problems_are_told_in_their_own_words(
    status: int, body: bytes, text: str, api: tuple[str, type[Answers]]
) -> None:
    url, handler = api
    handler.prepared[:] = [(status, body)]
    with pytest.raises(TraceError, match=text):
        ApiClient(url).get("applications")


def test_the_address_is_the_home_folders_else_the_default(tmp_path: Path) -> None:
    assert default_address({"LINEAGE_HOME": str(tmp_path)}) == DEFAULT
    (tmp_path / "api.json").write_text('{"pid": 1, "url": "http://127.0.0.1:99"}')
    assert default_address({"LINEAGE_HOME": str(tmp_path)}) == "http://127.0.0.1:99"
