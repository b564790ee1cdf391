"""Finds the rows that a replay lacks: a group that a filter let pass, because some of its rows were left out.

Both runs are traced forward from the rows of the replay. At the first operation behind which they differ,
records pass that ended there in the original. Each gets a row of the original: one of a part of its group
that the replay has nothing of. Where the replay lacks records, it gets all of theirs. So the rows become a
sufficient explanation, and mostly a small one.
Needs the lineage of the replay in the store.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lineage_service.errors import LineageError
from lineage_service.lineage import AskedRecord, Node
from lineage_service.queries import Queries, RowSetQuery, StartQuery, TraceQuery
from lineage_service.replays.arrival import Arrival
from lineage_service.replays.replay_runs import Added
from lineage_service.replays.specification import Plan, Source, row_set_json, with_places
from lineage_service.replays.ways import Astray, RecordId, Step, Ways, records_astray, ways_of
from spark_agent.contract.row_sets import ranges_of, rows_in

__all__ = ["RowRepair"]

#: Rows from which ways are followed, and records of each operation that are looked at.
_MOST_STARTS, _MOST_RECORDS = 20_000, 50_000

Row = tuple[int, int, int]
"""Node of a source, partition, position."""
Files = Mapping[Row, tuple[str, int]]


class RowRepair:
    """Of one application, `original`. `texts` reads rows for the next run."""

    def __init__(self, queries: Queries, original: str, texts: Any, arrival: Arrival) -> None:
        self._queries, self._original, self._texts = queries, original, texts
        self._arrival = arrival

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
        rows = _rows_of(plan.restricted)
        was = self._ways(self._original, [StartQuery(node=str(n), partition=s, offset=p) for n, s, p in rows])
        now = self._ways(replayed, _starts_in_replay(plan))
        asked = [(record.node, record.record_id) for record in missing]
        astray = records_astray(was, now, asked)
        if not astray:
            return Added(None, "both runs went the same way, so no rows are known that lack")
        added: dict[Row, tuple[str, int]] = {}
        for record in astray:
            added.update(self._rows_for(record, rows, is_again=plan.strategy == "repair"))
        name, _ = was.nodes.get(astray[0].at, ("an operation", ""))
        if not added:
            return Added(None, _why_none(astray, name))
        extended = [_without_contents(source) for source in _with_rows(plan.sources, added)]
        sources = with_places(self._original, extended, self._texts)
        count = f"{len(added):,} row{'' if len(added) == 1 else 's'} added"
        groups = f"{len(astray):,} record{' went' if len(astray) == 1 else 's went'}"
        return Added(
            replace(plan, sources=sources, strategy="repair"),
            f"{count}, because without {groups} another way at {name} (operation {astray[0].at})",
        )

    def _ways(self, application: str, starts: Iterable[StartQuery]) -> Ways:
        """All records that were made of these rows."""
        query = TraceQuery(direction="forward", starts=tuple(starts), across=False, limit=_MOST_RECORDS)
        return ways_of(self._queries.trace(application, query))

    def _rows_for(self, astray: Astray, rows: set[Row], *, is_again: bool) -> Files:
        """Rows that the record was made of and the replay does not have: all if it lacks, else one.

        Of a part of its group that the replay has nothing of, if there is one. `is_again`: one was not
        enough, so as many as the replay has.
        """
        node, record_id = astray.record
        query = TraceQuery(
            direction="backward", node=str(node), record=record_id, across=False, limit=_MOST_RECORDS
        )
        ways = ways_of(self._queries.trace(self._original, query))
        sources = {record for record in ways.before([astray.record]) if _row(ways.steps[record]) is not None}
        new = _new(ways, sources, rows)
        if astray.is_lacking:
            return new
        count = len(sources) - len(new) if is_again else 1
        parts = [_new(ways, ways.before([part]) & sources, rows) for part in _parts(ways, astray.record)]
        wholes = [ways.before([part]) & sources for part in _parts(ways, astray.record)]
        is_new = [len(part) == len(whole) for part, whole in zip(parts, wholes, strict=True)]
        ordered = [*(part for part, yes in zip(parts, is_new, strict=True) if yes), *parts, new]
        chosen: dict[Row, tuple[str, int]] = {}
        for part in ordered:
            for row in sorted(part)[: 1 if not is_again else count]:
                if len(chosen) < count:
                    chosen[row] = part[row]
        return chosen


def _why_none(astray: Sequence[Astray], name: str) -> str:
    """Why there are no rows to add."""
    if all(record.is_lacking for record in astray):
        return (
            f"records lack at {name}, and all of their rows are there: what is done with them may depend on "
            "other rows, of which the program has taken values"
        )
    return f"records pass {name} that did not before, and no more rows of them are known"


def _parts(ways: Ways, record: RecordId) -> tuple[RecordId, ...]:
    """What the nearest group on the way to a record was made of."""
    while True:
        parents = [parent for parent in ways.parents.get(record, ()) if parent in ways.steps]
        if len(parents) != 1:
            return tuple(parents)
        [record] = parents


def _signatures(nodes: Iterable[Node]) -> dict[int, tuple[str, str]]:
    return {node.node: (node.name, node.call_site.rpartition("/")[2]) for node in nodes}


def _row(step: Step) -> Row | None:
    return None if step.source is None else (step.node, step.partition, step.offset)


def _new(ways: Ways, records: Iterable[RecordId], rows: set[Row]) -> dict[Row, tuple[str, int]]:
    new: dict[Row, tuple[str, int]] = {}
    for record in records:
        step = ways.steps[record]
        row = _row(step)
        if row is not None and row not in rows and step.source is not None:
            new[row] = step.source
    return new


def _rows_of(sources: Iterable[Mapping[str, Any]]) -> set[Row]:
    return {
        (source["node"], split["split"], position)
        for source in sources
        for split in source.get("splits", ())
        for position in rows_in(split["positions"])
    }


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


def _without_contents(source: Source) -> Source:
    return {name: value for name, value in source.items() if name not in ("texts", "blocks")}
