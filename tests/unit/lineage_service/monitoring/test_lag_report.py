"""The lag as people read it at a terminal."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from lineage_service.lineage import ApplicationLag, GroupLag, PartitionLag
from lineage_service.monitoring.incomplete_applications import IncompleteApplications
from lineage_service.monitoring.lag_report import show_applications, show_group

PARTITION = PartitionLag(
    topic="flow", partition=3, committed=1_000, first=0, next=3_500, messages=2_500, seconds=12.3
)
GROUP = GroupLag(
    name="lineage",
    members=2,
    messages=2_500,
    seconds=12.3,
    rate=1_500.0,
    incoming_rate=1_000.0,
    drain_seconds=5.0,
    dead_letters=0,
    partitions=(PARTITION,),
)
APPLICATION = ApplicationLag(
    application_id="app-1",
    name="[job]",
    state="ended",
    messages=3,
    seconds=90.0,
    incomplete_runs=1,
    missing_blocks=3,
    missing_runs=0,
    missing_events=0,
    dropped=0,
    missing="missing blocks: 3, of 1 of 1 runs",
)


def shown(group: GroupLag) -> str:
    console = Console(file=io.StringIO(), width=200)
    show_group(console, group)
    return console.file.getvalue()  # type: ignore[attr-defined] # it is the StringIO


def shown_applications(*applications: ApplicationLag, unread: int = 0) -> str:
    console = Console(file=io.StringIO(), width=200)
    show_applications(console, IncompleteApplications(applications=applications, unread=unread))
    return console.file.getvalue()  # type: ignore[attr-defined] # it is the StringIO


def test_what_waits_is_a_sentence_and_a_row_for_each_partition() -> None:
    text = shown(GROUP)
    assert "Consumer group lineage: 2 processes." in text
    assert (
        "2,500 messages wait, the first for 12 s. 1,500 a second are consumed, 1,000 come: "
        "none will wait in 5.0 s." in text
    )
    assert text.splitlines()[-1].split() == ["flow", "3", "1,000", "3,500", "2,500", "12"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"members": 0}, "Consumer group lineage: nobody consumes now."),
        ({"members": 1}, "Consumer group lineage: 1 process."),
        ({"members": None}, "its members are not known now"),
        ({"drain_seconds": None}, "1,000 come: they do not get fewer."),
        ({"seconds": None}, "2,500 messages wait. 1,500 a second"),
        ({"dead_letters": 7}, "7 dead letters are in their topic."),
        ({"partitions": ()}, "Its topics are not there yet."),
        (
            {"partitions": (replace(PARTITION, committed=None, messages=3_500),), "messages": 3_500},
            "It never consumed anything. 3,500 messages wait, the first for 12 s.",
        ),
    ],
)
def test_what_is_special_is_said(changed: dict[str, object], said: str) -> None:
    assert said in shown(replace(GROUP, **changed))  # type: ignore[arg-type] # any of its fields


def test_where_nothing_waits_there_is_no_table() -> None:
    quiet = replace(PARTITION, messages=0, seconds=0.0)
    text = shown(replace(GROUP, messages=0, seconds=0.0, drain_seconds=0.0, partitions=(quiet,)))
    assert text.splitlines() == ["", "Consumer group lineage: 2 processes.", "No messages wait."]


def test_only_the_longest_rows_are_shown_and_the_others_counted() -> None:
    many = tuple(replace(PARTITION, partition=number, messages=number + 1) for number in range(30))
    lines = shown(replace(GROUP, partitions=many)).splitlines()
    assert lines[-1] == "and 10 more partitions"
    assert lines[-2].split()[:2] == ["flow", "10"]


def test_applications_say_what_they_lack_in_words() -> None:
    text = shown_applications(APPLICATION)
    assert "Applications that run or are not complete" in text
    words = text.splitlines()[-1]
    assert words.split()[:5] == ["app-1", "[job]", "ended", "3", "90"]
    assert "missing blocks: 3, of 1 of 1 runs" in words


def test_without_applications_nothing_is_said_but_what_was_not_read() -> None:
    assert shown_applications() == ""
    assert "no time to read 4 more" in shown_applications(APPLICATION, unread=4)
