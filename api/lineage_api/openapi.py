"""What the OpenAPI document says beyond what FastAPI finds: examples, security, headers, every refusal.

Examples are real answers (examples.json, made by tests/support/api_examples.py). Errors are problem details,
not plain JSON; those that any request may meet stand once, under `components`.
"""

from __future__ import annotations

import json
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from lineage_api import csv, problems
from lineage_api.access import OPEN_PATHS

__all__ = ["EXAMPLES_FILE", "completed"]

EXAMPLES_FILE = Path(__file__).with_name("examples.json")

_ANYWHERE = {
    400: "The address is not percent-encoded UTF-8.",
    413: "The request has a body; nothing here takes one.",
    414: "The address is too long.",
    421: "The service does not answer to the host name of the request.",
    422: "A parameter is not valid, not known or there twice, or the question is ambiguous.",
    431: "The headers are too many or too large.",
}
_LOCKED = {401: "The service asks for its token, and it was not given, or another one."}
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "The token of the service."},
    "apiKey": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "The same token, for clients that cannot send it as a bearer's.",
    },
}
_TAGS = {
    "applications": "Applications, and the graph of what each did.",
    "records": "Records of one operation, and what they looked like.",
    "traces": "From a record back to what it was made of, or on to what became of it.",
    "service": "How the service is.",
}
_TEXT = {"schema": {"type": "string"}}
_HEADERS = {
    "ETag": "Of the application's lineage, once it is complete: for `If-None-Match`.",
    "Link": 'The next page, `<?...>; rel="next"`, relative to the address; left out on the last.',
    "Lineage-Complete": "`false`: blocks are missing, so records may be missing here.",
    "Lineage-Exact": "`false`: it passes a node that only has a bound, so it may list too much.",
    "Lineage-Truncated": "`true`: some records that were reached are not on this page.",
    "Lineage-Total": "How many records match, where they were counted.",
    "Lineage-Warning": "What a search could not look at.",
    "Lineage-Next": "`cursor` of the next page; left out on the last.",
    "Retry-After": "Seconds, where too many ask at a time.",
    "WWW-Authenticate": "`Bearer`.",
}
_HEADERS_OF = {
    "list_applications": ("Link",),
    "get_application": ("ETag",),
    "get_graph": ("ETag",),
    "list_records": ("Link", "Lineage-Total", "Lineage-Next", "Lineage-Warning"),
    "trace": ("Link", "Lineage-Complete", "Lineage-Exact", "Lineage-Truncated", "Lineage-Next"),
}
_HEADERS_OF_PROBLEM = {401: ("WWW-Authenticate",), 503: ("Retry-After",)}


def completed(schema: dict[str, Any], *, is_locked: bool) -> dict[str, Any]:
    """`schema`, changed in place. `is_locked`: this service asks for its token."""
    components = schema["components"]
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own errors, which nobody gets here
        components["schemas"].pop(name, None)
    for result in components["schemas"].values():
        for field in result["properties"].values():
            field.pop("default", None)  # of the dataclass: what is answered says its value
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


def _complete(operation: dict[str, Any], *, is_open: bool, is_locked: bool) -> None:
    name, responses = operation["operationId"], operation["responses"]
    for parameter in operation.get("parameters", ()):
        _can_be_left_out(parameter["schema"])
    content = responses["200"]["content"]
    if name in _examples()["answers"]:
        content["application/json"]["example"] = _examples()["answers"][name]
    if csv.MEDIA_TYPE in content:
        content[csv.MEDIA_TYPE]["example"] = _examples()["csv"][name]
    if name == "get_metrics":
        for each in content.values():
            each["example"] = _examples()["metrics"]
    if name in _HEADERS_OF:
        responses["200"]["headers"] = _headers(_HEADERS_OF[name])
    for status in [each for each in responses if int(each) >= 400]:
        responses[status] = _problem(int(status), responses[status]["description"])
    for status in (*_ANYWHERE, *(() if is_open else _LOCKED)):
        responses[str(status)] = {"$ref": f"#/components/responses/{status}"}
    if not is_open:
        # An empty requirement: it can be asked without.
        operation["security"] = [*([] if is_locked else [{}]), *({scheme: []} for scheme in _SECURITY)]
    operation["responses"] = dict(sorted(responses.items()))


def _can_be_left_out(schema: dict[str, Any]) -> None:
    """A parameter of an address is there or not, and never null."""
    for each in schema.pop("anyOf", ()):
        if each != {"type": "null"}:
            schema.update(each)


def _problem(status: int, description: str) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": {"$ref": "#/components/schemas/Problem"}}
    if str(status) in _examples()["problems"]:
        body["example"] = _examples()["problems"][str(status)]
    found: dict[str, Any] = {
        "description": description or HTTPStatus(status).phrase,
        "content": {problems.MEDIA_TYPE: body},
    }
    if status in _HEADERS_OF_PROBLEM:
        found["headers"] = _headers(_HEADERS_OF_PROBLEM[status])
    return found


def _headers(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


@cache
def _examples() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(EXAMPLES_FILE.read_text(encoding="utf-8"))
    return found
