"""Repair, on the job of which the lineage alone reproduces nothing: words that one document only has.

The job and its lineage are computed by loops here, for any rows, so no Spark is needed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.lineage import (
    Application,
    AskedRecord,
    Flow,
    Graph,
    Node,
    Record,
    SourceRow,
    Trace,
    TracedNode,
)
from lineage_service.queries import StartQuery, TraceQuery
from lineage_service.replays.repair import RowRepair
from lineage_service.replays.specification import Plan
from spark_agent.contract.row_sets import count_rows, ranges_of, rows_in

NAMES = ("textFile", "flatMap", "distinct", "map", "reduceByKey", "filter", "map", "reduceByKey", "save")
SOURCE, SINK = 0, 8
ORIGINAL, REPLAY = "original", "replay"
Line = tuple[int, str]
RecordId = tuple[int, str]


class Run:
    """The job on some rows of the input: (row, (document, words))."""

    def __init__(self, rows: Sequence[tuple[int, Line]]) -> None:
        self.keys: dict[RecordId, str] = {}
        self.rows: dict[RecordId, int] = {}
        self.parents: dict[RecordId, list[RecordId]] = defaultdict(list)
        self.texts: dict[str, RecordId] = {}
        self._numbers: Counter[int] = Counter()
        pairs = defaultdict(list)
        for number, (document, words) in rows:
            line = self._new(0)
            self.rows[line] = number
            for word in words.split():
                pairs[word, document].append(self._new(1, line))
        by_word = defaultdict(list)
        for (word, document), members in pairs.items():
            by_word[word].append((document, self._new(3, self._new(2, *members))))
        by_document = defaultdict(list)
        for parts in by_word.values():
            group = self._new(4, *(part for _, part in parts))
            if len(parts) == 1:
                by_document[parts[0][0]].append(self._new(6, self._new(5, group)))
        for document, members in by_document.items():
            total = self._new(7, *members, key=str(document))
            self.texts[f"{document},{len(members)}"] = self._new(8, total)

    def _new(self, node: int, *parents: RecordId, key: str | None = None) -> RecordId:
        offset = self._numbers[node]
        self._numbers[node] += 1
        record = node, f"{'read#' if node == 0 else 'write#' if node == 8 else ''}0#{offset}"
        self.parents[record] = list(parents)
        if key is not None:
            self.keys[record] = key
        return record

    def reached(self, starts: Iterable[RecordId], *, forward: bool) -> set[RecordId]:
        steps: dict[RecordId, list[RecordId]] = self.parents
        if forward:
            steps = defaultdict(list)
            for record, made_of in self.parents.items():
                for parent in made_of:
                    steps[parent].append(record)
        seen = set(starts)
        pending = list(seen)
        while pending:
            for other in steps.get(pending.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    pending.append(other)
        return seen


def trace_of(application: str, run: Run, records: set[RecordId]) -> Trace:
    def offset(record: RecordId) -> int:
        return int(record[1].rpartition("#")[2])

    nodes = []
    for number, name in enumerate(NAMES):
        listed = sorted((record for record in records if record[0] == number), key=offset)
        nodes.append(
            TracedNode(
                node_id=f"{application}#{number}",
                application_id=application,
                application_name="",
                name=name,
                kind="source" if number == SOURCE else "sink" if number == SINK else "operator",
                exact=True,
                total=len(listed),
                records=tuple(
                    Record(
                        record_id=record[1],
                        partition=0,
                        offset=offset(record),
                        key=run.keys.get(record),
                        source=None
                        if record not in run.rows
                        else SourceRow(path="/in", row=run.rows[record], line=0, text=None, warning=None),
                    )
                    for record in listed
                ),
            )
        )
    flows = tuple(
        Flow(
            hash_in=f"{application}#{parent[0]}#{parent[1]}",
            hash_out=f"{application}#{record[0]}#{record[1]}",
            node_id=f"{application}#{record[0]}",
        )
        for record in records
        for parent in run.parents[record]
        if parent in records
    )
    return Trace(
        direction="forward",
        start=(),
        start_node="",
        starts=(),
        complete=True,
        exact=True,
        truncated=False,
        nodes=tuple(nodes),
        flows=flows,
        next=None,
    )


class Lineages:
    """`Queries` of both runs, as far as repair asks; and the texts of rows."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.runs = {ORIGINAL: Run(list(enumerate(lines)))}

    def application(self, application_id: str) -> Application:
        return Application(
            application_id=application_id,
            name="",
            state="ended",
            started=0,
            ended=1,
            complete=True,
            missing_blocks=0,
            counters={},
        )

    def graph(self, application_id: str) -> Graph:
        nodes = tuple(
            Node(
                node_id=f"{application_id}#{number}",
                node=number,
                name=name,
                description="",
                kind="operator",
                call_site=f"job.py:{number}",
                exact=True,
                reason="",
                dataset=None,
                records=None,
                has_values=False,
            )
            for number, name in enumerate(NAMES)
        )
        return Graph(application_id=application_id, nodes=nodes, edges=())

    def trace(self, application_id: str, query: TraceQuery) -> Trace:
        run = self.runs[application_id]
        if query.starts:
            starts = [(SOURCE, f"read#0#{start.offset}") for start in query.starts]
            assert all(isinstance(start, StartQuery) for start in query.starts)
            return trace_of(application_id, run, run.reached(starts, forward=True))
        assert query.node is not None
        assert query.record is not None
        start = int(query.node), query.record
        return trace_of(application_id, run, run.reached([start], forward=False))

    def texts(self, application_id: str, sources: Iterable[Any]) -> dict[int, Any]:
        return {source["node"]: NoTexts() for source in sources}


class NoTexts:
    texts = None


def source_of(rows: Iterable[int], total: int) -> dict[str, Any]:
    positions = ranges_of(rows)
    return {
        "node": SOURCE,
        "name": "textFile",
        "whole": False,
        "total": total,
        "splits": [{"split": 0, "positions": positions}],
        "files": [{"path": "/in", "rows": positions}],
    }


def replayed(lineages: Lineages, plan: Plan) -> Run:
    [source] = plan.sources
    numbers = [row for split in source["splits"] for row in rows_in(split["positions"])]
    assert numbers == [row for file in source["files"] for row in rows_in(file["rows"])]
    return Run([(number, lineages.lines[number]) for number in numbers])


LINES = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.sampled_from("abcdefgh"), max_size=4).map(" ".join)),
    min_size=1,
    max_size=25,
)


@settings(max_examples=150)
@given(LINES)
def test_rows_are_added_until_each_output_comes_out_again(lines: list[Line]) -> None:
    lineages = Lineages(lines)
    original = lineages.runs[ORIGINAL]
    repair = RowRepair(lineages, ORIGINAL, lineages, wait_s=1)  # type: ignore[arg-type]
    for text, record in original.texts.items():
        reached = original.reached([record], forward=False)
        plan = Plan(
            mode="only", sources=(source_of((original.rows[r] for r in reached if r[0] == 0), len(lines)),)
        )
        traced, rounds = plan.rows, 1
        asked = AskedRecord(node=SINK, record_id=record[1], path=None, row=None, text=text, key=None)
        while text not in (run := replayed(lineages, plan)).texts:
            lineages.runs[REPLAY] = run
            added = repair.more(plan, REPLAY, [asked])
            assert added.plan is not None, (added.why, text, plan)
            assert added.plan.rows > plan.rows
            plan = added.plan
            rounds += 1
        assert count_rows(plan.sources[0]) <= len(lines)
        # Each wrong word needs one row of another document, and is found in the first further run.
        assert rounds <= 2 + len(NAMES)
        assert plan.rows <= traced + 8 * rounds


@settings(max_examples=60)
@given(LINES)
def test_a_replay_with_the_same_groups_gets_no_rows(lines: list[Line]) -> None:
    lineages = Lineages(lines)
    lineages.runs[REPLAY] = Run(list(enumerate(lines)))
    plan = Plan(mode="only", sources=(source_of(range(len(lines)), len(lines)),))
    asked = [
        AskedRecord(node=SINK, record_id=record[1], path=None, row=None, text=text, key=None)
        for text, record in lineages.runs[ORIGINAL].texts.items()
    ]
    added = RowRepair(lineages, ORIGINAL, lineages, wait_s=1).more(plan, REPLAY, asked)  # type: ignore[arg-type]
    assert added.plan is None
    assert added.why == "both runs went the same way, so no rows are known that lack"
