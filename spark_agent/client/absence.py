"""Why an operation has no record with a key, in the running session: where the key was, where it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Absence", "absence_of"]


@dataclass(frozen=True)
class Absence:
    """`holders`: the last operations with the key, in words. `ended`: where their records ended, and why."""

    key: str
    holders: tuple[str, ...]
    ended: tuple[str, ...]
    exact: bool
    complete: bool
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"no record with the key {self.key}"]
        lines += [f"  {holder} has it" for holder in self.holders]
        return "\n".join([*lines, *(f"  {end}" for end in self.ended), *self.reasons])


def absence_of(answer: Mapping[str, Any]) -> Absence:
    holders = answer["holders"]
    ended = (end for holder in holders for row in holder["ended"] for end in _ends(row))
    return Absence(
        key=answer["key"],
        holders=tuple(map(_operation, holders)),
        ended=tuple(dict.fromkeys(ended)),
        exact=answer["exact"],
        complete=answer["complete"],
        reasons=tuple(answer["reasons"]),
    )


def _ends(row: Mapping[str, Any]) -> Iterator[str]:
    ends = row["candidates"] or ([] if row["ended"] is None else [row["ended"]])
    ended = "ended" if row["exact"] and not row["candidates"] else "may have ended"
    for end in ends:
        yield f"{ended} at {_operation(end)}: {end['why']}"
    if not ends:
        yield f"ended, and it is not known where: {row['reason']}"


def _operation(operation: Mapping[str, Any]) -> str:
    site = f" at {operation['call_site']}" if operation["call_site"] else ""
    return f"{operation['name']} ({operation['node_id'].rpartition('#')[2]}){site}"
