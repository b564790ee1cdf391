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
        self,
        nodes: Mapping[int, TopologyNode],
        runs: Mapping[int, Run],
        counting: Collection[int],
        kept: Collection[int],
        tagged: Collection[int],
    ) -> None:
        """Of `runs`, `counting` are those that count where records are known by ids, `kept` those of attempts
        that were not accepted, `tagged` those whose flows say what they read.
        """
        self._nodes = nodes
        self._tagged = tagged
        self._kept = kept
        self._by_output: dict[tuple[int, int], list[Run]] = defaultdict(list)
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
        self._read_in: dict[int, set[tuple[int, int]]] = defaultdict(set)  # attempt -> (node, split)
        for run in runs.values():
            self._read_in[run.attempt].add((run.input, run.split))
        self._put_together: dict[int, frozenset[int]] = {}
        self._reads: Counter[tuple[int, int, int]] = Counter()  # (reading run, node, split)
        for run in those:
            node = nodes.get(run.input)
            if node is not None and not self._place_input(node, run):
                self.unplaced.add(run.number)

    def _place_input(self, node: TopologyNode, run: Run) -> bool:
        """False when the input of `run` should come from other runs and these are not known."""
        if node.relation == contract.STATIC:
            return self._concatenate(node, run.split, run, run.number, run.inputs, ()) is not None
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
        # A shuffle says where its batches come from, a cache does not.
        return (run.number in self._tagged or not run.inputs) and not node.by_id

    def _zip(self, node: TopologyNode, run: Run) -> bool:
        """Link record k of each parent to input k of `run`."""
        for parent in node.parents:
            placed = self._place(parent, run.split, run, run.inputs, (node.number,))
            if placed is None:
                return False
            self._link(node.number, run.number, parent, placed[0], 0, run.inputs)
        return True

    def _concatenate(
        self,
        node: TopologyNode,
        split: int,
        reader: Run,
        into: int,
        count: int | None,
        path: tuple[int, ...],
    ) -> int | None:
        """Link the parts of a static partition to `into`; their records together, None if not known.

        `path`: the nodes that the JVM put together of it, from what `reader` read on.
        """
        parts = [
            (node.parents[port], parent)
            for port, parent in node.partitions.get(split, {}).get("parents", ())
            if port < len(node.parents)
        ]
        start = 0
        for parent, parent_split in parts:
            of_part = count if len(parts) == 1 else None
            placed = self._place(parent, parent_split, reader, of_part, (*path, node.number))
            if placed is None:
                return None
            self._link(node.number, into, parent, placed[0], start, placed[1])
            start += placed[1]
        return start if parts else None

    def _place(
        self, number: int, split: int, reader: Run, count: int | None, path: tuple[int, ...]
    ) -> tuple[int, int] | None:
        """(run, records) that hold one split of a node as `reader` read it by way of `path`."""
        place = reader.number, number, split
        candidates, before = self._by_output[number, split], self._reads[place]
        self._reads[place] += 1
        found = _computed(candidates, reader, before)
        if found is not None and found.attempt != reader.attempt:
            found = self._that_filled(path, number, candidates, reader, before)
            if found is None:
                return None
        if found is not None:
            return found.number, found.outputs
        node = self._nodes.get(number)
        if node is None or node.relation not in (contract.STATIC, contract.SOURCE):
            return None
        made = -1 - len(self.jvm_runs)
        self.jvm_runs[made] = reader  # taken before the parts take theirs
        records = count if node.relation == contract.SOURCE else None
        if node.relation == contract.STATIC:
            records = self._concatenate(node, split, reader, made, count, path)
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

    def _that_filled(
        self, path: tuple[int, ...], number: int, candidates: Sequence[Run], reader: Run, before: int
    ) -> Run | None:
        """The computation of `number` that is in a cache of it or of what `path` made of it, if it is known.

        Of those that were made for something else (an action on `number` itself, another union), records went
        there and into no cache. Which node on the way is cached is not told.
        """
        filled, maybe, failed = list[Run](), list[Run](), list[Run]()
        for run in candidates:
            if run.number in self._kept:
                failed.append(run)  # whatever read it has not told of itself
                continue
            others = [each for each in self._read_in[run.attempt] if each[0] != path[0]]
            made = [self._made_of(node) for node, _ in others]
            if (path[0], reader.split) in self._read_in[run.attempt] or any(path[0] in each for each in made):
                filled.append(run)
            elif any(node == number for node, _ in others) or not all(each.isdisjoint(path) for each in made):
                maybe.append(run)
            elif not self._is_taken(run, number):
                filled.append(run)
        found, other = _computed(filled, reader), _computed(maybe, reader)
        # An earlier attempt of the very task was for what this one reads; what others were for is not known.
        again = [run for run in failed if (run.stage, run.task) == (reader.stage, reader.task)]
        lost = _computed(again, reader) or _computed(failed, reader)
        if lost is not None and lost.attempt < reader.attempt:
            if again or len(candidates) == 1:
                return _once_more([run for run in failed if run.attempt == lost.attempt], before)
            if found is None or found.attempt < lost.attempt:
                return None
        if found is None or other is None:
            found = found or other
        elif found.attempt < other.attempt < reader.attempt:
            return None
        if found is None:
            return None
        return _once_more([run for run in (*filled, *maybe) if run.attempt == found.attempt], before)

    def _made_of(self, number: int) -> frozenset[int]:
        """A node, and those of which the JVM puts its partitions together."""
        known = self._put_together.get(number)
        if known is None:
            node, found = self._nodes.get(number), {number}
            if node is not None and node.relation in (contract.STATIC, contract.ZIP):
                for parent in node.parents:
                    found |= self._made_of(parent)
            known = self._put_together[number] = frozenset(found)
        return known

    def _is_taken(self, run: Run, number: int) -> bool:
        """Its records of `number` went to its action, or to another run of its task."""
        sink = None if run.action is None else self._nodes.get(run.action)
        if sink is not None and number in sink.parents:
            return True
        return any(number in self._made_of(node) for node, _ in self._read_in[run.attempt])

    def _link(self, node: int, run: int, parent: int, parent_run: int, start: int, count: int) -> None:
        link = Link(node=node, run=run, parent_node=parent, parent_run=parent_run, start=start, count=count)
        self.links.append(link)


def _once_more(together: Sequence[Run], before: int) -> Run:
    """Of the runs of one task: a coalesce may read a partition twice, and computes it twice."""
    return together[min(before, len(together) - 1)]


def _computed(candidates: Sequence[Run], reader: Run, before: int = 0) -> Run | None:
    """The run whose output `reader` read, which has read the partition `before` times already.

    That of its own task attempt, if it has one. Else the last one that began before it: a cache or a
    checkpoint keeps what was computed last.
    """
    others = [run for run in candidates if run.number != reader.number]
    same_attempt = [run for run in others if run.attempt == reader.attempt]
    if same_attempt:
        return _once_more(same_attempt, before)
    earlier = [run for run in others if run.nodes and run.attempt < reader.attempt]
    return max(earlier, key=lambda run: run.attempt) if earlier else others[0] if others else None
