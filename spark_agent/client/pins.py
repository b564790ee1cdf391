"""What operations that decide by the places of records decided in the job: kept where few rows run again.

With fewer rows a record has another place, so another number, or is in no sample. A pin gives each record
what the original run gave it: the lineage says at which place it was. Only where records keep their order
from the source to such an operation is it known which of them is which. What comes out with pins need not
come out of files of the rows alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from inspect import getclosurevars
from types import FunctionType
from typing import Any

from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import InputRows
from spark_agent.client.lineage_places import Places, places_at
from spark_agent.client.replays import Chosen
from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.rebuilt_rdds import operations_by_places, rebuilt
from spark_agent.worker.operators.pinned_decisions import PinnedChoices, PinnedNumbers

__all__ = ["Pin", "Pins"]

#: Records that are numbered or chosen, of one run.
_MOST_RECORDS = 10_000
#: Operations that keep the order of records in a partition, and hand each on by itself.
_IN_ORDER = frozenset(
    ("filter", "flatMap", "flatMapValues", "keyBy", "keys", "map", "mapValues", "union", "values")
)
_NUMBERS = frozenset(("zipWithIndex", "zipWithUniqueId"))
_CHOICES = frozenset(("randomSplit", "sample", "sampleByKey"))
#: What a function of `zipWithIndex` has the numbers of the first records in.
_STARTS = "starts"
_WHAT = {"zipWithIndex": "the numbers", "zipWithUniqueId": "the numbers", "randomSplit": "the parts"}

Pin = PinnedChoices | PinnedNumbers
"""A function of (partition, records)."""


class Pins:
    """Of the operations on the way to some records."""

    def __init__(self, chosen: Chosen) -> None:
        self._chosen = chosen
        self._steps = operations_by_places(chosen.recipe)

    def __bool__(self) -> bool:
        return bool(self._steps)

    @property
    def texts(self) -> tuple[str, ...]:
        """`zipWithIndex at job.py:12: the numbers of the original run`, for each."""
        return tuple(
            f"{self._named(step)}: {_WHAT.get(step.name, 'the sample')} of the original run"
            for step in self._steps
        )

    @property
    def are_numbers_in_order(self) -> bool:
        """Are they all numbers of `zipWithIndex`, which no partitions matter to?"""
        return all(step.name == "zipWithIndex" for step in self._steps)

    @cached_property
    def why_not(self) -> str:
        """Why it is not known what they decided; empty where it is."""
        for step in self._steps:
            if step.name not in _NUMBERS | _CHOICES:
                return f"what {self._named(step)} gives depends on the places of records in both inputs"
            before = next((name for name in _names_before(step) if name not in _IN_ORDER), None)
            if before is not None:
                return (
                    f"what {self._named(step)} gives depends on the places of records, and these are other "
                    f"ones behind {before} if there are fewer"
                )
        return ""

    def of(self, rows: InputRows, recipe: Recipe) -> Mapping[int, Pin]:
        """By `id` of an operation before `recipe`: what stands in its place. Raises TraceError."""
        before = {id(step) for step in recipe.lineage()}
        return {id(step): self._pin(step, rows) for step in self._steps if id(step) in before}

    def _pin(self, step: Recipe, rows: InputRows) -> Pin:
        name, (parent,) = self._named(step), step.parents
        places = self._reached(_places_of(rows, parent), parent)
        if step.name in _CHOICES:
            return PinnedChoices(name, self._choices(step, parent, places))
        if step.name == "zipWithUniqueId":
            count = self._count_of_partitions(parent)
            return PinnedNumbers(
                name,
                {split: [offset * count + split for offset in offsets] for split, offsets in places.items()},
            )
        starts = self._starts_of(step)
        return PinnedNumbers(
            name, {split: [starts[split] + offset for offset in offsets] for split, offsets in places.items()}
        )

    def _choices(self, step: Recipe, parent: Recipe, places: Places) -> Mapping[int, list[int]]:
        """1 for a record of the sample. Raises TraceError for one that is in it several times."""
        application = self._chosen.application
        sampled = places_at(application, step.number, {parent.number: places}, "forward")
        origins = places_at(application, parent.number, {step.number: sampled}, "backward")
        taken = {(split, offset) for split, offsets in origins.items() for offset in offsets}
        if len(taken) != sum(map(len, sampled.values())):
            raise TraceError(f"{self._named(step)} gave records several times, so it is not known how often")
        return {
            split: [int((split, offset) in taken) for offset in offsets] for split, offsets in places.items()
        }

    def _reached(self, sources: Mapping[int, Places], parent: Recipe) -> Places:
        """Where the records of `parent` are that were made of these rows."""
        if parent.number in sources:
            return sources[parent.number]
        places = places_at(self._chosen.application, parent.number, sources, "forward")
        if sum(map(len, places.values())) > _MOST_RECORDS:
            raise TraceError(f"more than {_MOST_RECORDS:,} records would have to be pinned")
        return places

    def _starts_of(self, step: Recipe) -> Sequence[int]:
        """The number of the first record of each partition, as it was counted. Raises TraceError."""
        for pickled in step.pickled:
            original = getattr(pickled.function, "original", None)
            if isinstance(original, FunctionType):
                starts = getclosurevars(original).nonlocals.get(_STARTS)
                if starts is not None:
                    return list(starts)
        raise TraceError(f"how {self._named(step)} counted is not known any more")

    def _count_of_partitions(self, parent: Recipe) -> int:
        return int(self._again(parent).getNumPartitions())

    def _again(self, parent: Recipe) -> Any:
        """`parent` of all rows."""
        chosen = self._chosen
        return rebuilt(
            chosen.session, parent, {}, is_without=True, keeps_places=True, functions=chosen.functions
        ).rdd

    def _named(self, step: Recipe) -> str:
        site = self._chosen.call_site(step.number)
        return f"{step.name} at {site.rpartition('/')[2]}" if site else step.name


def _names_before(step: Recipe) -> Iterator[str]:
    """Of the operations before one by places, up to the sources and to other ones that are pinned."""
    for before in step.lineage():
        if before is not step and before.source is None and before.name not in _NUMBERS | _CHOICES:
            yield before.name


def _places_of(rows: InputRows, recipe: Recipe) -> Mapping[int, Places]:
    """Where these rows are in the sources before an operation. Raises TraceError for what is read whole."""
    sources: dict[int, dict[int, list[int]]] = {}
    for step in recipe.lineage():
        if step.source is None:
            continue
        of = rows.of_source.get(step.number)
        if step.why_whole or of is None or of.source["whole"]:
            raise TraceError(f"{step.name} is read whole, so it is not known which of its records are which")
        sources[step.number] = {}
    for row in rows.named:
        if row.source in sources:
            sources[row.source].setdefault(row.split, []).append(row.position)
    return sources
