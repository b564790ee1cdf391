"""Random rows of random pipelines: stock PySpark confirms what a replay calls reproduced.

The rows that a replay has used are written as files of their own, and the unmodified program runs on them
without lineage. `LINEAGE_TEST_SEED` and `LINEAGE_TEST_REPLAYS` make others, and more.
"""

from __future__ import annotations

import os
import random
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_agent.contract.row_sets import rows_in
from tests.support.spark import replayed_program
from tests.support.spark.pipelines import AWKWARD, write
from tests.support.spark.replay_bench import ReplayBench, replay_bench, state_of
from tests.support.spark.replayed_program import ALL, BY_PLACES
from tests.support.spark.replays import texts_in

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(3600)]

PROGRAM = Path(replayed_program.__file__)
SEED = int(os.environ.get("LINEAGE_TEST_SEED", "29"))
REPLAYS = int(os.environ.get("LINEAGE_TEST_REPLAYS", "6"))
NAMES = [name for name in ALL if name not in BY_PLACES]


@pytest.fixture(scope="module")
def bench(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayBench]:
    with replay_bench(kafka, tmp_path_factory.mktemp("replays"), uuid.uuid4().hex[:12]) as made:
        chosen = random.Random(SEED)
        write(
            made.folder / "left.txt",
            [f"{AWKWARD[chosen.randrange(7)]}|{chosen.randrange(11)}" for _ in range(60)],
        )
        write(
            made.folder / "right.txt",
            [f"{AWKWARD[chosen.randrange(10)]}|{chosen.randrange(33)}" for _ in range(30)],
        )
        yield made


def asked_rows(folder: Path) -> list[tuple[str, Path, int, str]]:
    """(pipeline, part file, line, text) of rows at random, one of a pipeline."""
    chosen = random.Random(SEED)
    rows = []
    for name in chosen.sample(NAMES, len(NAMES)):
        parts = sorted((folder / f"out-{list(ALL).index(name)}").glob("part-*"))
        lines = [
            (name, part, at, text)
            for part in parts
            for at, text in enumerate(part.read_text("utf-8").split("\n")[:-1], 1)
        ]
        if lines:
            rows.append(chosen.choice(lines))
    return rows[:REPLAYS]


def stock(bench: ReplayBench, folder: Path, used: list[dict[str, Any]], name: str) -> Counter[str]:
    """What unmodified PySpark makes of these rows alone; sources that were read whole are whole."""
    folder.mkdir()
    for side in ("left", "right"):
        lines = (bench.folder / f"{side}.txt").read_bytes().split(b"\n")
        of_side = [entry for entry in used if str(entry["path"] or "").endswith(f"{side}.txt")]
        is_whole = any(entry["rows"] is None for entry in of_side)
        rows = sorted({row for entry in of_side for row in rows_in(entry["rows"] or ())})
        kept = lines[:-1] if is_whole else [lines[row] for row in rows]
        (folder / f"{side}.txt").write_bytes(b"".join(line + b"\n" for line in kept))
    ended = bench.run(str(PROGRAM), str(folder), name, environment=bench.environment(has_lineage=False))
    assert ended.code == 0, ended.err
    return texts_in(folder / f"out-{list(ALL).index(name)}")


def test_each_reproduced_row_comes_out_of_its_rows_alone(bench: ReplayBench, tmp_path: Path) -> None:
    command = [str(PROGRAM), str(bench.folder)]
    application = bench.job(*command)
    before = state_of(bench.folder)
    verdicts: Counter[str] = Counter()
    for number, (name, part, line, text) in enumerate(asked_rows(bench.folder)):
        answer = bench.replay(application, f"{part}:{line}", "--json", command=command)
        assert answer.code in (0, 3), (name, answer.out, answer.err)
        replay = answer.json
        verdicts[replay["verdict"]] += 1
        print(name, part, line, replay["verdict"], replay["strategy"], replay["rounds"], replay["rows"])
        if replay["verdict"] == "reproduced" and replay["strategy"] != "watch":
            made = stock(bench, tmp_path / str(number), replay["used"], name)
            assert made[text] >= 1, (name, text, replay, made)
    assert state_of(bench.folder) == before
    assert verdicts["refused"] == 0
    assert verdicts["reproduced"] >= 0.9 * verdicts.total(), verdicts
