"""The waves that were asked about, in a Delta table of the flow store: `waves`, parted by job.

Each answer is one commit with an application transaction, `trigger:KEY` = how many answers the job has: of
two who ask at a time one is refused, and asks what the other one was told. An answer is never changed. Stands
beside the tables of applications, and is made with its first row.

That the next wave is to be run is no row, but a second transaction, `run-next:KEY`: the number of the first
answer that may say so, plus one. The first answer from there on whose reason is `ASKED` settles it.

What is learned from past executions (`LEARNED`) is a row that is numbered as an answer is, and is none.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from lineage_service.lineage import Trigger
from lineage_service.store.errors import (
    StoreConflictError,
    StoreUnavailableError,
    translated_errors,
    translated_read_errors,
)
from lineage_service.store.late_table import LateTable
from lineage_service.store.location import StoreLocation

__all__ = ["ASKED", "LEARNED", "SeenInput", "Wave", "WaveHistory", "job_key"]

#: The reason of a wave that is run because somebody asked for it.
ASKED = "asked"

#: In place of a decision, and the reason: the row is no answer, but says what past executions have taught.
LEARNED = "learned"

_TABLE = "waves"
#: In place of a decision: the row is no answer, but says the error of one.
_LABEL = "label"
#: `key` is a hash of the job: any text may be a job's name, and not any is the name of a folder.
_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("job", pa.string()),
        ("wave", pa.string()),
        ("number", pa.int64()),
        ("time", pa.int64()),
        ("phase", pa.string()),
        ("decision", pa.string()),
        ("reason", pa.string()),
        ("why", pa.string()),
        ("probability", pa.float64()),
        ("application_id", pa.string()),
        ("evidence", pa.string()),
        ("bound", pa.float64()),
        ("confidence", pa.float64()),
        ("threshold", pa.float64()),
        ("compliance", pa.float64()),
        ("compliance_lower", pa.float64()),
        ("compliance_waves", pa.int64()),
        ("is_audit", pa.bool_()),
        ("seconds", pa.float64()),
        ("learned", pa.string()),
        ("error", pa.float64()),
    ]
)
#: Of all answers: what was learned is large, and only of the latest ones of interest.
_COLUMNS = tuple(name for name in _SCHEMA.names if name not in ("key", "learned"))
_LATEST = 20
#: Columns that a table of an earlier version lacks.
_LATER = _SCHEMA.names[_SCHEMA.names.index("bound") :]
#: Answers are joined into one file after so many.
_JOINED = 50


@dataclass(frozen=True, slots=True)
class SeenInput:
    """How the files of a path were when it was asked: see `FileLook`."""

    digest: str
    count: int
    bytes: int
    newest_ns: int | None
    is_settled: bool
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """One answer, and what it was given upon. `command` is a hash of the command that was to be run.

    `error` is no part of the answer: it is known after the execution that follows. `said` is the error that
    a person said it had. `learned` is what a job with a bound has learned until then, as JSON; `errors` are
    those of earlier answers that were measured with it, by their numbers.
    """

    job: str
    wave: str
    number: int
    time: int
    phase: str
    decision: str
    reason: str
    why: str
    bound: float | None = None
    confidence: float | None = None
    probability: float | None = None
    threshold: float | None = None
    error: float | None = None
    compliance: float | None = None
    compliance_lower: float | None = None
    compliance_waves: int | None = None
    is_audit: bool | None = None
    seconds: float | None = None
    learned: str | None = None
    said: float | None = None
    errors: Mapping[int, float] = field(default_factory=dict)
    application_id: str | None = None
    inputs: Mapping[str, SeenInput] = field(default_factory=dict)
    code: str | None = None
    command: str | None = None

    def answer(self, *, repeated: bool) -> Trigger:
        return Trigger(
            job=self.job,
            wave=self.wave,
            decision="skip" if self.decision == "skip" else "run",
            reason=self.reason,
            why=self.why,
            phase=self.phase if self.phase in ("training", "application") else "certain",  # type: ignore[arg-type] # one of these
            bound=self.bound,
            confidence=self.confidence,
            probability=self.probability,
            threshold=self.threshold,
            error=self.error,
            compliance=self.compliance,
            compliance_lower=self.compliance_lower,
            compliance_waves=self.compliance_waves,
            is_audit=self.is_audit,
            seconds=self.seconds,
            asked=self.time,
            application_id=self.application_id,
            repeated=repeated,
        )


class WaveHistory:
    """Of one flow store."""

    def __init__(self, location: StoreLocation) -> None:
        """Raises StoreUnavailableError."""
        self._location = location
        self._table = LateTable(location, _TABLE, _SCHEMA, "key", later=_LATER)
        self._counts: dict[str, tuple[int, str, int]] = {}  # version, job and its waves, by key

    def count(self, job: str) -> int:
        """How many answers the job was ever given, forgotten ones included."""
        return self._table.offset(_transaction(job)) or 0

    def waves(self, job: str) -> list[Wave]:
        """In the order in which they were asked about; `learned` is that of the latest ones only.

        Raises StoreUnavailableError.

        """
        key = job_key(job)
        waves = [_wave(row) for row in self._rows(key) if row["job"] == job]
        learned = self._learned(key, [wave.number for wave in waves if wave.bound is not None])
        labels = sorted(
            self._rows(key, ("number", "time", "error"), kind=_LABEL), key=lambda row: row["time"]
        )
        said = {row["number"]: row["error"] for row in labels}
        errors = {number: error for wave in waves for number, error in wave.errors.items()} | said
        with_errors = [
            replace(
                wave,
                error=errors.get(wave.number),
                said=said.get(wave.number),
                learned=learned.get(wave.number),
            )
            for wave in waves
        ]
        return sorted(with_errors, key=lambda wave: wave.number)

    def lessons(self, job: str) -> list[Wave]:
        """What past executions have taught: rows with `learned` that are no answers, in their order.

        Raises StoreUnavailableError.
        """
        rows = self._rows(job_key(job), (*_COLUMNS, "learned"), kind=LEARNED)
        return sorted((_wave(row) for row in rows if row["job"] == job), key=lambda wave: wave.number)

    def versions(self, most: int) -> dict[str, int]:
        """Of at most so many jobs, those that were asked about last: their key, and what differs from an
        earlier answer if anything of the job came or went.
        """
        contents = self._table.contents()
        latest = sorted(contents, key=lambda key: (-(contents[key].latest or 0), key))
        return {key: contents[key].version for key in latest[:most]}

    def parts(self) -> int:
        """How many jobs there are."""
        return len(self._table.contents())

    def columns(self, key: str, names: Sequence[str], since: int = 0) -> list[dict[str, Any]]:
        """These columns of the answers of a job from this number on, in no order."""
        return self._rows(key, names, since=since)

    def jobs(self) -> dict[str, int]:
        """How many waves of each job there are. Jobs of which nothing came or went are not read again."""
        contents, before = self._table.contents(), self._counts
        counts: dict[str, tuple[int, str, int]] = {}
        for key, of_job in contents.items():
            if key in before and before[key][0] == of_job.version:
                counts[key] = before[key]
            else:
                names = [row["job"] for row in self._rows(key, ("job",))]
                counts[key] = of_job.version, names[0] if names else "", len(names)
        self._counts = counts
        return {job: count for _, job, count in counts.values() if count}

    def add(self, wave: Wave, count: int) -> None:
        """As the answer after the first `count`. Raises StoreConflictError if there is one already."""
        batch = pa.RecordBatch.from_pylist([_row(wave)], schema=_SCHEMA)
        self._table.append(
            _transaction(wave.job), count + 1, lambda _since: iter([batch]), at=count if count else None
        )
        if (count + 1) % _JOINED == 0:
            self._table.join_files(job_key(wave.job))

    def run_next(self, job: str) -> None:
        """The next answer is to be run. Asked twice before that, it is one answer."""
        following = self.count(job) + 1
        empty = pa.RecordBatch.from_pylist([], schema=_SCHEMA)
        with suppress(StoreConflictError):  # somebody else asked for it at the same moment
            self._table.append(_asking(job), following, lambda _since: iter([empty]))

    def is_run_next(self, job: str, waves: Sequence[Wave]) -> bool:
        """Was that asked for, and no answer of these `waves` of the job has settled it?

        An answer that was on its way when it was asked for settles nothing. What was settled stays so after
        `forget`.
        """
        following = self._table.offset(_asking(job))
        if following is None:
            return False
        since = [wave for wave in waves if wave.number >= following - 1]
        if not since:
            return self.count(job) < following
        return since[0].number == following - 1 and all(wave.reason != ASKED for wave in since)

    def label(self, wave: Wave, error: float) -> None:
        """A person says how wrong the output was, or would have been: a row of its own, with its number."""
        row = {**_row(wave), "decision": _LABEL, "error": error, "time": time.time_ns() // 1_000_000}
        row |= dict.fromkeys(("learned", "seconds"))
        batch = pa.RecordBatch.from_pylist([row], schema=_SCHEMA)
        source = f"label:{job_key(wave.job)}"
        self._table.append(source, (self._table.offset(source) or 0) + 1, lambda _since: iter([batch]))

    def retrain(self, job: str) -> None:
        """What was learned until now is not to count any more."""
        empty = pa.RecordBatch.from_pylist([], schema=_SCHEMA)
        self._table.append(_retraining(job), self.count(job) + 1, lambda _since: iter([empty]))

    def retrained(self, job: str) -> int | None:
        """The number of the first answer after that; None: it was never asked for."""
        after = self._table.offset(_retraining(job))
        return None if after is None else after - 1

    def forget(self, job: str) -> int:
        """Remove the waves of a job; how many there were."""
        count = len(self.waves(job))
        self._table.delete(job_key(job))
        return count

    def _learned(self, key: str, numbers: Sequence[int]) -> dict[int, str]:
        """By the numbers of the latest answers within a bound."""
        if not numbers:
            return {}
        rows = self._rows(key, ("number", "learned"), since=sorted(numbers)[-_LATEST:][0])
        return {row["number"]: row["learned"] for row in rows}

    def _rows(
        self, key: str, names: Sequence[str] = _COLUMNS, *, kind: str | None = None, since: int = 0
    ) -> list[dict[str, Any]]:
        """Of the answers, or of the rows of a kind that are none."""
        uris = self._table.files(key, None)
        if not uris:
            return []
        with translated_errors(self._location.table(_TABLE)):
            files = self._location.files(_TABLE, uris)
        with translated_read_errors():
            stored = pyarrow.dataset.dataset(files, schema=_SCHEMA, format="parquet")
            decision = pc.field("decision")
            of_kind = ~decision.isin([_LABEL, LEARNED]) if kind is None else decision == kind
            chosen = of_kind & (pc.field("number") >= since)
            table = stored.to_table(columns=list(names), filter=chosen)
            rows: list[dict[str, Any]] = table.to_pylist()
        return rows


def job_key(job: str) -> str:
    return hashlib.sha256(job.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _transaction(job: str) -> str:
    return f"trigger:{job_key(job)}"


def _retraining(job: str) -> str:
    return f"retrain:{job_key(job)}"


def _asking(job: str) -> str:
    return f"run-next:{job_key(job)}"


def _row(wave: Wave) -> dict[str, Any]:
    evidence = {
        "inputs": {
            path: [seen.digest, seen.count, seen.bytes, seen.newest_ns, seen.is_settled, seen.version]
            for path, seen in wave.inputs.items()
        },
        "code": wave.code,
        "command": wave.command,
        "errors": wave.errors,
    }
    columns = {name: getattr(wave, name) for name in _SCHEMA.names if name not in ("key", "evidence")}
    return {**columns, "key": job_key(wave.job), "evidence": json.dumps(evidence)}


def _wave(row: Mapping[str, Any]) -> Wave:
    columns = {name: value for name, value in row.items() if name != "evidence"}
    try:
        evidence = json.loads(row["evidence"])
        inputs = {path: SeenInput(*seen) for path, seen in evidence["inputs"].items()}
        errors = {int(number): float(error) for number, error in evidence.get("errors", {}).items()}
        about = {"code": evidence["code"], "command": evidence["command"]}
        return Wave(**columns, **about, inputs=inputs, errors=errors)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreUnavailableError(
            f"a row of the table {_TABLE} is not what this version writes ({error}): `lineage trigger forget "
            "JOB` removes those of a job"
        ) from None
