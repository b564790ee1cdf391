"""Why two records have the same key or value, in the running session: what they share, where they meet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_agent.client.http import TraceError
from spark_agent.client.trace_starts import Start

__all__ = ["Meeting", "meeting_of", "query_of_pair"]


@dataclass(frozen=True)
class Meeting:
    """What records A and B have in common.

    `equal`: None where the values of one are not known. `meets`: the last operation with records that both
    explanations need, in words; None where there is none.
    """

    equal: bool | None
    shared: tuple[str, ...]  # `field 2 '17'`
    rows_of_a: int
    rows_of_b: int
    rows_of_both: int
    meets: str | None

    def __str__(self) -> str:
        if self.equal is None:
            shared = "it is not known whether A and B have the same value"
        else:
            shared = f"A and B both have {', '.join(self.shared)}" if self.equal else "A and B share no value"
        rows = (
            f"input rows: {self.rows_of_a:,} for A, {self.rows_of_b:,} for B, {self.rows_of_both:,} for both"
        )
        return "\n".join([shared, *([] if self.meets is None else [f"they meet {self.meets}"]), rows])


def meeting_of(answer: Mapping[str, Any]) -> Meeting:
    return Meeting(
        equal=answer["equal"],
        shared=tuple(f"{shared['what']} {shared['text']!r}" for shared in answer["shared"]),
        rows_of_a=answer["a"]["total"],
        rows_of_b=answer["b"]["total"],
        rows_of_both=answer["both_total"],
        meets=None if answer["meets"] is None else _point(answer["meets"]),
    )


def _point(point: Mapping[str, Any]) -> str:
    turn = "" if point["turn"] is None else f"in turn {point['turn']} of {point['loop']}, "
    records = [record.get("key") or record["record_id"] for record in point["records"][:_MOST_SHOWN]]
    more = point["total"] - len(records)
    listed = ", ".join([*records, *([f"{more:,} more"] if more else [])])
    return f"{turn}at {point['name']} ({point['node_id'].rpartition('#')[2]}): {listed}"


_MOST_SHOWN = 3


def query_of_pair(first: Sequence[Start], second: Sequence[Start]) -> dict[str, Any]:
    """The parameters that ask about two records. Raises TraceError."""
    if len(first) != 1 or len(second) != 1:
        raise TraceError(
            f"same is a question about two records: {len(first):,} and {len(second):,} are chosen. Choose "
            "one each, of one operation, with at(), row() or key()"
        )
    starts = json.dumps([dict(first[0]), dict(second[0])], separators=(",", ":"))
    return {"starts": starts, "same": "true"}
