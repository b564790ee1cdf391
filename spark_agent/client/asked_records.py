"""Records that must come out again of a part of the input rows: rows of a text output, or objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import InputRows
from spark_agent.client.outputs_again import OutputsAgain, asked_texts
from spark_agent.client.replays import OF_TEXT, Chosen
from spark_agent.contract.row_sets import ranges_of
from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.rebuilt_rdds import rebuilt
from spark_agent.worker.operators.kept_positions import Keep
from spark_agent.worker.record_choices import EqualRecords, OutputTexts

__all__ = ["AskedObjects", "AskedRecords", "AskedTexts", "asked_records"]

#: Operations before which a chain of functions ends: what is before them was pickled when they were called.
_SHUFFLES = frozenset(
    (
        "aggregateByKey", "cogroup", "combineByKey", "distinct", "foldByKey", "fullOuterJoin", "groupBy",
        "groupByKey", "groupWith", "intersection", "join", "leftOuterJoin", "partitionBy", "reduceByKey",
        "repartition", "rightOuterJoin", "sortBy", "sortByKey", "subtract", "subtractByKey",
    )
)  # fmt: skip
#: Objects that are compared with each record.
_MOST_OBJECTS = 1_000


class AskedRecords(Protocol):
    def come_out(self, outputs: OutputsAgain, rows: InputRows | None) -> bool:
        """Do these rows alone give all of them? None: all rows. Raises FailedRunError, TraceError."""

    @property
    def look(self) -> Callable[[Iterable[Any]], Iterable[Any]]:
        """What looks for them in a partition. Executors get it."""

    def are_in(self, seen: Sequence[Any]) -> bool:
        """Are all of them among what `look` saw in the partitions?"""


class AskedTexts:
    """Rows of a text output, each as often as it was asked for."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = Counter(texts)

    @property
    def look(self) -> OutputTexts:
        return OutputTexts(tuple(self._texts), 0)

    def come_out(self, outputs: OutputsAgain, rows: InputRows | None) -> bool:
        return self.are_in(outputs.looked_at(rows, self.look))

    def are_in(self, seen: Sequence[Any]) -> bool:
        counts: Counter[str] = Counter()
        for part in seen:
            counts.update(part.asked)
        return not self._texts - counts


class AskedObjects:
    """Records of an RDD, as Python compares them."""

    def __init__(self, records: Sequence[Any]) -> None:
        self._records = tuple(records)

    @property
    def look(self) -> EqualRecords:
        return EqualRecords(self._records)

    def come_out(self, outputs: OutputsAgain, rows: InputRows | None) -> bool:
        return self.are_in(outputs.looked_at(rows, self.look))

    def are_in(self, seen: Sequence[Any]) -> bool:
        counts = [sum(of_part) for of_part in zip(*seen, strict=True)] or [0] * len(self._records)
        own = EqualRecords(self._records)
        [own_counts] = own(self._records)
        return all(count >= needed for count, needed in zip(counts, own_counts, strict=True))


def asked_records(chosen: Chosen, dataset: Any, records: Sequence[Mapping[str, Any]]) -> AskedRecords:
    """Of chosen records of an operation. `dataset` is its RDD, where that is known. Raises TraceError."""
    if chosen.name == OF_TEXT:
        return AskedTexts(asked_texts(chosen))
    if dataset is None:
        raise TraceError(
            f"only rows of {OF_TEXT} and records of an RDD can be compared: explain a file of it and choose "
            "with row(), or give the RDD itself"
        )
    return AskedObjects(_objects(chosen, dataset, records))


def _objects(chosen: Chosen, dataset: Any, records: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The records themselves: Spark computes their partitions, as far as it has not kept what they need."""
    if len(records) > _MOST_OBJECTS:
        raise TraceError(f"more than {_MOST_OBJECTS:,} records cannot be compared: choose fewer")
    places: dict[int, list[int]] = {}
    for record in records:
        places.setdefault(record["partition"], []).append(record["offset"])
    keep = Keep({partition: ranges_of(offsets) for partition, offsets in places.items()})
    with chosen.session.scope.inner_job():
        objects: list[Any] = _as_it_was(chosen, dataset).mapPartitionsWithIndex(keep, True).collect()
    if len(objects) < sum(len(set(offsets)) for offsets in places.values()):
        raise TraceError(f"the records of {chosen.name} are not where they were: nothing can be compared")
    return objects


def _as_it_was(chosen: Chosen, dataset: Any) -> Any:
    """The RDD, to be read for a question. Raises TraceError where it may have other records now.

    Functions behind the last shuffle are pickled anew, as they are now.
    """
    tail, has_shuffle = _behind_shuffles(chosen.recipe)
    changed = next((step for step, *_ in chosen.functions.changed() if id(step) in tail), None)
    if changed is None:
        copy = object.__new__(type(dataset))
        vars(copy).update(vars(dataset))
        is_plain = dataset._lineage_node.origins.are_plain
        copy._lineage_node = chosen.session.scope.left_out_source(chosen.name, is_plain=is_plain)
        return copy
    if has_shuffle or not chosen.functions.are_known:
        raise TraceError(
            f"{changed.name} uses a value that the program has changed, so records of {chosen.name} cannot "
            "be read again: explain a file that was written of it"
        )
    again = rebuilt(
        chosen.session, chosen.recipe, {}, is_without=True, keeps_places=True, functions=chosen.functions
    )
    return again.rdd


def _behind_shuffles(recipe: Recipe) -> tuple[set[int], bool]:
    """(the operations that one chain may run for the RDD, is there a shuffle before it?)."""
    tail: set[int] = set()
    has_shuffle, stack = False, [recipe]
    while stack:
        step = stack.pop()
        if id(step) in tail or step.source is not None:
            continue
        tail.add(id(step))
        if step.name in _SHUFFLES:
            has_shuffle = True
        else:
            stack += step.parents
    return tail, has_shuffle
