"""Files of a spool: what was written is read, and what is not whole or was changed is never a message."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from spark_agent.contract import spool_files
from spark_agent.contract.spool_files import MAGIC, ReadOutcome, SpooledMessage, SpoolHead

HEAD = SpoolHead("one:9092,two:9092", "höst", 17, 1_764_000_000_000)
MESSAGES = st.lists(
    st.builds(
        SpooledMessage,
        st.text(min_size=1, max_size=20).filter(lambda topic: topic.isprintable()),
        st.integers(-1, 2**31 - 1),
        st.binary(max_size=30),
        st.binary(max_size=200),
    ),
    max_size=6,
)


def written(messages: list[SpooledMessage]) -> bytes:
    return spool_files.encode_head(HEAD) + b"".join(map(spool_files.encode_message, messages))


def read(data: bytes) -> tuple[SpoolHead | None, list[SpooledMessage], ReadOutcome]:
    file, outcome = io.BytesIO(data), ReadOutcome()
    head = spool_files.read_head(file)
    return head, list(spool_files.read_messages(file, outcome)) if head is not None else [], outcome


@given(MESSAGES)
def test_what_was_written_is_read(messages: list[SpooledMessage]) -> None:
    assert read(written(messages)) == (HEAD, messages, ReadOutcome(len(messages)))


@given(MESSAGES, st.data())
def test_of_a_file_that_is_cut_the_whole_records_are_read(
    messages: list[SpooledMessage], data: st.DataObject
) -> None:
    begin = len(spool_files.encode_head(HEAD))
    whole = written(messages)
    size = data.draw(st.integers(begin, len(whole)))
    _, kept, outcome = read(whole[:size])
    assert kept == messages[: len(kept)]
    end = len(written(kept))
    assert outcome == ReadOutcome(len(kept), 0, size - end)
    assert len(kept) == len(messages) or end + len(spool_files.encode_message(messages[len(kept)])) > size


@given(MESSAGES.filter(bool), st.data())
def test_what_was_changed_is_noticed_and_never_a_message(
    messages: list[SpooledMessage], data: st.DataObject
) -> None:
    whole = bytearray(written(messages))
    place = data.draw(st.integers(len(spool_files.encode_head(HEAD)), len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    _, kept, outcome = read(bytes(whole))
    rest = iter(messages)
    assert all(message in rest for message in kept)  # in their order, and no other
    assert len(kept) < len(messages)
    assert outcome.damaged or outcome.cut


@given(st.binary(max_size=100))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    read(data)
    read(MAGIC + data)
    read(written([]) + data)
