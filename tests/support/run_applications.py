"""Applications of RDDs in any shape: what an agent tells of their runs, and the truth.

Stages that begin with a file, a shuffle, a union or what another stage cached, in which each operator makes
its outputs of its inputs in any way; actions over any of them. `ways` knows nothing of runs and messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from spark_agent import contract
from tests.support.lineage_messages import block, event

Place = tuple[int, int, int]
"""(node, split, offset)."""
Splits = Sequence[int]
"""How many records each split has."""


@dataclass(frozen=True)
class Operator:
    """`made`: split -> output -> the inputs that it was made of, as `relation` can tell.

    `winners`: split -> output -> the one input that alone decided it, where one did.
    """

    node: int
    relation: Literal["identity", "positions", "counts", "gather", "codes"]
    made: Sequence[Sequence[Sequence[int]]]
    is_public: bool
    site: str = ""  # in a loop
    winners: Sequence[Mapping[int, int]] = ()
    digests: Sequence[Mapping[int, int]] = ()  # split -> output -> digest


@dataclass(frozen=True)
class Stage:
    """`read`: what record k of a split of `begin` was, of the stages before; of a file nothing.

    `actions` are the nodes of sinks. `copies` are runs that no action accepted; without `is_read` nobody
    reads it but its actions.
    """

    begin: int
    kind: Literal["file", "shuffle", "union", "cache"]
    read: Sequence[Sequence[Place]]
    sizes: Splits
    parents: Sequence[int]  # nodes
    operators: Sequence[Operator]
    is_public: bool = False
    site: str = ""  # of `begin`, in a loop
    digests: Sequence[Mapping[int, int]] = ()  # split -> record of `begin` -> digest
    actions: Sequence[int] = ()
    copies: int = 0
    is_read: bool = False

    @property
    def end(self) -> int:
        return self.operators[-1].node if self.operators else self.begin

    @property
    def outputs(self) -> list[int]:
        return [len(each) for each in self.operators[-1].made] if self.operators else list(self.sizes)


@dataclass
class RunApplication:
    stages: Sequence[Stage]
    _numbers: dict[tuple[int, int], int] = field(
        default_factory=dict
    )  # (node, split) -> the run that wrote it

    # -- the truth -------------------------------------------------------------------------------------

    def public(self) -> dict[int, bool]:
        found: dict[int, bool] = {}
        for stage in self.stages:
            found.setdefault(stage.begin, stage.is_public)
            found |= {operator.node: operator.is_public for operator in stage.operators}
            found |= dict.fromkeys(stage.actions, True)
        return found

    def made(self) -> dict[Place, set[Place]]:
        """Each record -> what it was made of at the node before."""
        found: dict[Place, set[Place]] = {}
        for stage in self.stages:
            for split, size in enumerate(stage.sizes):
                if stage.kind != "cache":
                    for at in range(size):
                        of = {stage.read[split][at]} if stage.kind != "file" else set()
                        found[stage.begin, split, at] = of
                before = stage.begin
                for operator in stage.operators:
                    for at, inputs in enumerate(operator.made[split]):
                        found[operator.node, split, at] = {(before, split, one) for one in inputs}
                    before = operator.node
                for sink in stage.actions:
                    for at in range(stage.outputs[split]):
                        found[sink, split, at] = {(before, split, at)}
        return found

    def ways(self) -> dict[Place, set[Place]]:
        """Each public record -> the public records that it was made of, past the steps between."""
        made, is_public = self.made(), self.public()
        found: dict[Place, set[Place]] = {}

        def public_inputs(place: Place) -> set[Place]:
            return {
                way for each in made[place] for way in ([each] if is_public[each[0]] else public_inputs(each))
            }

        for place in made:
            if is_public[place[0]]:
                found[place] = public_inputs(place)
        return found

    # -- what an agent tells ---------------------------------------------------------------------------

    def told(self) -> tuple[list[bytes], list[bytes]]:
        """Events and blocks. What any stage makes is cached: who reads it reads what was computed first."""
        events = [event(contract.APPLICATION_STARTED, name="runs"), *self._nodes()]
        events += (event(contract.PERSISTED, node=stage.end) for stage in self.stages if stage.operators)
        blocks: list[bytes] = []
        number = 0
        for stage in self.stages:
            sinks = [*([None] if stage.is_read else []), *stage.actions, *([None] * stage.copies)]
            for sink in sinks:
                for split in range(len(stage.sizes)):
                    number += 1
                    if sink is None:
                        self._numbers.setdefault((stage.end, split), number)
                    mine = list(self._blocks(stage, split, number))
                    blocks += mine
                    events.append(self._manifest(stage, split, number, sink, len(mine)))
        return events, blocks

    def _manifest(self, stage: Stage, split: int, number: int, sink: int | None, blocks: int) -> bytes:
        nodes = [operator.node for operator in stage.operators]
        pieces: list[list[int]] = []
        if stage.kind == "cache":
            pieces = self._pieces(stage.begin, split)
        elif stage.kind == "union":
            pieces = self._pieces_of_union(stage, split)
        return event(
            contract.RUN_COMMITTED,
            run=number,
            split=split,
            attempt=number,
            action=sink,
            input=stage.begin,
            nodes=nodes if sink is None else [*nodes, sink],
            blocks=blocks,
            inputs=stage.sizes[split],
            outputs=stage.outputs[split],
            read=[piece for piece in pieces if piece[2]],
        )

    def _pieces(self, node: int, split: int) -> list[list[int]]:
        """(run, first, count) of what a split was made of when it was computed first."""
        (stage,) = [
            stage for stage in self.stages if stage.end == node and (stage.operators or stage.begin == node)
        ]
        if stage.operators:
            return [[self._numbers[node, split], 0, stage.outputs[split]]]
        return self._pieces_of_union(stage, split) if stage.kind == "union" else []

    def _pieces_of_union(self, stage: Stage, split: int) -> list[list[int]]:
        places = dict.fromkeys((node, of) for node, of, _ in stage.read[split])
        return [piece for place in places for piece in self._pieces(*place)]

    def _nodes(self) -> Iterator[bytes]:
        relations = {"file": contract.SOURCE, "shuffle": contract.FLOWS, "union": contract.STATIC}
        for stage in self.stages:
            if stage.kind != "cache":
                kind = "source" if stage.kind == "file" else "operator"
                yield _node(
                    stage.begin, kind if stage.is_public else "step", relations[stage.kind], stage.site
                )
                yield from (
                    event(contract.LINK, source=parent, target=stage.begin, port=port)
                    for port, parent in enumerate(stage.parents)
                )
            if stage.kind == "union":
                yield event(contract.PARTITIONS, node=stage.begin, partitions=_parts(stage))
            before = stage.begin
            for operator in stage.operators:
                relation = contract.IDENTITY if operator.relation == "identity" else contract.FLOWS
                kind = "operator" if operator.is_public else "step"
                yield _node(operator.node, kind, relation, operator.site)
                yield event(contract.LINK, source=before, target=operator.node, port=0)
                before = operator.node
            for sink in stage.actions:
                yield _node(sink, "sink", contract.IDENTITY)
                yield event(contract.LINK, source=before, target=sink, port=0)

    def _blocks(self, stage: Stage, split: int, number: int) -> Iterator[bytes]:
        told: list[tuple[int, str, Mapping[str, list[int]]]] = []
        if stage.kind == "shuffle":
            spans: list[list[int]] = []
            for node, writer, at in stage.read[split]:
                run = self._numbers[node, writer]
                if spans and spans[-1][2] == run and spans[-1][1] + spans[-1][0] == at:
                    spans[-1][0] += 1
                else:
                    spans.append([1, at, run])
            columns = {"count": [span[0] for span in spans], "in": [span[1] for span in spans]}
            columns |= {"step": [1] * len(spans), "run": [span[2] for span in spans]}
            told.append((stage.begin, contract.SPANS, columns))
        inputs = stage.sizes[split]
        told += _beside_flows(stage, split)
        for operator in stage.operators:
            made = operator.made[split]
            flat = [each for of in made for each in of]
            if operator.relation == "positions":
                told.append((operator.node, contract.POSITIONS, {"in": flat}))
            elif operator.relation == "counts":
                counts = [flat.count(number) for number in range(inputs)]
                told.append((operator.node, contract.COUNTS, {"count": counts}))
            elif operator.relation == "codes":  # each input went into one output
                code_of = {of: at for at, inputs_of in enumerate(made) for of in inputs_of}
                told.append(
                    (operator.node, contract.CODES, {"code": [code_of[of] for of in sorted(code_of)]})
                )
            elif operator.relation == "gather":
                told.append((operator.node, contract.GATHER, {"count": list(map(len, made)), "in": flat}))
            inputs = len(made)
        filled = [each for each in told if next(iter(each[2].values()))]
        for seq, (node, relation, columns) in enumerate(filled):
            yield block(number, seq, relation, columns, node=node, split=split)


def _beside_flows(stage: Stage, split: int) -> Iterator[tuple[int, str, Mapping[str, list[int]]]]:
    """Winners and digests of a run."""
    digests = [(stage.begin, stage.digests), *((of.node, of.digests) for of in stage.operators)]
    for node, by_split in digests:
        if by_split:
            known = sorted(by_split[split].items())
            columns = {"digest": [digest for _, digest in known], "out": [at for at, _ in known]}
            yield node, contract.DIGESTS, columns
    for operator in stage.operators:
        if operator.winners:
            winners = sorted(operator.winners[split].items())
            columns = {"out": [at for at, _ in winners], "in": [winner for _, winner in winners]}
            yield operator.node, contract.WINNERS, columns


def _node(number: int, kind: str, relation: str, site: str = "") -> bytes:
    more = {"site": {"path": [f"job.py:{site}"], "loops": ["job.py:1"]}} if site else {}
    return event(
        contract.NODE_REGISTERED,
        node=number,
        name=site or f"n{number}",
        kind=kind,
        relation=relation,
        exact=True,
        **more,
    )


def _parts(stage: Stage) -> list[dict[str, Any]]:
    """The splits that make up each split of a union, in order."""
    found = []
    for split, records in enumerate(stage.read):
        parts: dict[tuple[int, int], None] = defaultdict(None)
        for node, of, _ in records:
            parts[stage.parents.index(node), of] = None
        found.append({"split": split, "parents": [list(part) for part in parts]})
    return found
