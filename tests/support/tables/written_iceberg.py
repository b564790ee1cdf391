"""Iceberg tables that PyIceberg has written, beside a flow store with what agents tell of their files.

What PyIceberg cannot write is committed by Iceberg's specification: deletes by positions and by values.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from tests.support.tables.written_tables import Lake


class IcebergLake(Lake):
    """Its tables are those of namespace `db` of a catalog, `name` -> `db.name`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.catalog = InMemoryCatalog("ice", warehouse=str(folder / "warehouse"))
        self.catalog.create_namespace("db")

    def path(self, table: str) -> str:
        return str(self.folder / "warehouse" / "db" / table)

    def table(self, name: str, like: pa.Table | None = None, **properties: str) -> Table:
        """It is made where it is not there yet, with the columns of `like`."""
        identifier = f"db.{name}"
        if not self.catalog.table_exists(identifier):
            assert like is not None
            self.catalog.create_table(identifier, like.schema, properties=properties)
        return self.catalog.load_table(identifier)

    def append(self, application_id: str | None, name: str, rows: pa.Table, *, began: int = 0) -> int:
        """The snapshot. The application has read each row as a line of `APPLICATION-N.txt`."""
        table, before = self.table(name, rows), self.files(name)
        table.append(rows)
        if application_id is not None:
            new = sorted(self.files(name) - before)
            self.tell_of_write(application_id, began, self.path(name), new, f"db.{name}", "iceberg")
        return self.newest(name)

    def delete_last(self, application_id: str | None, name: str, id: int, *, began: int = 0) -> int:
        """The last row of the only file, by a file without it; the snapshot.

        The application has read the file and written the new one. None: another engine did.
        """
        [before] = self.files(name)
        self.table(name).delete(EqualTo("id", id))
        [after] = self.files(name)
        if application_id is not None:
            self.tell_of_rewrite(application_id, began, self.path(name), before, after, "iceberg")
        return self.newest(name)

    def newest(self, name: str) -> int:
        snapshot = self.table(name).current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id

    def files(self, name: str) -> set[str]:
        """The data files of the newest snapshot."""
        if not self.catalog.table_exists(f"db.{name}"):
            return set()
        files = self.table(name).inspect.files().to_pylist()
        return {str(file["file_path"]) for file in files if file["content"] == 0}

    # -- deletes ------------------------------------------------------------------------------------

    def delete_rows(self, name: str, rows: Mapping[str, Sequence[int]]) -> int:
        """Rows of data files by a file of positions; the snapshot. The table is not partitioned."""
        pairs = sorted((path, row) for path, numbers in rows.items() for row in numbers)
        columns = {"file_path": [path for path, _ in pairs], "pos": [row for _, row in pairs]}
        schema = pa.schema(
            [_field("file_path", pa.string(), 2147483546), _field("pos", pa.int64(), 2147483545)]
        )
        return self._commit(name, DataFileContent.POSITION_DELETES, pa.table(columns, schema))

    def delete_equal(self, name: str, column: str, values: Sequence[Any]) -> int:
        """All rows that have one of these values; the snapshot."""
        field = self.table(name).schema().find_field(column)
        type_ = self.table(name).schema().as_arrow().field(column).type
        deletes = pa.table({column: values}, pa.schema([_field(column, type_, field.field_id)]))
        return self._commit(name, DataFileContent.EQUALITY_DELETES, deletes, [field.field_id])

    def _commit(
        self, name: str, content: DataFileContent, deletes: pa.Table, equal: list[int] | None = None
    ) -> int:
        table = self.table(name)
        location = Path(table.location())
        path = location / "data" / f"{uuid.uuid4()}-deletes.parquet"
        pq.write_table(deletes, path)
        metadata = json.loads(Path(table.metadata_location).read_text())
        parent = table.current_snapshot()
        assert parent is not None
        snapshot_id, sequence = uuid.uuid4().int >> 65, metadata["last-sequence-number"] + 1
        file = DataFile.from_args(
            content=content,
            file_path=str(path),
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=deletes.num_rows,
            file_size_in_bytes=path.stat().st_size,
            equality_ids=equal,
        )
        manifest_path = location / "metadata" / f"{uuid.uuid4()}-m0.avro"
        output = table.io.new_output(str(manifest_path))
        with _Deletes(table.spec(), table.schema(), output, snapshot_id, "deflate") as writer:
            entry = ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=file
            )
            writer.add_entry(entry)
        manifests = [*parent.manifests(table.io), writer.to_manifest_file()]
        list_path = location / "metadata" / f"snap-{snapshot_id}.avro"
        output = table.io.new_output(str(list_path))
        with write_manifest_list(2, output, snapshot_id, parent.snapshot_id, sequence, "deflate") as listed:
            listed.add_manifests(manifests)
        return self._register(name, metadata, snapshot_id, sequence, str(list_path))

    def _register(
        self, name: str, metadata: dict[str, Any], snapshot_id: int, sequence: int, manifest_list: str
    ) -> int:
        table = self.table(name)
        now = max(int(time.time() * 1000), metadata["last-updated-ms"] + 1)
        metadata["snapshots"].append(
            {
                "snapshot-id": snapshot_id,
                "parent-snapshot-id": metadata["current-snapshot-id"],
                "sequence-number": sequence,
                "timestamp-ms": now,
                "manifest-list": manifest_list,
                "summary": {"operation": "delete"},
                "schema-id": metadata["current-schema-id"],
            }
        )
        metadata["snapshot-log"].append({"snapshot-id": snapshot_id, "timestamp-ms": now})
        metadata["refs"]["main"]["snapshot-id"] = snapshot_id
        metadata |= {
            "current-snapshot-id": snapshot_id,
            "last-sequence-number": sequence,
            "last-updated-ms": now,
        }
        before = Path(table.metadata_location)
        number = int(before.name.partition("-")[0]) + 1
        after = before.with_name(f"{number:05d}-{uuid.uuid4()}.metadata.json")
        after.write_text(json.dumps(metadata))
        self.catalog.drop_table(f"db.{name}")
        self.catalog.register_table(f"db.{name}", str(after))
        return snapshot_id


class _Deletes(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def _field(name: str, type_: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, type_, nullable=False, metadata={"PARQUET:field_id": str(number)})
