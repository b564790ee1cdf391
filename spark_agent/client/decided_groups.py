"""Rows that decided groups in which others took part, and were not picked: without them the others are.

Of a demanded row, say: among few rows it may win where it lost in the job, and the record goes another way.
The rows are followed through the job as it was, and of each aggregation by key that they came to, the rows
that decided it are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import InputRows, NamedRow, input_rows
from spark_agent.client.passing_groups import OF_A_KEY, start_of_row
from spark_agent.client.replays import Chosen
from spark_agent.client.trace_starts import Start, queries_of, start_of

__all__ = ["DecidedGroups"]

#: Records of one operation that are looked at, and operations whose groups are asked for one by one.
_MOST_RECORDS, _MOST_OPERATIONS = 1_000, 50
#: Rows that are added without regard to how many there are.
_FEW = 16


class DecidedGroups:
    """Of the operations before some records."""

    def __init__(self, chosen: Chosen) -> None:
        self._chosen = chosen
        lineage = chosen.recipe.lineage()
        self._aggregations = frozenset(step.number for step in lineage if step.name in OF_A_KEY)

    def of(self, rows: Sequence[NamedRow], present: InputRows) -> InputRows | None:
        """What decided the groups of `rows`, beside what is there; None where that is nothing.

        Of many rows those of the groups that took the fewest.
        """
        if not self._aggregations or not rows:
            return None
        before = {_place(row) for row in present.named}
        try:
            groups = self._groups(rows)
            if not groups:
                return None
            together, budget = self._decided(groups), max(_FEW, len(before))
            if len(_places(together) - before) > budget:
                together = self._fewest(groups, before, budget)
        except TraceError:
            return None
        return together if _places(together) - before else None

    def _groups(self, rows: Sequence[NamedRow]) -> list[Start]:
        """The records of aggregations that the rows came to in the job."""
        application = self._chosen.application
        starts = [start_of_row(application.id, row) for row in rows]
        return [
            start_of(node=node["node_id"], partition=record["partition"], offset=record["offset"])
            for query in queries_of(starts)
            for node in next(
                application.client.trace(
                    application.id, direction="forward", across="false", limit=_MOST_RECORDS, **query
                )
            )["nodes"]
            if int(node["node_id"].rpartition("#")[2]) in self._aggregations
            for record in node["records"]
        ]

    def _decided(self, groups: Sequence[Start]) -> InputRows:
        application = self._chosen.application
        return input_rows(application.client, application.id, groups, concise=True)

    def _fewest(self, groups: Sequence[Start], before: set[tuple[int, int, int]], budget: int) -> InputRows:
        """Of the operations whose groups took the fewest, as long as they are not more than the budget."""
        by_node: dict[str, list[Start]] = {}
        for group in groups:
            by_node.setdefault(dict(group)["node"], []).append(group)
        of_nodes = [self._decided(of_node) for of_node in list(by_node.values())[:_MOST_OPERATIONS]]
        fewest, *others = sorted(of_nodes, key=lambda of_node: len(_places(of_node) - before))
        if len(_places(fewest) - before) > budget:
            return fewest.only(())
        together = fewest
        for of_node in others:
            more = together.joined(of_node)
            if len(_places(more) - before) > budget:
                break
            together = more
        return together


def _places(rows: InputRows) -> set[tuple[int, int, int]]:
    return {_place(row) for row in rows.named}


def _place(row: NamedRow) -> tuple[int, int, int]:
    return row.source, row.split, row.position
