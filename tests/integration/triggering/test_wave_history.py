"""The table of answers: one of an earlier version, and what is added to it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from lineage_service.store.errors import StoreUnavailableError
from lineage_service.store.location import StoreLocation
from lineage_service.triggering.waves.wave_history import WaveHistory
from tests.support.triggering import wave

KEY = hashlib.sha256(b"nightly").hexdigest()[:32]


def earlier_table(flows: Path, **changes: pa.Array) -> None:
    """With one answer, as a version wrote it that knew of no bounds."""
    columns = {
        "key": pa.array([KEY]),
        "job": pa.array(["nightly"]),
        "wave": pa.array(["w0"]),
        "number": pa.array([0]),
        "time": pa.array([1_795_000_000_000]),
        "phase": pa.array(["certain"]),
        "decision": pa.array(["run"]),
        "reason": pa.array(["never_ran"]),
        "why": pa.array(["it was never seen"]),
        "probability": pa.array([None], pa.float64()),
        "application_id": pa.array([None], pa.string()),
        "evidence": pa.array(['{"inputs": {}, "code": null, "command": null}']),
        **changes,
    }
    transaction = CommitProperties(app_transactions=[Transaction(f"trigger:{KEY}", 1)])
    write_deltalake(
        flows / "waves", pa.table(columns), partition_by=["key"], commit_properties=transaction, name="waves"
    )


def test_a_table_of_an_earlier_version_is_read_and_goes_on(tmp_path: Path) -> None:
    earlier_table(tmp_path)
    location = StoreLocation(tmp_path)
    history, beside = WaveHistory(location), WaveHistory(location)
    [first] = history.waves("nightly")
    assert (first.wave, first.seconds, first.bound) == ("w0", None, None)
    assert DeltaTable(tmp_path / "waves").version() == 0  # to read it changes nothing
    second = replace(wave("w1"), number=1, seconds=0.5, bound=0.05, is_audit=False, learned="{}")
    history.add(second, 1)
    beside.add(replace(wave("w2"), number=2), 2)  # which has seen the table without the new columns
    assert beside.waves("nightly") == [first, second, replace(wave("w2"), number=2)]
    assert WaveHistory(location).waves("nightly") == history.waves("nightly")


def test_a_table_with_other_columns_is_refused(tmp_path: Path) -> None:
    earlier_table(tmp_path, time=pa.array(["yesterday"]))
    with pytest.raises(StoreUnavailableError, match="it differs in time"):
        WaveHistory(StoreLocation(tmp_path))
