"""Writes the types of the API's answers for the page, ui/src/api.ts, from the OpenAPI document.

    python -m scripts.page_types

Every schema becomes an interface of the same name. A test fails where the file is not what this makes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from lineage_api.app import create_app
from lineage_service.queries import Queries

FILE = Path(__file__).resolve().parents[1] / "ui" / "src" / "api.ts"

_HEAD = """// Types of the API's answers, from its OpenAPI document.
// Do not edit: `python -m scripts.page_types` makes this file.
"""
_NAMES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def typescript() -> str:
    """The whole file."""
    # Nothing is asked: only the shapes are read.
    document = create_app(cast(Queries, None)).openapi()
    schemas: Mapping[str, Mapping[str, Any]] = document["components"]["schemas"]
    return _HEAD + "".join(_interface(name, schemas[name]) for name in sorted(schemas))


def _interface(name: str, schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    fields = [
        f"  {name}{'' if name in required else '?'}: {_type(field)};"
        for name, field in schema.get("properties", {}).items()
    ]
    said = " ".join(schema.get("description", "").split())
    return "\n".join(
        ["", *([f"/** {said} */"] if said else []), f"export interface {name} {{", *fields, "}", ""]
    )


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_type(member) for member in schema["anyOf"])
    if "prefixItems" in schema:
        return f"[{', '.join(map(_type, schema['prefixItems']))}]"
    if schema.get("type") == "array":
        inner = _type(schema["items"])
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"{{ [name: string]: {_type(schema['additionalProperties'])} }}"
    if schema.get("type") == "object":
        return "{ [name: string]: unknown }"
    return _NAMES[schema["type"]]


def main() -> None:
    FILE.write_text(typescript(), encoding="utf-8")


if __name__ == "__main__":
    main()
