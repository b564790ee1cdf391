"""Groups of some rows that ended at a filter in the job, and pass it among few rows: these lack rows.

Of filters behind an aggregation by key. The service says how far the groups came, and what they were made of.
Which keys pass is seen in a run on the rows. Of a groupByKey the lineage has no keys: all of its groups that
ended are meant then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from spark_agent import contract
from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import InputRows, NamedRow
from spark_agent.client.outputs_again import FailedRunError, OutputsAgain
from spark_agent.client.replays import Chosen
from spark_agent.client.trace_starts import Start, queries_of, query_of, start_of
from spark_agent.driver.recipes import Recipe

__all__ = ["OF_A_KEY", "LackingGroup", "PassingGroups", "start_of_row"]

#: Behind these the key of a record is still that of its group.
_KEEPING = frozenset(("filter", "mapValues"))
#: Each record of these has a key of its own.
OF_A_KEY = frozenset(("aggregateByKey", "combineByKey", "foldByKey", "groupBy", "groupByKey", "reduceByKey"))
#: Records of each operation that are looked at, groups that get rows, and rows of each that are listed.
_MOST_RECORDS, _MOST_GROUPS, _MOST_ROWS = 2_000, 300, 200
#: Queries at once.
_QUERIES = 4


@dataclass(frozen=True)
class LackingGroup:
    """Of the job: a record of the operation `node`. `rows` are the first that it was made of."""

    node: int
    record: str
    rows: Sequence[NamedRow]


@dataclass(frozen=True)
class _Ended:
    """A group that did not come through the filter. `key`: None where the lineage has none."""

    record: str
    start: Start
    key: str | None


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
        #: What was asked before: the groups behind some rows, and the rows of a group.
        self._ended_of: dict[tuple[int, Sequence[NamedRow]], list[_Ended]] = {}
        self._rows_of: dict[Start, list[NamedRow]] = {}

    @property
    def keyed(self) -> frozenset[int]:
        """The operations whose keys are asked for."""
        return frozenset(step.number for step, _ in self._filters)

    def of(
        self, rows: InputRows, members: Sequence[NamedRow], keys: Mapping[int, Sequence[str]] | None
    ) -> list[LackingGroup]:
        """Those that `members` are in, at the first filter where there are some.

        `keys`: those that a run on the rows gave, by operation; None where that is not known.
        """
        for step, group in self._filters:
            ended = self._ended(step, group, tuple(members))
            if any(one.key is not None for one in ended):
                try:
                    passing = set(self._keys(rows, step) if keys is None else keys[step.number])
                except FailedRunError:
                    return []
                ended = [one for one in ended if one.key is None or one.key in passing]
            if ended:
                return self._with_rows(group, ended[:_MOST_GROUPS])
        return []

    def _keys(self, rows: InputRows, step: Recipe) -> Sequence[str]:
        return self._outputs.looked_at(rows, Keys(), at=step)

    def _with_rows(self, group: Recipe, ended: Sequence[_Ended]) -> list[LackingGroup]:
        new = [one.start for one in ended if one.start not in self._rows_of]
        with ThreadPoolExecutor(_QUERIES) as threads:
            self._rows_of.update(zip(new, threads.map(self._rows, new), strict=True))
        return [LackingGroup(group.number, one.record, self._rows_of[one.start]) for one in ended]

    def _ended(self, step: Recipe, group: Recipe, members: tuple[NamedRow, ...]) -> list[_Ended]:
        """The groups of these rows that did not come through the filter."""
        name = step.number, members
        if name not in self._ended_of:
            starts = [start_of_row(self._chosen.application.id, row) for row in members]
            to = f"{self._chosen.application.id}#{step.number}"
            try:
                pages = [
                    self._first_page(direction="forward", to=to, limit=_MOST_RECORDS, **query)
                    for query in queries_of(starts)
                ]
            except TraceError:  # the rows do not come to it
                pages = []
            of_pages = (one for page in pages for one in _ended_in(page, group.number, step.number))
            self._ended_of[name] = list({one.record: one for one in of_pages}.values())
        return self._ended_of[name]

    def _rows(self, start: Start) -> list[NamedRow]:
        """The first rows that a group was made of."""
        try:
            page = self._first_page(
                direction="backward", across="false", limit=_MOST_ROWS, **query_of([start])
            )
        except TraceError:
            return []
        return [
            NamedRow(_number(node["node_id"]), record["partition"], record["offset"], None, None, None)
            for node in page["nodes"]
            if node["kind"] == "source"
            for record in node["records"]
        ]

    def _first_page(self, **query: Any) -> Mapping[str, Any]:
        application = self._chosen.application
        return next(application.client.trace(application.id, **query))


def start_of_row(application_id: str, row: NamedRow) -> Start:
    return start_of(node=f"{application_id}#{row.source}", partition=row.split, offset=row.position)


def _ended_in(page: Mapping[str, Any], group: int, step: int) -> Iterator[_Ended]:
    """The records of an operation that did not come to another one, of a trace of both."""
    behind: dict[str, list[str]] = {}
    for flow in page["flows"]:
        behind.setdefault(flow["hash_in"], []).append(flow["hash_out"])
    for node in page["nodes"]:
        if _number(node["node_id"]) != group:
            continue
        for record in node["records"]:
            name = f"{node['node_id']}#{record['record_id']}"
            if not _comes_to(name, step, behind):
                start = start_of(node=node["node_id"], partition=record["partition"], offset=record["offset"])
                yield _Ended(name, start, record.get("key"))


def _comes_to(record: str, step: int, behind: Mapping[str, Sequence[str]]) -> bool:
    """Is a record `APPLICATION#NUMBER#RECORD_ID` behind it one of the operation `step`?"""
    seen: set[str] = set()
    reached = [record]
    while reached:
        one = reached.pop()
        if int(one.split("#")[1]) == step:
            return True
        if one not in seen:
            seen.add(one)
            reached += behind.get(one, ())
    return False


def _number(node_id: str) -> int:
    return int(node_id.rpartition("#")[2])


def _filters(recipe: Recipe) -> Iterator[tuple[Recipe, Recipe]]:
    """(a filter, the aggregation whose groups it sees), in the order of the program."""
    for step in recipe.lineage():
        if step.name != "filter":
            continue
        group = step
        while group.name in _KEEPING and len(group.parents) == 1:
            (group,) = group.parents
        if group.name in OF_A_KEY:
            yield step, group
