"""What an explanation says. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.walk.result import Position

__all__ = ["Explanation", "Rule", "Turn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The records of a loop variable that a turn has changed, of those that the explanation passes.

    Record k stays as it is up to turn `until[k]`. `sources` are the records of sources that this turn brings
    in, and no turn before it. Of many, the first ones are listed.
    """

    loop: str  # where the loop is: `labels.py:31`
    turn: int  # 0: what the loop began with
    node: int
    total: int
    positions: tuple[Position, ...]
    until: tuple[int, ...]
    sources_total: int = 0
    sources: tuple[Position, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How many of the inputs of an operation's records were kept, and of how many.

    `winner`: the input that alone decided a record. `unchanged`: the same record a turn before.
    """

    node: int  # public
    rule: Literal["winner", "unchanged"]
    kept: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A part of the plain trace of some records. Nothing was run to find it.

    `of`: how many records all sources have that the records may have come from. Not `is_captured`: the
    application says nothing that a plain trace does not know, so the rows are those of that trace.
    """

    rows: Mapping[int, Mapping[int, Integers]]  # source -> partition -> ascending offsets
    turns: tuple[Turn, ...]
    rules: tuple[Rule, ...]
    of: int
    exact: bool
    reasons: tuple[str, ...]
    is_captured: bool

    @property
    def total(self) -> int:
        """How many rows."""
        return sum(len(offsets) for by_partition in self.rows.values() for offsets in by_partition.values())
