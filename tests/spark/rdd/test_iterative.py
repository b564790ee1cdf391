"""A job that goes on from its own results: many actions, each on what the last one left."""

from __future__ import annotations

import gc
import operator
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_agent.driver.nodes import Node
from tests.support.spark import naive_interpreter as naive
from tests.support.spark.application import Application, check_against, part_rows
from tests.support.spark.pipelines import pair, show, write

ROUNDS = 8


def live_nodes() -> int:
    gc.collect()
    return sum(isinstance(each, Node) for each in gc.get_objects())


@pytest.mark.thorough
def test_the_rounds_of_an_iterative_job_cost_the_driver_the_same_and_are_traced(
    run: Callable[..., tuple[Any, Application]], run_plain: Callable[..., Any], tmp_path: Path
) -> None:
    source = write(tmp_path / "in.txt", [f"k{i % 7}|{i}" for i in range(30)])

    def job(context: Any, out: Path) -> tuple[list[int], list[int]]:
        context.setCheckpointDir(str(tmp_path / "checkpoints"))
        pairs = context.textFile(str(source), 4).map(pair)
        counts, nodes = [], []
        for _ in range(ROUNDS):
            pairs = pairs.map(lambda kv: (kv[0], kv[1] + 1)).reduceByKey(operator.add)
            pairs = pairs.union(pairs.filter(lambda kv: kv[0] == "k1").map(lambda kv: ("k2", 1)))
            pairs.checkpoint()
            counts.append(pairs.count())
            nodes.append(live_nodes())
        pairs.map(show).saveAsTextFile(str(out))
        return counts, nodes

    counts, _ = run_plain(lambda context: job(context, tmp_path / "plain"))
    (counts_with, nodes), application = run(lambda context: job(context, tmp_path / "out"))
    assert counts_with == counts
    assert len(set(nodes[1:])) == 1, nodes

    expected = naive.map_(naive.text_file(source), pair)
    for _ in range(ROUNDS):
        more = naive.map_(expected, lambda kv: (kv[0], kv[1] + 1))
        expected = naive.reduce_by_key(more, operator.add)
        ones = naive.filter_(expected, lambda kv: kv[0] == "k1")
        expected = expected + naive.map_(ones, lambda kv: ("k2", 1))
    plain, rows = (sorted(text for _, _, text in part_rows(tmp_path / name)) for name in ("plain", "out"))
    assert rows == plain
    wanted = Counter((show(value), sources) for value, sources in expected)
    check_against(application, tmp_path / "out", [source], wanted)


class Cycle:
    """An object that only the collector can free."""

    def __init__(self) -> None:
        self.me = self


def cycles_of(records: Any) -> list[tuple[int, int, int]]:
    """(process, objects put aside, living cycles of an earlier task), and one cycle more."""
    import os

    assert list(records)
    living = sum(type(each).__name__ == "Cycle" for each in gc.get_objects())
    Cycle()
    return [(os.getpid(), gc.get_freeze_count(), living)]


def test_what_a_worker_has_before_the_first_chain_is_put_aside_once_and_a_jobs_own_garbage_is_freed(
    run: Callable[..., tuple[Any, Application]],
) -> None:
    def job(context: Any) -> list[list[tuple[int, int, int]]]:
        looked = context.parallelize(range(8), 4).mapPartitions(cycles_of)
        return [looked.collect() for _ in range(3)]

    aside_in_the_driver = gc.get_freeze_count()
    rounds, _ = run(job)
    # Objects that were put aside before may be freed at any time, so the count may fall. It must not rise.
    assert gc.get_freeze_count() <= aside_in_the_driver
    aside: dict[int, list[int]] = {}
    for process, objects, living in (each for looked in rounds for each in looked):
        aside.setdefault(process, []).append(objects)
        assert living == 0
    # What is freed there later leaves the count; nothing comes to it.
    assert all(objects[-1] > 1_000 and max(objects) == objects[0] for objects in aside.values()), aside
