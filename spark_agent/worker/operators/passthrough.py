"""Batches that pass a Python worker unread: a run counts the records, which only the JVM held before.

Promises that every byte goes on as it came: nothing of the user's is imported or called on the way, since a
worker may lack the classes that the driver pickled. How many records a batch has is counted by an unpickler
to which every class is the same nothing.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.worker import batch_header
from spark_agent.worker.batch_header import UNCAPTURED, Piece
from spark_agent.worker.operator import Operator
from spark_agent.worker.position_streams import ComputedCounter

if TYPE_CHECKING:
    from spark_agent.worker.task_run import TaskRun


class _Callable(type):
    """What calls, items and instances of `_Nothing` give: itself."""

    def __call__(cls, *_args: Any, **_kwargs: Any) -> Any:
        return cls

    def __setitem__(cls, _key: Any, _value: Any) -> None:
        pass


class _Nothing(metaclass=_Callable):
    """Stands for every class, function and object in a batch."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Any:
        return cls

    @staticmethod
    def _ignore(*_args: Any) -> None:
        pass

    __setstate__ = append = extend = add = _ignore


class _Unpickler(pickle.Unpickler):
    def find_class(self, _module: str, _name: str) -> Any:
        return _Nothing

    def persistent_load(self, _id: Any) -> Any:
        return _Nothing


def count_records(batch: bytes) -> int:
    """Records of a pickled batch. Raises ValueError where it is no list, and what unpickling raises."""
    records = _Unpickler(io.BytesIO(batch), encoding="bytes").load()
    if not isinstance(records, (list, tuple)):
        raise ValueError(f"a batch holds a {type(records).__name__}")
    return len(records)


class _Records:
    """Counts the records of the batches that pass in a run: these are its inputs and its outputs.

    Where they cannot be counted, the lineage of the partition is lost, and its manifest says so.
    """

    def __init__(self, run: TaskRun) -> None:
        self._run = run
        self._problem: Exception | None = None
        self.total = 0
        run.at_close(self._close)

    @property
    def are_known(self) -> bool:
        return self._problem is None

    def of(self, batch: bytes) -> int:
        """How many are in `batch`; 0 behind one that could not be counted."""
        if self._problem is None:
            try:
                return count_records(batch)
            except Exception as error:  # noqa: BLE001 - the batch goes on whatever it holds
                self._problem = error
        return 0

    def _close(self) -> None:
        if self._problem is not None:
            raise self._problem
        self._run.inputs = self._run.outputs = ComputedCounter(lambda: self.total)


class Passthrough(Operator):
    """Gives the batches that it gets. `every` of them hold the same number of records."""

    relation = contract.IDENTITY
    node_name = "pass"

    def __init__(self, every: int) -> None:
        self.every = every

    def __call__(self, partition: int, batches: Iterable[bytes]) -> Iterable[bytes]:
        return batches

    def capture(self, run: TaskRun, batches: Iterable[bytes]) -> Iterator[bytes]:
        return self._counted(_Records(run), batches)

    def _counted(self, records: _Records, batches: Iterable[bytes]) -> Iterator[bytes]:
        for index, batch in enumerate(batches):
            if index % self.every == 0:
                records.total += records.of(batch)
            yield batch


class HeaderPassthrough(Operator):
    """As `Passthrough`, of batches that have headers when they come (`reads`), or when they leave (`writes`).

    Those of a cartesian product (`pairs`) come and leave by twos. The header of a batch whose records could
    not be counted names no run.
    """

    relation = contract.IDENTITY
    node_name = "passtagged"

    def __init__(self, *, reads: bool, writes: bool, pairs: bool = False) -> None:
        self.reads, self.writes, self.pairs = reads, writes, pairs

    def __call__(self, partition: int, batches: Iterable[bytes]) -> Iterator[bytes]:
        for batch in batches:
            content = batch[batch_header.unpack(batch).size :] if self.reads else batch
            yield UNCAPTURED + content if self.writes else content

    def capture(self, run: TaskRun, batches: Iterable[bytes]) -> Iterator[bytes]:
        note = self._noting_pairs(run) if self.pairs else self._noting(run)
        return self._counted(run, _Records(run), note, batches)

    def _counted(
        self, run: TaskRun, records: _Records, note: Callable[[Piece], int], batches: Iterable[bytes]
    ) -> Iterator[bytes]:
        writer, first, bits, start = 0, 0, None, 0
        for batch in batches:
            if self.reads:
                writer, first, bits, start = batch_header.unpack(batch)
            content = batch[start:]
            piece = Piece(writer, first, records.of(content), bits)
            records.total += note(piece)
            if self.writes:
                content = (
                    run.next_header(piece.records, piece) if records.are_known else UNCAPTURED
                ) + content
            yield content

    def _noting(self, run: TaskRun) -> Callable[[Piece], int]:
        """A function that notes a batch as read, and gives the number of records of the run in it."""

        def note(piece: Piece) -> int:
            if self.reads:
                run.read_batch(*piece)
            return piece.records

        return note

    def _noting_pairs(self, run: TaskRun) -> Callable[[Piece], int]:
        """The same for batches that come by twos: the records are the pairs."""
        left: list[Piece] = []

        def note(piece: Piece) -> int:
            if not left:
                left.append(piece)
                return 0
            other = left.pop()
            if self.reads:
                run.read_product(other, piece)
            return other.records * piece.records

        return note
