"""Where messages go that cannot be used: a topic of their own, with the reason and where they came from.

Promises that `send` returns only when the broker has every letter, so that offsets may be committed then.
A letter may come twice after a crash. Its value and key are the original bytes; only what a broker refuses as
too large is cut, and says so, as does a letter of a message that could not even be read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Producer

from lineage_service.decode.batches import DeadLetter
from lineage_service.kafka.client import NO_OPTIONS, client_of
from lineage_service.kafka.errors import BrokerUnavailableError

__all__ = ["DeadLetters", "KafkaDeadLetters", "headers"]

MAX_REASON_BYTES = 2_000
#: What is larger when it is unpacked is cut at once; who reads letters unpacks them too.
MAX_LETTER_BYTES = 16_000_000
#: A letter that the broker finds too large, because headers came on top, is cut to this.
CUT_BYTES = 100_000
#: Stands for the size of a message that Kafka's client could not read.
UNKNOWN_SIZE = "unknown"
TIMEOUT_S = 10.0


class DeadLetters(Protocol):
    """`testing.dead_letters.MemoryDeadLetters` is the in-memory twin."""

    def send(self, letters: Sequence[DeadLetter]) -> None:
        """Raises BrokerUnavailableError; then all of the letters are to be sent again."""


def headers(letter: DeadLetter, time_ms: int) -> list[tuple[str, bytes]]:
    """Where the message came from, why it is here, since when, and when it was written; all as text."""
    message = letter.message
    fields = {
        "topic": message.topic,
        "partition": str(message.partition),
        "offset": str(message.offset),
        "reason": letter.reason,
        "time": str(time_ms),
    }
    if message.written_ms is not None:
        fields["written"] = str(message.written_ms)
    if message.fault is not None:
        fields["cut"] = UNKNOWN_SIZE
    return [(name, text.encode("utf-8", "replace")[:MAX_REASON_BYTES]) for name, text in fields.items()]


class KafkaDeadLetters:
    """A topic of dead letters. For one thread."""

    def __init__(
        self, bootstrap_servers: str, topic: str, *, options: Mapping[str, str] = NO_OPTIONS
    ) -> None:
        """`options` are further ones of the client: TLS, passwords."""
        self._topic = topic
        self._producer: Any = client_of(
            Producer,
            {
                **options,
                "bootstrap.servers": bootstrap_servers,
                "client.id": "lineage-dead-letters",
                "enable.idempotence": True,
                "compression.type": "zstd",
                # What a broker lets in without packing goes out again: the limit is the broker's.
                "message.max.bytes": MAX_LETTER_BYTES,
                "message.timeout.ms": int(TIMEOUT_S * 1000),
                "log_level": 0,
                "error_cb": lambda _error: None,
            },
        )

    def send(self, letters: Sequence[DeadLetter]) -> None:
        """1. Queue all. 2. Wait until each is delivered or refused. 3. Cut those that are too large, once."""
        now_ms = int(time.time() * 1000)
        whole = [
            _Outgoing(letter.message.key, letter.message.value, headers(letter, now_ms)) for letter in letters
        ]
        too_large = self._deliver(whole)
        still_too_large = self._deliver([letter.cut() for letter in too_large])
        if still_too_large:
            raise BrokerUnavailableError(
                f"topic {self._topic} refuses even messages of {CUT_BYTES} bytes; raise its max.message.bytes"
            )

    def _deliver(self, letters: Sequence[_Outgoing]) -> list[_Outgoing]:
        """Those that the broker found too large."""
        deadline = time.monotonic() + TIMEOUT_S
        reports: list[Any] = [_PENDING] * len(letters)
        for at, letter in enumerate(letters):
            self._queue(letter, partial(_note, reports, at), deadline)
        self._producer.flush(max(deadline - time.monotonic(), 0.1))
        failures = [error for error in reports if error is not None and not _is_too_large(error)]
        if failures:
            self._producer.purge()
            self._producer.flush(1)
            raise BrokerUnavailableError(
                f"{len(failures)} of {len(letters)} dead letters were not delivered to topic {self._topic}: "
                f"{failures[0].str() if failures[0] is not _PENDING else 'no answer in time'}"
            )
        return [letter for letter, error in zip(letters, reports, strict=True) if error is not None]

    def _queue(self, letter: _Outgoing, report: Callable[[Any, Any], None], deadline: float) -> None:
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value=letter.value,
                    key=letter.key,
                    headers=letter.headers,
                    on_delivery=report,
                )
            except BufferError:  # the client's queue is full
                self._producer.poll(0.1)
                if time.monotonic() > deadline:
                    return  # stays pending
            except KafkaException as error:
                report(error.args[0], None)
                return
            else:
                return


@dataclass(frozen=True, slots=True)
class _Outgoing:
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]

    def cut(self) -> _Outgoing:
        value, key = self.value or b"", self.key or b""
        size = str(len(value) + len(key)).encode()
        return _Outgoing(key[:1000], value[:CUT_BYTES], [*self.headers, ("cut", size)])


_PENDING = object()


def _note(reports: list[Any], at: int, error: Any, _message: object) -> None:
    reports[at] = error


def _is_too_large(error: Any) -> bool:
    return error is not _PENDING and error.code() == KafkaError.MSG_SIZE_TOO_LARGE
