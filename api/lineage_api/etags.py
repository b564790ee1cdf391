"""ETags: a client with a current copy of a result gets a 304, and no query runs.

A result has an ETag if only the flow store can change it: the application has ended, everything that it
announced is stored, and the result shows no rows of files (these may change at any time, and reading them is
the work). The tag is a hash of the names of the application's stored files. So it is the same in every
process over the store, and changes as soon as anything is written, compacted or deleted.

The tag is computed before the result. So a result may be newer than its tag, which costs a client one more
request, and is never older.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from threading import Lock
from typing import Protocol

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["CACHEABLE", "CompressedETags", "StoredFiles", "etag_function", "is_current"]

#: A private copy, which the client revalidates each time.
CACHEABLE = "private, no-cache"

#: Before the closing quote of a compressed result's tag.
_SUFFIX = "-gzip"
#: Number of cached tags.
_CACHE_SIZE = 1_000


class StoredFiles(Protocol):
    """What the tags need of a flow store."""

    def version(self) -> object: ...

    def files(self, table: str, application_id: str) -> Sequence[str]: ...


def etag_function(store: StoredFiles, release: str) -> Callable[[str], str | None]:
    """A function of an application's id: the ETag of results about it, or None if nothing of it is stored.

    `release` is the release of the code that writes the results. The function raises UnavailableError.
    """
    #: Application id -> (version of the store, tag).
    cache: OrderedDict[str, tuple[object, str | None]] = OrderedDict()
    lock = Lock()

    def etag_of(application_id: str) -> str | None:
        version = store.version()
        with lock:
            cached = cache.get(application_id)
        if cached is not None and cached[0] == version:
            return cached[1]
        etag = new_etag(application_id)
        with lock:
            cache[application_id] = (version, etag)
            cache.move_to_end(application_id)
            while len(cache) > _CACHE_SIZE:
                cache.popitem(last=False)
        return etag

    def new_etag(application_id: str) -> str | None:
        # The tables that are written last: events, and the receipts of blocks.
        names = [
            sorted(PurePosixPath(file).name for file in store.files(table, application_id))
            for table in ("events", "blocks")
        ]
        if not names[0]:
            return None
        return f'"{hashlib.sha256(repr((release, application_id, names)).encode()).hexdigest()[:32]}"'

    return etag_of


def is_current(if_none_match: str | None, etag: str) -> bool:
    """Whether the client's copy has this tag (RFC 9110, section 13.1.2, without `*`)."""
    if if_none_match is None:
        return False
    return etag in (tag.strip().removeprefix("W/") for tag in if_none_match.split(","))


class CompressedETags:
    """ASGI middleware around the compression: a compressed result has a tag of its own.

    A strong tag identifies bytes (RFC 9110, section 8.8.3.3), and these differ.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or "if-none-match" not in Headers(scope=scope):
            await self._app(scope, receive, _with_suffix(send))
            return
        was_compressed = f'{_SUFFIX}"' in Headers(scope=scope)["if-none-match"]
        headers = [
            (name, value.replace(f'{_SUFFIX}"'.encode(), b'"') if name == b"if-none-match" else value)
            for name, value in scope["headers"]
        ]
        send = _with_suffix(send, was_compressed=was_compressed)
        await self._app({**scope, "headers": headers}, receive, send)


def _with_suffix(send: Send, *, was_compressed: bool = False) -> Send:
    async def send_with_suffix(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            etag = headers.get("etag")
            is_gzip = headers.get("content-encoding") == "gzip"
            if etag is not None and (is_gzip or (message["status"] == 304 and was_compressed)):
                headers["etag"] = f'{etag[:-1]}{_SUFFIX}"'
        await send(message)

    return send_with_suffix
