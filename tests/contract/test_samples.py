"""Golden samples: what was written once is read for ever.

`1.0/` holds, for each relation and event type, the bytes (`.bin`) and what they say (`.json`): the decoded
message and the rows that it becomes; later versions hold what they added. `broken/` holds messages that must
be refused, and a part of the reason. All are append-only; a sample is never changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lineage_service.decode.rows import row_of_event, rows_of_block
from lineage_service.store.tables import annotation_batches, flow_batches, record_batches
from spark_agent import contract
from spark_agent.contract import Block
from spark_agent.contract.event_checks import decode_event
from spark_agent.contract.event_fields import EVENT_FIELDS

HERE = Path(__file__).parent


def samples(pattern: str) -> list[Any]:
    paths = sorted(HERE.glob(pattern))
    assert paths, f"no samples match {pattern}"
    return [pytest.param(path, id=str(path.relative_to(HERE).with_suffix(""))) for path in paths]


def expected(path: Path) -> dict[str, Any]:
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def as_value(block: Block) -> dict[str, Any]:
    columns = {
        name: [list(value) if name == "text" else value for value in values]
        for name, values in block.columns.items()
    }
    fields = {name: getattr(block, name) for name in block.__dataclass_fields__}
    if block.source is None:
        del fields["source"]
    return {**fields, "columns": columns}


@pytest.mark.parametrize("path", samples("[0-9]*/block-*.bin"))
def test_a_block_says_what_it_said(path: Path) -> None:
    wanted = {key: value for key, value in expected(path).items() if key not in ("flows", "records")}
    assert as_value(contract.decode_block(path.read_bytes())) == wanted


@pytest.mark.parametrize("path", samples("[0-9]*/block-*.bin"))
def test_a_block_encoded_again_is_the_same_block(path: Path) -> None:
    block = contract.decode_block(path.read_bytes())
    assert as_value(contract.decode_block(contract.encode_block(block))) == as_value(block)


@pytest.mark.parametrize("path", samples("[0-9]*/block-*.bin"))
def test_a_block_becomes_its_rows(path: Path) -> None:
    sample = expected(path)
    block = rows_of_block(path.read_bytes())
    batches = [*flow_batches([block]), *record_batches([block])]
    rows = [row for batch in batches for row in pa.Table.from_batches([batch]).to_pylist()]
    header = {name: sample[name] for name in ("application_id", "node", "run")}
    assert rows == [{**header, **row} for row in sample.get("flows", sample.get("records"))]
    said = [row for batch in annotation_batches([block]) for row in batch.to_pylist()]
    assert said == [{**header, "relation": sample["relation"], **row} for row in annotations_of(sample)]
    assert block.rows == len(rows) + len(said)


def annotations_of(sample: dict[str, Any]) -> list[dict[str, int]]:
    """The rows that a sample of `winners`, `digests` or `operations` becomes, by its own columns."""
    columns, base = sample["columns"], sample["base_out"]
    column = {"winners": "in", "digests": "digest", "operations": "operation"}.get(sample["relation"], "")
    values = columns.get(column, [])
    positions = columns.get("out") or range(base, base + len(values))
    return [{"pos": pos, "value": value} for pos, value in zip(positions, values, strict=False)]


@pytest.mark.parametrize("path", samples("[0-9]*/event-*.bin"))
def test_an_event_says_what_it_said(path: Path) -> None:
    assert decode_event(path.read_bytes()) == expected(path)


@pytest.mark.parametrize("path", samples("[0-9]*/event-*.bin"))
def test_an_event_encoded_again_is_the_same_event(path: Path) -> None:
    event = decode_event(path.read_bytes())
    head = ("version", "type", "application_id", "time")
    fields = {name: value for name, value in event.items() if name not in head}
    again = contract.encode_event(event["type"], event["application_id"], event["time"], fields)
    assert decode_event(again) == {**event, "version": contract.VERSION}


@pytest.mark.parametrize("path", samples("[0-9]*/event-*.bin"))
def test_an_event_becomes_a_row_that_holds_all_of_it(path: Path) -> None:
    row = row_of_event(path.read_bytes())
    assert json.loads(row.body) == expected(path)


@pytest.mark.parametrize("path", samples("broken/block-*.bin"))
def test_a_broken_block_is_refused_with_its_reason(path: Path) -> None:
    with pytest.raises(contract.ContractError) as refusal:
        contract.decode_block(path.read_bytes())
    assert expected(path)["reason"] in str(refusal.value)


@pytest.mark.parametrize("path", samples("broken/event-*.bin"))
def test_a_broken_event_is_refused_with_its_reason(path: Path) -> None:
    with pytest.raises(contract.ContractError) as refusal:
        decode_event(path.read_bytes())
    assert expected(path)["reason"] in str(refusal.value)


def test_every_relation_and_event_type_has_a_sample() -> None:
    said = [expected(path) for path in HERE.glob("[0-9]*/*.bin")]
    assert {each["relation"] for each in said if "seq" in each} == set(contract.BLOCK_COLUMNS)
    types = {each["type"] for each in said if "type" in each}
    assert types == {*EVENT_FIELDS, "type_of_later"}


def test_of_the_types_that_say_so_only_those_can_be_ignored_that_make_no_answer_wrong() -> None:
    said = [expected(path) for path in HERE.glob("1.8/event-*.bin")]
    ignorable = {each["type"] for each in said if each.get("ignorable")}
    assert ignorable == {*contract.IGNORABLE, "type_of_later"}


def test_an_unknown_major_version_has_an_error_of_its_own() -> None:
    block = (HERE / "broken/block-another-major.bin").read_bytes()
    event = (HERE / "broken/event-another-major.bin").read_bytes()
    with pytest.raises(contract.UnknownVersionError):
        contract.decode_block(block)
    with pytest.raises(contract.UnknownVersionError):
        decode_event(event)


def test_a_later_minor_version_is_read() -> None:
    block = bytearray((HERE / "1.0/block-counts.bin").read_bytes())
    block[5] = 9
    assert contract.decode_block(bytes(block)).relation == contract.COUNTS
