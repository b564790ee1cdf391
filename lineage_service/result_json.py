"""Results as JSON: over HTTP, and what `--json` prints at a terminal.

pydantic reads the dataclasses of `lineage` and writes them in compiled code. It checks nothing: the
service made the values.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from lineage_service.lineage import Result

__all__ = ["json_bytes", "json_value", "read_result"]

R = TypeVar("R", bound=Result)

_ADAPTERS: dict[type[Result], TypeAdapter[Any]] = {}


def json_bytes(result: Result, *, indent: int | None = None) -> bytes:
    """UTF-8; one line without `indent`."""
    return _adapter(type(result)).dump_json(result, indent=indent, by_alias=True)


def json_value(result: Result) -> Any:
    """What a reader of its JSON has."""
    return json.loads(json_bytes(result))


def read_result(kind: type[R], data: bytes) -> R | None:
    """What `json_bytes` has written; None of anything else."""
    try:
        result: R = _adapter(kind).validate_json(data)
    except ValidationError:
        return None
    return result


def _adapter(kind: type[Result]) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]
