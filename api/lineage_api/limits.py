"""Limits of requests, which are checked before parsing; HEAD as GET; the number of concurrent queries.

The limits of single parameters are in parameters/. These are the limits of a whole request: target,
headers, body, and that it is UTF-8. `ConcurrencyLimiter` runs only so many queries at a time that the memory
of the process suffices. Others wait, and get a 503 if that takes too long. Knows nothing of what is asked.
"""

from __future__ import annotations

import asyncio
import math
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lineage_api.problems import ORIGINAL_METHOD, refusal

__all__ = [
    "MAX_HEADERS",
    "MAX_HEADER_BYTES",
    "MAX_TARGET",
    "ConcurrencyLimiter",
    "HeadAsGet",
    "RequestLimits",
]

#: Bytes of path and query: the longest parameter, 4,608 characters, percent-encoded, and all beside it.
MAX_TARGET = 65_536
MAX_HEADER_BYTES = 16_384
MAX_HEADERS = 100
#: Beyond this number, waiting would not help: there are more clients than the service can serve in time.
_MAX_WAITING = 100
#: `Retry-After` of refused requests is at most this: a query may end at any moment.
_MAX_RETRY_S = 5
_QUERIES = ("/api/applications", "/api/jobs")


class RequestLimits:
    """ASGI middleware: refuses a request that is too large, has a body, or is not UTF-8."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        violation = _violation(scope) if scope["type"] == "http" else None
        if violation is None:
            await self._app(scope, receive, send)
        else:
            await refusal(scope, *violation)(scope, receive, send)


def _violation(scope: Scope) -> tuple[HTTPStatus, str] | None:
    headers = scope["headers"]
    raw_path, query = scope.get("raw_path") or b"", scope["query_string"]
    if len(raw_path) + len(query) > MAX_TARGET:
        return HTTPStatus.REQUEST_URI_TOO_LONG, f"An address may have at most {MAX_TARGET:,} bytes."
    if (
        len(headers) > MAX_HEADERS
        or sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES
    ):
        return (
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"A request may have at most {MAX_HEADERS} headers of {MAX_HEADER_BYTES:,} bytes in total.",
        )
    # The headers decide: a body is never read.
    if any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 ") != b"")
        for name, value in headers
    ):
        return (
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "No endpoint takes a body: parameters belong in the address.",
        )
    for part in (raw_path, query):
        try:
            unquote_to_bytes(part).decode("utf-8")
        except UnicodeDecodeError:
            return HTTPStatus.BAD_REQUEST, "The address is not percent-encoded UTF-8."
    return None


class HeadAsGet:
    """ASGI middleware: answers HEAD with the headers of GET."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET", ORIGINAL_METHOD: "HEAD"}, receive, without_body)


class ConcurrencyLimiter:
    """ASGI middleware: at most `max_queries` run at a time; others wait, at most `wait_s`.

    A slot is free again when the result is ready, not when the client has read it: slow readers hold none.
    Probes, metrics and the lag do not wait, so that they always show the state of the service.
    """

    def __init__(self, app: ASGIApp, *, max_queries: int, wait_s: float) -> None:
        self._app = app
        self._wait_s = wait_s
        self._slots = asyncio.Semaphore(max_queries)
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(_QUERIES):
            await self._app(scope, receive, send)
            return
        if not await self._acquire():
            detail = "Too many queries are running; ask again in a moment."
            headers = {"Retry-After": str(math.ceil(min(self._wait_s, _MAX_RETRY_S)))}
            await refusal(scope, HTTPStatus.SERVICE_UNAVAILABLE, detail, headers)(scope, receive, send)
            return
        has_slot = True

        def release() -> None:
            nonlocal has_slot
            if has_slot:
                has_slot = False
                self._slots.release()

        async def watched(message: Message) -> None:
            release()
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            release()

    async def _acquire(self) -> bool:
        if not self._slots.locked():
            return await self._slots.acquire()  # immediately: this awaits nothing
        if self._waiting >= _MAX_WAITING:
            return False
        self._waiting += 1
        try:
            await asyncio.wait_for(self._slots.acquire(), self._wait_s)
        except asyncio.TimeoutError:
            return False
        finally:
            self._waiting -= 1
        return True
