"""Whose outputs a run read, where no shuffle's tags tell: what the JVM put together, cached or kept. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from lineage_service.tracing.elements import Link, Run, TopologyNode
from lineage_service.tracing.id_runs import has_ids, names_ids
from spark_agent import contract

__all__ = ["Placing"]


class Placing:
    """Finds, for what each run read from the JVM without shuffle tags, whose outputs it was.

    Where only the JVM made a partition (a union of unions, a file that is unioned before Python reads it), a
    run of its own stands for it: it has a negative number and no nodes, and belongs to one reading run.
    """

    def __init__(
        self, nodes: Mapping[int, TopologyNode], runs: Mapping[int, Run], counting: Collection[int]
    ) -> None:
        """`counting`: of the runs whose records are known by ids, those that count."""
        self._nodes = nodes
        self._by_output: dict[tuple[int, int], list[Run]] = defaultdict(list)
        #: Nodes that tasks made in their chains: what others read of them was kept, not shuffled.
        self._made = {number for run in runs.values() for number in run.nodes if number != run.input}
        those: list[Run] = []
        for run in runs.values():
            is_id = has_ids(nodes, run)
            if not is_id and run.nodes:
                self._by_output[run.nodes[-1], run.split].append(run)
            elif is_id and not run.nodes and names_ids(nodes[run.input]):
                self._by_output[run.input, run.split].append(run)
            # The rows of a DataFrame made of an RDD have ids, and are records that a run of that RDD has.
            if not is_id or (run.number in counting and not names_ids(nodes[run.input])):
                those.append(run)
        self.links: list[Link] = []
        self.jvm_runs: dict[int, Run] = {}
        self.unplaced: set[int] = set()
        self._reads: Counter[tuple[int, int, int]] = Counter()  # (reading run, node, split)
        for run in those:
            node = nodes.get(run.input)
            if node is not None and not self._place_input(node, run):
                self.unplaced.add(run.number)

    def _place_input(self, node: TopologyNode, run: Run) -> bool:
        """False when the input of `run` should come from other runs and these are not known."""
        if node.relation == contract.STATIC:
            return self._concatenate(node, run.split, run, run.number, run.inputs) is not None
        if node.relation in (contract.SOURCE, contract.DATASET) or not node.parents:
            return True
        if node.relation == contract.PRODUCT:
            for side in node.parents:
                self._link(node.number, run.number, side, run.number, 0, run.inputs)
            return True
        if node.relation == contract.ZIP:
            return self._zip(node, run)
        found = _computed(self._by_output[node.number, run.split], run)
        if found is not None:  # computed by Python or by a plan, or kept by cache(), and read here
            # The JVM may have read ahead of a worker that had enough.
            count = min(found.outputs, run.inputs) if node.by_id else found.outputs
            self._link(node.number, run.number, node.number, found.number, 0, count)
            return count == run.inputs or not node.by_id
        # A shuffle: its batches say where they come from. What a task kept that failed afterwards has no run.
        is_shuffle = node.relation == contract.FLOWS and node.number not in self._made
        return (is_shuffle or not run.inputs) and not node.by_id

    def _zip(self, node: TopologyNode, run: Run) -> bool:
        """Link record k of each parent to input k of `run`."""
        for parent in node.parents:
            placed = self._place(parent, run.split, run, run.inputs)
            if placed is None:
                return False
            self._link(node.number, run.number, parent, placed[0], 0, run.inputs)
        return True

    def _concatenate(
        self, node: TopologyNode, split: int, reader: Run, into: int, count: int | None
    ) -> int | None:
        """Link the parts of a static partition to `into`; their records together, None if not known."""
        parts = [
            (node.parents[port], parent)
            for port, parent in node.partitions.get(split, {}).get("parents", ())
            if port < len(node.parents)
        ]
        start = 0
        for parent, parent_split in parts:
            placed = self._place(parent, parent_split, reader, count if len(parts) == 1 else None)
            if placed is None:
                return None
            self._link(node.number, into, parent, placed[0], start, placed[1])
            start += placed[1]
        return start if parts else None

    def _place(self, number: int, split: int, reader: Run, count: int | None) -> tuple[int, int] | None:
        """(run, records) that hold one split of a node as `reader` read it."""
        place = reader.number, number, split
        found = _computed(self._by_output[number, split], reader, self._reads[place])
        self._reads[place] += 1
        if found is not None:
            return found.number, found.outputs
        node = self._nodes.get(number)
        if node is None or node.relation not in (contract.STATIC, contract.SOURCE):
            return None
        made = -1 - len(self.jvm_runs)
        self.jvm_runs[made] = reader  # taken before the parts take theirs
        records = count if node.relation == contract.SOURCE else None
        if node.relation == contract.STATIC:
            records = self._concatenate(node, split, reader, made, count)
        if records is None:
            return None
        self.jvm_runs[made] = Run(
            number=made,
            split=split,
            attempt=reader.attempt,
            action=None,
            input=number,
            nodes=(),
            overridden=frozenset(),
            inputs=records,
            outputs=records,
            counts={},
        )
        return made, records

    def _link(self, node: int, run: int, parent: int, parent_run: int, start: int, count: int) -> None:
        link = Link(node=node, run=run, parent_node=parent, parent_run=parent_run, start=start, count=count)
        self.links.append(link)


def _computed(candidates: Sequence[Run], reader: Run, before: int = 0) -> Run | None:
    """The run whose output `reader` read, which has read the partition `before` times already.

    That of its own task attempt, if it has one: a coalesce may read a partition twice, and computes it twice.
    Else the last one that began before it: a cache or a checkpoint keeps what was computed last.
    """
    others = [run for run in candidates if run.number != reader.number]
    same_attempt = [run for run in others if run.attempt == reader.attempt]
    if same_attempt:
        return same_attempt[min(before, len(same_attempt) - 1)]
    earlier = [run for run in others if run.nodes and run.attempt < reader.attempt]
    return max(earlier, key=lambda run: run.attempt) if earlier else others[0] if others else None
