"""The winners of a merge by key: of each output the one input whose value it is.

A function that returns one of its arguments, the very object, has chosen it: a minimum, the latest, the
first. If it did so at every merge of a key, the other inputs of the key do not matter: alone, the winner
gives the same value. Promises winners only of values that cannot change, since a function may also return an
argument that it has changed. Knows nothing of how records are merged.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import compress, islice
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery.log import logger
from spark_agent.worker.position_streams import pieces

if TYPE_CHECKING:
    from spark_agent.worker.task_run import TaskRun

#: What stands for the position of a key of which a merge gave something new.
LOST = -1

#: Of a value with more parts it is not said: to look at them would take each key of a merge too long.
_MOST_PARTS = 100
_PLAIN = frozenset(
    (int, float, complex, bool, str, bytes, type(None), Decimal, date, datetime, time, timedelta, timezone)
)


class Winners:
    """The winners of one merge that has not ended yet.

    By the code of a key, `positions` has the position of the input that its value is, and `merged` a 1 if it
    has more than one input. Who merges writes both, and counts in `lost` how often something new came of it:
    calls would cost each record too much, and lists of numbers miss the processor's cache (measured).
    """

    __slots__ = ("first", "lost", "merged", "positions")

    def __init__(self) -> None:
        self.positions = array("q")
        self.merged = bytearray()
        self.first = 0  # the position of the first input of the batch that is being merged
        self.lost = 0

    def are_worth_it(self, inputs: int) -> bool:
        """Was most of what `inputs` were merged into chosen? A function that adds never chooses."""
        return 2 * self.lost <= inputs - len(self.positions)

    def send(self, run: TaskRun, node: int, values: Sequence[Any]) -> None:
        """Send those of `node`, which gives `values`, one for each key. Keys of one input need none."""
        try:
            won = [
                (code, position)
                for code, position in compress(enumerate(self.positions), self.merged)
                if position != LOST and is_immutable(values[code])
            ]
        except Exception as error:  # noqa: BLE001 - the classes of values are the user's
            logger.warning("winners of partition %d are not looked for: %r", run.partition, error)
            return
        if not won:
            return
        # No code is larger than the position of its first input.
        kind = "I" if max(position for _, position in won) < 1 << 32 else "Q"
        columns = [array(kind, column) for column in zip(*won, strict=True)]
        for outputs, inputs in pieces(contract.WINNERS, columns):
            run.emit(node, contract.WINNERS, 0, 0, {"out": outputs, "in": inputs})


def is_immutable(value: Any) -> bool:
    """Can nobody change the value? Objects of users' classes count as changing, named tuples do not."""
    parts, left = [value], _MOST_PARTS
    while parts:
        part = parts.pop()
        kind = type(part)
        if kind in _PLAIN:
            continue
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


def _is_row(kind: type) -> bool:
    """PySpark's, which refuses to have its fields set."""
    return kind.__module__ == "pyspark.sql.types" and kind.__qualname__ == "Row"
