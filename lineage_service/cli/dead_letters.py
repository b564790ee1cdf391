"""`lineage dead-letters`: lists the messages that could not be used, and sends them back to where they were.

What was sent back is remembered in Kafka itself, by a consumer group of its own: `redelivery` says how.
"""

from __future__ import annotations

import argparse
import json
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from lineage_service.ingest.dead_letter_topic import KafkaDeadLetterTopic
from lineage_service.ingest.letters import Letter, RedeliveryError, Selection, fault_of, natural
from lineage_service.ingest.redelivery import DeadLetterTopic, redeliver, redelivered_of
from lineage_service.kafka import client

if TYPE_CHECKING:
    from lineage_service.settings import Settings

__all__ = ["command", "configure"]


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
    selection = Selection(topic=options.topic, partition=options.partition, offset=options.offset)
    topics = (settings.node_topic, settings.flow_topic)
    group = f"{settings.consumer_group}-dead-letters"
    dead_letters = KafkaDeadLetterTopic(
        settings.kafka_bootstrap_servers,
        settings.dead_letter_topic,
        group,
        options=client.options(settings),
    )
    with closing(dead_letters):
        if options.action == "list":
            entries = _entries(dead_letters, selection, topics, options.limit)
            _show(entries, settings.dead_letter_topic, as_json=options.json)
            return 0
        outcome = redeliver(dead_letters, selection, topics, is_again=options.again, is_dry=options.dry_run)
    if not (selection.is_all or outcome.sent or outcome.unsent or outcome.repeated):
        raise RedeliveryError(f"topic {settings.dead_letter_topic} has no such letter")
    verb = "to be sent back" if options.dry_run else "sent back"
    before = f", {outcome.repeated} had been sent back before (--again)" if outcome.repeated else ""
    letters = "1 letter" if outcome.sent == 1 else f"{outcome.sent} letters"
    print(f"{letters} {verb}, {outcome.unsent} cannot be{before}")  # noqa: T201 - the answer
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


def _entries(
    dead_letters: DeadLetterTopic, selection: Selection, topics: Sequence[str], limit: int
) -> list[dict[str, Any]]:
    """The newest letters that are selected, newest last, without their values."""
    redelivered, partitions = redelivered_of(dead_letters), dead_letters.partitions_of(topics)
    entries: list[dict[str, Any]] = []
    for place, (first, end) in dead_letters.bounds().items():
        start = max(first, end - limit) if selection.is_all else first
        of_partition = (
            _entry(letter, fault_of(letter, partitions), letter.offset in redelivered[place])
            for letter in dead_letters.letters(place, start, end)
            if selection.has(letter)
        )
        entries += deque(of_partition, maxlen=limit)
    entries.sort(key=lambda row: row["time"] or 0)
    return entries[max(len(entries) - limit, 0) :]


def _entry(letter: Letter, fault: str | None, is_redelivered: bool) -> dict[str, Any]:
    """`fault` is why it cannot go back; redelivery passes over it, and that is not to have sent it."""
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
        "replayed": is_redelivered and fault is None,
        "letter": {"partition": letter.partition, "offset": letter.offset},
    }
