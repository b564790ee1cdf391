"""Which records took long, as `trace.slow` gives them: the answer of the API as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_agent.client.failures import SourceRow

__all__ = ["SlowRecord", "slow_records_of"]


@dataclass(frozen=True)
class SlowRecord:
    """A record at which a function was for about `ms`. Not exact: `reason` says what is not known."""

    ms: int
    name: str
    call_site: str
    partition: int
    key: str | None
    value: str | None
    sources: tuple[SourceRow, ...]
    exact: bool
    reason: str

    def __str__(self) -> str:
        place = f" at {self.call_site}" if self.call_site else ""
        doubt = f" (not exact: {self.reason})" if self.reason else ""
        rows = "".join(f"\n  {row}" for row in self.sources)
        return f"{self.ms:,} ms in {self.name}{place}, partition {self.partition}{doubt}{rows}"


def slow_records_of(answer: Mapping[str, Any]) -> list[SlowRecord]:
    return [_slow_record(record) for record in answer["records"]]


def _slow_record(answer: Mapping[str, Any]) -> SlowRecord:
    record = answer["record"] or {}
    return SlowRecord(
        ms=answer["ms"],
        name=answer["name"],
        call_site=answer["call_site"],
        partition=answer["partition"],
        key=record.get("key"),
        value=record.get("value"),
        sources=tuple(SourceRow(row["path"], row["row"], row["text"]) for row in answer["sources"]),
        exact=answer["exact"],
        reason=answer["reason"],
    )
