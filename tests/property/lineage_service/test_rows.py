"""Rows against a naive interpreter of the relations: every flow that a block speaks of, and no other."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.decode.rows import BlockRows, row_of_event, rows_of_block
from lineage_service.store.tables import (
    BATCH_ROWS,
    annotation_batches,
    events_batch,
    flow_batches,
    receipts_batch,
    record_batches,
)
from spark_agent import contract
from spark_agent.contract import Block, ContractError
from spark_agent.contract.event_fields import EVENT_FIELDS
from tests.support.lineage_messages import event

POSITION = st.integers(0, 2**40) | st.integers(0, 40)
COUNT = st.integers(0, 5)


@st.composite
def flow_blocks(draw: st.DrawFn) -> Block:
    relation = draw(st.sampled_from(contract.FLOW_BLOCKS))
    length = draw(st.integers(0, 12))

    def column(values: st.SearchStrategy[int], length: int = length) -> list[int]:
        return draw(st.lists(values, min_size=length, max_size=length))

    columns: dict[str, list[int]]
    if relation == contract.POSITIONS:
        columns = {"in": column(POSITION)}
    elif relation == contract.COUNTS:
        columns = {"count": column(COUNT)}
    elif relation == contract.CODES:
        columns = {"code": column(st.integers(0, 3) | POSITION)}
    elif relation == contract.SPANS:
        columns = {"count": column(COUNT), "in": column(POSITION), "step": column(st.integers(0, 1))}
        if draw(st.booleans()):
            columns["run"] = column(st.integers(0, 3))
    elif relation == contract.PAIRS:
        columns = {"out": column(st.integers(0, 3) | POSITION), "in": column(POSITION)}
        if draw(st.booleans()):
            columns["run"] = column(st.integers(0, 3))
    elif relation == contract.IDS:
        columns = {"in": column(POSITION)}
        if draw(st.booleans()):
            columns |= {"count": column(COUNT), "step": column(st.integers(0, 2))}
    elif relation == contract.RANGES:
        columns = {"out": column(st.integers(0, 3) | POSITION), "count": column(COUNT)}
    else:
        counts = column(COUNT)
        columns = {"count": counts, "in": column(POSITION, sum(counts))}
    return Block(
        application_id=draw(st.sampled_from(["app-1", "app-2"])),
        node=draw(st.integers(0, 2)),
        run=draw(st.integers(1, 3)),
        split=draw(st.integers(0, 2)),
        seq=draw(st.integers(0, 9)),
        relation=relation,
        base_in=draw(st.integers(0, 100)),
        base_out=draw(st.integers(0, 100)),
        columns=columns,
        source=draw(sources_of(relation, columns)),
    )


def sources_of(relation: str, columns: Mapping[str, Any]) -> st.SearchStrategy[int | None]:
    node = st.integers(0, 3)
    if relation == contract.IDS:
        return node
    return st.none() | node if relation in contract.BY_ID and "run" not in columns else st.none()


Flow = tuple[str, int, int, int, int, int | None]


def flows_of(block: Block) -> Iterator[Flow]:
    """(application, node, run, output, input, the input's run), as the contract's comments have it."""
    about = block.application_id, block.node, block.run
    columns, output = block.columns, block.base_out
    of_source = None if block.source is None else -2 - block.source
    if block.relation == contract.POSITIONS:
        for k, position in enumerate(columns["in"]):
            yield (*about, block.base_out + k, position, of_source)
    elif block.relation == contract.COUNTS:
        for k, count in enumerate(columns["count"]):
            for _ in range(count):
                yield (*about, output, block.base_in + k, None)
                output += 1
    elif block.relation == contract.CODES:
        for k, code in enumerate(columns["code"]):
            yield (*about, code, block.base_in + k, None)
    elif block.relation == contract.SPANS:
        runs = columns.get("run", [None] * len(columns["count"]))
        for count, first, step, run in zip(
            columns["count"], columns["in"], columns["step"], runs, strict=True
        ):
            for j in range(count):
                yield (*about, output, first + j * step, run)
                output += 1
    elif block.relation == contract.PAIRS:
        runs = columns.get("run", [of_source] * len(columns["in"]))
        for out, position, run in zip(columns["out"], columns["in"], runs, strict=True):
            yield (*about, out, position, run)
    elif block.relation == contract.IDS:
        ones = [1] * len(columns["in"])
        spans = zip(columns["in"], columns.get("count", ones), columns.get("step", ones), strict=True)
        for first, count, step in spans:
            for j in range(count):
                yield (*about, output, block.base_in + first + j * step, of_source)
                output += 1
    elif block.relation == contract.RANGES:
        for k, (out, count) in enumerate(zip(columns["out"], columns["count"], strict=True)):
            for j in range(count):
                yield (*about, out + j, block.base_in + k, None)
    else:
        entries = iter(columns["in"])
        for k, count in enumerate(columns["count"]):
            for _ in range(count):
                yield (*about, block.base_out + k, next(entries), None)


def rows_of(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    decoded = [rows_of_block(contract.encode_block(block)) for block in blocks]
    return [row for batch in flow_batches(decoded) for row in batch.to_pylist()]


def flows_in(rows: Sequence[dict[str, Any]]) -> Iterator[Flow]:
    for row in rows:
        for k in range(row["out_count"]):
            yield (
                row["application_id"],
                row["node"],
                row["run"],
                row["out_pos"] + k,
                row["in_pos"] + k * row["in_step"],
                row["in_run"],
            )


@given(st.lists(flow_blocks(), max_size=6))
def test_rows_hold_the_flows_of_their_blocks(blocks: list[Block]) -> None:
    assert Counter(flows_in(rows_of(blocks))) == Counter(flow for block in blocks for flow in flows_of(block))


@given(st.lists(flow_blocks(), max_size=6))
def test_rows_are_sorted(blocks: list[Block]) -> None:
    names = ("application_id", "node", "run", "out_pos", "in_pos")
    keys = [tuple(row[name] for name in names) for row in rows_of(blocks)]
    assert keys == sorted(keys)


@given(st.lists(flow_blocks(), max_size=6))
def test_receipts_count_the_rows(blocks: list[Block]) -> None:
    messages = [contract.encode_block(block) for block in blocks]
    receipts = receipts_batch([rows_of_block(message) for message in messages]).to_pylist()
    assert sum(receipt["rows"] for receipt in receipts) == len(rows_of(blocks))
    assert [receipt["bytes"] for receipt in receipts] == [len(message) for message in messages]


@given(st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 70_000)), min_size=2, max_size=60))
def test_codes_of_any_width_are_sorted_with_their_inputs(pairs: list[tuple[int, int]]) -> None:
    codes = [code * factor for code, factor in pairs]
    block = Block("app", 1, 1, 0, 0, contract.CODES, columns={"code": codes})
    assert [(row["out_pos"], row["in_pos"]) for row in rows_of([block])] == sorted(
        (code, at) for at, code in enumerate(codes)
    )


@given(st.lists(st.integers(0, 2**63 - 1), max_size=5), st.integers(0, 100), st.booleans())
def test_what_is_no_flow_and_no_text_becomes_rows_of_its_own(
    numbers: list[int], base: int, is_sparse: bool
) -> None:
    blocks = [
        Block("app", 1, 1, 0, 0, contract.WINNERS, columns={"out": numbers, "in": numbers[::-1]}),
        Block("app", 1, 1, 0, 1, contract.DIGESTS, 0, base, {"digest": numbers}),
        Block("app", 1, 1, 0, 2, contract.DIGESTS, columns={"out": numbers, "digest": numbers}),
        Block("app", 1, 1, 0, 3, contract.GROUPS, base, base, {"count": [at % 9 for at in numbers]}),
    ]
    decoded = [rows_of_block(contract.encode_block(block)) for block in blocks]
    assert [*flow_batches(decoded), *record_batches(decoded)] == []
    receipts = receipts_batch(decoded).to_pylist()
    assert [(receipt["relation"], receipt["seq"], receipt["rows"]) for receipt in receipts] == [
        ("winners", 0, len(numbers)),
        ("digests", 1, len(numbers)),
        ("digests", 2, len(numbers)),
        ("groups", 3, 0),
    ]
    wanted = [
        *(("digests", *pair) for pair in [*enumerate(numbers, base), *zip(numbers, numbers, strict=True)]),
        *(("winners", *pair) for pair in zip(numbers, numbers[::-1], strict=True)),
    ]
    batches = list(annotation_batches(decoded))
    said = [row for batch in batches for row in batch.to_pylist()]
    found = [(row["relation"], row["pos"], row["value"]) for row in said]
    assert sorted(found) == sorted(wanted)
    assert [pair[:2] for pair in found] == sorted(pair[:2] for pair in found)
    assert max((batch.num_rows for batch in batches), default=0) <= BATCH_ROWS


WILD = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2, 127, 128, 2**53 - 1, 2**53, 2**63 - 1, 2**63])


@st.composite
def wild_messages(draw: st.DrawFn) -> bytes:
    """Blocks that decode, or nearly: any number that fits a column, any application id."""
    relation = draw(st.sampled_from(list(contract.BLOCK_COLUMNS)))
    length = draw(st.integers(0, 5))
    names = (*contract.BLOCK_COLUMNS[relation], *draw(st.sampled_from([(), ("run",)])))
    text = st.text(st.characters(), max_size=5)
    columns = {
        name: draw(
            st.lists(st.tuples(text, text) if name == "text" else WILD, min_size=length, max_size=length)
        )
        for name in names
    }
    return contract.encode_block(
        Block(
            application_id=draw(st.sampled_from(["app", "", "..", "a/b", "x" * 300, "a\0", "\ud800", "ä"])),
            node=draw(WILD),
            run=draw(WILD),
            split=draw(st.integers(0, 3) | WILD),
            seq=draw(st.integers(0, 3) | WILD),
            relation=relation,
            base_in=draw(WILD),
            base_out=draw(WILD),
            columns=columns,
        )
    )


@given(wild_messages())
def test_a_block_becomes_rows_or_is_refused(message: bytes) -> None:
    with contextlib.suppress(ContractError):
        block = rows_of_block(message)
        batches = [
            *(*flow_batches([block]), *record_batches([block]), *annotation_batches([block])),
            receipts_batch([block]),
        ]
        assert sum(batch.num_rows for batch in batches) == block.rows + 1
        assert max(map(last_position, batches)) < 2**63


def last_position(batch: pa.RecordBatch) -> int:
    return max(
        (value for row in batch.to_pylist() for value in row.values() if isinstance(value, int)), default=0
    )


@pytest.mark.parametrize(
    ("relation", "base", "columns"),
    [
        (contract.POSITIONS, 2**63 - 2, {"in": [1, 2, 3]}),
        (contract.COUNTS, 2**63 - 2, {"count": [1, 2]}),
        (contract.COUNTS, 0, {"count": [2**62, 2**62, 2**62]}),
        (contract.CODES, 2**63 - 2, {"code": [1, 2, 3]}),
        (contract.CODES, 0, {"code": [2**63]}),
        (contract.SPANS, 0, {"count": [5], "in": [2**63 - 4], "step": [1]}),
        (contract.SPANS, 0, {"count": [5], "in": [0], "step": [128]}),
        (contract.SPANS, 0, {"count": [5], "in": [0], "step": [1], "run": [2**53]}),
        (contract.GATHER, 2**63 - 2, {"count": [1, 0, 0], "in": [0]}),
        (contract.KEYS, 2**63 - 1, {"text": [("str", "a"), ("str", "b")]}),
    ],
)
def test_positions_beyond_what_the_tables_hold_are_refused(
    relation: str, base: int, columns: dict[str, list[Any]]
) -> None:
    block = Block("app", 1, 1, 0, 0, relation, base, base, columns)
    with pytest.raises(ContractError):
        rows_of_block(contract.encode_block(block))


@pytest.mark.parametrize("name", ["node", "split", "seq"])
def test_numbers_beyond_what_the_tables_hold_are_refused(name: str) -> None:
    numbers = {"node": 1, "run": 1, "split": 1, "seq": 1, name: 2**31}
    message = contract.encode_block(
        Block(application_id="app", relation=contract.POSITIONS, columns={"in": []}, **numbers)
    )
    with pytest.raises(ContractError, match=name):
        rows_of_block(message)


@pytest.mark.parametrize(
    ("base", "columns"),
    [
        (0, {"in": [1], "count": [2**17 + 1], "step": [0]}),
        (0, {"in": [1, 1], "count": [2**16, 2**16 + 1], "step": [0, 0]}),
        (0, {"in": [1], "count": [2**62], "step": [0]}),
        (2**63 - 2, {"in": [1, 2, 3]}),
        (0, {"in": [2**63 - 4], "count": [5], "step": [1]}),
        (0, {"in": [1], "count": [1]}),
    ],
)
def test_ids_that_are_too_many_or_too_large_are_refused(base: int, columns: dict[str, list[int]]) -> None:
    block = Block("app", 1, 1, 0, 0, contract.IDS, base, 0, columns, source=1)
    with pytest.raises(ContractError):
        rows_of_block(contract.encode_block(block))


def test_ids_of_no_node_are_refused() -> None:
    block = Block("app", 1, 1, 0, 0, contract.IDS, columns={"in": [1]})
    with pytest.raises(ContractError, match="source"):
        rows_of_block(contract.encode_block(block))


def test_an_absurd_count_is_one_span() -> None:
    block = Block("app", 1, 1, 0, 0, contract.COUNTS, columns={"count": [2**62]})
    [row] = rows_of([block])
    assert row["out_count"] == 2**62


def test_a_large_stream_comes_in_batches() -> None:
    blocks: list[BlockRows] = []
    for seq in range(2):
        codes = [(7 * k) % 1000 for k in range(contract.MAX_COLUMN_VALUES)]
        base = seq * contract.MAX_COLUMN_VALUES
        block = Block("app", 1, 1, 0, seq, contract.CODES, base, 0, {"code": codes})
        blocks.append(rows_of_block(contract.encode_block(block)))
    sizes = [batch.num_rows for batch in flow_batches(blocks)]
    assert sizes == [BATCH_ROWS, BATCH_ROWS, 2 * contract.MAX_COLUMN_VALUES - 2 * BATCH_ROWS]


NUMBER = st.integers() | st.integers(0, 9)
PARTS = st.lists(
    st.fixed_dictionaries({"path": st.text(max_size=3), "first": NUMBER}, optional={"row": NUMBER}),
    max_size=2,
)
PARTITION = st.fixed_dictionaries(
    {"split": NUMBER},
    optional={
        "path": st.text(max_size=3) | NUMBER,
        "start": NUMBER | st.none(),
        "record_length": NUMBER,
        "files": st.lists(st.fixed_dictionaries({"path": st.text(max_size=3) | NUMBER}), max_size=2) | NUMBER,
        "parents": st.lists(st.lists(NUMBER, max_size=3), max_size=2) | NUMBER,
        "parts": PARTS | NUMBER,
    },
)
ERROR = st.fixed_dictionaries(
    {"type": st.text(max_size=3)},
    optional={"message": st.text(max_size=3) | NUMBER, "frame": st.text(max_size=3) | NUMBER | st.none()},
)
COLUMN = st.fixed_dictionaries(
    {"name": st.text(max_size=3), "type": st.text(max_size=3) | NUMBER},
    optional={"nullable": st.booleans() | NUMBER, "fields": st.lists(st.just({}), max_size=1)},
)
ODD = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(["node", "source", "target", "run", "split", "blocks", "action"], NUMBER | st.none()),
        "nodes": st.lists(NUMBER | st.text(max_size=2), max_size=3),
        "overridden": st.lists(NUMBER, max_size=3) | NUMBER,
        "counts": st.dictionaries(st.sampled_from(["1", "²", "", "x"]), NUMBER) | NUMBER,
        "partitions": st.lists(PARTITION | NUMBER, max_size=3),
        "relation": st.sampled_from([*contract.RELATIONS, "other"]),
        "kind": st.sampled_from([*contract.KINDS, "other"]),
        "name": st.text(max_size=5),
        "ids": st.booleans() | NUMBER,
        "by_id": st.booleans() | NUMBER,
        "execution": NUMBER | st.none(),
        "limit": NUMBER | st.none(),
        "parts": PARTS | NUMBER,
        "state": st.sampled_from(["complete", "failed", "succeeded", "other"]) | NUMBER | st.none(),
        "error": ERROR | st.text(max_size=3) | NUMBER | st.none(),
        "reason": st.text(max_size=5) | NUMBER,
        "replay": st.fixed_dictionaries({}, optional={"of": st.text(max_size=3), "rows": NUMBER}) | NUMBER,
        "schema": st.lists(COLUMN | NUMBER, max_size=2) | NUMBER,
        "site": st.fixed_dictionaries({}, optional={"path": st.lists(st.text(max_size=3)), "visit": NUMBER}),
        "frame": st.fixed_dictionaries({"unit": st.sampled_from(["rows", "x"])}, optional={"to": NUMBER}),
        "slow": st.lists(st.lists(NUMBER, min_size=2, max_size=3), max_size=3) | NUMBER,
        "batch": NUMBER | st.none(),
        "spooled": NUMBER,
        "fields": st.dictionaries(st.text(max_size=2), st.lists(st.just({}) | NUMBER, max_size=2)) | NUMBER,
        "offsets": st.dictionaries(st.text(max_size=2), NUMBER) | NUMBER,
        "position": NUMBER | st.none(),
        "ignorable": st.booleans() | NUMBER,
    },
)


@given(st.sampled_from(list(EVENT_FIELDS)), ODD, st.integers() | st.integers(0, 2**43))
def test_an_event_becomes_a_row_or_is_refused(event_type: str, odd: dict[str, Any], time_ms: int) -> None:
    message = event(event_type, application_id="app", time=time_ms, **odd)
    with contextlib.suppress(ContractError):
        row = row_of_event(message)
        assert events_batch([row]).num_rows == 1
        assert 0 <= row.time < 2**63
        assert json.loads(row.body) == row.event
        for partition in row.event.get("partitions", []) if event_type == contract.PARTITIONS else []:
            assert all(port >= 0 and split >= 0 for port, split in partition.get("parents", []))
        parts = row.event.get("parts", ()) if event_type in contract.MANIFESTS else ()
        firsts = [part["first"] for part in parts]
        assert firsts == sorted(firsts)


@given(ODD, st.integers(0, 2**43), st.from_regex("[a-z][a-z0-9_]{0,9}_of_later", fullmatch=True))
def test_an_event_of_a_later_type_that_may_be_ignored_is_a_row_of_all_of_it(
    odd: dict[str, Any], time_ms: int, event_type: str
) -> None:
    said = {"version": "1.9", "application_id": "app", **odd, "type": event_type, "time": time_ms}
    row = row_of_event(json.dumps({**said, "ignorable": True}).encode())
    assert (row.type, row.time, row.node, row.run) == (event_type, time_ms, None, None)
    assert json.loads(row.body) == {**said, "ignorable": True}
    with pytest.raises(ContractError, match="is not known"):
        row_of_event(json.dumps({**said, "ignorable": False}).encode())


@pytest.mark.parametrize("name", ["\ud800", "\udfff\ud800", "\U0001f600", "\\ud800"])
def test_half_a_surrogate_pair_in_an_event_is_replaced(name: str) -> None:
    message = json.dumps(json.loads(event(contract.APPLICATION_STARTED)) | {"name": name}).encode()
    row = row_of_event(message)
    assert row.event["name"] == name.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert json.loads(row.body.encode()) == row.event


@given(st.integers(1, 2**40), st.integers(0, 2**41))
def test_a_range_of_outputs_beyond_all_positions_is_refused(count: int, first: int) -> None:
    columns = {"out": [2**63 - 2**41 + first - 1], "count": [count]}
    block = Block("app", 1, 1, 0, 0, contract.RANGES, columns=columns)
    if first + count <= 2**41 + 1:
        assert rows_of_block(contract.encode_block(block)).rows == 1
    else:
        with pytest.raises(ContractError, match="passes 2"):
            rows_of_block(contract.encode_block(block))
