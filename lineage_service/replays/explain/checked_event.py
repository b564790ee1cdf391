"""What running has shown of an explanation, as the event `explanation_checked` that others read.

Promises that it names exactly the records that came out again, and exactly the rows on which they did. Knows
nothing of Kafka.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from lineage_service.errors import LineageError
from lineage_service.replays.explain.proofs import Proof
from lineage_service.replays.specification import Source
from lineage_service.tracing.explain.checks import MOST_ROWS
from lineage_service.tracing.walk.result import Position
from spark_agent import contract

__all__ = ["NotRecordedError", "checked_event"]


class NotRecordedError(LineageError):
    """A check is too large for one event; the answer of the command holds all the same."""


def checked_event(application_id: str, records: Collection[Position], proof: Proof, time_ms: int) -> bytes:
    """Of rows that are verified. Raises NotRecordedError."""
    rows = _rows(proof.sources)
    total = sum(count for entry in rows for _, count in entry["positions"])
    message = contract.encode_event(
        contract.EXPLANATION_CHECKED,
        application_id,
        time_ms,
        {
            "records": [_record(position) for position in records],
            "rows": rows,
            "runs": proof.runs,
            "added": max(proof.added, 0),
            "minimal": proof.is_minimal,
            "notes": [*proof.notes, *_read_whole(proof.sources)],
        },
    )
    if total > MOST_ROWS or len(message) > contract.MAX_MESSAGE_BYTES:
        raise NotRecordedError(f"{total:,} rows are too many for one event")
    return message


def _record(position: Position) -> dict[str, Any]:
    """A run that no task has is not named: it stands for what the store makes of others."""
    record = {"node": position.node, "split": position.partition, "position": position.offset}
    return record if position.run < 0 else {**record, "run": position.run}


def _rows(sources: Iterable[Source]) -> list[dict[str, Any]]:
    return [
        {"node": source["node"], "split": split["split"], "positions": split["positions"]}
        for source in sources
        for split in source.get("splits", ())
    ]


def _read_whole(sources: Iterable[Source]) -> list[str]:
    """Sources that no rows are named of: they were read as they are."""
    return [
        f"all rows of {source['name']} ({source['node']}) were there as well"
        for source in sources
        if source["whole"]
    ]
