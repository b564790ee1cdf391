from __future__ import annotations

import os

import pytest

from spark_agent.driver.partitions import dataset, local_path


@pytest.mark.parametrize(
    ("path", "local", "namespace", "name"),
    [
        ("/data/a%20b #1?.txt", "/data/a%20b #1?.txt", "file", "/data/a%20b #1?.txt"),
        ("file:/data/a%20b#1", "/data/a%20b#1", "file", "/data/a%20b#1"),
        ("file:///data/x", "/data/x", "file", "/data/x"),
        ("file://host/data/x", "/data/x", "file", "/data/x"),
        ("in/x", "in/x", "file", os.path.abspath("in/x")),  # noqa: PTH100 - as the agent does, without pathlib
        ("s3a://bucket/a#b?c", "s3a://bucket/a#b?c", "s3://bucket", "a#b?c"),
        ("s3a://bucket", "s3a://bucket", "s3://bucket", "/"),
        ("hdfs://name:8020/in", "hdfs://name:8020/in", "hdfs://name:8020", "/in"),
        ("hdfs:///in/x", "hdfs:///in/x", "hdfs", "/in/x"),
        ("hdfs:/in", "hdfs:/in", "hdfs", "/in"),
    ],
)
def test_paths_are_hadoops_in_which_nothing_is_escaped(
    path: str, local: str, namespace: str, name: str
) -> None:
    assert local_path(path) == local
    assert dataset(path, "text") == {"namespace": namespace, "name": name, "format": "text"}
