"""What running in a session has shown of an explanation, sent as the event that others read.

Promises to record only that Spark gave exactly these records of exactly these rows, and of nothing else that
the job computed: the whole program may compute other values of fewer rows. Says that it was in the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spark_agent import contract
from spark_agent.client.replays import Chosen
from spark_agent.client.sufficient_rows import Proved

__all__ = ["record_check"]

#: Ranges of rows in one event: with more it could be larger than a message may be.
_MOST_RANGES = 10_000
_IN_SESSION = "the operations of the session ran, and not the whole program"


def record_check(
    chosen: Chosen,
    records: Iterable[Mapping[str, Any]],
    result: Proved,
    of_program: Sequence[Mapping[str, Any]],
    notes: Sequence[str],
) -> None:
    """`of_program` are the values that the program had, as an explanation lists them.

    Not recorded: what needs pins or values that the program has changed since, what may have used results of
    actions, what only one task has shown, and rows in too many ranges.
    """
    rows = [
        {"node": of.source["node"], "split": split["split"], "positions": split["positions"]}
        for of in result.rows.of_source.values()
        for split in of.source.get("splits", ())
    ]
    has_results = any(value["results"] for value in of_program)
    needs_session = result.why_not or result.pins or result.is_of_task or result.values or has_results
    if needs_session or sum(len(entry["positions"]) for entry in rows) > _MOST_RANGES:
        return
    node = int(chosen.node_id.rpartition("#")[2])
    chosen.session.events.emit(
        contract.EXPLANATION_CHECKED,
        records=[
            {"node": node, "split": record["partition"], "position": record["offset"]} for record in records
        ],
        rows=rows,
        runs=result.runs,
        added=result.added,
        minimal=result.is_minimal,
        notes=[_IN_SESSION, *notes],
    )
