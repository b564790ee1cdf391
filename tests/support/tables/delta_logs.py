"""The log of a table without what differs each time: ids, times, and names of files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_COLUMN_ID = re.compile(r"#\d+L?")
#: Fields that are ids or times, wherever they stand.
_FLEETING = frozenset(
    (
        *("timestamp", "txnId", "modificationTime", "deletionTimestamp", "createdTime", "id"),
        *("pathOrInlineDv", "offset"),
    )
)


def lasting_log(table: Path) -> list[list[str]]:
    """The actions of each version, as sorted JSON."""
    versions = sorted((table / "_delta_log").glob("*.json"))
    return [
        sorted(
            json.dumps(_lasting(json.loads(line)), sort_keys=True) for line in path.read_text().splitlines()
        )
        for path in versions
    ]


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _lasting(part)
            for name, part in value.items()
            if name not in _FLEETING and not name.endswith("TimeMs")
        }
    if isinstance(value, list):
        return [_lasting(part) for part in value]
    return _COLUMN_ID.sub("#", _UUID.sub("UUID", value)) if isinstance(value, str) else value
