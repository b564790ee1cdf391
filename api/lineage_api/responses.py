"""Responses of endpoints: results as JSON or CSV that is not stored, the link to the next page, and what the
OpenAPI document says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from fastapi import Request, Response

from lineage_api import csv
from lineage_api.dependencies import NOT_CACHED
from lineage_api.problems import Problem
from lineage_service import lineage
from lineage_service.newest_application import LAST
from lineage_service.result_json import json_bytes

__all__ = [
    "csv_or_json",
    "csv_or_json_response",
    "json_response",
    "next_link",
    "not_cached",
    "problem_responses",
]

ResultT = TypeVar("ResultT", bound=lineage.Result)

_PROBLEMS = {
    403: "The request came from a page of another site.",
    404: "The application, node, record, row or dataset does not exist.",
    500: "The service failed; its log has the reason.",
    503: "A store does not answer.",
    504: "The time budget of the query is spent.",
}


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Problem, "description": _PROBLEMS[status]} for status in statuses}


def csv_or_json() -> dict[int | str, dict[str, Any]]:
    content = {csv.MEDIA_TYPE: {"schema": {"type": "string"}}}
    return {200: {"content": content, "description": "JSON, or CSV with `Accept: text/csv`."}}


def json_response(result: lineage.Result, headers: Mapping[str, str]) -> Response:
    return not_cached(Response(json_bytes(result), media_type="application/json"), headers)


def csv_or_json_response(
    accept: str | None,
    result: ResultT,
    as_csv: Callable[[ResultT], Response],
    headers: Mapping[str, str] | None = None,
) -> Response:
    """CSV if the client prefers it."""
    if csv.prefers_csv(accept):
        return not_cached(as_csv(result), headers)
    return json_response(result, {"Vary": "Accept", **(headers or {})})


def not_cached(response: Response, headers: Mapping[str, str] | None = None) -> Response:
    """With the headers of a result that must not be stored, unless `headers` override them."""
    response.headers.update({**NOT_CACHED, **(headers or {})})
    return response


def next_link(request: Request, cursor: str | None, application: str = "") -> dict[str, str]:
    """The next page (RFC 8288), relative to the request's address, so that it is right behind every proxy.

    The next page of `last` is one of the same application, whichever is the newest by then.
    """
    if cursor is None:
        return {}
    others = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    query = urlencode([*others, ("cursor", cursor)])
    if application in ("", request.path_params.get("app")):
        return {"Link": f'<?{query}>; rel="next"'}
    path = request.scope["raw_path"].decode("ascii").partition(f"/{LAST}/")[2]
    up = "../" * (path.count("/") + 1)
    return {"Link": f'<{up}{quote(application, safe="")}/{path}?{query}>; rel="next"'}
