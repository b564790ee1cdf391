"""Do the rows of a record's lineage alone, without one of them, give what all rows without it give? Pure.

They do where each group that they are in is there as a whole: of operations that take records one by one, and
of one grouping on each way. A group behind another one may be there in part, since rows are in several. Then
it can pass a filter that it never passed. A row of an outer join has one match in its lineage, and not the
others. Whatever is not known may look at other rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from spark_agent.contract.record_groups import NARROW, UNIONS, is_grouping

__all__ = ["Operation", "why_others_count"]


class Operation(NamedTuple):
    """A node of the graph; `parents` are the ids of those before it."""

    node_id: str
    kind: str
    name: str
    description: str
    call_site: str
    exact: bool
    parents: Sequence[str]

    def __str__(self) -> str:
        return f"{self.name} ({self.call_site.rpartition('/')[2]})"


def why_others_count(operations: Iterable[Operation], *, most_groupings: int = 1) -> str:
    """Why rows that are not in the lineage of some records may matter; empty where they do not.

    `operations` are all on the way to these records, each behind its parents.
    """
    groupings: dict[str, int] = {}
    for of in operations:
        if of.kind == "operator" and not (of.exact and _is_known(of)):
            return f"{of} may look at rows that are not in its lineage"
        before = max((groupings.get(parent, 0) for parent in of.parents), default=0)
        groupings[of.node_id] = before + is_grouping(of.name, of.description)
        if groupings[of.node_id] > most_groupings:
            return f"{of} groups what was grouped before, of which only a part is in its lineage"
    return ""


def _is_known(of: Operation) -> bool:
    if of.name in NARROW:
        return len(of.parents) == 1 or of.name in UNIONS
    return is_grouping(of.name, of.description)
