"""What running in a session has shown of an explanation, sent as the event that others read.

Promises to record only that Spark gave exactly these records of exactly these rows, and to say that it was in
the session, with what its program had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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

    Not recorded: what needs pins or values that the program has changed since, what only one task has shown,
    and rows in too many ranges.
    """
    sources = [of.source for of in result.rows.of_source.values()]
    rows = [
        {"node": source["node"], "split": split["split"], "positions": split["positions"]}
        for source in sources
        for split in source.get("splits", ())
    ]
    needs_session = result.why_not or result.pins or result.is_of_task or result.values
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
        notes=[_IN_SESSION, *_had(of_program), *notes, *_read_whole(sources)],
    )


def _had(values: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if values:
        first = values[0]
        site = f" at {first['call_site']}" if first["call_site"] else ""
        others = f" and {len(values) - 1:,} more" if values[1:] else ""
        yield f"they may use what the program had by then: {first['name']}{site}{others}"


def _read_whole(sources: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for source in sources:
        if source["whole"]:
            yield f"all rows of {source['name']} were there as well"
