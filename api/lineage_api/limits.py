"""How large a request may be, refused before any of it is understood; HEAD as GET; questions at once.

What parameters may hold is in parameters.py; here are the bounds of the whole: target, headers, body, text
that is no UTF-8. `Gate` lets so many questions be asked at a time that the process keeps its memory; who
comes later waits, and is told to come again where that takes too long. Knows nothing of what is asked.
"""

from __future__ import annotations

import asyncio
import math
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lineage_api.problems import refusal

__all__ = ["ASKED_AS", "MAX_HEADERS", "MAX_HEADER_BYTES", "MAX_TARGET", "Gate", "HeadAsGet", "Limits"]

#: Bytes of path and query: the longest parameter, 4,608 characters, percent-encoded, and all beside it.
MAX_TARGET = 65_536
MAX_HEADER_BYTES = 16_384
MAX_HEADERS = 100
#: Under this key of the scope is the method as the client sent it.
ASKED_AS = "lineage.method"
#: More than these need not wait: there are more clients than a wait can serve.
_MAX_WAITING = 100
#: Said to who is turned away; places become free at any moment.
_MAX_RETRY_S = 5
_QUESTIONS = "/api/applications"


class Limits:
    """ASGI middleware: refuses what is too large, has a body, or is no UTF-8."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = _refused(scope) if scope["type"] == "http" else None
        if refused is None:
            await self._app(scope, receive, send)
        else:
            await refusal(scope, *refused)(scope, receive, send)


def _refused(scope: Scope) -> tuple[HTTPStatus, str] | None:
    headers = scope["headers"]
    raw_path, query = scope.get("raw_path") or b"", scope["query_string"]
    if len(raw_path) + len(query) > MAX_TARGET:
        return HTTPStatus.REQUEST_URI_TOO_LONG, f"An address has at most {MAX_TARGET:,} bytes here."
    if (
        len(headers) > MAX_HEADERS
        or sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES
    ):
        return (
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"A request has at most {MAX_HEADERS} headers of {MAX_HEADER_BYTES:,} bytes in all here.",
        )
    # By the headers alone: nothing of a body is ever read.
    if any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 ") != b"")
        for name, value in headers
    ):
        return (
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "Nothing here takes a body: parameters go into the address.",
        )
    for part in (raw_path, query):
        try:
            unquote_to_bytes(part).decode("utf-8")
        except UnicodeDecodeError:
            return HTTPStatus.BAD_REQUEST, "The address is not percent-encoded UTF-8."
    return None


class HeadAsGet:
    """ASGI middleware: answers HEAD with the headers that GET would have."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET", ASKED_AS: "HEAD"}, receive, without_body)


class Gate:
    """ASGI middleware: at most `at_once` questions are under way; others wait, at most `wait_s`.

    A place is free again when the answer is made, not when the client has read it: slow readers hold none.
    Probes, metrics and the lag do not wait here, so that one can see what is going on.
    """

    def __init__(self, app: ASGIApp, *, at_once: int, wait_s: float) -> None:
        self._app = app
        self._wait_s = wait_s
        self._places = asyncio.Semaphore(at_once)
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(_QUESTIONS):
            await self._app(scope, receive, send)
            return
        if not await self._enter():
            detail = "More is being asked than this service answers at a time; ask again in a while."
            headers = {"Retry-After": str(math.ceil(min(self._wait_s, _MAX_RETRY_S)))}
            await refusal(scope, HTTPStatus.SERVICE_UNAVAILABLE, detail, headers)(scope, receive, send)
            return
        is_inside = True

        def leave() -> None:
            nonlocal is_inside
            if is_inside:
                is_inside = False
                self._places.release()

        async def watched(message: Message) -> None:
            leave()
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            leave()

    async def _enter(self) -> bool:
        if not self._places.locked():
            return await self._places.acquire()  # at once: nothing is awaited in there then
        if self._waiting >= _MAX_WAITING:
            return False
        self._waiting += 1
        try:
            await asyncio.wait_for(self._places.acquire(), self._wait_s)
        except asyncio.TimeoutError:
            return False
        finally:
            self._waiting -= 1
        return True
