"""What probes of a job rest on, in one Delta table of the flow store: the classes of its inputs, and checks.

`classes` of an input are kept with each answer that is run, and those of answers before the last execution
go. A `probe` says what came of one: what it expected of the output, so that the run beside it can be
compared, or why it could not be trusted. The table is made with its first rows.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset

from lineage_service.store.errors import StoreConflictError, translated_errors, translated_read_errors
from lineage_service.store.late_table import LateTable
from lineage_service.store.location import StoreLocation
from lineage_service.triggering.probing.class_rows import Classes

__all__ = ["KeptClasses", "KeptProbe", "KeptProbes"]

_INTEGERS = pa.list_(pa.int64())
_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("number", pa.int64()),
        ("path", pa.string()),
        ("columns", pa.string()),
        ("files", pa.string()),
        ("keys", _INTEGERS),
        ("sums", _INTEGERS),
        ("counts", _INTEGERS),
        ("code", pa.string()),
        ("outcome", pa.string()),
        ("expected", pa.string()),
        ("error", pa.float64()),
        ("seconds", pa.float64()),
        ("why", pa.string()),
    ]
)
_TABLE = "wave_probes"
_TRIES, _JOINED = 20, 50
_PROBES = "probes"
_OF_PROBES = ("number", "path", "code", "outcome", "error", "seconds", "why")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptClasses:
    """Of one input at the answer `number`. `files`: path -> (size, Unix ms), as they were read."""

    number: int
    path: str
    columns: tuple[str, ...]
    files: Mapping[str, tuple[int, int]]
    classes: Classes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptProbe:
    """Of the answer `number`, where `path` had changed, upon an execution of this `code`.

    `outcome`: `expected` where the job ran beside it, and what it `expected` is by output a digest; `agreed`
    or `differed` once that was compared; `used` where it decided; `failed` where it showed nothing, and
    `unsure` where none should be made again: `why` says why.
    """

    number: int
    path: str
    code: str
    outcome: str
    expected: Mapping[str, str] = field(default_factory=dict)
    error: float | None = None
    seconds: float | None = None
    why: str = ""


class KeptProbes:
    """Of one flow store."""

    def __init__(self, location: StoreLocation) -> None:
        """Raises StoreUnavailableError."""
        self._location = location
        self._table = LateTable(location, _TABLE, _SCHEMA, "key")

    def add_classes(self, job: str, kept: KeptClasses) -> None:
        """`job` is the key of one. Raises StoreUnavailableError."""
        row = {
            "number": kept.number,
            "path": kept.path,
            "columns": json.dumps(kept.columns),
            "files": json.dumps(kept.files),
            "keys": kept.classes.keys.view(np.int64),
            "sums": kept.classes.sums.view(np.int64),
            "counts": kept.classes.counts,
        }
        self._append(f"{job}-{kept.number:09d}-{secrets.token_hex(4)}", row)

    def classes(self, job: str, number: int, path: str) -> KeptClasses | None:
        """None where there are none; also where two who asked at a time have written some, and differ."""
        parts = [part for part in self._parts(job) if part.startswith(f"{job}-{number:09d}-")]
        rows = [row for part in parts for row in self._rows(part) if row["path"] == path]
        if not rows or any(row["files"] != rows[0]["files"] for row in rows):
            return None
        row = rows[0]
        keys, sums = (np.array(row[name], np.int64).view(np.uint64) for name in ("keys", "sums"))
        return KeptClasses(
            number=number,
            path=path,
            columns=tuple(json.loads(row["columns"])),
            files={file: (size, time) for file, (size, time) in json.loads(row["files"]).items()},
            classes=Classes(keys, sums, np.array(row["counts"], np.int64)),
        )

    def clear(self, job: str, before: int) -> None:
        """Remove the classes of answers before this one."""
        with suppress(StoreConflictError):  # somebody else removes the same parts
            for part in self._parts(job):
                number = part.split("-")[1]
                if number != _PROBES and int(number) < before:
                    self._table.delete(part)

    def add_probe(self, job: str, probe: KeptProbe) -> None:
        """Raises StoreUnavailableError."""
        row = {
            "number": probe.number,
            "path": probe.path,
            "code": probe.code,
            "outcome": probe.outcome,
            "expected": json.dumps(probe.expected),
            "error": probe.error,
            "seconds": probe.seconds,
            "why": probe.why,
        }
        self._append(f"{job}-{_PROBES}", row)

    def probes(self, job: str, code: str) -> list[KeptProbe]:
        """Of this code, in the order of their answers; of each answer what was said last."""
        rows = [row for row in self._rows(f"{job}-{_PROBES}") if row["code"] == code]
        last = {row["number"]: row for row in sorted(rows, key=lambda row: row["outcome"] != "expected")}
        return [
            KeptProbe(
                expected=json.loads(row["expected"]),
                **{name: row[name] for name in _OF_PROBES},
            )
            for _, row in sorted(last.items())
        ]

    def forget(self, job: str) -> None:
        """Remove all of a job, its files as well."""
        for part in self._parts(job):
            self._table.delete(part)
        with translated_errors(self._location.table(_TABLE)):
            self._location.remove_parts(_TABLE, f"key={job}-")

    def _parts(self, job: str) -> list[str]:
        return [part for part in self._table.contents() if part.startswith(f"{job}-")]

    def _append(self, part: str, row: Mapping[str, Any]) -> None:
        batch = pa.RecordBatch.from_pylist([{**row, "key": part}], schema=_SCHEMA)
        source = f"trigger:{part}"
        for tries_left in reversed(range(_TRIES)):
            count = self._table.offset(source)
            try:
                self._table.append(source, (count or 0) + 1, lambda _since: iter([batch]), at=count)
            except StoreConflictError:
                if not tries_left:
                    raise
                continue
            if part.endswith(_PROBES) and ((count or 0) + 1) % _JOINED == 0:
                with suppress(StoreConflictError):  # they are joined the next time
                    self._table.join_files(part)
            return

    def _rows(self, part: str) -> list[dict[str, Any]]:
        uris = self._table.files(part, None)
        if not uris:
            return []
        with translated_errors(self._location.table(_TABLE)):
            files = self._location.files(_TABLE, uris)
        names = [name for name in _SCHEMA.names if name != "key"]
        with translated_read_errors():
            stored = pyarrow.dataset.dataset(files, schema=_SCHEMA, format="parquet")
            rows: list[dict[str, Any]] = stored.to_table(columns=names).to_pylist()
        return rows
