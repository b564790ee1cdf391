"""Delta tables that applications have written, with real logs, and what their agents tell of it.

What Delta's library for Python cannot write is committed by its protocol: deletion vectors, mapping.
"""

from __future__ import annotations

import base64
import json
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from tests.support.dataset_applications import Job, dataset, store_all
from tests.support.linked_applications import described

_BASE85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_ZERO_MQ_85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_MAGIC, _WITHOUT_RUNS = 1681511377, 12346


class Lake:
    """Tables in a folder, and a flow store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = DeltaFlowStore(folder / "flows")
        self.queries = LineageQueries(self.store, time_budget_s=60)
        self._jobs: dict[str, Job] = {}

    def path(self, table: str) -> str:
        return str(self.folder / table)

    def write(
        self,
        application_id: str | None,
        table: str,
        rows: pa.Table,
        *,
        began: int = 0,
        alias: str | None = None,
        **options: Any,
    ) -> int:
        """Append rows; the version. The application has read each row as a line of `APPLICATION-N.txt`.

        None: another engine wrote them, of which nothing is known.
        """
        path, before = self.path(table), self.files(table)
        write_deltalake(path, rows, mode="append", **options)
        new = sorted(self.files(table) - before)
        if application_id is not None:
            self.tell_of_write(application_id, began, path, new, alias)
        return DeltaTable(path).version()

    def read(self, application_id: str, table: str, *, began: int) -> None:
        """Another application copies all files of the table to `APPLICATION-N.txt`."""
        job = self._job(application_id, began)
        files = sorted(self.files(table))
        outputs = self._copies(application_id, files)
        source = job.node("source", "source", dataset=dataset(self.path(table), "delta"))
        self._tell_partitions(job, source, files)
        sink = job.node("sink", "identity", [source], dataset=dataset(str(self.folder / application_id)))
        self._tell_partitions(job, sink, outputs)
        self._run(job, source, sink, files)

    def files(self, table: str) -> set[str]:
        """Of the newest version."""
        path = self.path(table)
        if not DeltaTable.is_deltatable(path):
            return set()
        return {f"{path}/{unquote(name)}" for name in _add_actions(path)}

    def checkpoint(self, table: str) -> None:
        DeltaTable(self.path(table)).create_checkpoint()

    def commit(self, table: str, *actions: Mapping[str, Any]) -> int:
        """Actions of Delta's protocol as the next version."""
        path = self.path(table)
        version = DeltaTable(path).version() + 1
        lines = "".join(f"{json.dumps(action)}\n" for action in actions)
        (Path(path) / "_delta_log" / f"{version:020d}.json").write_text(lines)
        return version

    def delete(self, table: str, path: str, rows: Sequence[int]) -> int:
        """Rows of a file by a deletion vector; the version."""
        name = path.removeprefix(f"{self.path(table)}/")
        *_, added = (added for added in self._added(table) if unquote(added["path"]) == name)
        data = _deletion_vector(rows)
        vector = {
            "storageType": "i",
            "pathOrInlineDv": _encoded(data),
            "sizeInBytes": len(data),
            "cardinality": len(rows),
        }
        features = ["deletionVectors"]
        return self.commit(
            table,
            {
                "protocol": {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": features,
                    "writerFeatures": features,
                }
            },
            {
                "remove": {
                    "path": added["path"],
                    "dataChange": True,
                    "deletionTimestamp": 0,
                    **({"deletionVector": added["deletionVector"]} if "deletionVector" in added else {}),
                }
            },
            {"add": {**added, "deletionVector": vector}},
            {"commitInfo": {"operation": "DELETE", "timestamp": int(time.time() * 1000)}},
        )

    def rewrite(
        self,
        application_id: str | None,
        table: str,
        path: str,
        rows: pa.Table,
        *,
        began: int = 0,
        operation: str = "UPDATE",
        first_row_id: int | None = None,
    ) -> int:
        """A file is replaced by one with these rows, each of that place there; the version.

        The application has read the file and written the new one. None: another engine did.
        """
        number = len(list((self.folder / table).glob("*.parquet")))
        name = f"part-{number:05}-rewritten.parquet"
        pq.write_table(rows, f"{self.path(table)}/{name}")
        added = {
            "path": name,
            "partitionValues": {},
            "size": Path(f"{self.path(table)}/{name}").stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps({"numRecords": rows.num_rows}),
            **({} if first_row_id is None else {"baseRowId": first_row_id}),
        }
        removed = path.removeprefix(f"{self.path(table)}/")
        version = self.commit(
            table,
            {"commitInfo": {"operation": operation, "timestamp": int(time.time() * 1000)}},
            {"remove": {"path": removed, "dataChange": True, "deletionTimestamp": 0}},
            {"add": added},
        )
        if application_id is not None:
            self.tell_of_rewrite(application_id, began, self.path(table), path, f"{self.path(table)}/{name}")
        return version

    def track_rows(self, table: str, column: str) -> int:
        """The ids of rows are kept from here on, those of rewritten rows in this column; the version."""
        metadata = self._metadata(table)
        metadata["configuration"] = {
            "delta.enableRowTracking": "true",
            "delta.rowTracking.materializedRowIdColumnName": column,
        }
        backfilled, first = [], 0
        for added in self._added(table):
            backfilled.append({"add": {**added, "baseRowId": first, "dataChange": False}})
            first += json.loads(added["stats"])["numRecords"]
        return self.commit(table, {"metaData": metadata}, *backfilled)

    def keep_times(self, table: str, at: int) -> int:
        """Commits have their times in them from here on, this one `at`; the version."""
        metadata = self._metadata(table)
        metadata["configuration"] = {
            "delta.enableInCommitTimestamps": "true",
            "delta.inCommitTimestampEnablementVersion": str(DeltaTable(self.path(table)).version() + 1),
            "delta.inCommitTimestampEnablementTimestamp": str(at),
        }
        writer_features = ["inCommitTimestamp"]
        protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": writer_features}
        info = {"operation": "SET TBLPROPERTIES", "inCommitTimestamp": at}
        return self.commit(table, {"commitInfo": info}, {"protocol": protocol}, {"metaData": metadata})

    def rename(self, table: str, names: Mapping[str, str]) -> int:
        """Columns by mapping: what was the name is the physical one from here on; the version."""
        metadata = self._metadata(table)
        schema = json.loads(metadata["schemaString"])
        for number, field in enumerate(schema["fields"], start=1):
            field["metadata"] = {
                "delta.columnMapping.id": number,
                "delta.columnMapping.physicalName": field["name"],
            }
            field["name"] = names.get(field["name"], field["name"])
        metadata["schemaString"] = json.dumps(schema)
        metadata["configuration"] = {
            "delta.columnMapping.mode": "name",
            "delta.columnMapping.maxColumnId": str(len(schema["fields"])),
        }
        protocol = {"minReaderVersion": 2, "minWriterVersion": 5}
        return self.commit(table, {"protocol": protocol}, {"metaData": metadata})

    # -- the log ------------------------------------------------------------------------------------

    def _actions(self, table: str) -> list[dict[str, Any]]:
        logs = sorted((self.folder / table / "_delta_log").glob("*.json"))
        return [json.loads(line) for log in logs for line in log.read_text().splitlines()]

    def _added(self, table: str) -> list[dict[str, Any]]:
        return [action["add"] for action in self._actions(table) if "add" in action]

    def _metadata(self, table: str) -> dict[str, Any]:
        *_, last = (action["metaData"] for action in self._actions(table) if "metaData" in action)
        return dict(last)

    # -- what agents tell ---------------------------------------------------------------------------

    def _job(self, application_id: str, began: int) -> Job:
        """One application may write several times."""
        if application_id not in self._jobs:
            self._jobs[application_id] = Job(application_id, application_id, began)
        return self._jobs[application_id]

    def tell_of_write(
        self,
        application_id: str,
        began: int,
        path: str,
        files: Sequence[str],
        alias: str | None,
        format: str = "delta",
    ) -> None:
        """An application has written these files of Parquet into the table at a path."""
        job = self._job(application_id, began)
        inputs = self._copies(application_id, files)
        source = job.node("source", "source", dataset=dataset(str(self.folder / application_id)))
        self._tell_partitions(job, source, inputs)
        about = dataset(path, format)
        if alias is not None:
            about["symlinks"] = [{"namespace": "file", "name": alias, "type": "TABLE"}]
        sink = job.node("sink", "identity", [source], dataset=about)
        self._tell_partitions(job, sink, files)
        self._run(job, source, sink, files)

    def tell_of_rewrite(
        self, application_id: str, began: int, path: str, before: str, after: str, format: str = "delta"
    ) -> None:
        """An application has made each row of a file of the one of that place in another file."""
        job = self._job(application_id, began)
        source = job.node("source", "source", dataset=dataset(path, format))
        self._tell_partitions(job, source, [before])
        sink = job.node("sink", "identity", [source], dataset=dataset(path, format))
        self._tell_partitions(job, sink, [after])
        self._run(job, source, sink, [after])

    def _copies(self, application_id: str, files: Sequence[str]) -> list[str]:
        """Of each file of Parquet one of lines, row by row: the ids."""
        copies = []
        for number, file in enumerate(files):
            copy = self.folder / f"{application_id}-{number}.txt"
            ids = pq.read_table(file, partitioning=None).column("id").to_pylist()
            copy.write_text("".join(f"{id}\n" for id in ids))
            copies.append(str(copy))
        return copies

    @staticmethod
    def _tell_partitions(job: Job, node: int, files: Sequence[str]) -> None:
        partitions = [
            {"split": split, "parts": [{**described(Path(file)), "first": 0, "row": 0}]}
            if file.endswith(".parquet")
            else {"split": split, "start": 0, **described(Path(file))}
            for split, file in enumerate(files)
        ]
        job.tell("partitions", node=node, partitions=partitions)

    def _run(self, job: Job, source: int, sink: int, files: Sequence[str]) -> None:
        for split, file in enumerate(files):
            rows = pq.read_metadata(file).num_rows
            job.run(source, [sink], rows, rows, split, action=sink, blocks=0)
        store_all(self.store, job.end())


def _add_actions(path: str) -> list[str]:
    return [str(name) for name in pa.table(DeltaTable(path).get_add_actions()).column("path").to_pylist()]


def _deletion_vector(rows: Sequence[int]) -> bytes:
    """A RoaringBitmapArray of one bitmap with one array container, in its portable form."""
    container = struct.pack("<HHI", 0, len(rows) - 1, 16) + struct.pack(f"<{len(rows)}H", *sorted(rows))
    bitmap = struct.pack("<II", _WITHOUT_RUNS, 1) + container
    return struct.pack("<IQI", _MAGIC, 1, 0) + bitmap


def _encoded(data: bytes) -> str:
    padded = data + b"\0" * (-len(data) % 4)
    return base64.b85encode(padded).translate(bytes.maketrans(_BASE85, _ZERO_MQ_85)).decode()
