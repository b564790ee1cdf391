"""The rows that a program took by `first`, `top` and the like before it wrote: a header, say.

They are in the lineage of no output. But a run without them takes other rows in their place, and then goes
another way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lineage_service.lineage import Node
from lineage_service.queries import Queries, RecordQuery, RowSetQuery, StartQuery
from lineage_service.replays.joined_rows import joined_source
from lineage_service.replays.specification import row_set_json
from spark_agent.contract.row_sets import count_rows

__all__ = ["with_taken_rows"]

_TAKING = frozenset(("first", "take", "takeOrdered", "top"))
#: Records that one action took: a program that takes more looks at data, and at no header.
_MOST_TAKEN = 100


def with_taken_rows(
    queries: Queries, application_id: str, row_set: Mapping[str, Any], before: int | None
) -> tuple[dict[str, Any], str]:
    """A row set with these rows, too, and what to say of them; nothing where there are none.

    `before` is the number of the action that wrote what was asked for; None: of all actions that ended well.
    Raises LineageError.
    """
    restricted = {source["node"] for source in row_set["sources"] if count_rows(source)}
    actions = [node for node in queries.graph(application_id).nodes if _is_taking(node, before)]
    starts = [
        StartQuery(node=action.node_id, partition=record.partition, offset=record.offset)
        for action in actions
        for record in queries.records(
            application_id, RecordQuery(node=action.node_id, limit=_MOST_TAKEN)
        ).records
    ]
    if not starts or not restricted:
        return dict(row_set), ""
    taken = row_set_json(queries.row_set(application_id, RowSetQuery(starts=tuple(starts))))
    others = {source["node"]: source for source in taken["sources"] if source["node"] in restricted}
    sources = [
        joined_source(source, others[source["node"]]) if source["node"] in others else source
        for source in row_set["sources"]
    ]
    added = sum(map(count_rows, sources)) - sum(map(count_rows, row_set["sources"]))
    if not added:
        return dict(row_set), ""
    names = ", ".join(dict.fromkeys(f"{node.name} ({_line(node)})" for node in actions))
    rows = "1 row was" if added == 1 else f"{added:,} rows were"
    return {**row_set, "sources": sources}, f"{rows} added that the program took by {names}"


def _is_taking(node: Node, before: int | None) -> bool:
    return (
        node.kind == "sink"
        and node.name in _TAKING
        and node.state in (None, "complete")
        and (before is None or node.node < before)
        and 0 < (node.records or 0) <= _MOST_TAKEN
    )


def _line(node: Node) -> str:
    return node.call_site.rpartition("/")[2]
