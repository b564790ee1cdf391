"""Is a row of a data file one of the version that was read? By what was deleted there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from lineage_service.lineage import Dataset
from lineage_service.tracing.files.decompression import unlimited
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.rows_of_versions import Belonging, RowsOfVersions
from lineage_service.tracing.tables.table_versions import TableVersions
from tests.support.tables.written_iceberg import IcebergLake
from tests.support.tables.written_tables import Lake

ROWS = pa.table({"id": list(range(6)), "name": [f"n{id}" for id in range(6)], "p": ["a"] * 6})


def source(folder: str, format: str, version: int | None, kind: str = "source") -> TopologyNode:
    said = None if version is None else str(version)
    return TopologyNode(
        number=1,
        name="Scan",
        description=folder,
        kind=kind,
        relation="source",
        exact=True,
        reason="",
        call_site="",
        dataset=Dataset(namespace="file", name=folder, format=format, version=said),
        parents=(),
        partitions={},
        location=folder,
    )


def belonging(node: TopologyNode, path: str, row: int) -> Belonging:
    return RowsOfVersions(TableVersions(FileSystems()), unlimited).of(node, path, row)


def test_rows_of_a_table_of_delta_lake(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.write("first", "t", ROWS, began=1)
    [path] = lake.files("t")
    deleted = lake.delete("t", path, [1, 4])
    folder = lake.path("t")
    for row in range(6):
        assert belonging(source(folder, "delta", deleted - 1), path, row) == Belonging()
        of_deleted = belonging(source(folder, "delta", deleted), path, row)
        why = f"version {deleted}, which was read, does not have it" if row in (1, 4) else ""
        assert of_deleted == Belonging(why)
    other = f"{folder}/part-other.parquet"
    assert belonging(source(folder, "delta", deleted), other, 0).why.endswith("does not have it")
    was_read = replace(source(folder, "delta", deleted), partitions={0: {"path": other, "row": 0}})
    assert belonging(was_read, other, 0).doubt.endswith("no longer names the file: it is another table now")
    assert belonging(source(folder, "parquet", None), path, 1) == Belonging()
    assert belonging(source(folder, "delta", deleted, kind="sink"), path, 1) == Belonging()
    unknown = belonging(source(folder, "delta", None), path, 1)
    assert unknown == Belonging(
        "", "which version of the table was read is not known, nor whether it has the row"
    )
    later = belonging(source(folder, "delta", 9), path, 1)
    assert later.doubt.startswith("whether the version that was read, 9, has the row is not known (")


def test_rows_of_a_table_of_iceberg(tmp_path: Path) -> None:
    lake = IcebergLake(tmp_path)
    first = lake.append("first", "t", ROWS, began=1)
    [path] = lake.files("t")
    second = lake.delete_rows("t", {path: [0, 5]})
    folder = lake.path("t")
    for row in range(6):
        assert belonging(source(folder, "iceberg", first), path, row) == Belonging()
        assert bool(belonging(source(folder, "iceberg", second), path, row).why) is (row in (0, 5))
    third = lake.delete_equal("t", "id", [2])
    assert "deletes by equal values" in belonging(source(folder, "iceberg", third), path, 2).doubt
