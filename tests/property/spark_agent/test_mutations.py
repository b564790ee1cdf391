"""Real messages that were damaged: each is refused, or says something that can be encoded and stored."""

from __future__ import annotations

import json
import struct
import tracemalloc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spark_agent import contract
from spark_agent.contract.event_fields import EVENT_FIELDS
from tests.support.mutations import BLOCKS, EVENTS, swallow_block, swallow_event
from tests.support.strategies import blocks

#: For messages of a few kilobytes.
MAX_MEMORY = 16 * 2**20

BLOCK = st.sampled_from(BLOCKS) | blocks().map(contract.encode_block) | blocks().map(contract.encode_record)
EVENT = st.sampled_from(EVENTS)
WILD: st.SearchStrategy[Any] = (
    st.sampled_from(
        [0, 1, -1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, 0.5, True, None, "", "1.2", "2.0"]
    )
    | st.sampled_from(
        [
            *contract.BLOCK_COLUMNS,
            *EVENT_FIELDS,
            *contract.RELATIONS,
            "in",
            "out",
            "text",
            "plain",
            "parsed",
        ]
    )
    | st.sampled_from(
        [[], {}, [[]], [{}], {"1": -1}, {"a": {"b": []}}, [[1, 2]], [["str", "a"]], float("nan")]
    )
    | st.text(st.characters(), max_size=5)
)


@st.composite
def damaged(draw: st.DrawFn, messages: st.SearchStrategy[bytes]) -> bytes:
    """Bits flipped, pieces cut out, doubled, or taken from another message."""
    message = bytearray(draw(messages))
    for _ in range(draw(st.integers(1, 3))):
        at, to = sorted(draw(st.tuples(st.integers(0, len(message)), st.integers(0, len(message)))))
        how = draw(st.sampled_from(["flip", "cut", "double", "splice", "set"]))
        if how == "flip" and at < len(message):
            message[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "cut":
            del message[at:to]
        elif how == "double":
            message[at:at] = message[at:to]
        elif how == "splice":
            other = draw(messages)
            message[at:] = other[min(to, len(other)) :]
        else:
            message[at:to] = draw(st.binary(max_size=8))
    return bytes(message)


def edited(draw: st.DrawFn, said: Any) -> Any:
    """The same JSON with one value exchanged, taken away or put in, anywhere."""
    if isinstance(said, dict) and said and draw(st.integers(0, 3)):
        name = draw(st.sampled_from(sorted(said)))
        if draw(st.integers(0, 4)):
            return {**said, name: edited(draw, said[name])}
        return {key: value for key, value in said.items() if key != name}
    if isinstance(said, list) and said and draw(st.integers(0, 3)):
        at = draw(st.integers(0, len(said) - 1))
        return [*said[:at], edited(draw, said[at]), *said[at + draw(st.integers(0, 1)) :]]
    return draw(WILD)


@st.composite
def with_another_header(draw: st.DrawFn) -> bytes:
    """The columns' bytes as they were; what the header says of them is not."""
    message = contract.encode_block(draw(blocks()))
    end = 10 + struct.unpack_from("<I", message, 6)[0]
    said = json.loads(message[10:end])
    for _ in range(draw(st.integers(1, 3))):
        said = edited(draw, said) if isinstance(said, dict) else said
    head = json.dumps(said).encode()
    return struct.pack("<4sBBI", b"LMFB", 1, 1, len(head)) + head + message[end:]


@st.composite
def with_another_value(draw: st.DrawFn, messages: st.SearchStrategy[bytes]) -> bytes:
    said: Any = draw(messages.map(parsed).filter(lambda each: each is not None))
    for _ in range(draw(st.integers(1, 3))):
        said = edited(draw, said)
    return json.dumps(said).encode()


def parsed(message: bytes) -> Any:
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        return None


@given(damaged(BLOCK))
def test_a_damaged_block_is_refused_or_says_something(message: bytes) -> None:
    swallow_block(message)


@given(with_another_header())
def test_a_block_under_another_header_is_refused_or_says_something(message: bytes) -> None:
    swallow_block(message)


@given(with_another_value(blocks().map(contract.encode_record)))
def test_a_record_with_other_values_is_refused_or_says_something(message: bytes) -> None:
    swallow_block(message)


@given(damaged(EVENT))
def test_a_damaged_event_is_refused_or_says_something(message: bytes) -> None:
    swallow_event(message)


@given(with_another_value(EVENT))
def test_an_event_with_other_values_is_refused_or_says_something(message: bytes) -> None:
    swallow_event(message)


@given(damaged(BLOCK) | with_another_header(), damaged(EVENT))
def test_what_is_damaged_takes_no_more_memory_than_what_is_whole(block: bytes, event: bytes) -> None:
    tracemalloc.start()
    try:
        swallow_block(block)
        swallow_event(event)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MAX_MEMORY
