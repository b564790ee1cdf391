"""ETags: a client that holds an answer about a complete application is told so without the work.

An answer has one where nothing but the flow store can change it: the application has ended, everything that
it announced is stored, and the answer shows no rows of files (these may change under us, and a look at all of
them is the work). The tag is made of the names of the application's stored files, so it is the same in every
process over the store, and another one as soon as anything is written, compacted or deleted.

The tag is made before the answer is: an answer may be newer than its tag, which costs a client one
answer more, and never older.
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

__all__ = ["CACHEABLE", "CodedTags", "StoredFiles", "is_held", "tags_of"]

#: For this client alone, who asks each time whether it is still so.
CACHEABLE = "private, no-cache"

_CODED = "-gzip"
#: Made anew when anything in the store has changed.
_KEPT_TAGS = 1_000


class StoredFiles(Protocol):
    """What is read of a flow store."""

    def version(self) -> object: ...

    def files(self, table: str, application_id: str) -> Sequence[str]: ...


def tags_of(store: StoredFiles, release: str) -> Callable[[str], str | None]:
    """The entity tag of answers about an application; None where nothing of it is stored.

    `release` is that of the code which writes the answers. The tag raises UnavailableError.
    """

    known: OrderedDict[str, tuple[object, str | None]] = OrderedDict()
    lock = Lock()

    def tag(application_id: str) -> str | None:
        version = store.version()
        with lock:
            held = known.get(application_id)
        if held is not None and held[0] == version:
            return held[1]
        made = made_tag(application_id)
        with lock:
            known[application_id] = (version, made)
            known.move_to_end(application_id)
            while len(known) > _KEPT_TAGS:
                known.popitem(last=False)
        return made

    def made_tag(application_id: str) -> str | None:
        # What is written last: events, and the receipts of blocks.
        names = [
            sorted(PurePosixPath(file).name for file in store.files(table, application_id))
            for table in ("events", "blocks")
        ]
        if not names[0]:
            return None
        return f'"{hashlib.sha256(repr((release, application_id, names)).encode()).hexdigest()[:32]}"'

    return tag


def is_held(if_none_match: str | None, tag: str) -> bool:
    """Whether the client holds the answer with this tag (RFC 9110, section 13.1.2, `*` left out)."""
    if if_none_match is None:
        return False
    return tag in (each.strip().removeprefix("W/") for each in if_none_match.split(","))


class CodedTags:
    """ASGI middleware around the compression: the same answer, compressed, has a tag of its own.

    A strong tag stands for bytes (RFC 9110, section 8.8.3.3), and those differ.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or "if-none-match" not in Headers(scope=scope):
            await self._app(scope, receive, _coded(send))
            return
        held = Headers(scope=scope)["if-none-match"]
        plain = [
            (name, value.replace(f'{_CODED}"'.encode(), b'"') if name == b"if-none-match" else value)
            for name, value in scope["headers"]
        ]
        await self._app({**scope, "headers": plain}, receive, _coded(send, was_coded=f'{_CODED}"' in held))


def _coded(send: Send, *, was_coded: bool = False) -> Send:
    async def coded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            tag = headers.get("etag")
            is_coded = headers.get("content-encoding") == "gzip" or (message["status"] == 304 and was_coded)
            if tag is not None and is_coded:
                headers["etag"] = f'{tag[:-1]}{_CODED}"'
        await send(message)

    return coded
