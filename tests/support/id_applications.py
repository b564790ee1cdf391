"""Applications whose records are known by ids: what an agent for query plans tells of them, and the truth.

Sources, filters and joins that carry ids, groups one above the other, an output. `truth` follows every record
by loops over what the application was made of; it knows nothing of messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.store.tables import ROW_GROUP, Bounds
from lineage_service.testing.flow_store import MemoryFlowStore
from spark_agent import contract
from tests.support.lineage_messages import block, event, messages

Id = tuple[int, int]
"""(node, id)."""
Place = tuple[int, int, int]
"""(node, split, offset)."""
Rows = Sequence[Sequence[Id]]
"""The ids that each row of a task was made of."""

#: Nodes: two sources, what is done to them row by row, those of each grouping (see `tap`; of its winners one
#: for each column, from `WINNERS` on), a cache, and the output.
SOURCES, FILTER, JOIN, CACHE, OUTPUT = (0, 1), 2, 3, 80, 90
ROW_IDS, CODES, KEYS, GROUPS, AGGREGATE, WINNERS = range(6)


def tap(number: int, step: int = ROW_IDS) -> int:
    """A node of the `number`-th grouping."""
    return 10 + 10 * number + step


def source_id(node: int, split: int, position: int) -> Id:
    return node, split << 33 | position


@dataclass(frozen=True)
class Task:
    """One attempt at one split. `codes` of its rows and `keys` of its codes where it groups.

    Of a window a row has no code, but for each of the frames a range of them: (first, count).
    """

    rows: Rows
    codes: Sequence[int] = ()
    keys: Sequence[tuple[int, int]] = ()  # (key, code)
    execution: int | None = None
    stage: int = 0
    ranges: Sequence[Sequence[tuple[int, int]]] = ()

    @property
    def outputs(self) -> int:
        if self.ranges:
            return max((code + 1 for row in range(len(self.rows)) for code in self.codes_of(row)), default=0)
        return max(self.codes, default=-1) + 1 if self.codes else len(self.rows)

    def codes_of(self, row: int) -> set[int]:
        if not self.ranges:
            return {self.codes[row]}
        spans = [frame[row] for frame in self.ranges]
        return {code for first, count in spans for code in range(first, first + count)}


@dataclass(frozen=True)
class IdApplication:
    """`sources`: node -> split -> how many records. The tasks of groupings and of the output by split.

    `others` are attempts and executions that do not count: (node, split, task or number of records, whether
    the number of its run is below the one that counts).
    """

    sources: Mapping[int, Mapping[int, int]]
    taps: Sequence[Mapping[int, Task]]
    output: Mapping[int, Task]
    others: Sequence[tuple[int, int, Task | int, bool]] = ()
    cache: Mapping[int, Task] = field(default_factory=dict)
    limit: int | None = None  # of the output only so many records are given on, of the first splits
    untold: frozenset[tuple[int, int]] = field(
        default_factory=frozenset
    )  # splits of sources without manifests
    bounded: frozenset[int] = field(default_factory=frozenset)  # nodes that are upper bounds
    #: Grouping -> which rows of a group count, if that is said.
    decided: Mapping[int, str] = field(default_factory=dict)
    #: Grouping -> columns of winners: the node of their ids, and by the key of a group the id.
    winners: Mapping[int, Sequence[tuple[int, Mapping[int, int]]]] = field(default_factory=dict)

    # -- the truth -------------------------------------------------------------------------------------

    def sources_of(self, ids: Sequence[Id], is_direct: bool) -> set[Id]:
        """The records of sources and of the cache that some ids lead to."""
        found = set()
        for node, number in ids:
            if node in (*self.sources, CACHE):
                found.add((node, number))
            if node == CACHE and not is_direct:
                found |= self.sources_of(self.cache[number >> 33].rows[number & (1 << 33) - 1], is_direct)
            is_group = node not in (*self.sources, CACHE)
            for task in self.taps[(node - 10) // 10].values() if is_group else ():
                codes = {code for key, code in task.keys if key == number}
                for at, row in enumerate(task.rows):
                    if codes & task.codes_of(at):
                        found |= self.sources_of(row, is_direct)
        return found

    @property
    def given(self) -> dict[int, Task]:
        """The output, without what is beyond its limit."""
        left, found = self.limit, dict[int, Task]()
        for split, task in sorted(self.output.items()):
            rows = task.rows if left is None else task.rows[:left]
            left = None if left is None else left - len(rows)
            found[split] = replace(task, rows=rows)
        return found

    def truth(self, *, is_direct: bool = False) -> dict[Place, set[Place]]:
        """Each record that was made of others -> all that it was made of; or what the way leads to first."""
        return {
            (made, split, offset): {
                (node, number >> 33, number & (1 << 33) - 1)
                for node, number in self.sources_of(ids, is_direct)
            }
            for made, tasks in ((CACHE, self.cache), (OUTPUT, self.given))
            for split, task in tasks.items()
            for offset, ids in enumerate(task.rows)
        }

    # -- what an agent tells ---------------------------------------------------------------------------

    def events(self) -> Iterator[bytes]:
        yield event(contract.APPLICATION_STARTED, name="ids")
        yield from self._nodes()
        for number, (node, split, task) in self._runs():
            if (node, split) in self.untold and node in self.sources:
                continue
            count = task if isinstance(task, int) else task.outputs
            is_tap = node not in (*SOURCES, CACHE, OUTPUT)
            yield event(
                contract.RUN_COMMITTED,
                run=number,
                split=split,
                attempt=number,
                stage=0 if isinstance(task, int) else task.stage,
                action=OUTPUT,
                input=node,
                nodes=[node + CODES, node + KEYS] if is_tap else [],
                blocks=sum(1 for _ in _blocks(number, node, split, task)),
                inputs=task if isinstance(task, int) else len(task.rows),
                outputs=count,
                **({} if isinstance(task, int) or task.execution is None else {"execution": task.execution}),
            )

        for number, node, _, _ in self._winners():
            counts = {"blocks": 1, "inputs": 1, "outputs": 1}
            yield event(
                contract.RUN_COMMITTED, run=number, split=0, action=OUTPUT, input=node, nodes=[], **counts
            )

    def _winners(self) -> Iterator[tuple[int, int, int, Mapping[int, int]]]:
        """(run, node, node of the ids, id by key) of each column of winners."""
        for at, columns in self.winners.items():
            for column, (source, ids) in enumerate(columns):
                yield 8_000 + 10 * at + column, tap(at, WINNERS) + column, source, ids

    def blocks(self) -> Iterator[bytes]:
        for number, (node, split, task) in self._runs():
            yield from _blocks(number, node, split, task)
        for number, node, _, ids in self._winners():
            yield block(number, 0, contract.WINNERS, {"out": [*ids], "in": [*ids.values()]}, node=node)
        # An attempt that nobody accepted.
        yield block(999_999, 0, contract.POSITIONS, {"in": [0]}, node=OUTPUT, source=0)

    def _runs(self) -> Iterator[tuple[int, tuple[int, int, Task | int]]]:
        those: list[tuple[int, int, Task | int]] = [
            (node, split, count) for node, splits in self.sources.items() for split, count in splits.items()
        ]
        those += [
            (tap(at), split, task) for at, tasks in enumerate(self.taps) for split, task in tasks.items()
        ]
        those += [(CACHE, split, task) for split, task in self.cache.items()]
        those += [(OUTPUT, split, task) for split, task in self.output.items()]
        yield from enumerate(those, 1_000)
        for at, (node, split, task, is_below) in enumerate(self.others, 1):
            yield at + (0 if is_below else 5_000), (node, split, task)

    def _nodes(self) -> Iterator[bytes]:
        def told(node: int, kind: str, relation: str, **fields: Any) -> bytes:
            name = f"n{node}"
            return event(
                contract.NODE_REGISTERED,
                node=node,
                name=name,
                kind=kind,
                relation=relation,
                exact=node not in self.bounded,
                **fields,
            )

        def link(source: int, target: int, port: int = 0, **fields: Any) -> bytes:
            return event(contract.LINK, source=source, target=target, port=port, **fields)

        for node in SOURCES:
            yield told(node, "source", contract.SOURCE, by_id=True)
        for node in (FILTER, JOIN):
            yield told(node, "operator", contract.CARRIED)
        yield from (link(0, FILTER), link(FILTER, JOIN), link(1, JOIN, 1))
        before, sources = JOIN, list(SOURCES)
        for at in range(len(self.taps)):
            operation = tap(at, AGGREGATE)
            yield told(tap(at), "step", contract.FLOWS, by_id=True, operation=operation)
            yield told(tap(at, CODES), "step", contract.FLOWS, operation=operation)
            yield told(tap(at, KEYS), "step", contract.FLOWS, operation=operation)
            yield told(tap(at, GROUPS), "step", contract.KEYED, operation=operation)
            decided = {"decided_by": self.decided[at]} if at in self.decided else {}
            yield told(operation, "operator", contract.CARRIED, **decided)
            yield from (link(tap(at, step), tap(at, step + 1)) for step in (ROW_IDS, CODES, KEYS))
            yield from (link(source, tap(at), ids=True) for source in sources)
            yield link(before, operation)
            before = operation
            sources.append(tap(at, GROUPS))
        for _, node, source, _ in self._winners():
            yield told(node, "step", contract.FLOWS, by_id=True, operation=node - node % 10 + AGGREGATE)
            yield link(source, node, ids=True)
        if self.cache:
            yield told(CACHE, "operator", contract.FLOWS, by_id=True)
            yield link(before, CACHE)
            yield from (link(source, CACHE, ids=True) for source in sources)
            before = CACHE
            sources.append(CACHE)
        limit = {} if self.limit is None else {"limit": self.limit}
        yield told(OUTPUT, "sink", contract.FLOWS, by_id=True, **limit)
        yield link(before, OUTPUT)
        yield from (link(source, OUTPUT, ids=True) for source in sources)


def _blocks(run: int, node: int, split: int, task: Task | int) -> Iterator[bytes]:
    if isinstance(task, int):
        return
    told: list[tuple[int, str, dict[str, list[int]], int | None, int]] = []
    for source in sorted({each for ids in task.rows for each, _ in ids}):
        named = [(row, number) for row, ids in enumerate(task.rows) for each, number in ids if each == source]
        rows, numbers = [row for row, _ in named], [number for _, number in named]
        if rows == list(range(len(task.rows))):
            half = len(rows) // 2
            told.append((node, contract.POSITIONS, {"in": numbers[:half]}, source, 0))
            told.append((node, contract.POSITIONS, {"in": numbers[half:]}, source, half))
        else:
            told.append((node, contract.PAIRS, {"out": rows, "in": numbers}, source, 0))
    if task.codes:
        told.append((node + CODES, contract.CODES, {"code": list(task.codes)}, None, 0))
    for frame in task.ranges:
        half = len(frame) // 2
        for part, base in ((frame[:half], 0), (frame[half:], half)):
            columns = {"out": [first for first, _ in part], "count": [count for _, count in part]}
            told.append((node + CODES, contract.RANGES, columns, None, -base))
    if task.keys:
        keys, codes = [key for key, _ in task.keys], [code for _, code in task.keys]
        told.append((node + KEYS, contract.PAIRS, {"out": keys, "in": codes}, None, 0))
    for seq, (of, relation, columns, by, base) in enumerate(told):
        bases = {"base_in": -base} if relation == contract.RANGES else {"base_out": base}
        yield block(run, seq, relation, columns, node=of, split=split, source=by, **bases)


class FileStore(MemoryFlowStore):
    """The flow store in memory, with files of its rows for who reads files."""

    def __init__(self, folder: Path, row_group: int = ROW_GROUP) -> None:
        super().__init__()
        self._folder, self._row_group = folder, row_group

    def tell(self, events: Sequence[bytes], blocks: Sequence[bytes]) -> None:
        self.write_events(event_batch("topic/0", messages(*events)))
        if blocks:
            self.write_flows(flow_batch("topic/1", messages(*blocks)))

    def files(self, table: str, application_id: str) -> list[str]:
        path = self._folder / f"{table}-{self._version}.parquet"
        rows = self.table(table, application_id)
        if not rows.num_rows:
            return []
        if not path.exists():
            pq.write_table(rows.drop_columns(["application_id"]), path, row_group_size=self._row_group)
        return [str(path)]

    def uris(self, table: str, application_id: str) -> list[str]:
        return self.files(table, application_id)

    def bounds(self, application_id: str) -> Mapping[str, Bounds]:
        return {}


def stored(application: IdApplication, folder: Path) -> FileStore:
    """A store with all of an application."""
    store = FileStore(folder)
    store.tell(list(application.events()), list(application.blocks()))
    return store


#: Two groupings, one above the other, of a join; one task has a key under two codes.
TWO_GROUPINGS = IdApplication(
    sources={0: {0: 4, 1: 3}, 1: {0: 2}},
    taps=[
        {
            0: Task(
                rows=[[source_id(0, 0, 0), source_id(1, 0, 1)], [source_id(0, 0, 3)], [source_id(0, 1, 2)]],
                codes=[0, 1, 2],
                keys=[(7, 0), ((1 << 63) - 1, 1), (7, 2)],
            ),
            1: Task(rows=[[source_id(0, 1, 0), source_id(1, 0, 0)]], codes=[0], keys=[(7, 0)]),
        },
        {
            0: Task(
                rows=[[(tap(0, GROUPS), 7)], [(tap(0, GROUPS), (1 << 63) - 1)]], codes=[0, 0], keys=[(5, 0)]
            )
        },
    ],
    output={
        0: Task(rows=[[(tap(1, GROUPS), 5)], [(tap(0, GROUPS), (1 << 63) - 1), source_id(1, 0, 0)]]),
        3: Task(rows=[[]]),
    },
)


def with_others(application: IdApplication, *others: tuple[int, int, Task | int, bool]) -> IdApplication:
    return replace(application, others=others)


#: The same, where the output reads what was cached of the groups, and a source.
WITH_CACHE = replace(
    TWO_GROUPINGS,
    cache={
        0: Task(rows=[[(tap(0, GROUPS), 7)], [(tap(0, GROUPS), (1 << 63) - 1), source_id(0, 0, 1)]]),
        1: Task(rows=[[source_id(1, 0, 0)]]),
    },
    output={
        0: Task(rows=[[(CACHE, 1), (tap(1, GROUPS), 5)], [(CACHE, 1 << 33), (CACHE, 0)]]),
        5: Task(rows=[[(CACHE, 0), source_id(0, 0, 1)], [], [source_id(0, 0, 2)]]),
    },
)

#: A window: each of four rows is in the frames of neighbours, one of two frames of each; a group reads them.
WINDOWED = replace(
    TWO_GROUPINGS,
    taps=[
        {
            0: Task(
                rows=[[source_id(0, 0, at), source_id(1, 0, at % 2)] for at in range(4)],
                ranges=[[(0, 4), (1, 3), (2, 2), (3, 1)], [(0, 0), (0, 1), (1, 1), (2, 1)]],
                keys=[(70 + at, at) for at in range(4)],
            ),
            2: Task(rows=[[source_id(0, 1, 0)]], ranges=[[(0, 1)]], keys=[(90, 0)]),
        },
        {0: Task(rows=[[(tap(0, GROUPS), 71)], [(tap(0, GROUPS), 90)]], codes=[0, 0], keys=[(5, 0)])},
    ],
    output={
        0: Task(rows=[[source_id(0, 0, at), (tap(0, GROUPS), 70 + at)] for at in range(4)]),
        1: Task(rows=[[(tap(1, GROUPS), 5)]]),
    },
)
