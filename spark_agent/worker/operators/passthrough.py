"""Batches that pass a Python worker unread: a run counts the records, which only the JVM held before.

Promises that every byte goes on as it came: nothing of the user's is imported or called on the way, since a
worker may lack the classes that the driver pickled. How many records a batch has is counted by an unpickler
to which every class is the same nothing.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Iterator
from typing import Any

from spark_agent import contract
from spark_agent.worker import task_run
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators.shuffle import (
    PairsOfBatches,
    TaggedBatches,
    TaggedSerializer,
    tag_of,
    untag,
)
from spark_agent.worker.plan import Piece
from spark_agent.worker.position_streams import Told


def batches_in(deserializer: Any) -> int:
    """How many pickled batches hold the same records: 1, more after a zip, 0 where they are not in such."""
    from pyspark import serializers

    if isinstance(deserializer, serializers.PairDeserializer):
        sides = batches_in(deserializer.key_ser), batches_in(deserializer.val_ser)
        return sum(sides) if all(sides) else 0
    is_batched = type(deserializer) in (serializers.BatchedSerializer, serializers.AutoBatchedSerializer)
    return int(is_batched and _pickles(deserializer.serializer))


def untagged(deserializer: Any) -> Any:
    """What reads the same records from batches without their tags; None where these are not pickled."""
    from pyspark.serializers import AutoBatchedSerializer, BatchedSerializer, CartesianDeserializer

    if isinstance(deserializer, PairsOfBatches):
        sides = deserializer.left.inner, deserializer.right.inner
        return CartesianDeserializer(*map(BatchedSerializer, sides)) if all(map(_pickles, sides)) else None
    serializer = deserializer.serializer if isinstance(deserializer, BatchedSerializer) else None
    if type(serializer) is not TaggedSerializer or not _pickles(serializer.inner):
        return None
    if isinstance(deserializer, TaggedBatches):
        return AutoBatchedSerializer(serializer.inner, deserializer.bestSize)
    return BatchedSerializer(serializer.inner, deserializer.batchSize)


def plain_form(dataset: Any) -> Any:
    """The deserializer of an RDD; where its batches have tags, that of the same batches without."""
    return untagged(dataset._jrdd_deserializer) or dataset._jrdd_deserializer


def tagged(deserializer: Any) -> Any:
    """What writes the same batches with tags; None where these are not pickled."""
    from pyspark.serializers import AutoBatchedSerializer, BatchedSerializer

    if batches_in(deserializer) != 1:
        return None
    if isinstance(deserializer, AutoBatchedSerializer):
        return TaggedBatches(deserializer.serializer, deserializer.bestSize)
    return BatchedSerializer(TaggedSerializer(deserializer.serializer), deserializer.batchSize)


def are_products(deserializer: Any) -> bool:
    """Are the records the products of two pickled batches each?"""
    from pyspark.serializers import CartesianDeserializer

    return isinstance(deserializer, CartesianDeserializer) and all(
        batches_in(side) == 1 for side in (deserializer.key_ser, deserializer.val_ser)
    )


def _pickles(serializer: Any) -> bool:
    from pyspark import serializers

    return isinstance(serializer, (serializers.PickleSerializer, serializers.CloudPickleSerializer))


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


def count(batch: bytes) -> int:
    """Records of a pickled batch. Raises ValueError where it is no list, and what unpickling raises."""
    records = _Unpickler(io.BytesIO(batch), encoding="bytes").load()
    if not isinstance(records, (list, tuple)):
        raise ValueError(f"a batch holds a {type(records).__name__}")
    return len(records)


class Pass(Operator):
    """Gives the batches that it gets; the run's inputs and outputs are the records in them.

    `every` of them hold the same number of records. Where that cannot be found out, the lineage of the
    partition is lost, and said to be.
    """

    relation = contract.IDENTITY

    def __init__(self, every: int) -> None:
        self.every = every

    def __call__(self, split: int, batches: Iterable[bytes]) -> Iterable[bytes]:
        run = task_run.current
        if run is None:
            return batches
        records, problems = 0, list[Exception]()

        def passed() -> Iterator[bytes]:
            nonlocal records
            for index, batch in enumerate(batches):
                if index % self.every == 0 and not problems:
                    try:
                        records += count(batch)
                    except Exception as error:  # noqa: BLE001 - the batch goes on whatever it holds
                        problems.append(error)
                yield batch

        def close() -> None:
            if problems:
                raise problems[0]
            run.inputs = run.outputs = Told(lambda: records)

        run.at_close(close)
        return passed()


class PassTagged(Operator):
    """As `Pass`, of batches that have tags when they come (`reads`), or when they leave (`writes`).

    Those of a cartesian product (`pairs`) come and leave by twos. The tag of a batch whose records could not
    be counted names no run.
    """

    relation = contract.IDENTITY

    def __init__(self, *, reads: bool, writes: bool, pairs: bool = False) -> None:
        self.reads, self.writes, self.pairs = reads, writes, pairs

    def __call__(self, split: int, batches: Iterable[bytes]) -> Iterator[bytes]:
        run = task_run.current
        records, problems = 0, list[Exception]()

        def counted(batch: bytes) -> int:
            if run is None or problems:
                return 0
            try:
                return count(batch)
            except Exception as error:  # noqa: BLE001 - the batch goes on whatever it holds
                problems.append(error)
                return 0

        def passed() -> Iterator[bytes]:
            nonlocal records
            left: Piece | None = None
            for batch in batches:
                writer, first, bits = 0, 0, None
                if self.reads:
                    writer, first, bits, start = untag(batch)
                    batch = batch[start:]
                piece = Piece(writer, first, counted(batch), bits)
                if run is not None and self.pairs:
                    if left is None:
                        left = piece
                    else:
                        if self.reads:
                            run.read_product(left, piece)
                        records += left.records * piece.records
                        left = None
                elif run is not None:
                    if self.reads:
                        run.read_batch(*piece)
                    records += piece.records
                if self.writes:
                    batch = tag_of(piece.records, piece, is_known=not problems) + batch
                yield batch

        def close() -> None:
            if problems:
                raise problems[0]
            assert run is not None
            run.inputs = run.outputs = Told(lambda: records)

        if run is not None:
            run.at_close(close)
        return passed()
