"""The forms in which an RDD hands batches to the JVM, with batch headers and without.

Looks at serializers alone: no record is read.
"""

from __future__ import annotations

from typing import Any

from spark_agent.worker.batch_serializers import AutoHeaderBatches, HeaderSerializer, PairsOfBatches


def batches_in(deserializer: Any) -> int:
    """How many pickled batches hold the same records: 1, more after a zip, 0 where they are not in such."""
    from pyspark import serializers

    if isinstance(deserializer, serializers.PairDeserializer):
        sides = batches_in(deserializer.key_ser), batches_in(deserializer.val_ser)
        return sum(sides) if all(sides) else 0
    is_batched = type(deserializer) in (serializers.BatchedSerializer, serializers.AutoBatchedSerializer)
    return int(is_batched and _pickles(deserializer.serializer))


def without_headers(deserializer: Any) -> Any:
    """What reads the same records from batches without headers; None where these are not pickled."""
    from pyspark.serializers import AutoBatchedSerializer, BatchedSerializer, CartesianDeserializer

    if isinstance(deserializer, PairsOfBatches):
        sides = deserializer.left.inner, deserializer.right.inner
        return CartesianDeserializer(*map(BatchedSerializer, sides)) if all(map(_pickles, sides)) else None
    serializer = deserializer.serializer if isinstance(deserializer, BatchedSerializer) else None
    if type(serializer) is not HeaderSerializer or not _pickles(serializer.inner):
        return None
    if isinstance(deserializer, AutoHeaderBatches):
        return AutoBatchedSerializer(serializer.inner, deserializer.bestSize)
    return BatchedSerializer(serializer.inner, deserializer.batchSize)


def plain_form(dataset: Any) -> Any:
    """The deserializer of an RDD; where its batches have headers, that of the same batches without."""
    return without_headers(dataset._jrdd_deserializer) or dataset._jrdd_deserializer


def with_headers(deserializer: Any) -> Any:
    """What writes the same batches with headers; None where these are not pickled."""
    from pyspark.serializers import AutoBatchedSerializer, BatchedSerializer

    if batches_in(deserializer) != 1:
        return None
    if isinstance(deserializer, AutoBatchedSerializer):
        return AutoHeaderBatches(deserializer.serializer, deserializer.bestSize)
    return BatchedSerializer(HeaderSerializer(deserializer.serializer), deserializer.batchSize)


def are_products(deserializer: Any) -> bool:
    """Are the records the products of two pickled batches each?"""
    from pyspark.serializers import CartesianDeserializer

    return isinstance(deserializer, CartesianDeserializer) and all(
        batches_in(side) == 1 for side in (deserializer.key_ser, deserializer.val_ser)
    )


def _pickles(serializer: Any) -> bool:
    from pyspark import serializers

    return isinstance(serializer, (serializers.PickleSerializer, serializers.CloudPickleSerializer))
