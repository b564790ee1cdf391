"""What a replay in the session read, and whether the records that were asked for came out again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from spark_agent.contract.row_alignment import are_close, corresponding_texts
from spark_agent.driver.replay.rebuilt_rdds import SourceRead
from spark_agent.worker.record_choices import OutputTexts, RowsSeen

__all__ = ["OutputRow", "ReplayReport", "Step"]

#: Rows of the replay that are looked at for what stands in the place of a row that is not there, by task.
_MOST_OTHERS = 1_000
_FIRST_ONLY = f"only the first {_MOST_OTHERS:,} other rows of each task were compared"
_ONLY_FORM = "no other row has its form"
_ORDER = ("reproduced", "close", "changed", "no")

Place = tuple[str | None, str | None, str]
"""(text of the replay, verdict, why)"""


@dataclass(frozen=True)
class OutputRow:
    """A record that was asked for: its text then, and what the replay has in its place.

    `verdict` is None where not all rows were compared, so that it is not known.
    """

    path: str | None
    row: int | None
    was: str | None
    now: str | None
    verdict: str | None
    why: str = ""

    def __str__(self) -> str:
        place = "" if self.path is None else f"{self.path}:{(self.row or 0) + 1}  "
        changed = f" -> {self.now}" if self.verdict in ("close", "changed") else ""
        why = f" ({self.why})" if self.why else ""
        return f"{self.verdict or 'unknown':<10}  {place}{'' if self.was is None else self.was}{changed}{why}"


@dataclass(frozen=True)
class ReplayReport:
    """`mode`: `only` the rows of the lineage, all `without` some, or `all`. `rows` of `of` are named.

    `exact`: no other records than those that were asked for can be among the results of `rdd()`.
    """

    mode: str
    rows: int
    of: int | None
    sources: tuple[SourceRead, ...]
    exact: bool
    notes: tuple[str, ...]
    asked: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    dataset: Any = field(default=None, repr=False)  # whose records are rows of a text output, if any

    @property
    def verdict(self) -> str | None:
        """`reproduced`, `close`, `changed` or `no`, as of `lineage replay`: the worst of `outputs`.

        None where the texts of the records are not known, so that there is nothing to compare, or where not
        all rows were compared. Asking runs the replay, once.
        """
        verdicts = [output.verdict for output in self.outputs if output.verdict is not None]
        is_known = len(verdicts) == len(self.outputs)
        return max(verdicts, key=_ORDER.index, default=None) if is_known else None

    @property
    def outputs(self) -> tuple[OutputRow, ...]:
        """What became of each record that was asked for; none where not all texts are known.

        Asking runs the replay, once.
        """
        return self._verified[0]

    @property
    def extra(self) -> int | None:
        """Rows of the replay that nobody asked for; None where they are not counted."""
        return self._verified[1]

    @cached_property
    def _verified(self) -> tuple[tuple[OutputRow, ...], int | None]:
        texts = [record["text"] for record in self.asked]
        if self.dataset is None or not texts or None in texts:
            return (), None
        look = OutputTexts(texts, _MOST_OTHERS)
        seen = self.dataset.mapPartitions(look).collect()
        return verified(self.asked, seen)

    def __str__(self) -> str:
        of = "" if self.of is None else f" of {self.of:,}"
        rows = f"{self.rows:,}{of} rows"
        read = {"only": f"{rows}", "without": f"all but {rows}", "all": "all rows"}[self.mode]
        whole = [
            f"{source.name} is read whole: {source.why}"
            for source in self.sources
            if source.way == "whole" and source.why
        ]
        return "\n".join((f"replay of {read} of the inputs", *whole, *self.notes))


@dataclass(frozen=True)
class Step:
    """An operation on the way to some records: the first of those that it gave, as objects.

    `report.exact` says whether these are on the way, and no others.
    """

    node_id: str
    name: str
    call_site: str
    records: list[Any]
    report: ReplayReport

    def __str__(self) -> str:
        site = f" at {self.call_site}" if self.call_site else ""
        doubt = "" if self.report.exact else f" ({'; '.join(self.report.notes)})"
        return "\n".join((f"{self.name}{site}{doubt}", *(f"  {record!r}" for record in self.records)))


def verified(
    asked: Sequence[Mapping[str, Any]], seen: Sequence[RowsSeen]
) -> tuple[tuple[OutputRow, ...], int]:
    """What became of rows whose texts are known, and how many other rows are there. As multisets."""
    counts: Counter[str] = Counter()
    for part in seen:
        counts.update(part.asked)
    others = [text for part in seen for text in part.others]
    rows: list[OutputRow | None] = []
    for record in asked:
        text = record["text"]
        is_there = counts[text] > 0
        counts[text] -= is_there
        rows.append(_row(record, text, "reproduced") if is_there else None)
    placed = _in_their_place(
        [record["text"] for record, row in zip(asked, rows, strict=True) if row is None], others
    )
    if any(part.rows > part.asked.total() + len(part.others) for part in seen):
        placed = list(map(_among_the_first, placed))
    missing = iter(placed)
    outputs = [
        _row(record, *next(missing)) if row is None else row for record, row in zip(asked, rows, strict=True)
    ]
    total = sum(part.rows for part in seen)
    return tuple(outputs), total - sum(output.verdict not in ("no", None) for output in outputs)


def _among_the_first(place: Place) -> Place:
    """The same, if it holds whatever the rows are that were not compared."""
    _, verdict, why = place
    return (None, None, _FIRST_ONLY) if verdict == "no" or why == _ONLY_FORM else place


def _in_their_place(missing: Sequence[str], others: Sequence[str]) -> list[Place]:
    """Of rows that are not there as they were."""
    placed: dict[int, Place] = {}
    left = list(others)
    for number, was in enumerate(missing):
        near = next((text for text in left if are_close(was, text)), None)
        if near is not None:
            left.remove(near)
            placed[number] = near, "close", "numbers differ by less than 1e-9 of their size"
    rest = [number for number in range(len(missing)) if number not in placed]
    for before, after, key in corresponding_texts([missing[number] for number in rest], left):
        why = f"the same key: {key}" if key is not None else _ONLY_FORM
        placed[rest[before]] = left[after], "changed", why
    return [placed.get(number, (None, "no", "")) for number in range(len(missing))]


def _row(record: Mapping[str, Any], now: str | None, verdict: str | None, why: str = "") -> OutputRow:
    return OutputRow(record["path"], record["row"], record["text"], now, verdict, why)
