"""The HTTP API as a Spark driver asks it: JSON over the standard library, pages joined, errors in words.

Knows the shapes of docs/api.md and nothing of Spark. Safe to use from several threads.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

from spark_agent.client.trace_starts import PLAIN
from spark_agent.contract.home import lineage_home

__all__ = ["ApiClient", "TraceError"]

DEFAULT = "http://127.0.0.1:8080"
#: The most that the API gives in one page.
PAGE = 10_000
_TIMEOUT_S = 120.0
_POLL_S = 0.5


class TraceError(Exception):
    """A question about lineage that was not answered; the text says why, and what to do."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status  # of HTTP; 0: nobody answered


def default_address(environment: Mapping[str, str]) -> str:
    """The API that is meant where none is named: that of the home folder, else the default."""
    try:
        with open(os.path.join(lineage_home(environment), "api.json"), encoding="utf-8") as file:
            return str(json.load(file)["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return DEFAULT


class ApiClient:
    """One API. A token is taken from LINEAGE_API_TOKEN and never shown."""

    def __init__(self, address: str) -> None:
        if not address.startswith(("http://", "https://")):
            raise TraceError(f"{address!r} is no address of a lineage API, such as {DEFAULT}")
        self.address = address.rstrip("/")
        self._token = os.environ.get("LINEAGE_API_TOKEN", "").strip()

    def get(self, *path: str, **query: Any) -> dict[str, Any]:
        """The answer to GET /api/PATH. Parameters that are None are left out. Raises TraceError."""
        parts = "/".join(urllib.parse.quote(part, safe="") for part in path)
        parameters = {name: value for name, value in query.items() if value is not None}
        text = urllib.parse.urlencode(parameters, safe=PLAIN)
        url = f"{self.address}/api/{parts}" + (f"?{text}" if text else "")
        request = urllib.request.Request(url, headers={"Accept": "application/json"})
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
                answer = json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                raise TraceError(_detail(error), error.code) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise TraceError(
                f"no lineage API answers at {self.address} ({reason}): start `lineage serve`, or name it "
                "with spark.lineage.api"
            ) from None
        if not isinstance(answer, dict):
            raise TraceError(f"{self.address} is no lineage API")
        return answer

    def records(self, application: str, node: str) -> Iterator[dict[str, Any]]:
        """All records of a node."""
        cursor = None
        while True:
            page = self.get("applications", application, "nodes", node, "records", limit=PAGE, cursor=cursor)
            yield from page["records"]
            cursor = page["next"]
            if cursor is None:
                return

    def trace(self, application: str, **query: Any) -> Iterator[dict[str, Any]]:
        """The answers of a trace, page by page."""
        cursor = None
        while True:
            page = self.get("applications", application, "trace", **{"limit": PAGE, **query}, cursor=cursor)
            yield page
            cursor = page["next"]
            if cursor is None:
                return

    def wait_for(self, application: str, runs: int, events: int, within_s: float) -> str:
        """Wait until so many events, and so many runs with all their blocks, are stored.

        What is missing at the end, "" if nothing.
        """
        deadline = time.monotonic() + within_s
        while True:
            missing = self._missing(application, runs, events)
            if not missing or time.monotonic() >= deadline:
                return missing
            time.sleep(_POLL_S)

    def _missing(self, application: str, runs: int, events: int) -> str:
        try:
            stored = self.get("applications", application)
        except TraceError as error:
            if error.status != 404:
                raise
            return "nothing of it is stored yet; does `lineage consume` run?"
        counters = stored["counters"]
        if counters["runs"] < runs:
            return f"{counters['runs']} of its {runs} runs are stored; does `lineage consume` run?"
        if counters.get("events", events) < events:  # which nodes there are, and where their rows stand
            return f"{counters['events']} of its {events} events are stored; does `lineage consume` run?"
        waiting = stored["missing_blocks"] - counters.get("dropped", 0)
        return f"{waiting} blocks are not stored yet" if waiting > 0 else ""


def _detail(error: urllib.error.HTTPError) -> str:
    """What the problem says (RFC 9457), or the status where it is none."""
    try:
        problem = json.load(error)
        text = str(problem.get("detail") or problem.get("title") or error.reason)
    except (OSError, ValueError, AttributeError):
        text = str(error.reason)
    if error.code == 401:
        text += " (LINEAGE_API_TOKEN holds the token)"
    return f"{text} (HTTP {error.code})"
