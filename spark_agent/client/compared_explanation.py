"""The explanation of a record beside that of the same record in another run, in the running session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["ComparedExplanation", "compared_of"]


@dataclass(frozen=True)
class ComparedExplanation:
    """`gone`: rows that explain it in this run alone. `new`: in the other one. As PATH:LINE and text."""

    application: str
    same: int
    gone: tuple[str, ...]
    gone_total: int
    new: tuple[str, ...]
    new_total: int
    exact: bool
    complete: bool
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        size = f"{self.same:,} rows are the same, {self.gone_total:,} gone, {self.new_total:,} new"
        rows = [*(f"  - {row}" for row in self.gone), *(f"  + {row}" for row in self.new)]
        return "\n".join([f"compared with {self.application}: {size}", *rows, *self.reasons])


def compared_of(answer: Mapping[str, Any]) -> ComparedExplanation:
    return ComparedExplanation(
        application=answer["application_id"],
        same=answer["same"],
        gone=tuple(map(_row, answer["gone"])),
        gone_total=answer["gone_total"],
        new=tuple(map(_row, answer["new"])),
        new_total=answer["new_total"],
        exact=answer["exact"],
        complete=answer["complete"],
        reasons=tuple(answer["reasons"]),
    )


def _row(row: Mapping[str, Any]) -> str:
    place = f"{row['node_id']}#{row['record_id']}" if row["path"] is None else f"{row['path']}:{row['line']}"
    return place if row["text"] is None else f"{place}  {row['text']}"
