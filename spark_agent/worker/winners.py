"""The winners of a merge by key: of each output the one input whose value it is.

A function that returns one of its arguments, the very object, has chosen it: a minimum, the latest, the
first. If it did so at every merge of a key, the other inputs of the key do not matter: alone, the winner
gives the same output. Promises that this is so: only of values that cannot change, since a function may also
return an argument that it has changed; only if the winner has the key of the output; and only if it would be
taken as it is if it were the first. Knows nothing of how records are merged.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import compress, islice
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery.log import logger

if TYPE_CHECKING:
    from spark_agent.worker.task_run import TaskRun

#: What stands for the position of a key of which a merge gave something new.
LOST = -1

#: Of a value with more parts it is not said: to look at them would take each key of a merge too long.
_MOST_PARTS = 100
#: So many winners leave in a block.
PIECE = 50_000
_PLAIN = frozenset(
    (int, float, complex, bool, str, bytes, type(None), Decimal, date, datetime, time, timedelta, timezone)
)
#: Values of these types that are equal are the same, whatever a program does with them.
_SAME = (int, str, bytes, date)
_UNSEEN = object


class Winners:
    """The winners of one merge that has not ended yet.

    By the code of a key, `positions` has the position of the input that its value is, `keys` the key of the
    output, and `merged` a 1 if it has more than one input. Who merges writes all of them, and counts in
    `lost` how often there was no winner any more: calls would cost each record too much, and lists of
    numbers miss the processor's cache (measured). `takes_any`: would any input be taken as it is if it were
    the first one?
    """

    __slots__ = ("first", "keys", "kind", "lost", "merged", "positions", "takes_any")

    def __init__(self, *, takes_any: bool) -> None:
        self.takes_any = takes_any
        self.positions = array("q")
        self.keys: list[Any] = []
        #: Of all keys, if values of it that are equal are the same; None: there is no such type.
        self.kind: type | None = _UNSEEN
        self.merged = bytearray()
        self.first = 0  # the position of the first input of the batch that is being merged
        self.lost = 0

    def meet(self, kind: type) -> type | None:
        """Note the type of a new key, which differs from those before; gives `kind`."""
        self.kind = kind if self.kind is _UNSEEN and any(kind is one for one in _SAME) else None
        return self.kind

    def are_worth_it(self, inputs: int) -> bool:
        """Was most of what `inputs` were merged into chosen? A function that adds never chooses."""
        return 2 * self.lost <= inputs - len(self.positions)

    def send(self, run: TaskRun, node: int, values: Sequence[Any]) -> None:
        """Send those of `node`, which gives `values`, one for each key. Keys of one input need none."""
        outputs, inputs = array("Q"), array("Q")
        try:
            for code, position in compress(enumerate(self.positions), self.merged):
                if position == LOST:
                    continue
                kind = type(values[code])
                if (type(kind) is type and kind in _PLAIN) or is_immutable(values[code]):
                    outputs.append(code)
                    inputs.append(position)
                    if len(outputs) == PIECE:
                        run.emit(node, contract.WINNERS, 0, 0, {"out": outputs, "in": inputs})
                        outputs, inputs = array("Q"), array("Q")
        except Exception as error:  # noqa: BLE001 - the classes of values are the user's
            logger.warning("winners of partition %d are not looked for: %r", run.partition, error)
        if outputs:
            run.emit(node, contract.WINNERS, 0, 0, {"out": outputs, "in": inputs})


def is_immutable(value: Any) -> bool:
    """Can nobody change the value? Objects of users' classes count as changing, named tuples do not."""
    parts, left = [value], _MOST_PARTS
    while parts:
        part = parts.pop()
        kind = type(part)
        if type(kind) is not type:  # which may not even be looked up
            return False
        if kind in _PLAIN:
            continue
        items: Iterator[Any]
        # An instance of a subclass of tuple has nothing of its own beside its items if it has no __dict__.
        if kind is tuple or (issubclass(kind, tuple) and (kind.__dictoffset__ == 0 or _is_row(kind))):
            items = tuple.__iter__(part)  # a subclass may have another one
        elif kind is frozenset:
            items = iter(part)
        else:
            return False
        before = len(parts)
        parts.extend(islice(items, left))
        left -= len(parts) - before
        if not left:
            return False
    return True


def is_same(key: Any, other: Any) -> bool:
    """Can nobody tell two keys apart that are equal? 1 and 1.0, and True, are equal."""
    pairs, left = [(key, other)], _MOST_PARTS
    while pairs:
        one, two = pairs.pop()
        kind = type(one)
        if one is two:
            continue
        if kind is not type(two) or type(kind) is not type:
            return False
        if kind is tuple and len(one) < left:
            left -= len(one)
            pairs.extend(zip(one, two, strict=True))
        elif kind not in _SAME and not (kind is float and one):  # 0.0 and -0.0 are equal, and differ
            return False
    return True


def _is_row(kind: type) -> bool:
    """PySpark's, which refuses to have its fields set."""
    return kind.__module__ == "pyspark.sql.types" and kind.__qualname__ == "Row"
