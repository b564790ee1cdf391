"""Newt's job with faulty mappers, as a flow store: four data sets of people, joined three times by 42 tasks.

Each of 2,400 people is in each data set once. Maps give some outputs for each row. A faulty map gives more
for one person. Keys are permutations of the people, so that a person is in another partition at each join.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.lineage_messages import block, event, messages

PARTITIONS, PEOPLE = 6, 2_400
#: The sources, and the joins with what stands left and right in them.
SOURCES = ("names", "balances", "offenses", "ages")
JOINS = ((0, 2), (4, 1), (5, 3))  # 4 and 5 are the first and the second join
TASKS = PARTITIONS * (len(SOURCES) + len(JOINS))
STARTED_MS = 1_732_200_000_000
#: Entries of a column of a block.
_CHUNK = 20_000

Selectivity = Literal["constant", "binomial", "heavy"]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Fault:
    """A map of this source that gives so many outputs too many for one person."""

    source: int
    person: int
    magnitude: int


@dataclass(frozen=True, slots=True)
class Written:
    """What a task has written for a join, by its output positions: the people, in the order of partitions."""

    run: int
    people: Numbers
    buckets: Numbers


def map_node(source: int) -> int:
    return 10 * source + 1


def join_node(join: int) -> int:
    return 100 + 10 * join


def write_node(join: int) -> int:
    return join_node(join) - 2


def read_node(join: int) -> int:
    return join_node(join) - 1


SINK = 200


class NewtJob:
    """One run of it. Folders may hold several."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        selectivity: Selectivity = "constant",
        faults: tuple[Fault, ...] = (),
        *,
        application_id: str = "newt",
        started_ms: int = STARTED_MS,
        name: str = "newt",
    ) -> None:
        self.application_id, self.faults, self._name = application_id, faults, name
        self._random = np.random.default_rng(seed)
        self._selectivity = selectivity
        self._started_ms = started_ms
        self._keys = [self._random.permutation(PEOPLE) for _ in JOINS]
        self._events: list[bytes] = list(self._nodes())
        self._blocks: list[bytes] = []
        self._sent: Counter[int] = Counter()  # blocks by run
        #: (partition, offset) -> person of each output.
        self.outputs: list[tuple[int, int, int]] = []
        self._run()
        self._events.append(self._event(contract.APPLICATION_ENDED, state="succeeded"))
        store = DeltaFlowStore(folder)
        store.write_events(event_batch(f"{application_id}/node-0", messages(*self._events)))
        store.write_flows(flow_batch(f"{application_id}/flow-0", messages(*self._blocks)))
        self.queries = LineageQueries(store, time_budget_s=120)

    def outputs_of(self, person: int) -> list[str]:
        """Record ids."""
        return [f"{SINK}#write#{part}#{offset}" for part, offset, other in self.outputs if other == person]

    def faulty_task(self, fault: Fault) -> tuple[str, int]:
        """(node id, partition) of the map that is to blame."""
        partition = int(np.flatnonzero(self._order[fault.source] == fault.person)[0]) % PARTITIONS
        return f"{self.application_id}#{map_node(fault.source)}", partition

    # -- the job -------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._order = [self._random.permutation(PEOPLE) for _ in SOURCES]
        written: dict[int, list[Written]] = {}
        for source in range(len(SOURCES)):
            join = next(at for at, sides in enumerate(JOINS) if source in sides)
            written[source] = [self._map(source, join, partition) for partition in range(PARTITIONS)]
        for join, (left, right) in enumerate(JOINS):
            made = [
                self._join(join, partition, [*written[left], *written[right]], PARTITIONS)
                for partition in range(PARTITIONS)
            ]
            written[len(SOURCES) + join] = [one for one in made if one is not None]

    def _map(self, source: int, join: int, partition: int) -> Written:
        run = 1000 + 100 * source + partition
        people = self._order[source][partition::PARTITIONS]
        counts = self._counts(len(people))
        for fault in self.faults:
            if fault.source == source:
                counts[people == fault.person] += fault.magnitude
        self._block(run, map_node(source), contract.COUNTS, {"count": counts.tolist()})
        outputs = np.repeat(people, counts)
        written = self._write(run, join, outputs)
        nodes = [map_node(source), write_node(join)]
        self._committed(run, partition, 10 * source, nodes, len(people), len(outputs))
        return written

    def _counts(self, size: int) -> Numbers:
        if self._selectivity == "constant":
            return np.ones(size, np.int64)
        if self._selectivity == "binomial":
            return self._random.binomial(10, 0.3, size).astype(np.int64)
        heavy = 1 + self._random.pareto(1.5, size)
        return np.minimum(heavy, 200).astype(np.int64)

    def _write(self, run: int, join: int, outputs: Numbers) -> Written:
        buckets = self._keys[join][outputs] % PARTITIONS
        order = np.argsort(buckets, kind="stable")
        self._block(run, write_node(join), contract.POSITIONS, {"in": order.tolist()})
        return Written(run, outputs[order], buckets[order])

    def _join(self, join: int, partition: int, writers: list[Written], left: int) -> Written | None:
        run = 2000 + 100 * join + partition
        spans: dict[str, list[int]] = {"count": [], "in": [], "step": [], "run": []}
        people: list[Numbers] = []
        sides: list[Numbers] = []
        for at, writer in enumerate(writers):
            mine = np.flatnonzero(writer.buckets == partition)
            if len(mine):
                for name, value in zip(spans, (len(mine), int(mine[0]), 1, writer.run), strict=True):
                    spans[name].append(value)
                people.append(writer.people[mine])
                sides.append(np.full(len(mine), at >= left))
        inputs = np.concatenate(people) if people else np.zeros(0, np.int64)
        side = np.concatenate(sides) if sides else np.zeros(0, bool)
        pairs = [
            (one, other)
            for person in np.unique(inputs).tolist()
            for one in np.flatnonzero((inputs == person) & ~side).tolist()
            for other in np.flatnonzero((inputs == person) & side).tolist()
        ]
        self._block(run, read_node(join), contract.SPANS, spans)
        columns = {"count": [2] * len(pairs), "in": [position for pair in pairs for position in pair]}
        self._block(run, join_node(join), contract.GATHER, columns)
        outputs = inputs[[one for one, _ in pairs]] if pairs else np.zeros(0, np.int64)
        is_last = join == len(JOINS) - 1
        nodes = [join_node(join), SINK if is_last else write_node(join + 1)]
        written = None if is_last else self._write(run, join + 1, outputs)
        if is_last:
            self.outputs += [(partition, at, person) for at, person in enumerate(outputs.tolist())]
        self._committed(
            run,
            partition,
            read_node(join),
            nodes,
            len(inputs),
            len(outputs),
        )
        return written

    # -- what is told of it --------------------------------------------------------------------------

    def _event(self, type_: str, /, **fields: Any) -> bytes:
        return event(type_, application_id=self.application_id, time=self._started_ms, **fields)

    def _block(self, run: int, node: int, relation: str, columns: Mapping[str, list[int]]) -> None:
        """In pieces, as an agent sends it."""
        outputs = columns.get("count", columns.get("in", []))
        width = 2 if relation == contract.GATHER else 1  # inputs of an output
        made = 0
        for first in range(0, max(len(outputs), 1), _CHUNK):
            part = {
                name: values[first * w : (first + _CHUNK) * w]
                for name, values in columns.items()
                for w in [width if name == "in" else 1]
            }
            self._blocks.append(
                block(
                    run,
                    self._sent[run],
                    relation,
                    part,
                    application_id=self.application_id,
                    node=node,
                    base_in=first if relation == contract.COUNTS else 0,
                    base_out=made,
                )
            )
            self._sent[run] += 1
            spanning = relation in (contract.COUNTS, contract.SPANS)
            made += sum(part["count"]) if spanning else len(part["in"]) // width

    def _committed(
        self,
        run: int,
        partition: int,
        source: int,
        nodes: list[int],
        inputs: int,
        outputs: int,
    ) -> None:
        self._events.append(
            self._event(
                contract.RUN_COMMITTED,
                run=run,
                split=partition,
                action=SINK,
                input=source,
                nodes=nodes,
                inputs=inputs,
                outputs=outputs,
                blocks=self._sent[run],
            )
        )

    def _nodes(self) -> Iterator[bytes]:
        yield self._event(contract.APPLICATION_STARTED, name=self._name)
        for source, name in enumerate(SOURCES):
            dataset = {"namespace": "file", "name": f"/data/{name}", "format": "text"}
            yield self._node(10 * source, "textFile", "source", contract.SOURCE, 10 + source, dataset=dataset)
            yield self._node(map_node(source), "flatMap", "operator", contract.FLOWS, 20 + source)
            yield self._event(contract.LINK, source=10 * source, target=map_node(source), port=0)
        for join, sides in enumerate(JOINS):
            number = join_node(join)
            for step, name in ((write_node(join), "write"), (read_node(join), "read")):
                yield self._node(step, name, "step", contract.FLOWS, 30 + join, operation=number)
            yield self._node(number, "join", "operator", contract.FLOWS, 30 + join)
            for port, side in enumerate(sides):
                before = map_node(side) if side < len(SOURCES) else join_node(side - len(SOURCES))
                yield self._event(contract.LINK, source=before, target=write_node(join), port=port)
            yield self._event(contract.LINK, source=write_node(join), target=read_node(join), port=0)
            yield self._event(contract.LINK, source=read_node(join), target=number, port=0)
        yield self._node(SINK, "saveAsTextFile", "sink", contract.IDENTITY, 40)
        yield self._event(contract.LINK, source=join_node(2), target=SINK, port=0)

    def _node(self, number: int, name: str, kind: str, relation: str, line: int, **fields: Any) -> bytes:
        return self._event(
            contract.NODE_REGISTERED,
            node=number,
            name=name,
            kind=kind,
            relation=relation,
            exact=True,
            call_site=f"/jobs/newt.py:{line}",
            **fields,
        )
