"""The records of some input rows on their way through an application, so that two runs can be compared. Pure.

A record of one run and a record of another are the same if they have the same origin: the group that it is,
by its key if that is known; else the origins of what it was made of, down to rows of files. Positions differ
between the runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lineage_service.lineage import Trace

__all__ = ["Astray", "RecordId", "Step", "Ways", "records_astray", "ways_of"]

RecordId = tuple[int, str]
"""A node by its number, and the record's id there."""


@dataclass(frozen=True, slots=True)
class Step:
    """One record. `source` is (path, row) of a row of a file."""

    node: int
    record_id: str
    partition: int
    offset: int
    key: str | None
    source: tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class Astray:
    """A record of the original that went another way there than in a replay.

    It ended before the operation `at`, and in the replay it did not. `is_lacking`: it is one of `at` that the
    replay has not.
    """

    record: RecordId
    at: int
    is_lacking: bool


@dataclass(slots=True)
class Ways:
    """What one trace has reached."""

    steps: dict[RecordId, Step]
    parents: dict[RecordId, tuple[RecordId, ...]]
    nodes: dict[int, tuple[str, str]] = field(default_factory=dict)  # number -> name, kind
    _origins: dict[RecordId, Hashable] = field(default_factory=dict)

    def origin(self, record: RecordId) -> Hashable:
        """Of a record: its group, its row, or those of its parents."""
        pending = [record]
        while pending:
            at = pending[-1]
            if at in self._origins:
                pending.pop()
                continue
            step = self.steps[at]
            if step.key is not None:
                self._origins[at] = ("group", step.node, step.key)
                continue
            if step.source is not None and not self.parents.get(at):
                self._origins[at] = ("row", *step.source)
                continue
            before = [parent for parent in self.parents.get(at, ()) if parent in self.steps]
            unknown = [parent for parent in before if parent not in self._origins]
            if unknown:
                pending += unknown
                continue
            origins = frozenset(self._origins[parent] for parent in before)
            self._origins[at] = next(iter(origins)) if len(origins) == 1 else ("all", origins)
        return self._origins[record]

    def counted(self, among: Iterable[RecordId] | None = None) -> Mapping[int, Counter[Hashable]]:
        """Node -> how many records it has of each origin."""
        counts: dict[int, Counter[Hashable]] = defaultdict(Counter)
        for record in self.steps if among is None else among:
            counts[record[0]][self.origin(record)] += 1
        return counts

    def before(self, records: Iterable[RecordId]) -> set[RecordId]:
        """These, and all that they were made of."""
        return self._reached(records, self.parents)

    def behind(self, records: Iterable[RecordId]) -> set[RecordId]:
        """These, and all that was made of them."""
        children: dict[RecordId, list[RecordId]] = defaultdict(list)
        for record, made_of in self.parents.items():
            for parent in made_of:
                children[parent].append(record)
        return self._reached(records, children)

    def _reached(
        self, records: Iterable[RecordId], following: Mapping[RecordId, Sequence[RecordId]]
    ) -> set[RecordId]:
        seen = {record for record in records if record in self.steps}
        pending = list(seen)
        while pending:
            for other in following.get(pending.pop(), ()):
                if other in self.steps and other not in seen:
                    seen.add(other)
                    pending.append(other)
        return seen


def ways_of(trace: Trace) -> Ways:
    """Of one application's part of a trace, in either direction."""
    steps: dict[RecordId, Step] = {}
    nodes: dict[int, tuple[str, str]] = {}
    for node in trace.nodes:
        number = int(node.node_id.rpartition("#")[2])
        nodes[number] = node.name, node.kind
        for record in node.records:
            source = record.source
            steps[number, record.record_id] = Step(
                node=number,
                record_id=record.record_id,
                partition=record.partition,
                offset=record.offset,
                key=record.key,
                source=None if source is None or node.kind != "source" else (source.path, source.row),
            )
    parents: dict[RecordId, list[RecordId]] = defaultdict(list)
    for flow in trace.flows:
        parents[_record_of(flow.hash_out)].append(_record_of(flow.hash_in))
    return Ways(steps, {record: tuple(dict.fromkeys(made_of)) for record, made_of in parents.items()}, nodes)


def _record_of(hash_: str) -> RecordId:
    """`APPLICATION#NODE#RECORD_ID`, in which the last one may have more of these signs."""
    _, number, record_id = hash_.split("#", 2)
    return int(number), record_id


def records_astray(original: Ways, replayed: Ways, asked: Iterable[RecordId]) -> list[list[Astray]]:
    """Those at an operation behind which both runs have not the same records; none if all have.

    First at the first one of which the replay has other records on the way to what was asked for. Then at the
    first of all: what is there may decide about others without going into them. The first list may be empty.

    Both hold what was made of the same rows: the original may have more of these. So what only it has counts
    where it is on the way to what was asked for.
    """
    on_the_way = original.before(asked)
    expected, needed = original.counted(), original.counted(on_the_way)
    present = replayed.counted()
    met = _met(replayed, needed)
    choices: list[list[Astray]] = []
    for node in sorted(expected.keys() | present.keys()):
        at_node = expected.get(node, Counter()), needed.get(node, Counter()), present.get(node, Counter())
        extra, lacking = _differing(*at_node)
        if not extra and not lacking:
            continue
        missing = [
            Astray(record, node, True)
            for record in sorted(on_the_way)
            if record[0] == node and original.origin(record) in lacking
        ]
        on_way = extra & met.get(node, set())
        if on_way or lacking:
            ended = _ended(original, replayed, node, on_way)
            chosen = [*(Astray(record, node, False) for record in ended), *missing]
            return [chosen, *(first for first in choices if first != chosen)]
        if not choices:
            choices.append(
                [Astray(record, node, False) for record in _ended(original, replayed, node, extra)]
            )
    return choices


def _met(replayed: Ways, needed: Mapping[int, Counter[Hashable]]) -> Mapping[int, set[Hashable]]:
    """Node -> the origins of records of a replay that go into what stands for the records that are needed."""
    ends = [record for record in replayed.steps if replayed.origin(record) in needed.get(record[0], ())]
    met: dict[int, set[Hashable]] = defaultdict(set)
    for record in replayed.before(ends):
        met[record[0]].add(replayed.origin(record))
    return met


def _differing(
    expected: Counter[Hashable], needed: Counter[Hashable], present: Counter[Hashable]
) -> tuple[set[Hashable], set[Hashable]]:
    """The origins of which a replay has more records than the original, and fewer than are needed."""
    extra = {origin for origin, count in present.items() if count > expected[origin]}
    return extra, {origin for origin, count in needed.items() if present[origin] < count}


def _ended(original: Ways, replayed: Ways, node: int, extra: set[Hashable]) -> list[RecordId]:
    """The records of these origins that the original has before a node, and of which none came out there."""
    before = {
        parent[0] for record, made_of in replayed.parents.items() if record[0] == node for parent in made_of
    }
    went_on = {
        parent for record, made_of in original.parents.items() if record[0] == node for parent in made_of
    }
    return sorted(
        record
        for record in original.steps
        if record[0] in before and record not in went_on and original.origin(record) in extra
    )
