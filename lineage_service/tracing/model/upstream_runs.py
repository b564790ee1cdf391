"""Whose outputs a task run read, where no flows of its own say it: of what the JVM executes or caches. Pure.

A commit manifest names the runs that made the batches which its run has read (`read`). Which records of a
union or a coalesce these are follows from how its partitions are made of others. Where a manifest names none,
what the task computed itself was read, or else the only run that can have left it there. A run of which
neither is known is *unresolved*, and results through it are upper bounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lineage_service.tracing.model.elements import Link, TaskRun, TopologyNode
from lineage_service.tracing.model.id_runs import has_ids, names_ids
from spark_agent import contract

__all__ = ["UpstreamResolver"]

_Partition = tuple[int, int]
"""(node, partition)."""

_BY_JVM = (contract.STATIC, contract.ZIP)


@dataclass(frozen=True, slots=True)
class _Input:
    """The records of a partition as a task read them: those of a run, or `parts` of what the JVM executed."""

    node: int
    partition: int
    run: int | None
    records: int
    parts: tuple[tuple[int, _Input], ...] = ()  # (position of the first record, part)


class UpstreamResolver:
    """Finds, for what each run read from the JVM without flows, whose outputs it was.

    Where only the JVM made a partition (a union of unions, a file that is unioned before Python reads it), a
    run of its own stands for it: it has a negative number and no nodes, and belongs to one reading run.
    """

    def __init__(
        self,
        nodes: Mapping[int, TopologyNode],
        runs: Mapping[int, TaskRun],
        counted: Collection[int],
        tagged: Collection[int],
        persisted: Collection[int] | None,
        *,
        others: Iterable[TaskRun] = (),
        unread: Collection[int] = (),
    ) -> None:
        """Of `runs`, `counted` are those that count where records are known by ids, `tagged` those whose
        flows say what they read. `persisted`: the nodes that were ever persisted; None: it was not reported.
        `others` may have left something in a cache and are not resolved themselves. `unread` are runs of
        which nobody has read anything.
        """
        self._nodes = nodes
        self._runs = runs
        self._tagged = tagged
        self._persisted = persisted
        self._by_output: dict[_Partition, list[TaskRun]] = defaultdict(list)
        readers: list[TaskRun] = []
        for run in runs.values():
            is_id = has_ids(nodes, run)
            if run.number not in unread:
                self._index(run, is_id=is_id)
            # The rows of a DataFrame made of an RDD have ids, and are records that a run of that RDD has.
            if not is_id or (run.number in counted and not names_ids(nodes[run.input])):
                readers.append(run)
        for run in others:
            self._index(run, is_id=has_ids(nodes, run))
        self.links: list[Link] = []
        self.jvm_runs: dict[int, TaskRun] = {}
        self.unresolved: set[int] = set()
        #: (node, partition) of which unresolved runs have read what a run has made that was not reported.
        self.lost: set[_Partition] = set()
        for run in readers:
            if not self._resolve(run):
                self.unresolved.add(run.number)

    def _index(self, run: TaskRun, *, is_id: bool) -> None:
        output = self._output(run, is_id=is_id)
        if output is not None:
            self._by_output[output].append(run)

    def _output(self, run: TaskRun, *, is_id: bool) -> _Partition | None:
        """Of what others may read, the partition that the run has made."""
        if not is_id and run.nodes:
            return run.nodes[-1], run.partition
        if is_id and not run.nodes and names_ids(self._nodes[run.input]):
            return run.input, run.partition
        return None

    def _resolve(self, run: TaskRun) -> bool:
        """False when the input of `run` should come from other runs and these are not known."""
        node, before = self._nodes.get(run.input), len(self.links)
        if node is None or not _reads_runs(node):
            return True
        try:
            if node.relation == contract.PRODUCT:
                for side in node.parents:
                    self._link(node.number, run.number, side, run.number, 0, run.inputs)
                return True
            return self._resolve_rows(node, run) if node.by_id else self._resolve_input(node, run)
        except RecursionError:  # a union of unions, a thousand deep
            del self.links[before:]
            self.lost.add((run.input, run.partition))
            return False

    def _resolve_input(self, node: TopologyNode, run: TaskRun) -> bool:
        """By its manifest, or else by what there is to read."""
        if run.read or not run.inputs:
            read = self._as_reported(node, run)
        else:
            read = self._inferred(node.number, run.partition, run, run.inputs, may_be_cached=False)
            if read is None and node.relation not in _BY_JVM and run.number in self._tagged:
                return True  # flows say where it comes from
        if read is None or not _is_all_of(run, read):
            self.lost |= self._unreported(node.number, run.partition)
            return False
        if read.run is not None:
            self._link(node.number, run.number, node.number, read.run, 0, read.records)
        for start, part in read.parts:
            self._link_part(node.number, run.number, start, part, run)
        return True

    def _resolve_rows(self, node: TopologyNode, run: TaskRun) -> bool:
        """Rows of a plan, where ids name the run; those behind one may be read ahead."""
        upstream = _last(self._by_output[node.number, run.partition], run)
        if upstream is None:
            return False
        # The JVM may have read ahead of a worker that stopped early.
        count = min(upstream.outputs, run.inputs)
        self._link(node.number, run.number, node.number, upstream.number, 0, count)
        return count == run.inputs

    # -- what a run read, by its manifest -----------------------------------------------------------

    def _as_reported(self, node: TopologyNode, run: TaskRun) -> _Input | None:
        pieces = list(reversed(run.read))
        read = self._reported(node.number, run.partition, run, pieces)
        return read if not pieces else None

    def _reported(
        self, number: int, partition: int, run: TaskRun, pieces: list[tuple[int, int, int]]
    ) -> _Input | None:
        """Takes from the end of `pieces` what `run` has read of a partition; None: that cannot be."""
        node = self._nodes.get(number)
        if node is not None and node.relation == contract.STATIC:
            parts: list[tuple[int, _Input]] = []
            start = 0
            for source in self._parts(node, partition):
                part = self._reported(*source, run, pieces)
                if part is None:
                    return None
                parts.append((start, part))
                start += part.records
            return _Input(number, partition, None, start, tuple(parts))
        if pieces:
            writer, first, count = pieces[-1]
            run_of_writer = self._runs.get(writer)
            if run_of_writer is None or first:
                return None
            if self._output(run_of_writer, is_id=False) == (number, partition):
                pieces.pop()
                return _Input(number, partition, writer, count)
        return _Input(number, partition, self._without_records(number, partition, run), 0)

    def _without_records(self, number: int, partition: int, reader: TaskRun) -> int | None:
        """A run that has made nothing of a partition: no batch names it, and the task may have read it."""
        empty = [
            run for run in self._by_output[number, partition] if not run.outputs and run.number in self._runs
        ]
        empty.sort(key=lambda run: (run.attempt == reader.attempt, run.action is not None, run.attempt))
        return empty[-1].number if empty else None

    # -- what it read where no manifest says so ------------------------------------------------------

    def _inferred(
        self, number: int, partition: int, reader: TaskRun, count: int | None, *, may_be_cached: bool
    ) -> _Input | None:
        """A partition of a node as the task of `reader` read it; None: not known.

        `may_be_cached`: what is made of it may have been read from a cache. So may it itself, where it was
        computed twice in one task, since the first one was dropped meanwhile.
        """
        node = self._nodes.get(number)
        if node is None:
            return None
        if node.relation == contract.SOURCE:
            return None if count is None else _Input(number, partition, None, count)
        if node.by_id:
            upstream = _last(self._by_output[number, partition], reader)
            return None if upstream is None else _Input(number, partition, upstream.number, upstream.outputs)
        is_cached = may_be_cached or self._persisted is None or number in self._persisted
        if node.relation in _BY_JVM:
            return self._executed_in_jvm(node, partition, reader, count, may_be_cached=is_cached)
        all_runs = [run for run in self._by_output.get((number, partition), ()) if run is not reader]
        same_attempt = [run for run in all_runs if run.attempt == reader.attempt]
        candidates = all_runs if is_cached or not same_attempt else same_attempt
        if len(candidates) != 1:
            return None
        return _Input(number, partition, candidates[0].number, candidates[0].outputs)

    def _executed_in_jvm(
        self, node: TopologyNode, partition: int, reader: TaskRun, count: int | None, *, may_be_cached: bool
    ) -> _Input | None:
        """Of a union, a coalesce or a zip: what its parts were."""
        parts: list[tuple[int, _Input]] = []
        start, sources, is_zip = 0, self._parts(node, partition), node.relation == contract.ZIP
        for source in sources:
            of_part = count if is_zip or len(sources) == 1 else None
            part = self._inferred(*source, reader, of_part, may_be_cached=may_be_cached)
            if part is None:
                return None
            parts.append((start, part))
            start += 0 if is_zip else part.records
        if not parts:
            return None
        records = min(part.records for _, part in parts) if is_zip else start
        return _Input(node.number, partition, None, records, tuple(parts))

    def _unreported(self, number: int, partition: int) -> set[_Partition]:
        """Of a partition and the parts that the JVM made it of: what an unreported run may have made.

        Where several were reported, it was one of these.
        """
        node = self._nodes.get(number)
        if node is not None and node.relation in _BY_JVM:
            parts = self._parts(node, partition)
            return {(number, partition)}.union(*(self._unreported(*source) for source in parts))
        runs = self._by_output.get((number, partition), ())
        return set() if runs and all(run.number in self._runs for run in runs) else {(number, partition)}

    def _parts(self, node: TopologyNode, partition: int) -> list[_Partition]:
        """The parts that the JVM makes a partition of: one behind the other, or side by side."""
        if node.relation == contract.ZIP:
            return [(parent, partition) for parent in node.parents]
        return [
            (node.parents[port], parent)
            for port, parent in node.partitions.get(partition, {}).get("parents", ())
            if port < len(node.parents)
        ]

    # -- links ---------------------------------------------------------------------------------------

    def _link_part(self, node: int, run: int, start: int, part: _Input, reader: TaskRun) -> None:
        """Link what `reader` has read of a part to `run`, a run of it or of the JVM's."""
        part_run = part.run
        is_of_runs = self._nodes[part.node].relation not in (*_BY_JVM, contract.SOURCE)
        if part_run is None and is_of_runs:
            return  # no run has made any record of it
        if part_run is None:
            part_run = -1 - len(self.jvm_runs)
            self.jvm_runs[part_run] = TaskRun(
                number=part_run,
                partition=part.partition,
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
                self._link_part(part.node, part_run, first, inner, reader)
        is_zipped = self._nodes[node].relation == contract.ZIP
        self._link(node, run, part.node, part_run, start, reader.inputs if is_zipped else part.records)

    def _link(self, node: int, run: int, parent: int, parent_run: int, start: int, count: int) -> None:
        link = Link(node=node, run=run, parent_node=parent, parent_run=parent_run, start=start, count=count)
        self.links.append(link)


def _reads_runs(node: TopologyNode) -> bool:
    """Are its records those of other runs?"""
    if node.relation in (contract.SOURCE, contract.DATASET):
        return False
    return bool(node.parents) or node.relation == contract.STATIC


def _is_all_of(run: TaskRun, read: _Input) -> bool:
    """Can these records be all that the run has read?"""
    return run.inputs == read.records if run.is_whole else run.inputs <= read.records


def _last(candidates: Sequence[TaskRun], reader: TaskRun) -> TaskRun | None:
    """Of runs whose rows are the same: that of the task attempt, else the last one that began before it."""
    others = [run for run in candidates if run.number != reader.number]
    same_attempt = [run for run in others if run.attempt == reader.attempt]
    if same_attempt:
        return same_attempt[0]
    earlier = [run for run in others if run.nodes and run.attempt < reader.attempt]
    return max(earlier, key=lambda run: run.attempt) if earlier else others[0] if others else None
