"""What the partitions of a node are made of, asked from the JVM once a job has computed them.

A source's partitions are byte ranges of files, a sink's are its part files; those of a union or a coalesce
name the parents' partitions that they read one after the other. Each function gives the list that a
`partitions` event carries.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote, urlparse


def dataset(path: str) -> dict[str, str]:
    """OpenLineage's naming of a dataset: scheme and authority as namespace, the path as name."""
    parsed = urlparse(path)
    if not parsed.scheme or parsed.scheme == "file":
        name = unquote(parsed.path) if parsed.scheme else path
        return {"namespace": "file", "name": os.path.abspath(name), "format": "text"}
    return {"namespace": f"{parsed.scheme}://{parsed.netloc}", "name": parsed.path or "/", "format": "text"}


def file_splits(jvm_rdd: Any) -> list[dict[str, Any]]:
    """{split, path, start, length, size, modified} for each partition of a text file RDD.

    `size` in bytes and `modified` in Unix milliseconds are those of the file when the job ended, None where
    the driver cannot see it.
    """
    described, seen = [], {}
    for split, partition in enumerate(jvm_rdd.rdd().partitions()):
        range_ = partition.inputSplit().value()
        path = local_path(range_.getPath().toString())
        if path not in seen:
            seen[path] = _status(path)
        size, modified = seen[path]
        described.append(
            {
                "split": split,
                "path": path,
                "start": range_.getStart(),
                "length": range_.getLength(),
                "size": size,
                "modified": modified,
            }
        )
    return described


def local_path(uri: str) -> str:
    """A path of the local file system without its `file:`; other URIs as they are."""
    parsed = urlparse(uri)
    return unquote(parsed.path) if parsed.scheme == "file" else uri


def _status(path: str) -> tuple[int | None, int | None]:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None, None
    return status.st_size, status.st_mtime_ns // 1_000_000


def text_files(count: int, path: str, codec: str | None) -> list[dict[str, Any]]:
    """The part file of each of `count` partitions that saveAsTextFile wrote."""
    extension = _extension(codec) if codec else ""
    base = local_path(path)
    if "://" not in base:
        base = os.path.abspath(base)
    described = []
    for split in range(count):
        file = f"{base.rstrip('/')}/part-{split:05d}{extension}"
        size, modified = _status(file)
        described.append(
            {"split": split, "path": file, "start": 0, "length": size, "size": size, "modified": modified}
        )
    return described


def _extension(codec: str) -> str:
    from pyspark import SparkContext

    jvm = SparkContext._jvm
    return str(
        jvm.java.lang.Class.forName(codec).getDeclaredConstructor().newInstance().getDefaultExtension()
    )


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
