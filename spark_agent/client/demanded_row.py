"""Rows that an explanation must have, in the running session, and how they lead to what is explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["DemandedRow", "demanded_row_of"]


@dataclass(frozen=True)
class DemandedRow:
    """`way` are the operations and records from the row to what is explained; `note` says what is not so."""

    place: str  # PATH:LINE, or a record id
    text: str | None
    in_trace: bool
    exact: bool
    way: tuple[str, ...]
    note: str

    def __str__(self) -> str:
        row = f"with {self.place}" if self.text is None else f"with {self.place}  {self.text}"
        note = [f"  {self.note}"] if self.note else []
        return "\n".join([row, *note, *(f"  went into {step}" for step in self.way[1:])])


def demanded_row_of(answer: Mapping[str, Any]) -> DemandedRow:
    path, line = answer["path"], answer["line"]
    return DemandedRow(
        place=f"{answer['node_id']}#{answer['record_id']}" if path is None else f"{path}:{line}",
        text=answer["text"],
        in_trace=answer["in_trace"],
        exact=answer["exact"],
        way=tuple(map(_step, answer["way"])),
        note=answer["note"],
    )


def _step(step: Mapping[str, Any]) -> str:
    record = step["record"]
    text = " ".join(filter(None, (record.get("key"), record.get("value")))) or record["record_id"]
    turn = "" if step["turn"] is None else f" in turn {step['turn']} of {step['loop']}"
    return f"{step['name']} ({step['node_id'].rpartition('#')[2]}): {text}{turn}"
