"""Whose outputs a run read, where no shuffle's tags tell: what the JVM put together, cached or kept. Pure.

What a task computed itself is known by its attempt. All else it can only have read from where an RDD is kept,
and which task left it there is answered only where nothing else can have been there (`Keeping`): a run that
read one of several computations, nobody knows which, is *unplaced*, and answers through it are bounds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lineage_service.tracing.elements import Link, Run, TopologyNode
from lineage_service.tracing.id_runs import has_ids, names_ids
from lineage_service.tracing.keeping import Keeping, began, ended
from spark_agent import contract

__all__ = ["Placing"]

_Split = tuple[int, int]
"""(node, split)."""

_BY_JVM = (contract.STATIC, contract.ZIP)

#: So often it is asked what a task had of what the JVM puts together and is kept, which each may be made of
#: others. Where that is not enough (unions of kept unions, dozens deep) what is left is not known.
_ASKED, _ASKED_OF_RUN = 300_000, 50


@dataclass(frozen=True, slots=True)
class _Held:
    """The records of a split as a task had them: those of a run, or `parts` that the JVM put together."""

    node: int
    split: int
    run: int | None
    records: int
    parts: tuple[tuple[int, _Held], ...] = ()  # (position of the first record, part)


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
        tagged: Collection[int],
        keeping: Keeping,
        *,
        others: Iterable[Run] = (),
        is_one_process: bool = False,
    ) -> None:
        """Of `runs`, `counting` are those that count where records are known by ids, `tagged` those whose
        flows say what they read. `others` may have left something in a cache and are not placed themselves.
        `is_one_process`: all tasks share one cache, and no two attempts of a task are at work at once.
        """
        self._nodes = nodes
        self._tagged = tagged
        self._keeping = keeping
        self._is_one_process = is_one_process
        self._by_output: dict[_Split, list[Run]] = defaultdict(list)
        self._of_attempt: dict[tuple[int, int, int], list[Run]] = defaultdict(list)  # (attempt, node, split)
        self._readers: dict[int, list[Run]] = defaultdict(list)  # attempt -> its runs
        self._kept_by_jvm = [
            number
            for number, node in nodes.items()
            if node.relation in _BY_JVM and keeping.is_ever_kept(number)
        ]
        those: list[Run] = []
        for run in runs.values():
            is_id = has_ids(nodes, run)
            self._know(run, is_id=is_id)
            # The rows of a DataFrame made of an RDD have ids, and are records that a run of that RDD has.
            if not is_id or (run.number in counting and not names_ids(nodes[run.input])):
                those.append(run)
        for run in others:
            self._know(run, is_id=has_ids(nodes, run))
        self.links: list[Link] = []
        self.jvm_runs: dict[int, Run] = {}
        self.unplaced: set[int] = set()
        #: (node, split) of which unplaced runs have read what a run has made that nobody told of.
        self.lost: set[_Split] = set()
        self._missing: set[_Split] = set()  # by the run that is being placed
        self._pairs: dict[_Split, frozenset[_Split]] = {}
        self._evaluated: dict[_Split, dict[int, Run]] | None = None
        self._surely: set[tuple[int, int, int]] = set()  # (attempt, node, split) that was put together there
        self._ancestors: dict[int, frozenset[int]] = {}
        self._filled: dict[tuple[int, int, int], list[Run]] = {}
        self._as_made: dict[tuple[int, int, int], _Held | None] = {}
        self._had: dict[tuple[int, int, int], tuple[_Held | None, Counter[_Split]]] = {}
        self._left_to_ask = _ASKED + _ASKED_OF_RUN * len(runs)
        self._reads: Counter[_Split] = Counter()  # by the run that is being placed
        for run in those:
            node = nodes.get(run.input)
            self._reads.clear()
            self._missing.clear()
            if node is not None and not self._place_input(node, run):
                self.unplaced.add(run.number)
                self.lost |= self._missing

    def _know(self, run: Run, *, is_id: bool) -> None:
        self._readers[run.attempt].append(run)
        if not is_id and run.nodes:
            number = run.nodes[-1]
        elif is_id and not run.nodes and names_ids(self._nodes[run.input]):
            number = run.input
        else:
            return
        self._by_output[number, run.split].append(run)
        self._of_attempt[run.attempt, number, run.split].append(run)

    def _place_input(self, node: TopologyNode, run: Run) -> bool:
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
            return self._place_rows(node, run)
        held = self._held(node.number, run.split, run, run, run.inputs, is_kept=False)
        if held is None:
            # A shuffle says where its batches come from, a cache does not.
            return (run.number in self._tagged or not run.inputs) and node.relation not in _BY_JVM
        if run.inputs > held.records or (run.is_whole and run.inputs != held.records):
            self._missing.update(self._within(node.number, run.split))
            return False  # it read something else
        if held.run is not None:
            self._link(node.number, run.number, node.number, held.run, 0, held.records)
        for start, part in held.parts:
            self._put(node.number, run.number, start, part, run)
        return True

    def _place_rows(self, node: TopologyNode, run: Run) -> bool:
        """The same for rows of a plan, where ids name the run; those behind one may be read ahead."""
        found = _last(self._by_output[node.number, run.split], run)
        if found is None:
            return False
        # The JVM may have read ahead of a worker that had enough.
        count = min(found.outputs, run.inputs)
        self._link(node.number, run.number, node.number, found.number, 0, count)
        return count == run.inputs

    # -- what a task had -----------------------------------------------------------------------------

    def _held(
        self, number: int, split: int, at: Run, reader: Run | None, count: int | None, *, is_kept: bool
    ) -> _Held | None:
        """A split of a node as the task of `at` had it, for `reader` if that is known; None: not known.

        `is_kept`: something that is made of it may be kept, so that it need not be computed for each reader.
        """
        node = self._nodes.get(number)
        if node is None:
            return None
        runs = [run for run in self._of_attempt.get((at.attempt, number, split), ()) if run is not reader]
        if runs:
            chosen = self._chosen(runs, (number, split), at, is_kept=is_kept)
            return None if chosen is None else _of_run(chosen, number)
        if node.relation == contract.SOURCE:
            return None if count is None else _Held(number, split, None, count)
        if node.by_id:
            found = _last(self._by_output[number, split], at)
            return None if found is None else _of_run(found, number)
        if node.relation not in _BY_JVM:
            return self._kept(number, split, at)
        if not self._keeping.is_kept(number, at):
            return self._made(node, split, at, reader, count, is_kept=is_kept)
        return self._made_or_kept(node, split, at, reader, count)

    def _chosen(self, runs: Sequence[Run], place: _Split, at: Run, *, is_kept: bool) -> Run | None:
        """Of several computations of one split in one task, the one that is read now.

        A coalesce may read a partition twice, and computes it twice.
        """
        before = self._reads[place]
        self._reads[place] += 1
        if len(runs) == 1 and (before == 0 or is_kept or self._keeping.is_kept(place[0], at)):
            return runs[0]
        reading = [run for run in self._readers[at.attempt] if place in self._within(run.input, run.split)]
        if before < len(runs) and len(reading) <= 1:
            return runs[before]
        self._missing.add(place)
        return None

    def _made(
        self,
        node: TopologyNode,
        split: int,
        at: Run,
        reader: Run | None,
        count: int | None,
        *,
        is_kept: bool,
    ) -> _Held | None:
        """What the JVM put together in the task of `at`."""
        parts: list[tuple[int, _Held]] = []
        start, places, is_zip = 0, self._parts(node, split), node.relation == contract.ZIP
        for place in places:
            of_part = count if is_zip or len(places) == 1 else None
            held = self._held(*place, at, reader, of_part, is_kept=is_kept)
            if held is None:
                return None
            parts.append((start, held))
            start += 0 if is_zip else held.records
        if not parts:
            return None
        records = min(part.records for _, part in parts) if is_zip else start
        return _Held(node.number, split, None, records, tuple(parts))

    def _made_or_kept(
        self, node: TopologyNode, split: int, at: Run, reader: Run | None, count: int | None
    ) -> _Held | None:
        """What the JVM put together in this task, or in one before that left it where the node is kept.

        The same for whoever asks it of another task, unless that task has read some of it before.
        """
        key, within = (node.number, split, at.attempt), self._within(node.number, split)
        is_first = reader is None and within.isdisjoint(self._reads)
        if is_first and key in self._had:
            held, reads = self._had[key]
            self._reads.update(reads)
            return held
        before = self._reads.copy()
        held = self._asked_anew(node, split, at, reader, count, before)
        if is_first:
            self._had[key] = held, self._reads - before
        return held

    def _asked_anew(
        self,
        node: TopologyNode,
        split: int,
        at: Run,
        reader: Run | None,
        count: int | None,
        before: Counter[_Split],
    ) -> _Held | None:
        if not self._left_to_ask:
            return None
        self._left_to_ask -= 1
        here = self._made(node, split, at, reader, count, is_kept=True)
        inside = self._inside(node.number, split)
        if not any(self._is_computed(number) for number, _ in inside):
            return here  # the same in every task
        fills = self._fills(node.number, split, at)
        if not fills:
            return here
        if self._touches(at, inside, reader):
            others = [
                run
                for run in self._readers[at.attempt]
                if run is not reader
                and not self._is_copy(run)
                and not inside.isdisjoint(self._within(run.input, run.split))
            ]
            return here if reader is not None and not others else None
        self._reads = before
        kept = self._chosen_fill(node, split, fills, at)
        return kept if kept == here or not self._may_be_kept_in_parts(node.number, split, at) else None

    # -- what others left ----------------------------------------------------------------------------

    def _kept(self, number: int, split: int, at: Run) -> _Held | None:
        """What a run left in a cache or a checkpoint of its last node, if that is known."""
        left = self._left(number, split, at)
        if not left:
            self._missing.add((number, split))
        last = self._last_of(number, split, left, at)
        return None if last is None else _of_run(last, number)

    def _left(self, number: int, split: int, at: Run) -> list[Run]:
        """The runs that may have left a split of their last node there for the task of `at`."""
        return [
            run
            for run in self._by_output.get((number, split), ())
            if run.attempt != at.attempt and self._keeping.may_meet(number, run, at)
        ]

    def _fills(self, number: int, split: int, at: Run) -> list[Run]:
        """A run of each task that may have left the split of a node there that the JVM puts together."""
        key = number, split, at.attempt
        if key not in self._filled:
            inside = self._inside(number, split)
            those = self._evaluations().get((number, split), {}).values()
            self._left_to_ask = max(self._left_to_ask - len(those) // 2, 0)
            self._filled[key] = [
                run
                for run in those
                if run.attempt != at.attempt
                and self._keeping.may_meet(number, run, at)
                and (self._touches(run, inside, None) or self._may_be_kept_in_parts(number, split, run))
            ]
        return self._filled[key]

    def _chosen_fill(self, node: TopologyNode, split: int, fills: Sequence[Run], at: Run) -> _Held | None:
        made = [self._as_put_together(node, split, run) for run in fills]
        if all(each == made[0] for each in made):
            return made[0]
        inside = self._inside(node.number, split)
        last = self._last_of(node.number, split, fills, at)
        if last is None or not self._touches(last, inside, None):
            return None
        return made[fills.index(last)]

    def _as_put_together(self, node: TopologyNode, split: int, at: Run) -> _Held | None:
        key = node.number, split, at.attempt
        if key not in self._as_made:
            reads, self._reads = self._reads, Counter()
            self._as_made[key] = self._made(node, split, at, None, None, is_kept=True)
            self._reads = reads
        return self._as_made[key]

    def _last_of(self, number: int, split: int, runs: Sequence[Run], at: Run) -> Run | None:
        """The one of these that computed the node last before `at` read it, if that is certain.

        Who computes what is kept has not found it: so nothing of those before is left.
        """
        if len(runs) < 2:
            return runs[0] if runs else None
        in_jobs = self._keeping.is_only_checkpointed(number, [*runs, at])
        for last in runs:
            others = (each for each in runs if each is not last)
            if (
                self._keeping.is_kept_throughout(number, last)
                and (not self._is_by_jvm(number) or (last.attempt, number, split) in self._surely)
                and self._is_before(last, at, in_jobs=False)
                and all(self._is_before(each, last, in_jobs=in_jobs) for each in others)
            ):
                return last
        return None

    def _is_before(self, run: Run, other: Run, *, in_jobs: bool) -> bool:
        """Had the first ended when the second began? `in_jobs`: both may be of jobs of one action."""
        if ended(run) < began(other):
            return True
        if (run.stage, run.task) == (other.stage, other.task) and run.task is not None:
            return self._is_one_process and run.attempt < other.attempt
        if not in_jobs or run.began is None or run.stage is None or other.stage is None:
            return False
        return run.began == other.began and run.stage < other.stage

    # -- which tasks had what ------------------------------------------------------------------------

    def _evaluations(self) -> dict[_Split, dict[int, Run]]:
        """(node that the JVM puts together, split) -> attempts that may have had it, each with a run."""
        if self._evaluated is None:
            self._evaluated = defaultdict(dict)
            for attempt, runs in self._readers.items():
                places = [self._within(run.input, run.split) for run in runs if not self._is_copy(run)]
                read = frozenset[_Split]().union(*(self._within(run.input, run.split) for run in runs))
                last = max(runs, key=ended)
                unread, is_sure = self._kept_without_reader(runs)
                for place in (*read, *unread):
                    if self._is_by_jvm(place[0]):
                        self._evaluated[place][attempt] = last
                        inside = self._inside(*place)
                        # Not where another reader had its parts: they may have been computed for that one.
                        if all(place in each or inside.isdisjoint(each) for each in places) and (
                            place in read or is_sure
                        ):
                            self._surely.add((attempt, *place))
        return self._evaluated

    def _kept_without_reader(self, runs: Sequence[Run]) -> tuple[frozenset[_Split], bool]:
        """What the task of a checkpoint's job had, or of a job that a sort runs for itself; and is that sure?

        No run reads what it keeps, which its partition names.
        """
        task, action = runs[0].task, runs[0].action
        unread = {(run.nodes[-1], run.split) for run in runs if run.nodes and not self._is_taken(run)}
        unread.update((run.input, run.split) for run in runs if self._is_copy(run))
        for run in runs:
            if not self._is_copy(run):
                unread -= self._within(run.input, run.split)
        found: list[frozenset[_Split]] = []
        for number in self._kept_by_jvm if unread else ():
            if action is not None and number not in self._comes_from(action):
                continue
            if self._keeping.is_kept(number, runs[0]):
                splits = [task] if task is not None else self._nodes[number].partitions
                places = (self._within(number, split) for split in splits)
                found += [each for each in places if not unread.isdisjoint(each)]
        return frozenset[_Split]().union(*found), action is not None and len(found) == 1

    def _comes_from(self, number: int) -> frozenset[int]:
        """A node and all that it comes from."""
        known = self._ancestors.get(number)
        if known is None:
            seen, stack = {number}, [number]
            while stack:
                node = self._nodes.get(stack.pop())
                new = set(node.parents) - seen if node is not None else set()
                seen |= new
                stack.extend(new)
            known = self._ancestors[number] = frozenset(seen)
        return known

    def _is_copy(self, run: Run) -> bool:
        """It only brought records into another form, for what follows it in its task.

        Such a copy has no registered node. Nor has what an action adds, which ends a task.
        """
        is_known = any(number in self._nodes for number in run.nodes)
        if is_known or not run.nodes or run.inputs != run.outputs:
            return False
        return not self._is_taken_by(run, run.input)

    def _is_taken(self, run: Run) -> bool:
        """Its records went to its action."""
        return self._is_taken_by(run, run.nodes[-1])

    def _is_taken_by(self, run: Run, number: int) -> bool:
        sink = None if run.action is None else self._nodes.get(run.action)
        return sink is not None and number in sink.parents

    def _touches(self, at: Run, places: Iterable[_Split], reader: Run | None) -> bool:
        """Did the task of `at` compute any of these?"""
        return any(
            run is not reader
            for number, split in places
            for run in self._of_attempt.get((at.attempt, number, split), ())
        )

    def _may_be_kept_in_parts(self, number: int, split: int, at: Run) -> bool:
        """May all that is computed of a split have been read from where its parts are kept?"""
        return all(
            not any(self._is_computed(each) for each, _ in self._within(*place))
            or self._may_be_kept(*place, at)
            or (self._is_by_jvm(place[0]) and self._may_be_kept_in_parts(*place, at))
            for place in self._parts(self._nodes[number], split)
        )

    def _may_be_kept(self, number: int, split: int, at: Run) -> bool:
        """May the task of `at` have read a split from where another task has left it?"""
        if not self._keeping.is_kept(number, at):
            return False
        return bool(
            self._fills(number, split, at) if self._is_by_jvm(number) else self._left(number, split, at)
        )

    def _within(self, number: int, split: int) -> frozenset[_Split]:
        """A split, and those of which the JVM puts it together."""
        known = self._pairs.get((number, split))
        if known is None:
            node, found = self._nodes.get(number), {(number, split)}
            if node is not None and node.relation in _BY_JVM:
                for place in self._parts(node, split):
                    found |= self._within(*place)
            known = self._pairs[number, split] = frozenset(found)
        return known

    def _inside(self, number: int, split: int) -> frozenset[_Split]:
        """Those alone of which the JVM puts a split together."""
        return self._within(number, split) - {(number, split)}

    def _parts(self, node: TopologyNode, split: int) -> list[_Split]:
        """What the JVM puts a split together of, straight: one behind the other, or side by side."""
        if node.relation == contract.ZIP:
            return [(parent, split) for parent in node.parents]
        return [
            (node.parents[port], parent)
            for port, parent in node.partitions.get(split, {}).get("parents", ())
            if port < len(node.parents)
        ]

    def _is_by_jvm(self, number: int) -> bool:
        node = self._nodes.get(number)
        return node is not None and node.relation in _BY_JVM

    def _is_computed(self, number: int) -> bool:
        """It may be another one each time."""
        node = self._nodes.get(number)
        return node is None or node.relation not in (*_BY_JVM, contract.SOURCE)

    # -- links ---------------------------------------------------------------------------------------

    def _put(self, node: int, run: int, start: int, held: _Held, reader: Run) -> None:
        """Link what `reader` had of a part to `run`, a run of it or of the JVM's."""
        made = held.run
        if made is None:
            made = -1 - len(self.jvm_runs)
            self.jvm_runs[made] = Run(
                number=made,
                split=held.split,
                attempt=reader.attempt,
                action=None,
                input=held.node,
                nodes=(),
                overridden=frozenset(),
                inputs=held.records,
                outputs=held.records,
                counts={},
            )
            for first, part in held.parts:
                self._put(held.node, made, first, part, reader)
        is_zipped = self._nodes[node].relation == contract.ZIP
        self._link(node, run, held.node, made, start, reader.inputs if is_zipped else held.records)

    def _link(self, node: int, run: int, parent: int, parent_run: int, start: int, count: int) -> None:
        link = Link(node=node, run=run, parent_node=parent, parent_run=parent_run, start=start, count=count)
        self.links.append(link)


def _of_run(run: Run, node: int) -> _Held:
    return _Held(node, run.split, run.number, run.outputs)


def _last(candidates: Sequence[Run], reader: Run) -> Run | None:
    """Of runs whose rows are the same: that of the task attempt, else the last one that began before it."""
    others = [run for run in candidates if run.number != reader.number]
    same_attempt = [run for run in others if run.attempt == reader.attempt]
    if same_attempt:
        return same_attempt[0]
    earlier = [run for run in others if run.nodes and run.attempt < reader.attempt]
    return max(earlier, key=lambda run: run.attempt) if earlier else others[0] if others else None
