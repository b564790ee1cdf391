"""Winners of merges before and behind a shuffle: a trace along them leads to the row that won."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spark_agent import contract
from tests.support.spark.application import Application, application_of, messages_of, run_application

KEYS, ROWS = 7, 300


class Event(NamedTuple):
    time: int
    name: str


#: (key, time, name) of each row, no time twice.
TABLE = [(f"k{at * at % KEYS}", at * 7919 % 10_007, f"row {at}") for at in range(ROWS)]


def parsed(line: str) -> tuple[str, Event]:
    key, time, name = line.split(",")
    return key, Event(int(time), name)


def job(context: Any, lines: Path, folder: Path) -> None:
    events = context.textFile(str(lines), 3).map(parsed)
    for name, made in {
        "latest": events.reduceByKey(lambda one, other: one if one.time > other.time else other, 2),
        "earliest": events.aggregateByKey(Event(10**6, ""), min, min, 2),
        "keys": events.keys().distinct(2),
        "sums": events.mapValues(lambda event: event.time + 1000).reduceByKey(add, 2),
        "names": events.mapValues(lambda event: [event.name]).reduceByKey(lambda one, more: one + more, 2),
    }.items():
        made.saveAsTextFile(str(folder / name))


def along_winners(messages: Sequence[bytes]) -> list[bytes]:
    """The blocks, but of outputs with a winner the other inputs lead to an output that nobody asks for."""
    blocks = list(map(contract.decode_block, messages))
    winners: dict[tuple[int, int], dict[int, int]] = {}
    outputs: dict[tuple[int, int], int] = {}
    for block in blocks:
        of_stream = block.node, block.run
        if block.relation == contract.WINNERS:
            pairs = zip(block.columns["out"], block.columns["in"], strict=True)
            winners.setdefault(of_stream, {}).update(pairs)
        elif block.relation == contract.CODES:
            outputs[of_stream] = max(outputs.get(of_stream, 0), *block.columns["code"], 0) + 1
    led = []
    for block in blocks:
        of_stream = block.node, block.run
        if block.relation == contract.CODES and of_stream in winners:
            codes = [
                code if winners[of_stream].get(code, position) == position else outputs[of_stream]
                for position, code in enumerate(block.columns["code"], block.base_in)
            ]
            block = replace(block, columns={"code": codes})
        led.append(contract.encode_block(block))
    return led


@pytest.fixture(scope="module")
def ran(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Application, Application]:
    """(where its files are, the application, the same along its winners)."""
    folder = tmp_path_factory.mktemp("winners")
    (folder / "in.txt").write_text("".join(f"{key},{time},{name}\n" for key, time, name in TABLE))
    _, application = run_application(
        kafka.bootstrap_servers, folder / "store", lambda context: job(context, folder / "in.txt", folder)
    )
    assert application is not None
    nodes, flows = (
        messages_of(kafka.bootstrap_servers, application.topics[name]) for name in ("node", "flow")
    )
    return folder, application, application_of(nodes, along_winners(flows), folder / "led")


def sources(folder: Path, application: Application, name: str) -> dict[str, set[int]]:
    """Line of an output -> the rows of the input that it is made of."""
    return {
        line: {row for _, row in application.sources_of(path, at)}
        for path in sorted((folder / name).glob("part-*"))
        for at, line in enumerate(path.read_text().splitlines())
    }


def rows_of(key: str) -> set[int]:
    return {at for at, row in enumerate(TABLE) if row[0] == key}


def times(key: str) -> dict[int, int]:
    return {TABLE[at][1]: at for at in rows_of(key)}


ALL_KEYS = sorted({key for key, _, _ in TABLE})


def winning(pick: Any) -> dict[str, tuple[str, int]]:
    """Line of an output -> its key, and the row that won."""
    won = {key: times(key)[pick(times(key))] for key in ALL_KEYS}
    return {str((key, Event(TABLE[at][1], TABLE[at][2]))): (key, at) for key, at in won.items()}


def test_the_row_that_won_is_the_source_and_a_trace_names_the_group(ran: Any) -> None:
    folder, application, led = ran
    won = winning(max)
    assert sources(folder, led, "latest") == {line: {at} for line, (_, at) in won.items()}
    assert sources(folder, application, "latest") == {line: rows_of(key) for line, (key, _) in won.items()}


def test_beside_a_zero_value_the_row_that_won_is_among_few(ran: Any) -> None:
    """Nobody knows what the zero value would make of a row that was not the first of its partition."""
    folder, _, led = ran
    won, found = winning(min), sources(folder, led, "earliest")
    assert found.keys() == won.keys()
    for line, (key, at) in won.items():
        assert at in found[line] < rows_of(key)


def test_a_row_stands_for_all_that_are_equal(ran: Any) -> None:
    found = sources(ran[0], ran[2], "keys")
    assert sorted(found) == ALL_KEYS
    assert all(len(rows) == 1 and rows <= rows_of(key) for key, rows in found.items())


@pytest.mark.parametrize("name", ["sums", "names"])
def test_what_is_made_of_all_rows_stays_so(name: str, ran: Any) -> None:
    folder, application, led = ran
    found = sources(folder, led, name)
    assert sorted(map(sorted, found.values())) == sorted(sorted(rows_of(key)) for key in ALL_KEYS)
    assert found == sources(folder, application, name)


def test_only_merges_that_choose_have_winners(ran: Any) -> None:
    application = ran[1]
    with_winners = {block.node for block in application.blocks if block.relation == contract.WINNERS}
    names = {
        event["node"]: event["name"]
        for event in application.events
        if event["type"] == contract.NODE_REGISTERED
    }
    assert {names[node] for node in with_winners} - {"aggregateByKey: combine"} == {
        "aggregateByKey: merge",
        *(
            f"{operation}: {side}"
            for operation in ("distinct", "reduceByKey")
            for side in ("combine", "merge")
        ),
    }
