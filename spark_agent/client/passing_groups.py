"""Groups that pass a filter among some input rows, though they did not in the job: they lack rows.

Of filters behind an aggregation by key, whose keys the lineage has. The filter runs again on the rows, and of
each key that passes the service says whether it passed in the job, and what its group was made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from spark_agent import contract
from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import InputRows, input_rows
from spark_agent.client.outputs_again import FailedRunError, OutputsAgain
from spark_agent.client.replays import Chosen
from spark_agent.client.trace_starts import query_of, start_of
from spark_agent.driver.recipes import Recipe

__all__ = ["PassingGroups"]

#: Behind these the key of a record is still that of its group.
_KEEPING = frozenset(("filter", "mapValues"))
_OF_A_KEY = frozenset(("aggregateByKey", "combineByKey", "foldByKey", "reduceByKey"))
#: Groups of one filter that are asked for.
_MOST_GROUPS = 300


class Keys:
    """The keys of pairs as the captured text has them, each once. Executors get it."""

    def __call__(self, records: Iterable[Any]) -> Iterator[str]:
        yield from {
            contract.typed_text(record[0])[1]
            for record in records
            if isinstance(record, tuple) and len(record) == 2
        }


class PassingGroups:
    """Of the operations before some records."""

    def __init__(self, chosen: Chosen, outputs: OutputsAgain) -> None:
        self._chosen, self._outputs = chosen, outputs
        self._filters = list(_filters(chosen.recipe))
        #: What was asked before: (filter, group, key) -> the rows of the group, None: it passed in the job.
        self._known: dict[tuple[int, int, str], InputRows | None] = {}

    def of(self, rows: InputRows) -> Iterator[tuple[int, str, InputRows]]:
        """(operation, key, the rows of the group in the job) at the first filter where there are some."""
        for step, group in self._filters:
            try:
                keys = sorted(set(self._outputs.looked_at(rows, Keys(), at=step)))
            except FailedRunError:
                return
            lacking = [
                (key, of_group) for key in keys[:_MOST_GROUPS] if (of_group := self._rows(step, group, key))
            ]
            if lacking:
                yield from ((group.number, key, of_group) for key, of_group in lacking)
                return

    def _rows(self, step: Recipe, group: Recipe, key: str) -> InputRows | None:
        """What a group was made of in the job; None if it passed there, or it is not known."""
        name = step.number, group.number, key
        if name not in self._known:
            self._known[name] = self._asked(step, group, key)
        return self._known[name]

    def _asked(self, step: Recipe, group: Recipe, key: str) -> InputRows | None:
        application = self._chosen.application
        start = start_of(node=f"{application.id}#{group.number}", key=key)
        try:
            pages = application.client.trace(
                application.id,
                direction="forward",
                to=f"{application.id}#{step.number}",
                limit=1,
                **query_of([start]),
            )
            if any(node["total"] for node in next(pages)["nodes"] if _number(node) == step.number):
                return None
            return input_rows(application.client, application.id, [start])
        except TraceError:
            return None


def _number(node: Any) -> int:
    return int(node["node_id"].rpartition("#")[2])


def _filters(recipe: Recipe) -> Iterator[tuple[Recipe, Recipe]]:
    """(a filter, the aggregation whose groups it sees), in the order of the program."""
    for step in recipe.lineage():
        if step.name != "filter":
            continue
        group = step
        while group.name in _KEEPING and len(group.parents) == 1:
            (group,) = group.parents
        if group.name in _OF_A_KEY:
            yield step, group
