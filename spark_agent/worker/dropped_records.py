"""Drops records on which a function of the user's raises, and notes each: in a replay that asks for it.

A record goes with all that its function would have made of it. Where a function that reduces raises, its
group goes, in all tasks: a mark in the place of the group's value says so to the reduce side. Promises that
errors which come from further up in a chain are not taken for the function's, and that a refusal of the
replay's guard ends the job as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from spark_agent.delivery.producer import DeliveryError
from spark_agent.worker.culprits import Culprit
from spark_agent.worker.failed_runs import described
from spark_agent.worker.guard.refusals import ReplayRefused

if TYPE_CHECKING:
    from spark_agent.worker.task_run import TaskRun

#: Of one run; more are counted.
MAX_SKIPPED = 1_000
#: So many outputs of a record are made before any of them goes on.
MOST_AT_ONCE = 1_000_000


class Skips:
    """What one operator drops. `run` is None where nothing is captured: then nothing is noted."""

    def __init__(self, run: TaskRun | None, node: int) -> None:
        self._run, self._node = run, node

    def drop(self, error: Exception, position: int | None, record: Any, *, is_certain: bool = True) -> None:
        """Note that the input at `position` is dropped. Raises `error` if it has to end the job."""
        if _ends_the_job(error):
            raise error
        run = self._run
        if run is None:
            return
        run.skipped_total += 1
        if len(run.skipped) < MAX_SKIPPED:
            culprit = Culprit(self._node, position, is_certain, (record,))
            run.skipped.append(described(run, culprit, error))

    def guarded(
        self, function: Callable[[Any], Any], otherwise: Callable[[], Any], position: Callable[[], int]
    ) -> Callable[[Any], Any]:
        """`function`, which gives what `otherwise` gives for a record that is dropped."""

        def called(record: Any) -> Any:
            try:
                return function(record)
            except Exception as error:  # noqa: BLE001 - a user's function may raise anything
                self.drop(error, position(), record)
                return otherwise()

        return called


def _ends_the_job(error: BaseException) -> bool:
    seen: set[int] = set()
    led: BaseException | None = error
    while led is not None and id(led) not in seen:
        if isinstance(led, (ReplayRefused, DeliveryError, MemoryError)):
            return True
        seen.add(id(led))
        led = led.__cause__ or led.__context__
    return False


def unplaced() -> int:
    """The position of an input, where nothing is captured."""
    return 0


# -- map, filter, flatMap ------------------------------------------------------------------------------


def mapped(
    function: Callable[[Any], Any], records: Iterable[Any], dropped: Callable[[Exception, Any], None]
) -> Iterator[Any]:
    """What `function` makes of each record. `dropped` hears of those on which it raised."""
    for record in records:
        try:
            output = function(record)
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything
            dropped(error, record)
            continue
        yield output


def as_bool(function: Callable[[Any], Any]) -> Callable[[Any], bool]:
    return lambda record: bool(function(record))


def all_at_once(function: Callable[[Any], Iterable[Any]]) -> Callable[[Any], Iterable[Any]]:
    """`function`, of whose outputs none goes on before all of a record's were made."""

    def called(record: Any) -> Iterable[Any]:
        outputs = iter(function(record))
        first = list(islice(outputs, MOST_AT_ONCE))
        return first if len(first) < MOST_AT_ONCE else chain(first, outputs)

    return called


# -- by key --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DroppedKey:
    """In place of the key of a record that is no pair, or cannot be looked up. A shuffle leaves it out."""

    position: int


class DroppedGroup:
    """In place of the value of a group that was dropped."""


class Pairs:
    """The inputs of an operator by key, one by one; what is no pair has a `DroppedKey`."""

    def __init__(self, records: Iterable[Any], skips: Skips) -> None:
        self._numbered, self._skips = enumerate(records), skips
        self._position = -1
        self._record: Any = None

    def __iter__(self) -> Pairs:
        return self

    def __next__(self) -> tuple[Any, Any]:
        self._position, self._record = next(self._numbered)
        try:
            key, value = self._record
            hash(key)
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything
            self._skips.drop(error, self._position, self._record)
            return DroppedKey(self._position), DroppedGroup()
        return key, value

    def guarded(self, function: Callable[..., Any], *, is_certain: bool) -> Callable[..., Any]:
        """`function` of an aggregation, which gives a `DroppedGroup` if it raises or is given one."""

        def called(*values: Any) -> Any:
            if any(type(value) is DroppedGroup for value in values):
                return DroppedGroup()
            try:
                return function(*values)
            except Exception as error:  # noqa: BLE001 - a user's function may raise anything
                self._skips.drop(error, self._position, self._record, is_certain=is_certain)
                return DroppedGroup()

        return called


def merging(functions: Any, records: Iterable[Any], skips: Skips) -> tuple[Any, Pairs]:
    """Functions of an aggregation (as an Aggregator has them) that drop groups, and the pairs to read."""
    pairs = Pairs(records, skips)
    dropping = type(functions)(
        pairs.guarded(functions.createCombiner, is_certain=True),
        pairs.guarded(functions.mergeValue, is_certain=False),
        pairs.guarded(functions.mergeCombiners, is_certain=False),
    )
    return dropping, pairs


def is_dropped(pair: tuple[Any, Any]) -> bool:
    """Is the group of the pair dropped?"""
    return type(pair[1]) is DroppedGroup


class Routed:
    """(position, pair) of the inputs of a shuffle whose `target` is known."""

    def __init__(
        self, records: Iterable[Any], partition_of: Callable[[Any], int], partitions: int, skips: Skips
    ) -> None:
        self._numbered = enumerate(records)
        self._partition_of, self._partitions, self._skips = partition_of, partitions, skips
        self._target = 0

    def target(self, _key: Any) -> int:
        """Of the pair that came last."""
        return self._target

    def __iter__(self) -> Routed:
        return self

    def __next__(self) -> tuple[int, tuple[Any, Any]]:
        while True:
            position, record = next(self._numbered)
            try:
                key, value = record
                if type(key) is DroppedKey:
                    continue
                self._target = self._partition_of(key) % self._partitions
            except Exception as error:  # noqa: BLE001 - a user's function may raise anything
                self._skips.drop(error, position, record)
                continue
            return position, (key, value)
