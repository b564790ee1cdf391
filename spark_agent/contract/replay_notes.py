"""What the processes of a replay note: refusals, connections, removals that were pretended, remarks.

Drivers, Python workers and JVMs each append lines of JSON to one file of the sandbox. Promises that a line is
written with one call, so that lines of several processes do not mix, and that a broken line hides no other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

__all__ = ["KINDS", "NOTES", "REPLAY_REFUSED", "note", "read_notes"]

#: In the sandbox.
NOTES = "notes.jsonl"
#: How each sentence begins that tells of a refusal, in Python and Java.
REPLAY_REFUSED = "replay refused: "
#: The key of a line -> the list that it goes into.
KINDS = {
    "refused": "refused",
    "connection": "connections",
    "pretended": "pretended",
    "remark": "remarks",
}


def note(sandbox: str, kind: str, value: str | Mapping[str, str]) -> None:
    """Append a line to the notes. Never raises: what is refused is refused, noted or not."""
    try:
        line = json.dumps({kind: value}) + "\n"
        file = os.open(os.path.join(sandbox, NOTES), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)
    except (OSError, ValueError):
        pass


def read_notes(sandbox: str) -> dict[str, list[Any]]:
    """The notes by kind, each once, in the order in which they were written first."""
    notes: dict[str, list[Any]] = {name: [] for name in KINDS.values()}
    try:
        with open(os.path.join(sandbox, NOTES), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return notes
    for line in lines:
        for kind, value in _fields(line).items():
            kept = notes.get(KINDS.get(kind, ""))
            is_whole = isinstance(value, dict if kind in ("refused", "pretended") else str)
            if kept is not None and is_whole and value not in kept:
                kept.append(value)
    notes["refused"] = _placed(notes["refused"])
    return notes


def _placed(refused: list[Any]) -> list[Any]:
    """Without those that are there again with their place: the JVM does not know it, Python says it later."""
    placed = [(note.get("what"), note.get("path")) for note in refused if note.get("where")]
    return [
        note for note in refused if note.get("where") or (note.get("what"), note.get("path")) not in placed
    ]


def _fields(line: str) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}
