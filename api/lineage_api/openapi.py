"""Completes the OpenAPI document of FastAPI: examples, security, headers, all errors.

Examples are real results (examples.json, written by tests/support/api_examples.py). Errors are problem
details, not plain JSON. Those that every request may get are defined once, under `components`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from lineage_api import csv, problems
from lineage_api.access import OPEN_PATHS
from lineage_service.lineage import Result

__all__ = ["EXAMPLES_FILE", "completed"]

EXAMPLES_FILE = Path(__file__).with_name("examples.json")

_ANYWHERE = {
    400: "The address is not percent-encoded UTF-8.",
    413: "The request has a body; no endpoint takes one.",
    414: "The address is too long.",
    421: "The service does not answer to the host name of the request.",
    422: "A parameter is invalid, unknown or repeated, or the query is ambiguous.",
    431: "The headers are too many or too large.",
}
_LOCKED = {401: "The service requires its token, and the request has none or another one."}
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "The token of the service."},
    "apiKey": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "The same token, for clients that cannot send a bearer token.",
    },
}
_TAGS = {
    "applications": "Applications and their graphs of operations.",
    "datasets": "What applications wrote and read, and what is before and behind it.",
    "records": "Records of one operation, and their values.",
    "traces": "From a record back to what it was made of, or forward to what it went into.",
    "jobs": "Whether a job is worth running now, and what was answered before.",
    "service": "State of the service.",
}
_TEXT = {"schema": {"type": "string"}}
_HEADERS = {
    "ETag": "Version of the application's lineage, once it is complete; for `If-None-Match`.",
    "Link": 'The next page, `<?...>; rel="next"`, relative to the address; absent on the last page.',
    "Lineage-Complete": "`false`: blocks are missing, so records may be missing here.",
    "Lineage-Exact": "`false`: the trace passes a node with an upper bound only; it may list too much.",
    "Lineage-Truncated": "`true`: some records that were reached are not on this page.",
    "Lineage-Total": "Number of matching records, if they were counted.",
    "Lineage-Warning": "What a search could not read.",
    "Lineage-Next": "`cursor` of the next page; absent on the last page.",
    "Retry-After": "Seconds to wait, if too many queries are running.",
    "WWW-Authenticate": "`Bearer`.",
}
_HEADERS_OF = {
    "list_applications": ("Link",),
    "get_application": ("ETag",),
    "get_graph": ("ETag",),
    "list_datasets": ("Link", "Lineage-Total", "Lineage-Next"),
    "get_dataset": ("Link", "Lineage-Total", "Lineage-Next"),
    "get_history": (*("Link", "Lineage-Complete", "Lineage-Total", "Lineage-Warning", "Lineage-Next"),),
    "get_row_set": ("Lineage-Complete", "Lineage-Exact", "Lineage-Warning"),
    "get_absence": ("Lineage-Complete", "Lineage-Exact", "Lineage-Warning"),
    "get_explanation": (
        *("Link", "Lineage-Complete", "Lineage-Exact", "Lineage-Truncated", "Lineage-Total"),
        *("Lineage-Warning", "Lineage-Next"),
    ),
    "get_slow": ("Lineage-Complete", "Lineage-Exact", "Lineage-Truncated", "Lineage-Warning"),
    "get_suspects": ("Lineage-Complete", "Lineage-Truncated", "Lineage-Warning"),
    "get_contrast": ("Lineage-Complete", "Lineage-Warning"),
    "get_missing": ("Lineage-Complete", "Lineage-Exact", "Lineage-Truncated", "Lineage-Warning"),
    "missing_of": ("Lineage-Complete", "Lineage-Exact", "Lineage-Truncated", "Lineage-Warning"),
    "compare_with": ("Lineage-Complete", "Lineage-Exact", "Lineage-Truncated", "Lineage-Warning"),
    "compare": ("Lineage-Complete", "Lineage-Exact", "Lineage-Truncated", "Lineage-Warning"),
    "list_records": ("Link", "Lineage-Total", "Lineage-Next", "Lineage-Warning"),
    "trace": ("Link", "Lineage-Complete", "Lineage-Exact", "Lineage-Truncated", "Lineage-Next"),
    "trace_of_dataset": (
        *("Link", "Lineage-Complete", "Lineage-Exact", "Lineage-Truncated", "Lineage-Next"),
        *("Lineage-Total", "Lineage-Warning"),
    ),
}
_HEADERS_OF_PROBLEM = {401: ("WWW-Authenticate",), 503: ("Retry-After",)}


def completed(schema: dict[str, Any], *, is_locked: bool) -> dict[str, Any]:
    """`schema`, changed in place. `is_locked`: this service requires its token."""
    components = schema["components"]
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own errors, which are never sent
        components["schemas"].pop(name, None)
    for result in _subclasses(Result):
        if result.__name__ in components["schemas"]:
            # Defaults are for the constructor only: a result has the field in any case.
            _without_defaults(components["schemas"][result.__name__], result.required_fields())
    components["securitySchemes"] = _SECURITY
    components["responses"] = {
        str(status): _problem(status, text) for status, text in {**_ANYWHERE, **_LOCKED}.items()
    }
    components["headers"] = {name: {"description": text, **_TEXT} for name, text in _HEADERS.items()}
    schema["tags"] = [{"name": name, "description": text} for name, text in _TAGS.items()]
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            _complete(operation, is_open=path in OPEN_PATHS, is_locked=is_locked)
    return schema


def _subclasses(result: type[Result]) -> Iterator[type[Result]]:
    for subclass in result.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _without_defaults(schema: dict[str, Any], required: list[str]) -> None:
    schema["required"] = required
    for field in schema["properties"].values():
        field.pop("default", None)


def _complete(operation: dict[str, Any], *, is_open: bool, is_locked: bool) -> None:
    name, responses = operation["operationId"], operation["responses"]
    for parameter in operation.get("parameters", ()):
        _remove_null(parameter["schema"])
    content = responses["200"]["content"]
    if name in _examples()["answers"]:
        content["application/json"]["example"] = _examples()["answers"][name]
    if csv.MEDIA_TYPE in content:
        content[csv.MEDIA_TYPE]["example"] = _examples()["csv"][name]
    if name == "get_metrics":
        for media_type in content.values():
            media_type["example"] = _examples()["metrics"]
    if name in _HEADERS_OF:
        responses["200"]["headers"] = _headers(_HEADERS_OF[name])
    for status in [status for status in responses if int(status) >= 400]:
        responses[status] = _problem(int(status), responses[status]["description"])
    for status in (*_ANYWHERE, *(() if is_open else _LOCKED)):
        responses[str(status)] = {"$ref": f"#/components/responses/{status}"}
    if not is_open:
        # An empty requirement: the token is optional.
        operation["security"] = [*([] if is_locked else [{}]), *({scheme: []} for scheme in _SECURITY)]
    operation["responses"] = dict(sorted(responses.items()))


def _remove_null(schema: dict[str, Any]) -> None:
    """A parameter of an address is present or absent, and never null."""
    for alternative in schema.pop("anyOf", ()):
        if alternative != {"type": "null"}:
            schema.update(alternative)


def _problem(status: int, description: str) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": {"$ref": "#/components/schemas/Problem"}}
    if str(status) in _examples()["problems"]:
        body["example"] = _examples()["problems"][str(status)]
    response: dict[str, Any] = {
        "description": description or HTTPStatus(status).phrase,
        "content": {problems.MEDIA_TYPE: body},
    }
    if status in _HEADERS_OF_PROBLEM:
        response["headers"] = _headers(_HEADERS_OF_PROBLEM[status])
    return response


def _headers(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


@cache
def _examples() -> dict[str, Any]:
    examples: dict[str, Any] = json.loads(EXAMPLES_FILE.read_text(encoding="utf-8"))
    return examples
