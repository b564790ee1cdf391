"""Responses of endpoints: results as JSON that is not stored, and what the OpenAPI document says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Response

from lineage_api import csv
from lineage_api.dependencies import NOT_CACHED
from lineage_api.problems import Problem
from lineage_service import lineage
from lineage_service.result_json import json_bytes

__all__ = ["csv_or_json", "json_response", "not_cached", "problem_responses"]

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


def not_cached(response: Response, headers: Mapping[str, str] | None = None) -> Response:
    """With the headers of a result that must not be stored, unless `headers` override them."""
    response.headers.update({**NOT_CACHED, **(headers or {})})
    return response
