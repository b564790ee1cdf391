"""Random jobs with loops: what a session calls verified comes out of the rows alone, by plain Python.

`LINEAGE_TEST_SEED` makes other jobs.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_agent import explain
from spark_agent.client.explanation import Explanation
from tests.support.spark import looped_program as looped
from tests.support.spark.application import part_rows
from tests.support.spark.sessions import Servers, session

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(3600)]

SEED = int(os.environ.get("LINEAGE_TEST_SEED", "300"))
ROWS_OF_EACH = 3
SEEDS = looped.seeds(SEED, 12)


@pytest.fixture(scope="module")
def context(servers: Servers) -> Iterator[Any]:
    with session({**servers.conf, "spark.default.parallelism": "2"}) as made:
        yield made


def run(context: Any, folder: Path, seed: int) -> tuple[Any, list[tuple[Path, int, str]]]:
    """(the RDD, the rows of the output) of a job, whose inputs are in the folder."""
    for name, lines in zip(("left", "right"), looped.lines_of(seed), strict=True):
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    dataset = looped.in_spark(context, folder, seed)
    dataset.saveAsTextFile(str(folder / "out"))
    rows = list(part_rows(folder / "out"))
    assert sorted(text for *_, text in rows) == sorted(looped.plain(seed, *looped.lines_of(seed)).elements())
    return dataset, rows


def rows_of(seed: int, explained: Explanation) -> tuple[list[str], list[str]]:
    """The lines of both files that an explanation names."""
    named: dict[str, list[str]] = {"left": [], "right": []}
    for row in explained.collect():
        assert row.path is not None
        assert row.text is not None
        named[Path(row.path).stem].append(row.text)
    both = dict(zip(("left", "right"), looped.lines_of(seed), strict=True))
    assert all(set(lines) <= set(both[name]) for name, lines in named.items())
    return named["left"], named["right"]


def check(seed: int, text: str, explained: Explanation) -> bool:
    """Is it verified? Then rightly so, by plain Python."""
    if explained.verified is None:
        assert explained.kind in ("concise", "bound")
        assert explained.reasons[0].startswith("Not verified: ")
        return False
    left, right = rows_of(seed, explained)
    assert looped.plain(seed, left, right)[text] >= 1, (seed, text, left, right)
    if explained.verified.minimal:
        lines = [(0, line) for line in left] + [(1, line) for line in right]
        for number in range(len(lines)):
            rest = [line for at, line in enumerate(lines) if at != number]
            sides = [[line for side, line in rest if side == which] for which in (0, 1)]
            assert looped.plain(seed, *sides)[text] == 0, (seed, text, lines[number])
    return True


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_verified_comes_out_of_these_rows_alone(seed: int, context: Any, tmp_path: Path) -> None:
    _, rows = run(context, tmp_path, seed)
    chosen = random.Random(seed)
    verdicts = []
    for path, row, text in chosen.sample(rows, min(ROWS_OF_EACH, len(rows))):
        concise = explain(str(path)).row(row)
        sufficient = concise.sufficient()
        verdicts.append(check(seed, text, sufficient))
        if sufficient.verified is not None:
            minimal = concise.minimal()
            check(seed, text, minimal)
            assert minimal.count() <= sufficient.count()
    print(seed, verdicts)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_must_be_there_are_and_one_task_gives_what_python_gives(
    seed: int, context: Any, tmp_path: Path
) -> None:
    _, rows = run(context, tmp_path, seed)
    chosen = random.Random(seed + 1)
    for path, row, text in chosen.sample(rows, min(ROWS_OF_EACH, len(rows))):
        numbers = chosen.sample(range(len(looped.lines_of(seed)[0])), 2)
        including = [(str(tmp_path / "left.txt"), number) for number in numbers]
        concise = explain(str(path)).row(row)
        for explained in (
            concise.sufficient(including=including),
            concise.sufficient(including=including, by_spark=False),
        ):
            if explained.in_one_task is None:
                continue
            left, right = rows_of(seed, explained)
            assert {looped.lines_of(seed)[0][number] for number in numbers} <= set(left)
            assert looped.plain(seed, left, right)[text] >= 1, (seed, text, left, right)
