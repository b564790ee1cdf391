"""Records of any operation of a session as an RDD of objects: made again, and taken out of what is made.

By their places where a replay has the same; by the keys of the group that they were made of; by the texts of
their output rows. Promises to say where others may be among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_agent.client.replay_report import ReplayReport
from spark_agent.client.replays import Chosen, number_of
from spark_agent.client.trace_starts import Start, start_of
from spark_agent.contract.row_sets import ranges_of, rows_in
from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.rebuilt_rdds import Rebuilt, operation_by_places
from spark_agent.worker.operators.kept_positions import Keep
from spark_agent.worker.record_choices import OfKeys, OfTexts

__all__ = ["ChosenRecords", "Record"]

#: Each output of these is made of one record, and of no record there are several.
_ONE_OF_ONE = frozenset(("filter", "keyBy", "keys", "map", "mapValues", "values"))
#: Each output of these is made of one record, and keeps its partition and its order.
_RECORD_BY_RECORD = _ONE_OF_ONE | {"flatMap", "flatMapValues"}
#: These keep partitions and order, too, if all of their input is there. A sample without a seed does not.
_IN_ORDER = _RECORD_BY_RECORD | {"zipWithIndex", "zipWithUniqueId"}
#: With fewer inputs these give some of the outputs that they gave, and no others.
_MONOTONE = _RECORD_BY_RECORD | {
    "cartesian", "coalesce", "distinct", "intersection", "join", "partitionBy", "repartition", "sortBy",
    "sortByKey", "union",
}  # fmt: skip
#: Each key is that of one record of their result.
_ONE_OF_A_KEY = frozenset(
    ("aggregateByKey", "cogroup", "combineByKey", "foldByKey", "groupByKey", "groupWith", "reduceByKey")
)
#: Rows whose ways are followed one by one.
_MOST_FOLLOWED = 10_000

Record = Mapping[str, Any]
Traced = Callable[[str, str, Sequence[Start]], Sequence[Record]]
"""The records of the operation, a node id, that a trace of some records comes to in a direction."""
Choice = tuple[Rebuilt, Callable[[Any], Any], str]
"""What was made, what takes the records out of it, and why others may be among them."""


@dataclass(frozen=True)
class ChosenRecords:
    """`records` are those of `chosen`; `texts` of the output rows that they became, if they became some."""

    chosen: Chosen
    records: Sequence[Record]
    texts: Sequence[str | None]
    traced: Traced

    def rdd(self) -> Any:
        """With a `report`, which says whether others may be among them. Raises TraceError."""
        again, choice, note = self._by_place() or self._by_group() or self._by_text()
        result = choice(again.rdd)
        rows = self.chosen.rows
        mode = "only" if any(source.way != "whole" for source in again.sources) else "all"
        notes = (*rows.how, note) if note else rows.how
        result.report = ReplayReport(mode, rows.count, rows.of, again.sources, not note, notes)
        return result

    def _by_place(self) -> Choice | None:
        recipe, rows = self.chosen.recipe, self.chosen.rows
        sources = [step for step in recipe.lineage() if step.source is not None]
        operations = {step.name for step in recipe.lineage() if step.source is None}
        if len(sources) > 1 or not operations <= _IN_ORDER:
            return None
        (source,) = sources
        named = rows.of_source.get(source.number)
        if named is None or named.source["whole"] or source.why_whole:
            return None  # another run may read it in another order
        if operation_by_places(recipe) is not None:
            return self.chosen.again_of_all(), _at(_positions(self.records)), ""
        if not operations:
            return self.chosen.again(), _all, ""
        if rows.count > _MOST_FOLLOWED:
            return None
        reached = self.traced("forward", self.chosen.node_id, self._row_starts(source))
        ordinals = _ordinals(self.records, reached)
        return None if ordinals is None else (self.chosen.again(keeps_places=True), _at(ordinals), "")

    def _by_group(self) -> Choice | None:
        """Between the group and these records, each gives at most one: so its key tells them."""
        group = self.chosen.recipe
        while group.name in _ONE_OF_ONE and len(group.parents) == 1:
            (group,) = group.parents
        if group.name not in _ONE_OF_A_KEY or operation_by_places(group) is not None:
            return None
        records = self.records
        if group.number != number_of(self.chosen.node_id):
            node_id = f"{self.chosen.application.id}#{group.number}"
            records = self.traced("backward", node_id, self.chosen.starts or ())
        keys = self._keys(records)
        if keys is None:
            return None
        # A zero value, for example of foldByKey, counts once for each partition that has the key.
        again = self.chosen.again(keeps_places=True, chosen={group.number: OfKeys(keys)})
        return again, _all, _doubt(group)

    def _by_text(self) -> Choice:
        by_place = operation_by_places(self.chosen.recipe)
        again = self.chosen.again() if by_place is None else self.chosen.again_of_all()
        keys = self._keys(self.records)
        if keys is not None:
            return again, _filter(OfKeys(keys)), "all records with the same keys are among these"
        texts = [text for text in self.texts if text is not None]
        if texts and len(texts) == len(self.texts):
            return again, _filter(OfTexts(texts)), "all records with the same texts are among these"
        return again, _all, "all records are among these that the rows give at this operation"

    def _keys(self, records: Sequence[Record]) -> list[str] | None:
        """None if not all are known, or one may have another text now."""
        if self.chosen.session.settings.redact:
            return None
        keys = [str(record["key"]) for record in records if record.get("key") is not None]
        return keys if keys and len(keys) == len(records) and all(map(_is_sure, keys)) else None

    def _row_starts(self, source: Recipe) -> list[Start]:
        node_id = f"{self.chosen.application.id}#{source.number}"
        return [
            start_of(node=node_id, partition=split["split"], offset=position)
            for split in self.chosen.rows.of_source[source.number].source.get("splits", ())
            for position in rows_in(split["positions"])
        ]


def _doubt(group: Recipe) -> str:
    """Why a group of these rows alone may be another one than it was; empty if it is the same.

    All of its own rows are there. But of another group some rows may lack, and it may give other records now.
    """
    below = (step.name for parent in group.parents for step in parent.lineage() if step.source is None)
    other = next((name for name in below if name not in _MONOTONE), None)
    return "" if other is None else f"other rows may decide, too, what {other} gives on the way"


def _is_sure(key: str) -> bool:
    """Not if the text was cut, or has the address of an object."""
    return not key.endswith("…") and " at 0x" not in key


def _positions(records: Iterable[Record]) -> dict[int, list[int]]:
    positions: dict[int, list[int]] = {}
    for record in records:
        positions.setdefault(record["partition"], []).append(record["offset"])
    return positions


def _ordinals(records: Iterable[Record], reached: Iterable[Record]) -> dict[int, list[int]] | None:
    """By partition: where the records stand among all that the same rows gave, which keep their order.

    None if one of them is not among these.
    """
    ordinal_of = {
        (partition, offset): ordinal
        for partition, offsets in _positions(reached).items()
        for ordinal, offset in enumerate(sorted(set(offsets)))
    }
    ordinals: dict[int, list[int]] = {}
    for record in records:
        partition = record["partition"]
        ordinal = ordinal_of.get((partition, record["offset"]))
        if ordinal is None:
            return None
        ordinals.setdefault(partition, []).append(ordinal)
    return ordinals


def _all(dataset: Any) -> Any:
    return dataset


def _filter(choice: Callable[[Any], bool]) -> Callable[[Any], Any]:
    return lambda dataset: dataset.filter(choice)


def _at(positions: Mapping[int, Iterable[int]]) -> Callable[[Any], Any]:
    keep = Keep({partition: ranges_of(numbers) for partition, numbers in positions.items()})
    return lambda dataset: dataset.mapPartitionsWithIndex(keep, True)
