"""What is said where the rows of an input cannot be followed, or only bounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lineage_service.tracing.files.decompression import unlimited
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.summaries import Receipts
from lineage_service.tracing.query.open_applications import OpenApplications
from lineage_service.triggering.changes.changed_elements import difference, elements
from lineage_service.triggering.dependence import relation
from lineage_service.triggering.dependence.lineage_features import Lineage, lineage_features
from lineage_service.triggering.dependence.read_rows import read_rows
from lineage_service.triggering.dependence.relation import Relation, relation_of
from spark_agent import contract
from tests.support.id_applications import FileStore
from tests.support.lineage_messages import APP, block, event

Ask = Callable[..., Relation | str]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Of lines of one file, an operation between, and an output."""

    def asked(
        count: int = 4,
        between: str = contract.FLOWS,
        source: str = contract.SOURCE,
        flows: Sequence[bytes] = (),
        ends: bool = True,
    ) -> Relation | str:
        path = tmp_path / "in"
        path.write_text("".join(f"line {at}\n" for at in range(count)))
        is_captured = source == contract.SOURCE

        def node(number: int, kind: str, relation: str, exact: bool = True) -> bytes:
            dataset = {"namespace": "file", "name": str(path), "format": "text"} if kind == "source" else None
            return event(
                contract.NODE_REGISTERED,
                node=number,
                name=kind,
                kind=kind,
                relation=relation,
                exact=exact,
                dataset=dataset,
            )

        part = {"split": 0, "path": str(path), "start": 0, "length": path.stat().st_size}
        events = [
            event(contract.APPLICATION_STARTED, name="job"),
            node(0, "source", source, is_captured),
            node(1, "operator", between, between == contract.FLOWS),
            node(2, "sink", contract.IDENTITY),
            event(contract.LINK, source=0, target=1, port=0),
            event(contract.LINK, source=1, target=2, port=0),
        ]
        if is_captured:
            events.append(event(contract.PARTITIONS, node=0, partitions=[part]))
        events.append(
            event(
                contract.RUN_COMMITTED,
                run=1,
                split=0,
                attempt=1,
                action=2,
                input=0,
                nodes=[1, 2],
                inputs=count,
                outputs=2,
                blocks=len(flows),
            )
        )
        if ends:
            events.append(event(contract.APPLICATION_ENDED))
        store = FileStore(tmp_path)
        store.tell(events, list(flows))
        rows = read_rows({str(path): pa.table({"line": [f"line {at}" for at in range(4)]})})
        opened = OpenApplications(store, Receipts()).open(APP)
        return relation_of(opened, [2], rows, RecordLocations().file_rows, unlimited)

    return asked


def gathered(inputs: Sequence[Sequence[int]]) -> bytes:
    columns = {"count": list(map(len, inputs)), "in": [at for of in inputs for at in of]}
    return block(1, 0, contract.GATHER, columns, node=1)


def test_rows_are_followed(ask: Ask) -> None:
    known = ask(flows=[gathered([[0, 1], [3]])])
    assert isinstance(known, Relation)
    assert list(zip(known.row.tolist(), known.output.tolist(), strict=True)) == [(0, 0), (1, 0), (3, 1)]
    assert known.exact


def test_an_operation_that_is_only_bounded_makes_reach_an_upper_bound(ask: Ask) -> None:
    known = ask(between=contract.PARTITION)
    assert isinstance(known, Relation)
    assert not known.exact
    assert len(known.row) == 8
    then = elements(pa.table({"line": [f"line {at}" for at in range(4)]}), [], [])
    rows = read_rows({"/in": pa.table({"line": [f"line {at}" for at in range(4)]})})
    now = elements(pa.table({"line": ["line 0", "line 1", "line 3"]}), [], [])
    features = lineage_features(
        ["occurrences"], Lineage(rows, known, None, then), difference(then, now), None
    )
    values = dict(zip(features.features.names, features.features.values.tolist(), strict=True))
    assert features.is_upper_bound
    assert (values["lineage.live"], values["lineage.reach"], values["lineage.share_most"]) == (1, 1, 0.25)
    assert np.isnan(values["lineage.unroutable"])


def test_lineage_that_is_not_complete_is_no_lineage(ask: Ask) -> None:
    assert (
        ask(flows=[gathered([[0], [1]])], ends=False) == "the lineage of the last execution is not complete"
    )


def test_records_that_were_not_captured_are_not_taken_for_none(ask: Ask) -> None:
    assert "the records of source are not known" in str(ask(source=contract.CARRIED))


def test_a_file_with_fewer_rows_than_were_read_is_another_one(ask: Ask) -> None:
    assert "other rows" in str(ask(count=5, flows=[gathered([[0], [4]])]))


def test_of_too_many_pairs_a_sample_is_walked(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relation, "MOST_TOGETHER", 3)
    monkeypatch.setattr(relation, "_LEAST_SAMPLED", 0)
    known = ask(flows=[gathered([[0, 1, 2, 3], [0, 1, 2, 3]])])
    assert isinstance(known, Relation)
    assert known.is_sampled
    assert known.walked[known.row].all()
    monkeypatch.setattr(relation, "_LEAST_SAMPLED", 4)
    assert "more outputs than are followed" in str(ask(flows=[gathered([[0, 1, 2, 3], [0, 1, 2, 3]])]))
