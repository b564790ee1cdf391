"""What the partitions of a node are made of, asked from the JVM once a job has computed them.

A source's partitions are byte ranges of files, a sink's are its part files; those of a union or a coalesce
name the parents' partitions that they read one after the other. Each function gives the list that a
`partitions` event carries.
"""

from __future__ import annotations

import os
import re
from typing import Any

from spark_agent.contract.dataset_names import dataset_at, remote_parts


def dataset(path: str, format: str) -> dict[str, str]:
    """The field `dataset` of a file or folder, by OpenLineage's names.

    `format` is text, file (a record is a whole file), binary (records of one length), pickle or hadoop, or
    one of Spark's.
    """
    return dataset_at(absolute(path), format)


def absolute(path: str) -> str:
    """A path of this machine from its root; a URI as it is."""
    path = local_path(path)
    return os.path.abspath(path) if remote_parts(path) is None else path


def file_splits(jvm_rdd: Any, hadoop: Any) -> list[dict[str, Any]]:
    """{split, path, start, length, size, modified} for each partition of a text file RDD.

    `size` in bytes and `modified` in Unix milliseconds are those of the file when the job ended, None where
    the driver cannot see it. Only {split} where the Hadoop configuration reads the file not as its name says.
    """
    codecs = _Codecs(hadoop) if hadoop.get(_CODECS) else None
    described = []
    for split, partition in enumerate(jvm_rdd.rdd().partitions()):
        range_ = partition.inputSplit().value()
        has_rows = codecs is None or codecs.are_as_named(range_.getPath())
        described.append(_range(split, range_) if has_rows else {"split": split})
    return described


#: Classes that a Hadoop configuration adds to its own, or has in their place.
_CODECS = "io.compression.codecs"
_CODEC_OF = {
    ".bz2": "BZip2Codec",
    ".deflate": "DeflateCodec",
    ".gz": "GzipCodec",
    ".lz4": "Lz4Codec",
    ".snappy": "SnappyCodec",
    ".zst": "ZStandardCodec",
}


class _Codecs:
    """What a Hadoop configuration decompresses files with."""

    def __init__(self, hadoop: Any) -> None:
        from pyspark import SparkContext

        self._factory = SparkContext._jvm.org.apache.hadoop.io.compress.CompressionCodecFactory(hadoop)
        self._are_as_named: dict[str, bool] = {}  # by the name of the file

    def are_as_named(self, path: Any) -> bool:
        """Is the file plain, or compressed, as Hadoop has it where nobody configured anything?"""
        name = str(path.getName())
        if name not in self._are_as_named:
            codec = self._factory.getCodec(path)
            configured = None if codec is None else str(codec.getClass().getSimpleName())
            usual = _CODEC_OF.get(os.path.splitext(name)[1])
            is_deflate = {configured, usual} == {"DefaultCodec", "DeflateCodec"}
            self._are_as_named[name] = configured == usual or is_deflate
        return self._are_as_named[name]


def binary_splits(jvm_rdd: Any, record_length: int) -> list[dict[str, Any]]:
    """As `file_splits`, with `record_length` in bytes: record k begins at a multiple of it."""
    return [
        {**_range(split, partition.serializableHadoopSplit().value()), "record_length": record_length}
        for split, partition in enumerate(jvm_rdd.rdd().partitions())
    ]


def whole_files(jvm_rdd: Any) -> list[dict[str, Any]]:
    """{split, files: [{path, size, modified}, ...]}: record k of the split is file k."""
    described = []
    for split, partition in enumerate(jvm_rdd.rdd().partitions()):
        paths = [
            local_path(path.toString()) for path in partition.serializableHadoopSplit().value().getPaths()
        ]
        described.append({"split": split, "files": [{"path": path, **status(path)} for path in paths]})
    return described


def _range(split: int, range_: Any) -> dict[str, Any]:
    path = local_path(range_.getPath().toString())
    return {
        "split": split,
        "path": path,
        "start": range_.getStart(),
        "length": range_.getLength(),
        **status(path),
    }


def local_path(uri: str) -> str:
    """A path of the local file system without its `file:`; others as they are.

    As Hadoop reads and writes its paths, which are no URIs: `%20`, `#` and `?` are what they are.
    """
    if not uri.startswith("file:"):
        return uri
    path = uri[len("file:") :]
    return "/" + path[2:].partition("/")[2] if path.startswith("//") else path


def status(path: str) -> dict[str, int | None]:
    """{size, modified} of a file in bytes and Unix milliseconds; None where the driver cannot see it."""
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        return {"size": None, "modified": None}
    return {"size": stat.st_size, "modified": stat.st_mtime_ns // 1_000_000}


def text_files(count: int, path: str, codec: str | None) -> list[dict[str, Any]]:
    """The part file of each of `count` partitions that saveAsTextFile wrote."""
    extension = _extension(codec) if codec else ""
    base = _folder(path)
    return [part_file(split, f"{base}/part-{split:05d}{extension}") for split in range(count)]


def _folder(path: str) -> str:
    return absolute(path).rstrip("/")


def part_file(split: int, file: str) -> dict[str, Any]:
    """The partition of a sink that is one file."""
    file_status = status(file)
    return {"split": split, "path": file, "start": 0, "length": file_status["size"], **file_status}


def _extension(codec: str) -> str:
    from pyspark import SparkContext

    jvm = SparkContext._jvm
    # Not by its constructor: py4j calls no method with a variable number of arguments without one.
    return str(jvm.java.lang.Class.forName(codec).newInstance().getDefaultExtension())


#: part-00000 of Hadoop's old interface, part-r-00000 and part-m-00000 of the new one.
_PART = re.compile(r"part-(?:[mr]-)?([0-9]{5,})(?:\.[A-Za-z0-9.]+)?")


def hadoop_files(path: str) -> list[dict[str, Any]]:
    """The part files that one of the Hadoop savers wrote; empty where the driver cannot see them."""
    base = _folder(path)
    try:
        names = sorted(os.listdir(base))
    except (OSError, ValueError):
        return []
    parts = [(_PART.fullmatch(name), name) for name in names]
    return [part_file(int(match.group(1)), f"{base}/{name}") for match, name in parts if match is not None]


def union(jvm_rdd: Any, jvm_parts: list[Any]) -> list[dict[str, Any]]:
    """{split, parents: [[port, parent split], ...]} for each partition of a union."""
    counts = [part.partitions().size() for part in jvm_parts]
    if "PartitionerAware" in jvm_rdd.rdd().getClass().getSimpleName():
        return [
            {"split": split, "parents": [[port, split] for port, count in enumerate(counts) if split < count]}
            for split in range(max(counts, default=0))
        ]
    parents = [(port, split) for port, count in enumerate(counts) for split in range(count)]
    return [{"split": split, "parents": [list(parent)]} for split, parent in enumerate(parents)]


def coalesced(jvm_rdd: Any) -> list[dict[str, Any]]:
    """{split, parents: [[0, parent split], ...]} for each partition of a coalesce without shuffle."""
    return [
        {"split": split, "parents": [[0, parent] for parent in partition.parentsIndices()]}
        for split, partition in enumerate(jvm_rdd.rdd().partitions())
    ]
