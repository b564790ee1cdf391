"""What a job's waves are learned from, in two Delta tables of the flow store: elements and pairs.

`wave_elements` has the elements of inputs and outputs of the last waves, `wave_pairs` the features of pairs
of waves with the errors between them. What is written is not yet said: an answer names the part of elements
that it rests on, so what was written for an answer that was refused is not looked at, and goes later. Both
tables are made with their first rows.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from lineage_service.store.errors import StoreConflictError, translated_errors, translated_read_errors
from lineage_service.store.late_table import LateTable
from lineage_service.store.location import StoreLocation
from lineage_service.triggering.changes.changed_elements import Elements, Numbers, Places
from lineage_service.triggering.changes.impact import QUANTILES, Features, Impact, Level
from lineage_service.triggering.dependence.read_rows import Codes
from lineage_service.triggering.learning.training_pairs import TrainingPairs

__all__ = ["KeptContainer", "KeptElements", "KeptPairs", "Pair", "append_rows", "read_part"]

_NUMBERS = pa.list_(pa.float64())
_ELEMENTS = pa.schema(
    [
        ("key", pa.string()),
        ("path", pa.string()),
        ("is_output", pa.bool_()),
        ("columns", pa.int32()),
        ("hashes", pa.list_(pa.int64())),
        ("numbers", _NUMBERS),
        ("level", _NUMBERS),
        ("impact", _NUMBERS),
        ("files", pa.string()),
        ("places", pa.list_(pa.int32())),
        ("coded", pa.string()),
        ("coded_values", pa.list_(pa.int64())),
        ("codes", pa.list_(pa.int16())),
    ]
)
#: Tables of earlier versions lack these.
_LATER = ("coded", "coded_values", "codes")
#: What a walk along lineage needs, and nobody else.
_OF_ROWS = ("files", "places", "coded_values", "codes")
_PAIRS = pa.schema(
    [
        ("key", pa.string()),
        ("reference", pa.int64()),
        ("step", pa.int64()),
        ("number", pa.int64()),
        ("error", pa.float64()),
        ("names", pa.string()),
        ("features", _NUMBERS),
    ]
)
#: What a pair is by, and what is known of it.
_ENTRY = ("reference", "step", "number", "error")
_TRIES = 20
_NO_PLACES: Places = np.zeros(0, np.int32)
_NO_VALUES, _NO_CODES = np.zeros(0, np.int64), np.zeros(0, np.int16)
#: Pairs of a job are joined into one file after so many commits, and files of elements that went are removed.
_JOINED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptContainer:
    """One input or output at a wave. `level` and `impact`, which is from the wave before, are of inputs.

    `files` are those that were read, each with how many rows it had; `places` say of each row which of the
    elements it is, -1 if of none that are kept. Without files, nothing is known of rows. `codes` are of the
    elements of an input; None: an earlier version did not keep them.
    """

    path: str
    is_output: bool
    elements: Elements
    level: Level | None = None
    impact: Impact | None = None
    files: tuple[tuple[str, int], ...] = ()
    places: Places | None = None
    codes: Codes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """`error` None: of a decision, whose error is not known. `number` is that of the answer at `step`."""

    reference: int
    step: int
    number: int
    error: float | None
    features: Features


class KeptElements:
    """Of one flow store. A part is what there is of one wave of a job."""

    def __init__(self, location: StoreLocation) -> None:
        """Raises StoreUnavailableError."""
        self._location, self._name = location, "wave_elements"
        self._table = LateTable(location, self._name, _ELEMENTS, "key", _LATER)

    def new_part(self, job: str, step: int) -> str:
        """`job` is the key of one. Nobody else has the part."""
        return f"{job}-{step:09d}-{secrets.token_hex(4)}"

    def add(self, job: str, parts: Mapping[str, Iterable[KeptContainer]]) -> None:
        """Containers by their parts, in one commit. Raises StoreUnavailableError."""
        rows = [(part, container) for part, containers in parts.items() for container in containers]
        if rows:
            append_rows(self._table, job, _element_rows(rows))

    def of(self, part: str, *, has_rows: bool = True) -> list[KeptContainer]:
        """Without `has_rows`, nothing of rows, and of codes the names only, which is half of what is read.

        Raises StoreUnavailableError.
        """
        names = [name for name in _ELEMENTS.names if name != "key" and (has_rows or name not in _OF_ROWS)]
        rows = read_part(self._location, self._name, self._table, part, _ELEMENTS, names)
        return [_container(rows.slice(at, 1)) for at in range(rows.num_rows)]

    def impacts(self, part: str) -> dict[str, Impact]:
        """Of its inputs, by path. Raises StoreUnavailableError."""
        names = ["path", "columns", "impact"]
        rows = read_part(self._location, self._name, self._table, part, _ELEMENTS, names).to_pylist()
        return {
            row["path"]: Impact(*np.split(np.array(row["impact"], np.float64), 2))
            for row in rows
            if row["impact"]
        }

    def clear(self, job: str, before: int, kept: Iterable[str]) -> None:
        """Remove the parts of steps before this one that are not `kept`."""
        needed = set(kept)
        old = [part for part in self._parts(job) if part not in needed and int(part.split("-")[1]) < before]
        with suppress(StoreConflictError):  # somebody else removes the same parts
            for part in old:
                self._table.delete(part)
            if old and before % _JOINED == 0:
                self._table.join_files(old[0])

    def forget(self, job: str) -> None:
        """Remove all of a job, its files as well."""
        for part in self._parts(job):
            self._table.delete(part)
        with translated_errors(self._location.table(self._name)):
            self._location.remove_parts(self._name, f"key={job}-")

    def _parts(self, job: str) -> list[str]:
        return [part for part in self._table.contents() if part.startswith(f"{job}-")]


class KeptPairs:
    """Of one flow store."""

    def __init__(self, location: StoreLocation) -> None:
        """Raises StoreUnavailableError."""
        self._location, self._name = location, "wave_pairs"
        self._table = LateTable(location, self._name, _PAIRS, "key")

    def add(self, job: str, pairs: Sequence[Pair]) -> None:
        """Raises StoreUnavailableError."""
        if not pairs:
            return
        rows = [
            {
                "key": job,
                "reference": pair.reference,
                "step": pair.step,
                "number": pair.number,
                "error": pair.error,
                "names": json.dumps(pair.features.names),
                "features": pair.features.values.tolist(),
            }
            for pair in pairs
        ]
        count = append_rows(self._table, job, pa.RecordBatch.from_pylist(rows, schema=_PAIRS))
        if count % _JOINED == 0:
            with suppress(StoreConflictError):  # they are joined the next time
                self._table.join_files(job)

    def of(self, job: str, said: Mapping[int, float]) -> TrainingPairs | None:
        """Those whose errors are known, with the features of the newest; None: there are none.

        Those of an earlier version may lack some, which are then not known. Pairs with others are left out.

        `said` are errors by the numbers of answers, as people said them: they count for the pair that the
        answer was given upon. Raises StoreUnavailableError.

        """
        rows = read_part(self._location, self._name, self._table, job, _PAIRS)
        if not rows.num_rows:
            return None
        steps = rows.column("step").to_numpy()
        names = tuple(json.loads(rows.column("names")[int(np.argmax(steps))].as_py()))
        fitting = {
            text: _fitting(json.loads(text), names) for text in pc.unique(rows.column("names")).to_pylist()
        }
        kept = [text for text, columns in fitting.items() if columns is not None]
        rows = rows.filter(pc.is_in(rows.column("names"), pa.array(kept, pa.string())))
        places: dict[tuple[int, int], int] = {}
        errors: dict[tuple[int, int], float] = {}
        entries = zip(*(rows.column(name).to_pylist() for name in _ENTRY), strict=True)
        for at, (reference, step, number, error) in enumerate(entries):
            pair = (reference, step)
            if error is not None:
                places[pair] = at
                errors.setdefault(pair, error)
            else:
                places.setdefault(pair, at)
                if number in said:  # what a person says counts before what was measured
                    errors[pair] = said[number]
        pairs = sorted(errors, key=lambda pair: (pair[1], pair[0]))
        if not pairs:
            return None
        features = _features(rows, fitting, len(names))
        references, waves = np.array(pairs, np.int64).T
        return TrainingPairs(
            names,
            references,
            waves,
            features[[places[pair] for pair in pairs]],
            np.array([errors[pair] for pair in pairs], np.float64),
        )

    def clear(self, job: str, before: int) -> int:
        """Remove the pairs whose reference is before this step; how many. Others may add pairs meanwhile."""
        rows = read_part(self._location, self._name, self._table, job, _PAIRS, ["reference"])
        if not rows.num_rows or pc.min(rows.column("reference")).as_py() >= before:
            return 0
        count = self._table.delete_rows(job, f"reference < {before}")
        self._table.join_files(job)
        return count

    def remove(self, job: str, first: int, until: int) -> None:
        """The pairs of the steps from this one on, before that one."""
        self._table.delete_rows(job, f"step >= {first} AND step < {until}")

    def forget(self, job: str) -> None:
        """Remove all of a job, its files as well."""
        self._table.delete(job)
        with translated_errors(self._location.table(self._name)):
            self._location.remove_parts(self._name, f"key={job}")


def _fitting(own: Sequence[str], names: Sequence[str]) -> list[int] | None:
    """The places of own features among the names; None: it has another one."""
    places = {name: at for at, name in enumerate(names)}
    return [places[name] for name in own] if places.keys() >= set(own) else None


def _features(rows: pa.Table, fitting: Mapping[str, list[int] | None], count: int) -> Numbers:
    """(rows, count), NaN where a pair does not have it."""
    features, texts = np.full((rows.num_rows, count), np.nan), rows.column("names")
    for text, columns in fitting.items():
        at = np.flatnonzero(pc.equal(texts, text).to_numpy())
        if columns is not None and len(at):
            values = rows.column("features").take(pa.array(at)).combine_chunks().flatten().to_numpy()
            features[at[:, None], np.array(columns)] = values.reshape(len(at), len(columns))
    return features


def append_rows(table: LateTable, job: str, batch: pa.RecordBatch) -> int:
    """After whatever others append meanwhile; how many commits the job has."""
    source = f"trigger:{job}"
    for tries_left in reversed(range(_TRIES)):
        count = table.offset(source)
        try:
            table.append(source, (count or 0) + 1, lambda _since: iter([batch]), at=count)
        except StoreConflictError:
            if not tries_left:
                raise
        else:
            return (count or 0) + 1
    raise AssertionError("the last try returns or raises")


def read_part(
    location: StoreLocation,
    name: str,
    table: LateTable,
    part: str,
    schema: pa.Schema,
    columns: Sequence[str] = (),
) -> pa.Table:
    uris = table.files(part, None)
    if not uris:
        return schema.empty_table()
    with translated_errors(location.table(name)):
        files = location.files(name, uris)
    names = list(columns) or [column for column in schema.names if column != "key"]
    with translated_read_errors():
        return pyarrow.dataset.dataset(files, schema=schema, format="parquet").to_table(columns=names)


def _element_rows(rows: Sequence[tuple[str, KeptContainer]]) -> pa.RecordBatch:
    """Without a Python object for each element."""
    containers = [container for _, container in rows]
    coded = [_coded(container.codes) for container in containers]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([part for part, _ in rows]),
            pa.array([container.path for container in containers]),
            pa.array([container.is_output for container in containers]),
            pa.array([container.elements.values.shape[1] for container in containers], pa.int32()),
            _lists([container.elements.keys.view(np.int64) for container in containers], pa.int64()),
            _lists([container.elements.values.ravel() for container in containers], pa.float64()),
            _lists([_level_numbers(container.level) for container in containers], pa.float64()),
            _lists([_impact_numbers(container.impact) for container in containers], pa.float64()),
            pa.array([json.dumps(container.files) for container in containers]),
            _lists([_NO_PLACES if one.places is None else one.places for one in containers], pa.int32()),
            pa.array([description for description, _, _ in coded], pa.string()),
            _lists([values for _, values, _ in coded], pa.int64()),
            _lists([codes for _, _, codes in coded], pa.int16()),
        ],
        schema=_ELEMENTS,
    )


def _lists(arrays: Sequence[np.ndarray[Any, Any]], kind: pa.DataType) -> pa.ListArray:
    offsets = np.cumsum([0, *map(len, arrays)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(arrays), kind))


def _level_numbers(level: Level | None) -> Numbers:
    if level is None:
        return np.zeros(0)
    parts = (np.array([level.count]), level.absolute, level.mean, level.quantiles.ravel(), level.zeros)
    return np.concatenate(parts).astype(np.float64)


def _impact_numbers(impact: Impact | None) -> Numbers:
    return np.zeros(0) if impact is None else np.concatenate([impact.total, impact.relative])


def _coded(codes: Codes | None) -> tuple[str | None, npt.NDArray[np.int64], npt.NDArray[np.int16]]:
    """Names and numbers of values as JSON, all values, and which of its column's values each element has,
    column by column.
    """
    if codes is None:
        return None, np.zeros(0, np.int64), np.zeros(0, np.int16)
    columns = [pa.array(column.copy().view(np.int64)).dictionary_encode() for column in codes.values.T]
    values = [column.dictionary.to_numpy() for column in columns]
    places = [column.indices.to_numpy().astype(np.int16) for column in columns]
    names = json.dumps([(name, len(of)) for name, of in zip(codes.names, values, strict=True)])
    return names, np.concatenate([_NO_VALUES, *values]), np.concatenate([_NO_CODES, *places])


def _codes(row: pa.Table, elements: int) -> Codes | None:
    """Of a table with one row."""
    coded = row.column("coded")[0].as_py()
    if coded is None:
        return None
    names, counts = zip(*json.loads(coded), strict=True) if coded != "[]" else ((), ())
    if "codes" not in row.column_names:
        return Codes(names, np.zeros((0, len(names)), np.uint64))
    values, codes = (row.column(name)[0].values.to_numpy() for name in ("coded_values", "codes"))
    parts = np.split(values.view(np.uint64), np.cumsum(counts)[:-1]) if names else []
    columns = [part[at] for part, at in zip(parts, codes.reshape(-1, elements), strict=True)]
    return Codes(names, np.column_stack(columns) if columns else np.zeros((elements, 0), np.uint64))


def _container(row: pa.Table) -> KeptContainer:
    """Of a table with one row."""
    path, is_output, columns = (row.column(name)[0].as_py() for name in ("path", "is_output", "columns"))
    hashes, numbers, level, impact = (
        row.column(name)[0].values.to_numpy() for name in ("hashes", "numbers", "level", "impact")
    )
    keys = hashes.view(np.uint64)
    files, places = [], None
    if "files" in row.column_names:
        files, places = json.loads(row.column("files")[0].as_py()), row.column("places")[0].values.to_numpy()
    return KeptContainer(
        path=path,
        is_output=is_output,
        elements=Elements(keys, numbers.reshape(len(keys), columns)),
        level=_level(level, columns) if len(level) else None,
        impact=Impact(impact[:columns], impact[columns:]) if len(impact) else None,
        files=tuple((file, count) for file, count in files),
        places=places if files else None,
        codes=_codes(row, len(keys)),
    )


def _level(numbers: Numbers, columns: int) -> Level:
    ends = np.cumsum([1, columns, columns, len(QUANTILES) * columns])
    count, absolute, mean, quantiles, zeros = np.split(numbers, ends)
    return Level(int(count[0]), absolute, mean, quantiles.reshape(len(QUANTILES), columns), zeros)
