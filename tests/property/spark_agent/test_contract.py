"""What is encoded is decoded to the same value, and nothing that comes off a topic breaks the decoder."""

from __future__ import annotations

import contextlib
import json
import struct
from array import array
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_agent import contract
from spark_agent.contract import Block, ContractError
from spark_agent.contract.event_checks import decode_event
from spark_agent.contract.event_fields import EVENT_FIELDS
from tests.support.strategies import blocks
from tests.support.wild_events import right_events


def as_lists(block: Block) -> Block:
    return Block(**{**vars(block), "columns": {name: list(column) for name, column in block.columns.items()}})


@pytest.mark.parametrize("relation", contract.BLOCK_COLUMNS)
@given(data=st.data())
def test_a_decoded_block_is_the_encoded_one(relation: str, data: st.DataObject) -> None:
    block = data.draw(blocks((relation,)))
    assert as_lists(contract.decode_block(contract.encode_block(block))) == block
    assert as_lists(contract.decode_block(contract.encode_record(block))) == block


@given(st.lists(st.integers(0, 2**33), min_size=2, max_size=200).map(sorted), st.data())
def test_an_array_is_encoded_as_a_list_is_and_so_is_a_late_descent(
    values: list[int], data: st.DataObject
) -> None:
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(values) - 1))
        values[at] = data.draw(st.integers(0, 2**33))
    block = Block("app", 1, 1, 0, 0, contract.POSITIONS, columns={"in": values})
    message = contract.encode_block(block)
    assert as_lists(contract.decode_block(message)) == block
    typecode = "Q" if max(values) >= 2**32 else "I"
    assert contract.encode_block(replace(block, columns={"in": array(typecode, values)})) == message


@pytest.mark.parametrize("event_type", EVENT_FIELDS)
@given(data=st.data())
def test_a_decoded_event_is_the_encoded_one(event_type: str, data: st.DataObject) -> None:
    event = data.draw(right_events((event_type,)))
    head = {name: event.pop(name) for name in ("version", "type", "application_id", "time")}
    message = contract.encode_event(event_type, head["application_id"], head["time"], event)
    ignorable = {"ignorable": True} if event_type in contract.IGNORABLE else {}
    assert decode_event(message) == {**head, "version": contract.VERSION, **ignorable, **event}


def must_decode_or_refuse(message: bytes) -> None:
    for decode in (contract.decode_block, decode_event):
        with contextlib.suppress(ContractError):
            decode(message)


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(message: bytes) -> None:
    must_decode_or_refuse(message)
    must_decode_or_refuse(b"LMFB\x01\x00" + message)


@given(blocks(), st.data())
def test_a_cut_block_is_refused(block: Block, data: st.DataObject) -> None:
    message = contract.encode_block(block)
    with pytest.raises(ContractError):
        contract.decode_block(message[: data.draw(st.integers(0, len(message) - 1))])


@given(blocks(), st.data())
def test_a_block_with_flipped_bits_is_decoded_or_refused(block: Block, data: st.DataObject) -> None:
    message = bytearray(contract.encode_block(block))
    for at in data.draw(st.lists(st.integers(0, 8 * len(message) - 1), min_size=1, max_size=4)):
        message[at // 8] ^= 1 << at % 8
    must_decode_or_refuse(bytes(message))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
COLUMN = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["in", "count", "code", "step", "run", "text"]) | JSON,
        "count": st.integers(-1, 4) | JSON,
        "bytes": st.integers(-1, 9) | JSON,
        "width": st.sampled_from([1, 2, 4, 8]) | JSON,
        "delta": JSON,
        "type": st.sampled_from(["json", "plain"]) | JSON,
        "types": st.lists(st.sampled_from(["str", "json", "parsed"]), max_size=3) | JSON,
    },
)
NATURAL = st.integers(0, 9)
HEADER = st.fixed_dictionaries(
    {
        "application_id": st.just("app") | JSON,
        "relation": st.sampled_from(list(contract.BLOCK_COLUMNS)) | JSON,
    },
    optional={
        **dict.fromkeys(("node", "run", "split", "seq", "base_in", "base_out", "source"), NATURAL | JSON),
        "columns": st.lists(COLUMN, max_size=3) | JSON,
    },
)


@given(HEADER, st.binary(max_size=24) | st.sampled_from([b'[["a","b"]]', b"\1\1ab", b"\0\1\1\1ab"]))
def test_any_header_is_decoded_or_refused(header: dict[str, Any], payload: bytes) -> None:
    head = json.dumps(header).encode()
    must_decode_or_refuse(struct.pack("<4sBBI", b"LMFB", 1, 0, len(head)) + head + payload)


RECORD = st.dictionaries(
    st.sampled_from(["in", "out", "count", "text", "run", "step"]),
    st.lists(JSON | NATURAL, max_size=3) | JSON,
)


@given(HEADER, RECORD, st.sampled_from(["1.0", "1.2", "2.0"]) | JSON)
def test_any_record_is_decoded_or_refused(
    header: dict[str, Any], columns: dict[str, Any], version: object
) -> None:
    must_decode_or_refuse(json.dumps({**header, "version": version, "columns": columns}).encode())


@given(
    st.dictionaries(
        st.sampled_from(["version", "type", "application_id", "time", "node", "run", "counters", "name"]),
        st.sampled_from(["1.0", "²", *EVENT_FIELDS]) | JSON,
    )
)
def test_any_event_is_decoded_or_refused(event: dict[str, Any]) -> None:
    must_decode_or_refuse(json.dumps(event).encode())


def test_lone_surrogates_arrive_as_replacement_characters() -> None:
    block = Block("app", 1, 1, 1, 1, contract.KEYS, columns={"text": [("str", "a\ud800b")]})
    [(kind, text)] = contract.decode_block(contract.encode_block(block)).columns["text"]
    assert kind == "str"
    assert text.startswith("a\ufffd")
    assert text.endswith("\ufffdb")
