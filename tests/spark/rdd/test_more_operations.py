"""The transformations that group, pair, move and choose records, traced record by record."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.lanes import sampled, selected
from tests.support.spark.application import Application
from tests.support.spark.more_rdd_pipelines import (
    PIPELINES,
)
from tests.support.spark.pipelines import Traced, trace_pipelines, write

# The first test of the module runs the jobs of all of them.
pytestmark = pytest.mark.timeout(2700)

Run = Callable[..., tuple[Any, Application]]


@pytest.fixture(scope="module")
def traced(request: pytest.FixtureRequest, kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    return trace_pipelines(kafka, tmp_path_factory.mktemp("pipelines"), selected(request, PIPELINES))


@pytest.mark.parametrize("name", sampled(PIPELINES, 6))
def test_traces_equal_the_naive_interpreter(name: str, traced: Traced) -> None:
    traced.check(name)


SAMPLES: dict[str, Callable[[Any], list[Any]]] = {
    "sample": lambda pairs: [pairs.sample(False, 0.4, 7)],
    "sample with replacement": lambda pairs: [pairs.sample(True, 1.5, 7)],
    "sampleByKey": lambda pairs: [pairs.sampleByKey(False, {0: 0.9, 1: 0.1, 2: 0.5}, 7)],
    "randomSplit": lambda pairs: pairs.randomSplit([1, 2, 1], 7),
}


@pytest.mark.parametrize("name", sampled(SAMPLES, 3))
def test_a_sampled_record_comes_from_itself(name: str, run: Run, tmp_path: Path) -> None:
    source = write(tmp_path / "in.txt", [f"{i}" for i in range(60)])

    def job(context: Any) -> None:
        pairs = context.textFile(str(source), 3).map(lambda line: (int(line) % 3, int(line)))
        for at, sample in enumerate(SAMPLES[name](pairs)):
            sample.map(lambda kv: f"{kv[1]}").saveAsTextFile(str(tmp_path / f"out{at}"))

    _, application = run(job)
    taken: Counter[int] = Counter()
    for at in range(len(SAMPLES[name](_Lists()))):
        for part in sorted((tmp_path / f"out{at}").glob("part-*")):
            for row, text in enumerate(part.read_text().splitlines()):
                assert application.sources_of(part, row) == {("in.txt", int(text))}
                taken[int(text)] += 1
    assert taken
    for line in range(0, 60, 7):
        assert len(application.outputs_of(source, line)) == taken[line]


class _Lists:
    """Tells how many datasets each of SAMPLES makes."""

    def sample(self, *_: Any) -> list[Any]:
        return []

    sampleByKey = sample

    def randomSplit(self, weights: list[Any], _seed: int) -> list[Any]:
        return weights


def test_a_partition_that_is_not_read_row_by_row_stays_a_bound(run: Run, tmp_path: Path) -> None:
    source = write(tmp_path / "in.txt", [str(i) for i in range(8)])

    def totals(records: Iterator[str]) -> Iterator[int]:
        total = 0
        for record in records:
            total += int(record)
            yield total

    def job(context: Any) -> list[int]:
        lines = context.textFile(str(source), 2).mapPartitions(totals)
        lines.map(str).saveAsTextFile(str(tmp_path / "out"))
        return lines.collect()  # type: ignore[no-any-return]

    result, application = run(job)
    assert result == [*itertools.accumulate(range(5)), *itertools.accumulate(range(5, 8))]
    trace = application.trace(direction="backward", path=str(tmp_path / "out" / "part-00001"), row=0)
    assert not trace.exact
    assert {r.source.row for n in trace.nodes if n.kind == "source" for r in n.records} == {5, 6, 7}  # type: ignore[union-attr]
    nodes = application.questions.graph(application.application_id).nodes
    assert [node.name for node in nodes if not node.exact] == ["mapPartitions"]
