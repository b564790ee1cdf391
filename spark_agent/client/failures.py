"""Which records made tasks fail, as `trace.failures` gives them: the answer of the API as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Failure", "SourceRow", "failures_of"]


@dataclass(frozen=True)
class SourceRow:
    """A row of an input. Rows count from 0."""

    path: str
    row: int
    text: str | None

    def __str__(self) -> str:
        return f"{self.path}:{self.row + 1}" + ("" if self.text is None else f"  {self.text}")


@dataclass(frozen=True)
class Failure:
    """One failure. Not exact: `reason` says what is not known. `value` is known only if it was captured."""

    number: int
    error: str
    message: str
    name: str | None
    call_site: str | None
    partition: int | None
    attempts: int
    value: str | None
    sources: tuple[SourceRow, ...]
    exact: bool
    recovered: bool
    reason: str

    def __str__(self) -> str:
        place = f" in {self.name}" if self.name else ""
        place += f" at {self.call_site}" if self.call_site else ""
        doubt = f" (not exact: {self.reason})" if self.reason else ""
        rows = "".join(f"\n  {row}" for row in self.sources)
        return f"{self.error}: {self.message}{place}{doubt}{rows}"


def failures_of(answer: Mapping[str, Any]) -> list[Failure]:
    return [_failure(failure) for failure in answer["failures"]]


def _failure(answer: Mapping[str, Any]) -> Failure:
    record = answer["record"]
    return Failure(
        number=answer["failure"],
        error=answer["error"],
        message=answer["message"],
        name=answer["name"],
        call_site=answer["call_site"],
        partition=answer["partition"],
        attempts=answer["attempts"],
        value=None if record is None else record["value"],
        sources=tuple(SourceRow(row["path"], row["row"], row["text"]) for row in answer["sources"]),
        exact=answer["exact"],
        recovered=answer["recovered"],
        reason=answer["reason"],
    )
