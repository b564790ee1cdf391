"""An application whose records go from an RDD into a DataFrame and on into an RDD, computed by two actions.

The plan between gives rows in another order each time; nothing but the attempt tells which order went on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_agent import contract
from tests.support.id_applications import FileStore
from tests.support.lineage_messages import block, event

#: The RDD's source, what the DataFrame is made of, the plan's leaf, its rows, a map of them, the sinks.
SOURCE, GIVEN, LEAF, ROWS, MAP, SINKS = 0, 1, 2, 3, 4, (5, 6)


@dataclass(frozen=True)
class Attempt:
    """One attempt at one split, for the action of `sink`. `order`: which record of GIVEN each row is."""

    sink: int
    split: int
    records: int
    order: Sequence[int]
    read: int  # so many rows of the plan were read in Python
    is_told: bool = True  # has the manifest of the plan's rows arrived


@dataclass(frozen=True)
class BorderApplication:
    attempts: Sequence[Attempt]

    def truth(self) -> Mapping[tuple[int, int, int], tuple[int, int]]:
        """Record of a sink -> (split, offset) of the source."""
        return {
            (attempt.sink, attempt.split, at): (attempt.split, attempt.order[at])
            for attempt in self.attempts
            for at in range(attempt.read)
        }

    def stored(self, folder: Path) -> FileStore:
        store = FileStore(folder)
        store.tell([*self._nodes(), *self._runs()], list(self._blocks()))
        return store

    def _nodes(self) -> Iterator[bytes]:
        yield event(contract.APPLICATION_STARTED, name="borders")
        told = (
            (SOURCE, "source", contract.SOURCE, {}),
            (GIVEN, "operator", contract.IDENTITY, {"by_id": True}),
            (LEAF, "operator", contract.CARRIED, {}),
            (ROWS, "operator", contract.FLOWS, {"by_id": True}),
            (MAP, "operator", contract.IDENTITY, {}),
            *((sink, "sink", contract.IDENTITY, {}) for sink in SINKS),
        )
        for node, kind, relation, more in told:
            yield event(
                contract.NODE_REGISTERED,
                node=node,
                name=f"n{node}",
                kind=kind,
                relation=relation,
                exact=True,
                **more,
            )
        for source, target in ((0, 1), (1, 2), (2, 3), (3, 4), *((MAP, sink) for sink in SINKS)):
            yield event(contract.LINK, source=source, target=target, port=0)
        yield event(contract.LINK, source=GIVEN, target=ROWS, port=0, ids=True)

    def _runs(self) -> Iterator[bytes]:
        for at, each in enumerate(self.attempts):
            rows = len(each.order)
            runs = (
                (SOURCE, [GIVEN], None, each.records, 0),
                (GIVEN, [], None, each.records, 0),
                (ROWS, [], None, rows, 1),
                (ROWS, [MAP, each.sink], each.sink, each.read, 0),
            )
            for number, (node, nodes, action, records, blocks) in enumerate(runs):
                if node == ROWS and not nodes and not each.is_told:
                    continue
                yield event(
                    contract.RUN_COMMITTED,
                    run=10 * (at + 1) + number,
                    split=each.split,
                    attempt=100 + at,
                    action=action,
                    input=node,
                    nodes=nodes,
                    blocks=blocks,
                    inputs=records,
                    outputs=records,
                )

    def _blocks(self) -> Iterator[bytes]:
        for at, each in enumerate(self.attempts):
            ids = [each.split << 33 | record for record in each.order]
            run = 10 * (at + 1) + 2
            yield block(run, 0, contract.POSITIONS, {"in": ids}, node=ROWS, split=each.split, source=GIVEN)


TWO_ACTIONS = BorderApplication(
    (
        Attempt(sink=5, split=0, records=4, order=(2, 0, 3), read=2),
        Attempt(sink=5, split=1, records=2, order=(1, 0), read=2),
        Attempt(sink=6, split=0, records=4, order=(3, 2, 0), read=3),
        Attempt(sink=6, split=1, records=2, order=(0, 1), read=2),
    )
)
