"""Writes the JSON Schema of events, docs/event.schema.json, from `spark_agent.contract.event_fields`.

    python -m scripts.event_schema

A test fails where the file is not what this makes. A schema cannot say all that readers check: how large and
how deep an event is, and that parts stand in their order.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spark_agent.contract import IGNORABLE, MAJOR, VERSION
from spark_agent.contract.event_fields import DEFINITIONS, EVENT_FIELDS, HEAD, LATER_EVENT

FILE = Path(__file__).resolve().parents[1] / "docs" / "event.schema.json"


def event_schema() -> dict[str, Any]:
    """The schema of every event, in the dialect 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An event on the topic lineage-node",
        "description": f"Version {VERSION} of the contract; docs/contract.md says what each field means.",
        **_head(),
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in (*EVENT_FIELDS, "type_of_later")],
        "$defs": {
            **{name: _event(name) for name in EVENT_FIELDS},
            "type_of_later": _later_event(),
            **{name: field_type.schema() for name, field_type in DEFINITIONS.items()},
        },
    }


def _head() -> dict[str, Any]:
    schema = HEAD.schema()
    schema["properties"]["version"]["pattern"] = rf"^{MAJOR}\.[0-9]{{1,9}}$"
    return schema


def _event(name: str) -> dict[str, Any]:
    schema = EVENT_FIELDS[name].schema()
    schema["properties"] = {"type": {"const": name}, **schema["properties"]}
    if name in IGNORABLE:
        schema["description"] = "Says `ignorable`: a reader that does not know it may go on without it."
    return schema


def _later_event() -> dict[str, Any]:
    schema = LATER_EVENT.schema()
    schema["properties"]["type"]["not"] = {"enum": list(EVENT_FIELDS)}
    return schema


def text() -> str:
    """The whole file."""
    return json.dumps(event_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
