"""Names of datasets by OpenLineage's rules: a place of files as (namespace, name), and back.

Pure. Agent and service name datasets by this module alone, so that an old event, a new one and a question
speak of the same dataset. Two schemes of one store are one place (`s3a` is `s3`), and folders of partitions
(`day=1`) belong to their table. Tables of databases and topics have names of their own, which stay.

The rules are at https://openlineage.io/docs/spec/naming. What they leave open is as in OpenLineage's client
for Java: the root is `/`, and a scheme without authority is a namespace as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = [
    "OF_SOURCE",
    "DatasetName",
    "dataset_at",
    "file_format",
    "is_of_files",
    "is_topic_partition",
    "kafka_namespace",
    "location_of",
    "normal_name",
    "one_path",
    "partition_columns",
    "path_of",
    "place_named",
    "remote_parts",
]

_LOCAL = "file"
#: The format of what a source of Spark's reads or writes, of which no more is known than its name.
OF_SOURCE = "datasource"
#: Formats of what is no file.
_WITHOUT_FILES = frozenset(("jdbc", "kafka", OF_SOURCE))
#: Formats of tables -> that of their data files.
_OF_DATA_FILES = {
    "delta": "parquet",
    "iceberg": "parquet",
    "iceberg+orc": "orc",
    "iceberg+avro": "avro",
}
#: Schemes of one place -> the one that names it. Those of Azure say whether TLS is used.
_SCHEMES: Mapping[str, str] = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "wasb": "wasbs"}
#: Stores whose names are keys: these begin with no slash.
_OF_KEYS = frozenset(("s3", "gs", "abfss", "wasbs"))
#: The beginning of a path that is not local: scheme, and authority if it has one.
_REMOTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?:/([^/]*)(?:/|$))?")
#: The folder of a partition, as OpenLineage cuts it. Spark escapes what else could be taken for its `=`.
_PARTITION = re.compile(r"([^=/]*)=[^=/]*")
#: A file that Spark, or Hadoop, has written.
_PART_FILE = re.compile(r"part-[^=/]+")


class DatasetName(NamedTuple):
    namespace: str
    name: str


def is_of_files(format: str) -> bool:
    """Is what has this format a file or a folder?"""
    return format not in _WITHOUT_FILES


def kafka_namespace(servers: str) -> str:
    """Of the topics of these brokers, `host:port` separated by commas: the first one."""
    return f"kafka://{servers.partition(',')[0].strip()}"


def is_topic_partition(path: str) -> bool:
    """Is it a partition of a topic of Kafka, `kafka://host:port/TOPIC/PARTITION`? Its rows have offsets."""
    return path.startswith("kafka://")


def file_format(format: str) -> str:
    """The format of the files of what has this format: a table of Delta Lake has files of Parquet."""
    return _OF_DATA_FILES.get(format, format)


def place_named(path: str) -> DatasetName:
    """The dataset that a file or folder is, or belongs to: without its folders of partitions.

    A local path is absolute, and has no `file:`.
    """
    parts = remote_parts(path)
    if parts is None:
        return DatasetName(_LOCAL, _table_folder(path) if path.startswith("/") else path)
    scheme, authority, key = parts
    scheme = _SCHEMES.get(scheme, scheme)
    namespace = f"{scheme}://{authority}" if authority else scheme
    folder = _table_folder(f"/{key}")
    return DatasetName(namespace, folder[1:] or "/" if scheme in _OF_KEYS else folder)


def dataset_at(path: str, format: str) -> dict[str, str]:
    """What an event says of a file or folder: `location` is the path, where its dataset is a larger one."""
    namespace, name = place_named(path)
    dataset = {"namespace": namespace, "name": name, "format": format}
    location = one_path(path).rstrip("/")
    return dataset if location == path_of(**dataset).rstrip("/") else {**dataset, "location": location}


def normal_name(namespace: str, name: str, format: str) -> DatasetName:
    """What a dataset is called now, by what an event of any age calls it."""
    if not namespace or not is_of_files(format) or namespace.startswith(f"{_LOCAL}:"):
        return DatasetName(namespace, name)
    return place_named(path_of(namespace, name, format))


def path_of(namespace: str, name: str, format: str) -> str:
    """The path of a dataset, as `one_path` writes it. Of what is no file, a text that is its own."""
    if namespace in ("", _LOCAL) or (namespace.startswith(f"{_LOCAL}:") and is_of_files(format)):
        return name
    if not is_of_files(format):
        return f"{namespace}/{name}"
    scheme, _, authority = namespace.partition("://")
    return one_path(f"{scheme}://{authority}/{name.lstrip('/')}")


def location_of(dataset: Mapping[str, Any]) -> str:
    """Where it is by an event of any age: the path of the dataset, or of the part that was meant."""
    location = dataset.get("location")
    if location:
        return one_path(str(location))
    return path_of(*(str(dataset.get(field) or "") for field in ("namespace", "name", "format")))


def one_path(path: str) -> str:
    """One path for the paths of one remote file or folder; a local one as it is."""
    parts = remote_parts(path)
    if parts is None:
        return path
    scheme, authority, key = parts
    return f"{_SCHEMES.get(scheme, scheme)}://{authority}/{key}"


def partition_columns(path: str) -> tuple[str, ...]:
    """The columns of the folders of partitions that a path ends with, the outermost first."""
    parts = remote_parts(path)
    folders, end = _folders(path if parts is None else parts[2])
    matches = [_PARTITION.fullmatch(folder) for folder in folders[end:]]
    return tuple(match[1] for match in matches if match is not None and match[1])


def remote_parts(path: str) -> tuple[str, str, str] | None:
    """(scheme in lower case, authority, the rest) of a path of Hadoop's, in which nothing is escaped.

    None of a local one.
    """
    match = _REMOTE.match(path)
    if match is None or match[1].lower() == _LOCAL:
        return None
    return match[1].lower(), match[2] or "", path[match.end() :]


def _table_folder(path: str) -> str:
    """An absolute path without slashes at its end, and without its folders of partitions."""
    folders, end = _folders(path)
    return "/" + "/".join(folders[:end])


def _folders(path: str) -> tuple[list[str], int]:
    """The parts of a path, and how many of them are those of its table: at least one.

    A file within a folder of a partition goes with it.
    """
    folders = path.strip("/").split("/")
    end = len(folders)
    if end > 2 and _PART_FILE.fullmatch(folders[-1]) and _PARTITION.fullmatch(folders[-2]):
        end -= 1
    while end > 1 and _PARTITION.fullmatch(folders[end - 1]):
        end -= 1
    return folders, end
