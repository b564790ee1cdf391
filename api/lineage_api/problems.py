"""Every error as one shape: RFC 9457 problem details, `application/problem+json`.

Promises that no response contains a stack trace: an unexpected error is logged with a number, and the
response has that number. The messages of LineageErrors are for people and are sent unchanged.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lineage_service.errors import (
    InvalidQueryError,
    LineageError,
    NotFoundError,
    TimeBudgetError,
    UnavailableError,
)

__all__ = [
    "MEDIA_TYPE",
    "ORIGINAL_METHOD",
    "PROBLEMS",
    "CatchAll",
    "InvalidField",
    "Problem",
    "add_problem_handlers",
    "refusal",
]

MEDIA_TYPE = "application/problem+json"
#: The key in the scope of the method that the client sent (limits.HeadAsGet).
ORIGINAL_METHOD = "lineage.method"

#: Error of the service -> (status, last part of the problem's type, title).
PROBLEMS: Mapping[type[LineageError], tuple[HTTPStatus, str, str]] = {
    NotFoundError: (HTTPStatus.NOT_FOUND, "not-found", "Not found"),
    InvalidQueryError: (
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "invalid-query",
        "The query is invalid",
    ),
    TimeBudgetError: (HTTPStatus.GATEWAY_TIMEOUT, "time-budget", "The time budget is spent"),
    UnavailableError: (HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", "The service cannot answer now"),
}
_INVALID = PROBLEMS[InvalidQueryError]
_UNEXPECTED = (HTTPStatus.INTERNAL_SERVER_ERROR, "unexpected", "The service failed")

#: Titles of RFC 9110; older Pythons have those of earlier RFCs.
_TITLES = {
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Content Too Large",
    HTTPStatus.REQUEST_URI_TOO_LONG: "URI Too Long",
}

_log = logging.getLogger(__name__)


class InvalidField(BaseModel):
    """An invalid part of a request."""

    where: str = Field(description="For example `query.limit`.")
    message: str = Field(description="What is wrong with it, for people.")


class Problem(BaseModel):
    """Problem details (RFC 9457)."""

    type: str = Field(
        description="`urn:lineage-master:` and one of not-found, invalid-query, time-budget, unavailable, "
        "unexpected; `about:blank` if the status says everything."
    )
    title: str = Field(description="The kind of problem, for people.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What happened in this case, for people.")
    instance: str = Field(description="Path of the request.")
    errors: list[InvalidField] | None = Field(
        default=None, description="For invalid-query: the invalid parts. Absent otherwise."
    )
    next: str | None = Field(
        default=None,
        description="For time-budget: `cursor` of what the trace has found so far. Absent if it has found "
        "nothing.",
    )


def add_problem_handlers(app: FastAPI) -> None:
    """Make every error of `app` a problem."""
    app.add_exception_handler(LineageError, _lineage_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_middleware(CatchAll)


class CatchAll:
    """ASGI middleware that logs unexpected errors and answers 500 without their text."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_started = False

        async def watched(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except asyncio.CancelledError:
            # Only a stopping server cancels a request. The task ends here in any case, so nothing is
            # swallowed, and the client learns the reason.
            if has_started:
                raise
            detail = "The service is stopping; repeat the request when it is back."
            await _response(scope["path"], *PROBLEMS[UnavailableError], detail)(scope, receive, send)
        except Exception:
            if has_started:  # the status is sent already: only closing the connection can signal the error
                raise
            number = secrets.token_hex(4)
            _log.exception("error %s at %s %s", number, scope["method"], scope["path"])
            detail = f"The log of the service has the reason under error {number}."
            await _response(scope["path"], *_UNEXPECTED, detail)(scope, receive, send)


def refusal(
    scope: Scope, status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """The response to a request that is refused before it reaches an endpoint."""
    for problem_status, name, title in PROBLEMS.values():
        if problem_status is status:
            return _response(scope["path"], status, name, title, detail, headers=headers)
    return _response(scope["path"], status, None, _TITLES.get(status, status.phrase), detail, headers=headers)


async def _lineage_error(request: Request, error: Exception) -> JSONResponse:
    for kind, (status, name, title) in PROBLEMS.items():
        if isinstance(error, kind):
            cursor = error.next if isinstance(error, TimeBudgetError) else None
            return _response(request.scope["path"], status, name, title, str(error), cursor=cursor)
    raise error  # a LineageError that no query may raise: CatchAll logs it


async def _invalid_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    errors = [_field(part) for part in error.errors()]
    detail = "; ".join(f"{part.where}: {part.message}" for part in errors)
    return _response(request.scope["path"], *_INVALID, detail, errors=errors)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    path = request.scope["path"]
    status = HTTPStatus(error.status_code)
    detail = str(error.detail)
    if status is HTTPStatus.NOT_FOUND:
        detail = f"There is nothing at {path}."
    elif status is HTTPStatus.METHOD_NOT_ALLOWED:
        detail = f"{request.scope.get(ORIGINAL_METHOD, request.method)} is not allowed at {path}."
    return _response(path, status, None, status.phrase, detail, headers=_with_head(error.headers))


def _with_head(headers: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """Where GET is allowed, HEAD is, too (limits.HeadAsGet)."""
    if headers is None or headers.get("Allow") != "GET":
        return headers
    return {**headers, "Allow": "GET, HEAD"}


def _field(error: Mapping[str, Any]) -> InvalidField:
    # The response does not repeat the input: the client has it, and it may be long.
    message = str(error["msg"]).removeprefix("Value error, ")
    return InvalidField(where=".".join(str(part) for part in error["loc"]), message=message)


def _response(
    path: str,
    status: HTTPStatus,
    name: str | None,
    title: str,
    detail: str,
    *,
    errors: Sequence[InvalidField] | None = None,
    cursor: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    problem = Problem(
        type="about:blank" if name is None else f"urn:lineage-master:{name}",
        title=title,
        status=status,
        detail=detail,
        instance=quote(path, safe="/:@!$&'()*+,;=~"),
        errors=None if errors is None else list(errors),
        next=cursor,
    )
    return JSONResponse(
        problem.model_dump(exclude_none=True),
        status_code=status,
        headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})},
        media_type=MEDIA_TYPE,
    )
