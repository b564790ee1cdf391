"""Whose outputs a run read, where no flows of its own say it: what the JVM put together, or keeps. Pure.

A manifest tells which runs made the batches that its run has read (`read`); which of the records of a union
or a coalesce these are follows from how its splits are made of others. Where a manifest does not tell, what
the task computed itself was read, or else the only run that can have left it there. A run of which neither
is known is *unplaced*, and answers through it are bounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lineage_service.tracing.model.elements import Link, Run, TopologyNode
from lineage_service.tracing.model.id_runs import has_ids, names_ids
from spark_agent import contract

__all__ = ["Placing"]

_Split = tuple[int, int]
"""(node, split)."""

_BY_JVM = (contract.STATIC, contract.ZIP)


@dataclass(frozen=True, slots=True)
class _Held:
    """The records of a split as a task had them: those of a run, or `parts` that the JVM put together."""

    node: int
    split: int
    run: int | None
    records: int
    parts: tuple[tuple[int, _Held], ...] = ()  # (position of the first record, part)


class UpstreamResolver:
    """Finds, for what each run read from the JVM without flows, whose outputs it was.

    Where only the JVM made a partition (a union of unions, a file that is unioned before Python reads it), a
    run of its own stands for it: it has a negative number and no nodes, and belongs to one reading run.
    """

    def __init__(
        self,
        nodes: Mapping[int, TopologyNode],
        runs: Mapping[int, Run],
        counting: Collection[int],
        tagged: Collection[int],
        kept: Collection[int] | None,
        *,
        others: Iterable[Run] = (),
    ) -> None:
        """Of `runs`, `counting` are those that count where records are known by ids, `tagged` those whose
        flows say what they read. `kept`: the nodes that were ever persisted; None: nobody told.
        `others` may have left something in a cache and are not placed themselves.
        """
        self._nodes = nodes
        self._runs = runs
        self._tagged = tagged
        self._kept = kept
        self._by_output: dict[_Split, list[Run]] = defaultdict(list)
        readers: list[Run] = []
        for run in runs.values():
            is_id = has_ids(nodes, run)
            self._know(run, is_id=is_id)
            # The rows of a DataFrame made of an RDD have ids, and are records that a run of that RDD has.
            if not is_id or (run.number in counting and not names_ids(nodes[run.input])):
                readers.append(run)
        for run in others:
            self._know(run, is_id=has_ids(nodes, run))
        self.links: list[Link] = []
        self.jvm_runs: dict[int, Run] = {}
        self.unresolved: set[int] = set()
        #: (node, split) of which unplaced runs have read what a run has made that nobody told of.
        self.lost: set[_Split] = set()
        for run in readers:
            node, before = nodes.get(run.input), len(self.links)
            try:
                is_resolved = node is None or self._resolve_input(node, run)
            except RecursionError:  # a union of unions, a thousand deep
                del self.links[before:]
                self.lost.add((run.input, run.split))
                is_resolved = False
            if not is_resolved:
                self.unresolved.add(run.number)

    def _know(self, run: Run, *, is_id: bool) -> None:
        place = self._output(run, is_id=is_id)
        if place is not None:
            self._by_output[place].append(run)

    def _output(self, run: Run, *, is_id: bool) -> _Split | None:
        """Of what others may read, the split that the run has made."""
        if not is_id and run.nodes:
            return run.nodes[-1], run.split
        if is_id and not run.nodes and names_ids(self._nodes[run.input]):
            return run.input, run.split
        return None

    def _resolve_input(self, node: TopologyNode, run: Run) -> bool:
        """False when the input of `run` should come from other runs and these are not known."""
        if node.relation in (contract.SOURCE, contract.DATASET):
            return True
        if not node.parents and node.relation != contract.STATIC:
            return True
        if node.relation == contract.PRODUCT:
            for side in node.parents:
                self._link(node.number, run.number, side, run.number, 0, run.inputs)
            return True
        if node.by_id:
            return self._resolve_rows(node, run)
        if run.read or not run.inputs:
            read = self._as_told(node, run)
        else:
            read = self._held(node.number, run.split, run, run.inputs, may_be_kept=False)
            if read is None and node.relation not in _BY_JVM and run.number in self._tagged:
                return True  # flows say where it comes from
        is_all = read is not None and (
            run.inputs == read.records if run.is_whole else run.inputs <= read.records
        )
        if read is None or not is_all:
            self.lost |= self._unknown(node.number, run.split)
            return False
        if read.run is not None:
            self._link(node.number, run.number, node.number, read.run, 0, read.records)
        for start, part in read.parts:
            self._put(node.number, run.number, start, part, run)
        return True

    def _resolve_rows(self, node: TopologyNode, run: Run) -> bool:
        """The same for rows of a plan, where ids name the run; those behind one may be read ahead."""
        upstream = _last(self._by_output[node.number, run.split], run)
        if upstream is None:
            return False
        # The JVM may have read ahead of a worker that had enough.
        count = min(upstream.outputs, run.inputs)
        self._link(node.number, run.number, node.number, upstream.number, 0, count)
        return count == run.inputs

    # -- what a run read, as its manifest tells ------------------------------------------------------

    def _as_told(self, node: TopologyNode, run: Run) -> _Held | None:
        pieces = list(reversed(run.read))
        read = self._told(node.number, run.split, run, pieces)
        return read if not pieces else None

    def _told(self, number: int, split: int, run: Run, pieces: list[tuple[int, int, int]]) -> _Held | None:
        """Takes from the end of `pieces` what `run` has read of a split; None: that cannot be."""
        node = self._nodes.get(number)
        if node is not None and node.relation == contract.STATIC:
            parts: list[tuple[int, _Held]] = []
            start = 0
            for place in self._parts(node, split):
                part = self._told(*place, run, pieces)
                if part is None:
                    return None
                parts.append((start, part))
                start += part.records
            return _Held(number, split, None, start, tuple(parts))
        if pieces:
            writer, first, count = pieces[-1]
            run_of_writer = self._runs.get(writer)
            if run_of_writer is None or first:
                return None
            if self._output(run_of_writer, is_id=False) == (number, split):
                pieces.pop()
                return _Held(number, split, writer, count)
        return _Held(number, split, self._without_records(number, split, run), 0)

    def _without_records(self, number: int, split: int, reader: Run) -> int | None:
        """A run that has made nothing of a split: no batch tells of it, and the task may have had it."""
        empty = [
            run for run in self._by_output[number, split] if not run.outputs and run.number in self._runs
        ]
        empty.sort(key=lambda run: (run.attempt == reader.attempt, run.action is not None, run.attempt))
        return empty[-1].number if empty else None

    # -- what it read where nobody tells -------------------------------------------------------------

    def _held(
        self, number: int, split: int, reader: Run, count: int | None, *, may_be_kept: bool
    ) -> _Held | None:
        """A split of a node as the task of `reader` had it; None: not known.

        `may_be_kept`: what is made of it may have been read from where that is kept. So may it itself, where
        it was computed twice in one task, since the first one was let go meanwhile.
        """
        node = self._nodes.get(number)
        if node is None:
            return None
        if node.relation == contract.SOURCE:
            return None if count is None else _Held(number, split, None, count)
        if node.by_id:
            upstream = _last(self._by_output[number, split], reader)
            return None if upstream is None else _Held(number, split, upstream.number, upstream.outputs)
        is_kept = may_be_kept or self._kept is None or number in self._kept
        if node.relation in _BY_JVM:
            return self._made(node, split, reader, count, may_be_kept=is_kept)
        all_runs = [run for run in self._by_output.get((number, split), ()) if run is not reader]
        same_attempt = [run for run in all_runs if run.attempt == reader.attempt]
        candidates = all_runs if is_kept or not same_attempt else same_attempt
        if len(candidates) != 1:
            return None
        return _Held(number, split, candidates[0].number, candidates[0].outputs)

    def _made(
        self, node: TopologyNode, split: int, reader: Run, count: int | None, *, may_be_kept: bool
    ) -> _Held | None:
        """What the JVM puts together."""
        parts: list[tuple[int, _Held]] = []
        start, places, is_zip = 0, self._parts(node, split), node.relation == contract.ZIP
        for place in places:
            of_part = count if is_zip or len(places) == 1 else None
            part = self._held(*place, reader, of_part, may_be_kept=may_be_kept)
            if part is None:
                return None
            parts.append((start, part))
            start += 0 if is_zip else part.records
        if not parts:
            return None
        records = min(part.records for _, part in parts) if is_zip else start
        return _Held(node.number, split, None, records, tuple(parts))

    def _unknown(self, number: int, split: int) -> set[_Split]:
        """Of a split and what the JVM puts it together of: what a run may have made that nobody told of.

        Where several told, it was one of these.
        """
        node = self._nodes.get(number)
        if node is not None and node.relation in _BY_JVM:
            parts = self._parts(node, split)
            return {(number, split)}.union(*(self._unknown(*place) for place in parts))
        runs = self._by_output.get((number, split), ())
        return set() if runs and all(run.number in self._runs for run in runs) else {(number, split)}

    def _parts(self, node: TopologyNode, split: int) -> list[_Split]:
        """What the JVM puts a split together of, straight: one behind the other, or side by side."""
        if node.relation == contract.ZIP:
            return [(parent, split) for parent in node.parents]
        return [
            (node.parents[port], parent)
            for port, parent in node.partitions.get(split, {}).get("parents", ())
            if port < len(node.parents)
        ]

    # -- links ---------------------------------------------------------------------------------------

    def _put(self, node: int, run: int, start: int, part: _Held, reader: Run) -> None:
        """Link what `reader` had of a part to `run`, a run of it or of the JVM's."""
        part_run = part.run
        is_of_runs = self._nodes[part.node].relation not in (*_BY_JVM, contract.SOURCE)
        if part_run is None and is_of_runs:
            return  # nobody has made any record of it
        if part_run is None:
            part_run = -1 - len(self.jvm_runs)
            self.jvm_runs[part_run] = Run(
                number=part_run,
                split=part.split,
                attempt=reader.attempt,
                action=None,
                input=part.node,
                nodes=(),
                overridden=frozenset(),
                inputs=part.records,
                outputs=part.records,
                counts={},
            )
            for first, inner in part.parts:
                self._put(part.node, part_run, first, inner, reader)
        is_zipped = self._nodes[node].relation == contract.ZIP
        self._link(node, run, part.node, part_run, start, reader.inputs if is_zipped else part.records)

    def _link(self, node: int, run: int, parent: int, parent_run: int, start: int, count: int) -> None:
        link = Link(node=node, run=run, parent_node=parent, parent_run=parent_run, start=start, count=count)
        self.links.append(link)


def _last(candidates: Sequence[Run], reader: Run) -> Run | None:
    """Of runs whose rows are the same: that of the task attempt, else the last one that began before it."""
    others = [run for run in candidates if run.number != reader.number]
    same_attempt = [run for run in others if run.attempt == reader.attempt]
    if same_attempt:
        return same_attempt[0]
    earlier = [run for run in others if run.nodes and run.attempt < reader.attempt]
    return max(earlier, key=lambda run: run.attempt) if earlier else others[0] if others else None
