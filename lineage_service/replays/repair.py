"""Finds the rows that a replay lacks: a group that a filter let pass, because some of its rows were left out.

1. Both runs are traced forward from the rows of the replay.
2. At the first operation behind which they differ on the way to what was asked for, records pass that ended
   there in the original. Each group of these gets rows of parts that the replay has nothing of: the fewest
   that serve all groups (`cover`). Where the replay lacks records, it gets all of their rows.
3. Where that gives no rows, groups may have been decided by others: they get the rows that decided.
So the rows become a sufficient explanation, and mostly a small one. After Chothia et al., PVLDB 9(12), 2016,
section 3.3, which adds all rows of each group.
Needs the lineage of the replay in the store.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from lineage_service.errors import LineageError
from lineage_service.lineage import AskedRecord, Node
from lineage_service.queries import Queries, RowSetQuery, StartQuery, TraceQuery
from lineage_service.replays.arrival import Arrival
from lineage_service.replays.decided_groups import DecidedGroups
from lineage_service.replays.joined_rows import rows_of, without_places
from lineage_service.replays.replay_runs import Added
from lineage_service.replays.specification import Plan, Source, row_set_json, with_places
from lineage_service.replays.ways import Astray, RecordId, Step, Ways, records_astray, ways_of
from spark_agent.contract.row_cover import Group, Row, covering
from spark_agent.contract.row_sets import ranges_of, rows_in

__all__ = ["RowRepair"]

#: Rows from which ways are followed, and records of each operation that are looked at.
_MOST_STARTS, _MOST_RECORDS = 20_000, 50_000
#: Records that went another way, of which the groups are looked at.
_MOST_ASTRAY = 1_000

Files = Mapping[Row, tuple[str, int]]


class RowRepair:
    """Of one application, `original`. `texts` reads rows for the next run."""

    def __init__(self, queries: Queries, original: str, texts: Any, arrival: Arrival) -> None:
        self._queries, self._original, self._texts = queries, original, texts
        self._arrival = arrival
        #: How often each record of the original went another way in this replay.
        self._times: Counter[RecordId] = Counter()

    def more(self, plan: Plan, replayed: str | None, missing: Sequence[AskedRecord]) -> Added:
        """See `replay_runs.Repair`."""
        if replayed is None:
            return Added(None, "no Spark application ran, so there is no lineage to compare")
        if plan.rows > _MOST_STARTS:
            return Added(None, f"more than {_MOST_STARTS:,} rows are too many to follow one by one")
        try:
            why_not = self._arrival.why_not(replayed) or self._other_way(replayed)
            if why_not:
                return Added(None, why_not)
            return self._added(plan, replayed, missing)
        except LineageError as error:
            return Added(None, f"the lineage of both runs cannot be compared: {error}")

    def failing(self, replayed: str, records: Sequence[tuple[int, int, int]]) -> dict[str, Any] | str:
        """The input rows of records that a replay left out, as a row set; or why there is none."""
        why_not = self._arrival.why_not(replayed)
        if why_not:
            return why_not
        starts = tuple(
            StartQuery(node=str(node), partition=partition, offset=offset)
            for node, partition, offset in records
        )
        try:
            row_set = row_set_json(self._queries.row_set(replayed, RowSetQuery(starts=starts)))
        except LineageError as error:
            return f"their input rows are not known: {error}"
        sources = [source for source in row_set["sources"] if source.get("splits")]
        return {**row_set, "application": self._original, "sources": sources, "asked": []}

    def _other_way(self, replayed: str) -> str:
        """How the operations differ; empty if both have the same."""
        was, now = (self._queries.graph(application).nodes for application in (self._original, replayed))
        before, after = map(_signatures, (was, now))
        other = next((number for number in sorted(before) if after.get(number) != before[number]), None)
        if other is None:
            return ""
        name, site = before[other]
        return f"the replay went another way than the original: it has not {name} ({site}), operation {other}"

    def _added(self, plan: Plan, replayed: str, missing: Sequence[AskedRecord]) -> Added:
        if plan.strategy != "repair":
            self._times.clear()
        rows = rows_of(plan.restricted)
        was = self._ways(self._original, [StartQuery(node=str(n), partition=s, offset=p) for n, s, p in rows])
        now = self._ways(replayed, _starts_in_replay(plan))
        choices = records_astray(was, now, [(record.node, record.record_id) for record in missing])
        for astray in choices:
            added = self._rows_for(astray, rows)
            if added:
                count = _in_words(len(added), "row", "added")
                groups = f"{len(astray):,} record{' went' if len(astray) == 1 else 's went'}"
                at = f"{_name(was, astray[0])} (operation {astray[0].at})"
                why = f"{count}, because without {groups} another way at {at}"
                return self._extended(plan, _with_rows(plan.sources, added), why)
        first = next((choice[0] for choice in choices if choice), None)
        decided = DecidedGroups(self._queries, self._original).of(was, now, first, plan.sources)
        if decided is not None:
            count = _in_words(decided.count, "row", "added")
            why = f"{count} that decided groups of {decided.name} (operation {decided.node})"
            return self._extended(plan, decided.sources, why)
        if not choices:
            return Added(None, "both runs went the same way, so no rows are known that lack")
        return Added(None, _why_none(choices[0], "an operation" if first is None else _name(was, first)))

    def _extended(self, plan: Plan, sources: Sequence[Source], why: str) -> Added:
        placed = with_places(self._original, list(map(without_places, sources)), self._texts)
        return Added(replace(plan, sources=placed, strategy="repair"), why)

    def _ways(self, application: str, starts: Iterable[StartQuery]) -> Ways:
        """All records that were made of these rows."""
        query = TraceQuery(direction="forward", starts=tuple(starts), across=False, limit=_MOST_RECORDS)
        return ways_of(self._queries.trace(application, query))

    def _rows_for(self, astray: Sequence[Astray], rows: Set[Row]) -> Files:
        """Rows that the records were made of and the replay does not have: all of those that it lacks.

        Of the others few that have a part in many of their groups, in parts that the replay has nothing of if
        there are some. Each time that a group needs more, twice as many.
        """
        astray = astray[:_MOST_ASTRAY]
        starts = tuple(StartQuery(node=str(of.record[0]), record=of.record[1]) for of in astray)
        if not starts:
            return {}
        query = TraceQuery(direction="backward", starts=starts, across=False, limit=_MOST_RECORDS)
        ways = ways_of(self._queries.trace(self._original, query))
        places = {
            row: step.source
            for step in ways.steps.values()
            if (row := _row(step)) is not None and step.source is not None
        }
        chosen: set[Row] = set()
        groups: list[Group] = []
        for of in astray:
            if of.is_lacking:
                chosen |= _rows_before(ways, [of.record]) - rows
                continue
            groups.append(Group(_parts_to_add(ways, of.record, rows), 1 << self._times[of.record]))
            self._times[of.record] += 1
        return {row: places[row] for row in sorted(chosen | covering(groups))}


def _why_none(astray: Sequence[Astray], name: str) -> str:
    """Why there are no rows to add."""
    if all(record.is_lacking for record in astray):
        return (
            f"records lack at {name}, and all of their rows are there: what is done with them may depend on "
            "other rows, of which the program has taken values"
        )
    return f"records pass {name} that did not before, and no more rows of them are known"


def _parts_to_add(ways: Ways, record: RecordId, rows: Set[Row]) -> list[frozenset[Row]]:
    """The rows of each part of a record's group that the replay has nothing of.

    Where it has something of all, each other row of the group is a part.
    """
    parts = [_rows_before(ways, [part]) for part in _parts(ways, record)]
    fresh = [frozenset(part) for part in parts if part and not part & rows]
    return fresh or [frozenset((row,)) for row in sorted(_rows_before(ways, [record]) - rows)]


def _parts(ways: Ways, record: RecordId) -> tuple[RecordId, ...]:
    """What the nearest group on the way to a record was made of."""
    while True:
        parents = [parent for parent in ways.parents.get(record, ()) if parent in ways.steps]
        if len(parents) != 1:
            return tuple(parents)
        [record] = parents


def _rows_before(ways: Ways, records: Iterable[RecordId]) -> set[Row]:
    """The rows of sources that records were made of."""
    return {row for record in ways.before(records) if (row := _row(ways.steps[record])) is not None}


def _name(ways: Ways, astray: Astray) -> str:
    return ways.nodes.get(astray.at, ("an operation", ""))[0]


def _in_words(count: int, noun: str, done: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'} {done}"


def _signatures(nodes: Iterable[Node]) -> dict[int, tuple[str, str]]:
    return {node.node: (node.name, node.call_site.rpartition("/")[2]) for node in nodes}


def _row(step: Step) -> Row | None:
    return None if step.source is None else (step.node, step.partition, step.offset)


def _starts_in_replay(plan: Plan) -> list[StartQuery]:
    return [
        StartQuery(node=str(source["node"]), partition=split["split"], offset=offset)
        for source in plan.restricted
        for split in source.get("splits", ())
        for offset in plan.places(source, split)
    ]


def _with_rows(sources: Sequence[Source], added: Files) -> list[Source]:
    by_node: dict[int, dict[Row, tuple[str, int]]] = defaultdict(dict)
    for row, place in added.items():
        by_node[row[0]][row] = place
    return [
        _extended(source, by_node[source["node"]]) if source["node"] in by_node else source
        for source in sources
    ]


def _extended(source: Source, added: Files) -> Source:
    positions: dict[int, set[int]] = defaultdict(set)
    for split in source.get("splits", ()):
        positions[split["split"]].update(rows_in(split["positions"]))
    rows: dict[str, set[int]] = defaultdict(set)
    states: dict[str, Mapping[str, Any]] = {}
    for file in source.get("files", ()):
        rows[file["path"]].update(rows_in(file["rows"]))
        states[file["path"]] = file
    for (_, split_number, position), (path, row) in added.items():
        positions[split_number].add(position)
        rows[path].add(row)
    return {
        **source,
        "splits": [
            {"split": number, "positions": ranges_of(positions[number])} for number in sorted(positions)
        ],
        "files": [
            {**states.get(path, {}), "path": path, "rows": ranges_of(numbers)}
            for path, numbers in sorted(rows.items())
        ],
    }
