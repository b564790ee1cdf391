"""`lineage dead-letters`: lists the messages that could not be used, and sends them back to where they were.

What went back is kept in Kafka itself, as what a consumer group of its own has committed: `replay` says what
that means and what goes back. Here are the broker, and the door: settings in, exit code out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from rich.console import Console
from rich.table import Table

from lineage_service.ingest.redelivery import (
    Done,
    Letter,
    Office,
    ReplayError,
    Wish,
    done_of,
    fault_of,
    letter_of,
    natural,
    replay,
)
from lineage_service.kafka import client
from lineage_service.kafka.client import NO_OPTIONS, SESSION, client_of
from lineage_service.kafka.dead_letters import MAX_LETTER_BYTES
from lineage_service.kafka.errors import TRANSIENT_ERRORS, BrokerUnavailableError, no_broker

if TYPE_CHECKING:
    from lineage_service.settings import Settings

__all__ = ["KafkaOffice", "command", "configure"]

TIMEOUT_S = 10.0


class KafkaOffice:
    """The Office of a broker: the topic of dead letters, and a group that only remembers. For one thread."""

    def __init__(
        self, bootstrap_servers: str, topic: str, group: str, *, options: Mapping[str, str] = NO_OPTIONS
    ) -> None:
        """`options` are further ones of the client: TLS, passwords. Raises BrokerUnavailableError."""
        self._topic = topic
        self._servers = bootstrap_servers
        common: dict[str, Any] = {
            **options,
            "bootstrap.servers": bootstrap_servers,
            "client.id": "lineage-dead-letters",
            "log_level": 0,
            "error_cb": lambda _error: None,
        }
        self._consumer: Any = client_of(
            Consumer,
            {**SESSION, **common}
            | {"group.id": group, "enable.auto.commit": False, "enable.partition.eof": True},
        )
        self._producer: Any = client_of(
            Producer,
            common
            | {
                "enable.idempotence": True,
                "compression.type": "zstd",
                "message.max.bytes": 2 * MAX_LETTER_BYTES,
                "message.timeout.ms": int(TIMEOUT_S * 1000),
            },
        )
        try:
            self._topics = self._consumer.list_topics(timeout=TIMEOUT_S).topics
        except KafkaException as error:
            self.close()
            raise no_broker(bootstrap_servers, error) from error

    def partitions_of(self, topics: Sequence[str]) -> dict[str, int]:
        return {
            topic: len(self._topics[topic].partitions) if topic in self._topics else 0 for topic in topics
        }

    def bounds(self) -> dict[int, tuple[int, int]]:
        return {place.partition: self._asked("get_watermark_offsets", place) for place in self._places()}

    def done(self) -> dict[int, Done]:
        found = self._asked("committed", self._places()) if self._places() else []
        return {
            each.partition: Done.of(each.offset, each.metadata or "") for each in found if each.offset >= 0
        }

    def remember(self, partition: int, done: Done) -> None:
        kept = TopicPartition(self._topic, partition, done.before, done.as_text())
        self._patiently(lambda: self._consumer.commit(offsets=[kept], asynchronous=False))

    def letters(self, partition: int, first: int, end: int) -> Iterator[Letter]:
        if first >= end:
            return
        self._consumer.assign([TopicPartition(self._topic, partition, first)])
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            for message in self._consumer.consume(100, 0.1):
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    return
                if error is None and message.offset() >= end:
                    return
                if error is None:
                    yield letter_of(message)
                    deadline = time.monotonic() + TIMEOUT_S
            if time.monotonic() > deadline:
                raise BrokerUnavailableError(
                    f"Kafka at {self._servers} gives no more letters of {self._topic}-{partition}, which has "
                    f"them up to offset {end - 1}"
                )

    def send(self, letters: Sequence[Letter]) -> list[str | None]:
        outcomes: list[str | None] = ["no answer in time"] * len(letters)
        for at, letter in enumerate(letters):
            try:
                self._producer.produce(
                    letter.topic,
                    letter.value,
                    letter.key,
                    letter.from_partition,
                    on_delivery=partial(_note, outcomes, at),
                )
            except (KafkaException, BufferError) as error:
                outcomes[at] = str(error)
        self._producer.flush(TIMEOUT_S)
        return outcomes

    def close(self) -> None:
        self._consumer.close()

    def _places(self) -> list[TopicPartition]:
        if self._topic not in self._topics:
            return []
        return [TopicPartition(self._topic, each) for each in sorted(self._topics[self._topic].partitions)]

    def _asked(self, method: str, place: object) -> Any:
        return self._patiently(lambda: getattr(self._consumer, method)(place, timeout=TIMEOUT_S))

    def _patiently(self, request: Callable[[], Any]) -> Any:
        """A broker that has just started, or never had a group, looks for its coordinator first."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                return request()
            except KafkaException as error:
                if error.args[0].code() not in TRANSIENT_ERRORS or time.monotonic() > deadline:
                    raise self._unavailable(error) from error
                time.sleep(0.1)

    def _unavailable(self, error: KafkaException) -> BrokerUnavailableError:
        return BrokerUnavailableError(
            f"Kafka at {self._servers} does not answer about topic {self._topic}: {error.args[0].str()}"
        )


def _note(outcomes: list[str | None], at: int, error: Any, _message: object) -> None:
    outcomes[at] = None if error is None else error.str()


# -- the command ------------------------------------------------------------------------------------


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", choices=("list", "replay"), help="show the letters, or send them back where they came from"
    )
    parser.add_argument("--topic", metavar="NAME", help="only letters of messages of this topic")
    parser.add_argument("--partition", metavar="NUMBER", type=_number, help="... of this partition of it")
    parser.add_argument("--offset", metavar="NUMBER", type=_number, help="... at this offset")
    parser.add_argument("--json", action="store_true", help="with list: one JSON object a line")
    parser.add_argument(
        "--limit",
        metavar="NUMBER",
        type=_number,
        default=20,
        help="with list: the newest so many (default: 20)",
    )
    parser.add_argument("--dry-run", action="store_true", help="with replay: only say what would be sent")
    parser.add_argument(
        "--again", action="store_true", help="with replay: also letters that were sent back before"
    )


def _number(text: str) -> int:
    number = natural(text)
    if number is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on")
    return number


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Runs `lineage dead-letters`. Raises LineageError."""
    wish = Wish(topic=options.topic, partition=options.partition, offset=options.offset)
    topics = (settings.node_topic, settings.flow_topic)
    group = f"{settings.consumer_group}-dead-letters"
    office = KafkaOffice(
        settings.kafka_bootstrap_servers,
        settings.dead_letter_topic,
        group,
        options=client.options(settings),
    )
    with closing(office):
        if options.action == "list":
            entries = _entries(office, wish, topics, options.limit)
            _show(entries, settings.dead_letter_topic, as_json=options.json)
            return 0
        outcome = replay(office, wish, topics, is_again=options.again, is_dry=options.dry_run)
    if not (wish.is_all or outcome.sent or outcome.unsent or outcome.repeated):
        raise ReplayError(f"topic {settings.dead_letter_topic} has no such letter")
    said = "to be sent back" if options.dry_run else "sent back"
    before = f", {outcome.repeated} had been sent back before (--again)" if outcome.repeated else ""
    letters = "1 letter" if outcome.sent == 1 else f"{outcome.sent} letters"
    print(f"{letters} {said}, {outcome.unsent} cannot be{before}")  # noqa: T201 - the answer
    return 1 if outcome.unsent else 0


def _show(rows: Sequence[Mapping[str, Any]], topic: str, *, as_json: bool) -> None:
    if as_json:
        for row in rows:
            print(json.dumps(row))  # noqa: T201 - the answer
        return
    table = Table(title=f"Dead letters in {topic}", title_justify="left", box=None, pad_edge=False)
    for heading in ("topic", "partition", "offset", "buried", "bytes", "state", "reason"):
        table.add_column(heading, overflow="fold", justify="right" if heading in _NUMBERS else "left")
    for row in rows:
        state = "cut" if row["cut"] else "cannot go back" if row["fault"] else "sent back" * row["replayed"]
        numbers = ("" if row[name] is None else str(row[name]) for name in ("topic", "partition", "offset"))
        table.add_row(*numbers, _clock(row["time"]), f"{row['bytes']:,}", state, row["reason"])
    if rows:
        Console().print(table, markup=False, highlight=False)
    else:
        print(f"no dead letters in topic {topic}")  # noqa: T201 - the answer


_NUMBERS = ("partition", "offset", "bytes")


def _clock(time_ms: int | None) -> str:
    if time_ms is None or time_ms >= 1 << 47:  # beyond what a calendar has
        return ""
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")


def _entries(office: Office, wish: Wish, topics: Sequence[str], limit: int) -> list[dict[str, Any]]:
    """The newest letters that are wanted, newest last, without their values."""
    done, partitions = done_of(office), office.partitions_of(topics)
    found: list[dict[str, Any]] = []
    for place, (first, end) in office.bounds().items():
        start = max(first, end - limit) if wish.is_all else first
        entries = (
            _entry(letter, fault_of(letter, partitions), letter.offset in done[place])
            for letter in office.letters(place, start, end)
            if wish.has(letter)
        )
        found += deque(entries, maxlen=limit)
    found.sort(key=lambda row: row["time"] or 0)
    return found[max(len(found) - limit, 0) :]


def _entry(letter: Letter, fault: str | None, is_done: bool) -> dict[str, Any]:
    """`fault` is why it cannot go back; a replay passes over it, and that is not to have sent it."""
    return {
        "topic": letter.topic,
        "partition": letter.from_partition,
        "offset": letter.from_offset,
        "time": letter.buried_ms,
        "written": letter.written_ms,
        "bytes": letter.bytes,
        "cut": letter.cut,
        "reason": letter.reason,
        "fault": fault,
        "replayed": is_done and fault is None,
        "letter": {"partition": letter.partition, "offset": letter.offset},
    }
