"""Operators that aggregate by key: both sides of combineByKey and of groupByKey.

Promises PySpark's own rows in its own order, also where a merge spills, with one look-up a record; the code
of its key is the lineage of a record. Where functions only choose among values, it says which input each
output is (`winners`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from spark_agent import contract
from spark_agent.worker.culprits import CulpritNote, Variables
from spark_agent.worker.derived_values import KeyTexts, gives_argument
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators.adapters import Order
from spark_agent.worker.operators.narrow import report
from spark_agent.worker.position_streams import CHUNK, Stream
from spark_agent.worker.winners import LOST, Winners, is_same

if TYPE_CHECKING:
    from spark_agent.worker.task_run import TaskRun

_UNEQUAL = "inputs of keys that do not equal themselves (NaN) are not known of a merge that spilled to disk"


class Functions(NamedTuple):
    """What PySpark's Aggregator has, without the wrapper that it puts around each: a Python call a record."""

    createCombiner: Callable[[Any], Any]
    mergeValue: Callable[[Any, Any], Any]
    mergeCombiners: Callable[[Any, Any], Any]


class Combine(Operator):
    """The map side of combineByKey: input k went into output code[k].

    `functions` are an Aggregator's, or `Functions`.
    """

    notes_culprits = True
    role = "combine"
    node_name = "combine"
    records_between_looks = 2 * CHUNK
    #: May its functions choose among the values of a key?
    may_choose = True

    def __init__(self, functions: Any, memory: float, serializer: Any, order: Order) -> None:
        self.functions, self.memory, self.serializer, self.order = functions, memory, serializer, order

    def merger(self) -> Any:
        """PySpark's own, which goes on where memory ends."""
        from pyspark.shuffle import ExternalMerger

        return ExternalMerger(self.aggregator(), self.memory, self.serializer)

    def aggregator(self) -> Any:
        from pyspark.shuffle import Aggregator

        functions = self.functions
        return Aggregator(functions.createCombiner, functions.mergeValue, functions.mergeCombiners)

    def original(self, merger: Any) -> Callable[[Iterable[Any]], None]:
        """What merges all records in PySpark's way."""
        return merger.mergeValues  # type: ignore[no-any-return] # PySpark's is not typed

    def __call__(self, partition: int, records: Any) -> Iterator[Any]:
        operation, records = self._skipping(None, records)
        merger = operation.merger()
        operation.original(merger)(records)
        pairs: Iterator[Any] = merger.items()
        return pairs if not self.drops_groups else (pair for pair in pairs if not self.is_dropped(pair))

    def capture(self, run: TaskRun, records: Any) -> Iterator[Any]:
        operation, records = self._skipping(run, records)
        return _merge(operation, run, operation.merger(), records)

    def _skipping(self, run: TaskRun | None, records: Any) -> tuple[Combine, Any]:
        """Itself, and what it reads; in a replay that drops what a function raises on, what does so."""
        if not self.skips_failing:
            return self, records
        from spark_agent.worker.dropped_records import Skips, merging

        operation = copy(self)
        operation.functions, pairs = merging(self.functions, records, Skips(run, self.node))
        return operation, pairs

    @property
    def drops_groups(self) -> bool:
        """Does it leave groups out? The map side hands on that they are to be."""
        return False

    @staticmethod
    def is_dropped(pair: Any) -> bool:
        from spark_agent.worker import dropped_records

        return dropped_records.is_dropped(pair)

    def merge_pairs(
        self, records: Iterable[Any], codes: dict[Any, int], combined: list[Any], noted: list[int]
    ) -> None:
        """Merge `records` into `combined` and note the code of each; `codes` numbers new keys by itself."""
        create, combine, size = self.functions.createCombiner, self.functions.mergeValue, len(combined)
        for key, value in records:
            code = codes[key]
            try:
                if code < size:
                    combined[code] = combine(combined[code], value)
                else:
                    combined.append(create(value))
                    size += 1
            except StopIteration as error:
                report(error)
            noted.append(code)

    def winners(self) -> Winners | None:
        """Where winners are kept; None if its functions do not choose."""
        if not self.may_choose:
            return None
        create, _ = self.choosing()
        return Winners(takes_any=create is None or gives_argument(create))

    def choosing(self) -> tuple[Callable[[Any], Any] | None, Callable[[Any, Any], Any]]:
        """What makes the first value of a key, None if that is the value, and what merges another into it."""
        return self.functions.createCombiner, self.functions.mergeValue

    def choose_pairs(
        self,
        records: Iterable[Any],
        codes: dict[Any, int],
        combined: list[Any],
        noted: list[int],
        winners: Winners,
    ) -> None:
        """`merge_pairs` that also keeps the winners. Of two that are the same object the earlier one wins."""
        (create, combine), size = self.choosing(), len(combined)
        positions, merged, first, keys = winners.positions, winners.merged, winners.first, winners.keys
        takes_any, kind = winners.takes_any, winners.kind
        for key, value in records:
            code = codes[key]
            try:
                if code < size:
                    new = combine(combined[code], value)
                    merged[code] = 1
                    if new is not combined[code]:
                        combined[code] = new
                        if new is value and takes_any and (type(key) is kind or is_same(key, keys[code])):
                            if positions[code] != LOST:
                                positions[code] = first + len(noted)
                        else:
                            positions[code] = LOST
                            winners.lost += 1
                else:
                    new = value if create is None else create(value)
                    combined.append(new)
                    merged.append(0)
                    keys.append(key)
                    if kind is not None and type(key) is not kind:
                        kind = winners.meet(type(key))
                    size += 1
                    if new is value:
                        positions.append(first + len(noted))
                    else:
                        positions.append(LOST)
                        winners.lost += 1
            except StopIteration as error:
                report(error)
            noted.append(code)

    def merge_while_derived(
        self,
        key_texts: KeyTexts,
        records: Iterable[Any],
        codes: dict[Any, int],
        combined: list[Any],
        noted: list[int],
    ) -> tuple[Any, Any] | None:
        """`merge_pairs` while keys say the values; gives the pair, not merged yet, whose key does not."""
        create, combine, code_of = self.functions.createCombiner, self.functions.mergeValue, codes.get
        kind = None
        for key, value in records:
            if type(key) is not kind:
                if not key_texts.is_of_same_type(key):
                    return key, value
                kind = type(key)
            code = code_of(key)
            if code is None and not key_texts.is_short(key):
                return key, value
            try:
                if code is None:
                    code = codes[key]
                    combined.append(create(value))
                else:
                    combined[code] = combine(combined[code], value)
            except StopIteration as error:
                report(error)
            noted.append(code)
        return None


class CombineLists(Combine):
    """The map side of groupByKey: a Combine of values into lists, without a call for each."""

    role = ""
    node_name = "combinelists"
    may_choose = False

    def merge_pairs(
        self, records: Iterable[Any], codes: dict[Any, int], combined: list[Any], noted: list[int]
    ) -> None:
        size = len(combined)
        for key, value in records:
            code = codes[key]
            if code < size:
                combined[code].append(value)
            else:
                combined.append([value])
                size += 1
            noted.append(code)


class Merge(Combine):
    """The reduce side of combineByKey: input k went into output code[k]; the outputs' keys are noted."""

    role = ""
    node_name = "merge"

    @property
    def drops_groups(self) -> bool:
        return self.skips_failing

    def original(self, merger: Any) -> Callable[[Iterable[Any]], None]:
        return merger.mergeCombiners  # type: ignore[no-any-return] # PySpark's is not typed

    def capture(self, run: TaskRun, records: Any) -> Iterator[Any]:
        merged = super().capture(run, records)
        return run.texts(self.order.node, contract.KEYS).keys_through(merged)

    def choosing(self) -> tuple[Callable[[Any], Any] | None, Callable[[Any, Any], Any]]:
        return None, self.functions.mergeCombiners

    def merge_pairs(
        self, records: Iterable[Any], codes: dict[Any, int], combined: list[Any], noted: list[int]
    ) -> None:
        combine, size = self.functions.mergeCombiners, len(combined)
        for key, value in records:
            code = codes[key]
            if code < size:
                try:
                    combined[code] = combine(combined[code], value)
                except StopIteration as error:
                    report(error)
            else:
                combined.append(value)
                size += 1
            noted.append(code)


class Group(Merge):
    """The reduce side of groupByKey: a Merge of lists; what spilled is read again group by group."""

    node_name = "group"
    may_choose = False
    #: Lists grow with every record: look at the memory more often.
    records_between_looks = 1_000

    def merger(self) -> Any:
        from pyspark.shuffle import ExternalGroupBy

        return ExternalGroupBy(self.aggregator(), self.memory, self.serializer)


def _merge(operation: Combine, run: TaskRun, merger: Any, records: Any) -> Iterator[Any]:
    """Aggregate by key with one look-up a record; the code that it yields is the lineage.

    Python's dictionaries keep the order of insertion, so the code of a key is also its output position.
    """
    from pyspark.shuffle import get_used_memory

    codes: dict[Any, int] = defaultdict(count().__next__)
    combined: list[Any] = []
    stream = run.stream(operation.node, contract.CODES)
    buffer = stream.buffers[0]
    source = iter(records)
    winners = operation.winners() if run.plan.settings.is_explained else None
    batch: float = merger.batch  # Spark's rule: look at the memory early, then ever less often
    key_texts = run.derived.keys.get(operation.node)
    if key_texts is not None:
        key_texts.follow(stream, codes)
    # Records are pulled one frame further in than those of `_merge_batch`: in `merge_pairs`.
    note = CulpritNote(
        operation.node, lambda _variables: stream.inputs(), is_certain_in=_is_of_one_input, depth=1
    )
    while True:
        before, size = len(buffer), int(batch)
        pairs = islice(source, size)
        if winners is not None:
            winners.first = stream.inputs() - before
        underivable = _merge_batch(operation, note, key_texts, winners, pairs, codes, combined, buffer)
        if key_texts is not None and underivable is not None:
            source, key_texts = key_texts.stop(stream, chain((underivable,), source)), None
            continue
        is_end = len(buffer) - before < size
        is_any = len(buffer) > 0
        stream.flush()
        if winners is not None and not winners.are_worth_it(stream.inputs()):
            winners = None
        batch = min(batch * 1.5, operation.records_between_looks)
        if is_any and get_used_memory() >= merger.memory_limit:
            merger.data.update(zip(codes, combined, strict=True))
            combined.clear()
            merger._spill()
            if key_texts is not None:
                source = key_texts.stop(stream, source)
            rest = iter(()) if is_end else source  # which may not like to be asked again
            return _merge_spilled(operation, run, merger, stream, codes, rest)
        if is_end:
            if winners is not None:
                winners.send(run, operation.node, combined)
            merger.data = dict(zip(codes, combined, strict=True))
            merged: Iterator[Any] = merger.items()
            return merged if not operation.drops_groups else _surviving(operation, run, merged)


def _merge_batch(
    operation: Combine,
    note: CulpritNote,
    key_texts: KeyTexts | None,
    winners: Winners | None,
    pairs: Iterator[Any],
    codes: dict[Any, int],
    combined: list[Any],
    noted: list[int],
) -> tuple[Any, Any] | None:
    """Merge `pairs`; gives the first one whose key does not say its values, if one of them must be."""
    with note:
        if key_texts is not None and winners is not None:
            derivable = key_texts.derivable(pairs, codes)
            operation.choose_pairs(derivable, codes, combined, noted, winners)
            return derivable.underivable
        if key_texts is not None:
            return operation.merge_while_derived(key_texts, pairs, codes, combined, noted)
        if winners is not None:
            operation.choose_pairs(pairs, codes, combined, noted, winners)
        else:
            operation.merge_pairs(pairs, codes, combined, noted)
    return None


def _surviving(operation: Combine, run: TaskRun, pairs: Iterator[Any]) -> Iterator[Any]:
    """The groups that were not dropped; `order` says which these are."""
    ordered = run.override(operation.order.node, contract.POSITIONS)

    def outputs() -> Iterator[Any]:
        for code, pair in enumerate(pairs):
            if not operation.is_dropped(pair):
                ordered.buffers[0].append(code)
                if len(ordered.buffers[0]) >= CHUNK:
                    ordered.flush()
                yield pair

    return outputs()


def _is_of_one_input(variables: Variables, instruction: str) -> bool:
    """Not if the function got what other records of the group had become, too."""
    code, combined = variables.get("code"), variables.get("combined", ())
    return not instruction.startswith("CALL") or code is None or code >= len(combined)


def _merge_spilled(
    operation: Combine,
    run: TaskRun,
    merger: Any,
    stream: Stream,
    codes: dict[Any, int],
    source: Iterator[Any],
) -> Iterator[Any]:
    """Go on with PySpark's merger, which gives its outputs in another order: `order` says in which."""
    append = stream.buffers[0].append

    def coded() -> Iterator[Any]:
        for seen, pair in enumerate(source):
            append(codes[pair[0]])
            if seen % CHUNK == 0:
                stream.flush()
            yield pair

    note = CulpritNote(
        operation.node,
        lambda _variables: stream.inputs() - 1,
        is_certain_in=lambda _variables, _instruction: False,
        depth=2,  # in `coded`, behind PySpark's merger
    )
    with note:
        operation.original(merger)(coded())
    ordered = run.override(operation.order.node, contract.POSITIONS)
    note_code = ordered.buffers[0].append

    def outputs() -> Iterator[Any]:
        for position, pair in enumerate(merger.items()):
            if operation.drops_groups and operation.is_dropped(pair):
                continue
            code = codes.get(pair[0])
            if code is None:  # not equal to itself, as NaN, and read again: its inputs cannot be known
                code, run.problem = len(codes), _UNEQUAL
            note_code(code)
            if position % CHUNK == 0:
                ordered.flush()
            yield pair

    return outputs()
