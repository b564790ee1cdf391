"""Makes applications at random from a seed, as messages and as what must be stored of them.

What is expected is written down beside the messages, row by row, by the code that decides what happens to
each record: nothing of the service is asked. A shape like that of a Spark job with one shuffle: rows of a
source, a flatMap and a filter in one run for each split; a shuffle, a grouping and a save in another. Tasks
fail and are tried again, or run twice at a time: such runs send blocks and have no manifest.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple
from zlib import crc32

from spark_agent import contract
from tests.support.lineage_messages import block, event

FLOW_PARTITIONS, NODE_PARTITIONS = 4, 2
SOURCE, WORDS, KEPT, READ, SUMS, SAVE = range(6)
#: (node, kind, relation)
_NODES = (
    (SOURCE, "source", contract.SOURCE),
    (WORDS, "operator", contract.FLOWS),
    (KEPT, "operator", contract.FLOWS),
    (READ, "operator", contract.FLOWS),
    (SUMS, "operator", contract.FLOWS),
    (SAVE, "sink", contract.IDENTITY),
)
#: Values of a block: few, so that a run has many blocks.
PIECE = 9

Record = tuple[int, str]
"""(node, record id)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One message. Copies of a message are equal."""

    is_event: bool
    partition: int
    value: bytes


@dataclass(slots=True)
class Expected:
    """All that the stores must hold of an application, runs that were not accepted included."""

    flows: list[tuple[Any, ...]] = field(default_factory=list)  # without the application's id
    records: list[tuple[Any, ...]] = field(default_factory=list)
    annotations: list[tuple[Any, ...]] = field(default_factory=list)
    receipts: list[tuple[Any, ...]] = field(default_factory=list)  # (node, run, split, seq, relation)
    events: list[str] = field(default_factory=list)
    #: Every record of an accepted run, and every way from one to the next, (source, target).
    whole: set[Record] = field(default_factory=set)
    ways: set[tuple[Record, Record]] = field(default_factory=set)
    #: Saved row -> itself and all that it comes from.
    backward: dict[Record, set[Record]] = field(default_factory=dict)


@dataclass(slots=True)
class Application:
    """One application: its messages in the order in which an agent makes them, and what they come to."""

    application_id: str
    messages: list[Sent]
    expected: Expected

    def flows(self) -> tuple[list[str], list[tuple[str, str]]]:
        """(ids of all LineageFlow, pairs of ids of all flow links), once it is in Neo4j whole."""
        prefix = self.application_id
        ways = [
            (f"{prefix}#{source[0]}#{source[1]}", f"{prefix}#{target[0]}#{target[1]}")
            for source, target in self.expected.ways
        ]
        return [f"{prefix}#{node}#{record}" for node, record in self.expected.whole], ways

    def graph(self) -> tuple[list[tuple[Any, ...]], list[tuple[str, str]]]:
        """(id, kind, relation) of each LineageNode, and (source, target) of each sendsTo."""
        names = [f"{self.application_id}#{number}" for number, _, _ in _NODES]
        nodes = [(name, kind, relation) for name, (_, kind, relation) in zip(names, _NODES, strict=True)]
        return nodes, list(pairwise(names))


def make(application_id: str, chance: Random, *, rows: int = 30) -> Application:
    """An application of some 150 messages for each thirty `rows` of a split."""
    return _Maker(application_id, chance, rows).make()


def at_least_once(messages: Sequence[Sent], chance: Random, copies: float) -> list[Sent]:
    """The messages as Kafka may give them: blocks in any order, some again; events in order, some again.

    `copies` is the probability of each message to come twice.
    """
    events = [message for message in messages if message.is_event]
    blocks = [message for message in messages if not message.is_event]
    chance.shuffle(blocks)
    slots = [True] * len(events) + [False] * len(blocks)
    chance.shuffle(slots)
    events.reverse()
    mixed = [(events if is_event else blocks).pop() for is_event in slots]
    for each in [each for each in mixed if chance.random() < copies]:
        mixed.insert(chance.randrange(mixed.index(each), len(mixed)) + 1, each)
    return mixed


class _Block(NamedTuple):
    """One message, the rows that it becomes, and its receipt."""

    sent: Sent
    flows: list[tuple[Any, ...]]
    records: list[tuple[Any, ...]]
    annotations: list[tuple[Any, ...]]
    receipt: tuple[Any, ...]


class _Run:
    """One execution of some operators over a split, with its blocks."""

    def __init__(self, maker: _Maker, split: int) -> None:
        self.number = maker.chance.randrange(1, 1 << 53)
        self.split = split
        self._maker = maker
        self.blocks: list[_Block] = []

    def add(
        self,
        node: int,
        relation: str,
        columns: dict[str, list[Any]],
        flows: Sequence[tuple[Any, ...]] = (),
        records: Sequence[tuple[Any, ...]] = (),
        annotations: Sequence[tuple[Any, ...]] = (),
        **bases: int,
    ) -> None:
        """A block, and its rows: flows (out, out_count, in, in_step, in_run), texts, winners (out, in)."""
        seq = len(self.blocks)
        value = block(
            self.number,
            seq,
            relation,
            columns,
            application_id=self._maker.application_id,
            node=node,
            split=self.split,
            **bases,
        )
        sent = Sent(is_event=False, partition=self.split % FLOW_PARTITIONS, value=value)
        whose = (node, self.number)
        self.blocks.append(
            _Block(
                sent,
                [(*whose, *row) for row in flows],
                [(*whose, *row) for row in records],
                [(*whose, relation, *row) for row in annotations],
                (*whose, self.split, seq, relation),
            )
        )


class _Maker:
    def __init__(self, application_id: str, chance: Random, rows: int) -> None:
        self.application_id = application_id
        self.chance = chance
        self.rows = rows
        self.splits = chance.randint(2, 5)
        self.reducers = chance.randint(1, 3)
        self.expected = Expected()
        self.messages: list[Sent] = []
        self.committed = 0
        #: For each split of the source: inputs of WORDS' outputs, and of KEPT's; the accepted run.
        self.words: list[list[int]] = []
        self.kept: list[list[int]] = []
        self.maps: list[_Run] = []
        #: For each reducer: where its records were written, (split, position).
        self.shuffled: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def make(self) -> Application:
        self._event(contract.APPLICATION_STARTED, name=f"soak {self.application_id}", detailed=True)
        for number, kind, relation in _NODES:
            name = f"operation {number}"
            self._event(
                contract.NODE_REGISTERED, node=number, name=name, kind=kind, relation=relation, exact=True
            )
        for number in range(len(_NODES) - 1):
            self._event(contract.LINK, source=number, target=number + 1)
        for split in range(self.splits):
            self._map_task(split)
        for reducer in range(self.reducers):
            self._reduce_task(reducer)
        self._event(contract.APPLICATION_ENDED, counters={"runs": self.committed})
        return Application(self.application_id, self.messages, self.expected)

    def _map_task(self, split: int) -> None:
        chance = self.chance
        counts = [chance.randrange(4) for _ in range(self.rows)]
        words = [row for row, count in enumerate(counts) for _ in range(count)]
        kept = [at for at in range(len(words)) if chance.random() < 0.7]
        self.words.append(words)
        self.kept.append(kept)
        self.expected.whole |= {(SOURCE, f"read#{split}#{row}") for row in range(self.rows)}
        for at, row in enumerate(words):
            self._way((SOURCE, f"read#{split}#{row}"), (WORDS, f"{split}#{at}"))
        for at, word in enumerate(kept):
            self._way((WORDS, f"{split}#{word}"), (KEPT, f"{split}#{at}"))

        def run() -> _Run:
            made = _Run(self, split)
            base = 0
            for start in range(0, len(counts), PIECE):
                piece = counts[start : start + PIECE]
                firsts = [base + sum(piece[:at]) for at in range(len(piece))]
                flows = [(firsts[at], count, start + at, 0, None) for at, count in enumerate(piece) if count]
                made.add(WORDS, contract.COUNTS, {"count": piece}, flows, base_in=start, base_out=base)
                base += sum(piece)
            texts = [("str", f"word {split}.{at} é'") for at in range(len(words))]
            for start in range(0, len(texts), 3 * PIECE):
                piece_of = texts[start : start + 3 * PIECE]
                records = [(start + at, "value", *text) for at, text in enumerate(piece_of)]
                made.add(WORDS, contract.VALUES, {"text": piece_of}, records=records, base_out=start)
            for start in range(0, len(kept), PIECE):
                inputs = kept[start : start + PIECE]
                flows = [(start + at, 1, word, 0, None) for at, word in enumerate(inputs)]
                made.add(KEPT, contract.POSITIONS, {"in": inputs}, flows, base_out=start)
            return made

        accepted = self._attempts(run, [WORDS, KEPT], SOURCE, self.rows, len(kept))
        self.maps.append(accepted)
        for position in range(len(kept)):
            self.shuffled[chance.randrange(self.reducers)].append((split, position))

    def _reduce_task(self, reducer: int) -> None:
        chance = self.chance
        inputs = self.shuffled[reducer]
        groups = max(1, len(inputs) // 4)
        codes = [chance.randrange(groups) for _ in inputs]
        groups = max(codes, default=-1) + 1

        def run() -> _Run:
            made = _Run(self, reducer)
            spans = list(_spans(inputs))
            base = 0
            for start in range(0, len(spans), PIECE):
                piece = spans[start : start + PIECE]
                columns = {
                    "count": [count for _, _, count in piece],
                    "in": [first for _, first, _ in piece],
                    "step": [1] * len(piece),
                    "run": [self.maps[split].number for split, _, _ in piece],
                }
                flows, first_base = [], base
                for split, first, count in piece:
                    flows.append((base, count, first, 1, self.maps[split].number))
                    base += count
                made.add(READ, contract.SPANS, columns, flows, base_out=first_base)
            for start in range(0, len(codes), PIECE):
                columns = {"code": codes[start : start + PIECE]}
                flows = [(code, 1, start + at, 0, None) for at, code in enumerate(columns["code"])]
                made.add(SUMS, contract.CODES, columns, flows, base_in=start)
            winners = {code: at for at, code in enumerate(codes)}
            for start in range(0, groups, PIECE):
                piece_of = [(code, winners[code]) for code in range(start, start + PIECE) if code in winners]
                columns = {"out": [code for code, _ in piece_of], "in": [at for _, at in piece_of]}
                made.add(SUMS, contract.WINNERS, columns, annotations=piece_of)
            keys = [("int", str(group)) for group in range(groups)]
            for start in range(0, groups, PIECE):
                texts = keys[start : start + PIECE]
                records = [(start + at, "key", *text) for at, text in enumerate(texts)]
                made.add(SUMS, contract.KEYS, {"text": texts}, records=records, base_out=start)
            return made

        self._attempts(run, [SUMS, SAVE], READ, len(inputs), groups)
        for at, (split, position) in enumerate(inputs):
            self._way((KEPT, f"{split}#{position}"), (READ, f"{reducer}#{at}"))
            self._way((READ, f"{reducer}#{at}"), (SUMS, f"{reducer}#{codes[at]}"))
        for group in range(groups):
            self.expected.whole.add((SUMS, f"{reducer}#{group}"))
            self._way((SUMS, f"{reducer}#{group}"), (SAVE, f"write#{reducer}#{group}"))
            reached: set[Record] = {(SAVE, f"write#{reducer}#{group}"), (SUMS, f"{reducer}#{group}")}
            for at, (split, position) in enumerate(inputs):
                if codes[at] == group:
                    word = self.kept[split][position]
                    reached |= {
                        (READ, f"{reducer}#{at}"),
                        (KEPT, f"{split}#{position}"),
                        (WORDS, f"{split}#{word}"),
                        (SOURCE, f"read#{split}#{self.words[split][word]}"),
                    }
            self.expected.backward[SAVE, f"write#{reducer}#{group}"] = reached

    def _attempts(self, execute: Any, nodes: list[int], reads: int, inputs: int, outputs: int) -> _Run:
        """Execute until one is accepted; others fail on the way, or are killed when another was faster."""
        chance = self.chance
        failed = [execute() for _ in range(chance.choice((0, 0, 0, 1, 2)))]
        accepted: _Run = execute()
        speculative = [execute()] if chance.random() < 0.2 else []
        for run in failed:
            self._keep(run.blocks[: chance.randrange(len(run.blocks) + 1)])
        self._keep(accepted.blocks)
        self._event(
            contract.RUN_COMMITTED,
            run=accepted.number,
            split=accepted.split,
            attempt=len(failed),
            action=SAVE,
            input=reads,
            nodes=nodes,
            blocks=len(accepted.blocks),
            inputs=inputs,
            outputs=outputs,
        )
        self.committed += 1
        for run in speculative:
            self._keep(run.blocks)
        return accepted

    def _way(self, source: Record, target: Record) -> None:
        self.expected.whole.add(target)
        self.expected.ways.add((source, target))

    def _keep(self, blocks: Sequence[_Block]) -> None:
        for kept in blocks:
            self.messages.append(kept.sent)
            self.expected.flows += kept.flows
            self.expected.records += kept.records
            self.expected.annotations += kept.annotations
            self.expected.receipts.append(kept.receipt)

    def _event(self, event_type: str, **fields: Any) -> None:
        number = len(self.expected.events)
        value = event(
            event_type,
            application_id=self.application_id,
            time=1_700_000_000_000 + number,
            event=number,
            **fields,
        )
        partition = crc32(self.application_id.encode()) % NODE_PARTITIONS
        self.messages.append(Sent(is_event=True, partition=partition, value=value))
        self.expected.events.append(json.dumps(json.loads(value), sort_keys=True))


def _spans(places: Sequence[tuple[int, int]]) -> Any:
    """(split, first position, count) of each stretch of neighbours."""
    start = 0
    for at in range(1, len(places) + 1):
        if at == len(places) or places[at] != (places[at - 1][0], places[at - 1][1] + 1):
            yield (*places[start], at - start)
            start = at
