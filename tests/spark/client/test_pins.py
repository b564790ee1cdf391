"""Explanations behind what decides by the places of records: with pins, and never called verified for that.

`LINEAGE_TEST_SEED` makes other random jobs.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spark_agent import explain
from spark_agent.client.explanation import Explanation
from tests.support.spark.application import part_rows
from tests.support.spark.pipelines import write
from tests.support.spark.sessions import Servers, session

pytestmark = pytest.mark.timeout(1800)

LINES = [f"{number:02d}" for number in range(14)]
SEED = int(os.environ.get("LINEAGE_TEST_SEED", "41"))


def line_of(text: str) -> str:
    """The line that a text was made of: all begin with it."""
    return text[:2]


def is_kept(text: str) -> bool:
    return int(line_of(text)) % 3 != 1


def tagged(pair: Any) -> str:
    return f"{pair[0]} {pair[1]}"


def doubled(text: str) -> list[str]:
    return [f"{text} a", f"{text} b"] if int(line_of(text)) % 4 == 0 else [text]


@dataclass
class Ran:
    folder: Path
    context: Any
    lines: Any

    def explained(self, name: str, dataset: Any, text: str | None = None) -> Explanation:
        """One row of the output of the RDD, that with this text or the last one."""
        dataset.saveAsTextFile(str(self.folder / name))
        rows = list(part_rows(self.folder / name))
        path, row, _ = next(part for part in reversed(rows) if text is None or part[2] == text)
        return explain(str(path)).row(row)


@pytest.fixture(scope="module")
def ran(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("lines")
    path = write(folder / "lines.txt", LINES)
    with session({**servers.conf, "spark.default.parallelism": "3"}) as context:
        yield Ran(folder, context, context.textFile(str(path), 3))


def test_a_number_behind_a_filter_is_that_of_the_original_run(ran: Ran) -> None:
    numbered = ran.lines.filter(is_kept).zipWithIndex().map(tagged)
    expected = [f"{line} {number}" for number, line in enumerate(filter(is_kept, LINES))]
    enough = ran.explained("filtered", numbered, expected[5]).sufficient()
    assert [row.text for row in enough.collect()] == [line_of(expected[5])]
    assert (enough.verified, enough.kind) == (None, "concise"), enough.reasons
    assert enough.pinned is not None, enough.reasons
    [pin] = enough.pins
    assert pin.startswith("zipWithIndex at test_pins.py:")
    assert pin.endswith(": the numbers of the original run")
    assert "was not shown" in enough.reasons[0]
    assert "pinned: zipWithIndex at " in str(enough)
    first = ran.explained("first", numbered, expected[0]).sufficient()
    assert (first.kind, first.pins) == ("verified", []), (
        first.reasons
    )  # it is the first of its row alone, too


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("seed", lambda lines: lines.sample(False, 0.6, 7)),
        pytest.param("chance", lambda lines: lines.sample(False, 0.6), marks=pytest.mark.thorough),
        pytest.param("split", lambda lines: lines.randomSplit([2, 1], 3)[0], marks=pytest.mark.thorough),
        pytest.param("unique", lambda lines: lines.zipWithUniqueId().map(tagged), marks=pytest.mark.thorough),
        pytest.param(
            "twice",
            lambda lines: (
                lines.filter(is_kept).zipWithIndex().map(tagged).flatMap(doubled).zipWithIndex().map(tagged)
            ),
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_a_decision_by_places_is_kept(ran: Ran, name: str, operation: Callable[[Any], Any]) -> None:
    enough = ran.explained(name, operation(ran.lines)).sufficient()
    assert (enough.verified, enough.count()) == (None, 1)
    assert enough.pinned is not None, enough.reasons
    assert (enough.pinned.added, len(enough.pins)) == (0, 2 if name == "twice" else 1)


@pytest.mark.parametrize(
    ("name", "operation", "reason"),
    [
        ("zip", lambda lines: lines.zip(lines.map(is_kept)).map(tagged), "places of records in both inputs"),
        (
            "sorted",
            lambda lines: lines.sortBy(lambda line: -int(line)).zipWithIndex().map(tagged),
            "other ones behind sortBy",
        ),
        ("again", lambda lines: lines.sample(True, 30.0, 5), "gave records several times"),
    ],
)
def test_what_a_decision_was_may_not_be_known(
    ran: Ran, name: str, operation: Callable[[Any], Any], reason: str
) -> None:
    enough = ran.explained(name, operation(ran.lines)).sufficient()
    assert (enough.verified, enough.pins, enough.pinned) == (None, [], None)
    assert reason in enough.reasons[0]


# -- random jobs ------------------------------------------------------------------------------------------

Step = tuple[str, Callable[[Any], Any], Callable[[list[str]], list[str]] | None]
STEPS: Sequence[Step] = (
    ("filter", lambda data: data.filter(is_kept), lambda lines: list(filter(is_kept, lines))),
    ("map", lambda data: data.map(lambda text: f"{text} m"), lambda lines: [f"{line} m" for line in lines]),
    (
        "flatMap",
        lambda data: data.flatMap(doubled),
        lambda lines: [text for line in lines for text in doubled(line)],
    ),
    (
        "zipWithIndex",
        lambda data: data.zipWithIndex().map(tagged),
        lambda lines: [f"{line} {number}" for number, line in enumerate(lines)],
    ),
    ("zipWithUniqueId", lambda data: data.zipWithUniqueId().map(tagged), None),
    ("sample", lambda data: data.sample(False, 0.7), None),
    ("union", lambda data: data.union(data), lambda lines: [*lines, *lines]),
    (
        "distinct",
        lambda data: data.distinct(2).map(lambda text: f"{text} d"),
        lambda lines: [f"{line} d" for line in dict.fromkeys(lines)],
    ),
)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(SEED, SEED + 12))
def test_what_is_verified_comes_out_of_these_rows_alone(ran: Ran, seed: int) -> None:
    chance = random.Random(seed)
    steps = [chance.choice(STEPS) for _ in range(5)]
    data = ran.lines
    for _, in_spark, _ in steps:
        data = in_spark(data)
    data.saveAsTextFile(str(ran.folder / f"random-{seed}"))
    rows = list(part_rows(ran.folder / f"random-{seed}"))
    verdicts = []
    for path, row, text in chance.sample(rows, min(2, len(rows))):
        enough = explain(str(path)).row(row).sufficient()
        lines = [named.text or "" for named in enough.collect()]
        assert line_of(text) in lines
        if enough.verified is not None:
            texts = sorted(lines)
            for _, _, in_python in steps:
                assert in_python is not None, "samples and unique numbers depend on partitions"
                texts = in_python(texts)
            assert text in texts, (steps, text, lines)
            assert enough.pins == []
        else:
            assert enough.reasons[0].startswith("Not verified: ")
            assert bool(enough.pins) == (enough.pinned is not None)
        verdicts.append("verified" if enough.verified else "pinned" if enough.pins else enough.reasons[0])
    print(seed, [name for name, *_ in steps], verdicts)
