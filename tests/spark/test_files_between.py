"""Real jobs that read what other jobs wrote: traces go through the files, as brute force says."""

from __future__ import annotations

from collections import defaultdict
from operator import add
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from lineage_service.answers import TraceQuery
from lineage_service.batches import event_batch, flow_batch
from lineage_service.flow_store import DeltaFlowStore
from lineage_service.tracing.service import LineageQuestions
from tests.lineage_messages import messages
from tests.spark.application import messages_of, part_rows, rows_at, run_application

LINES = ["a b", "b c a", "c", "a", "d d b", "e a"]


def words(context: SparkContext, source: Path, output: Path) -> None:
    context.textFile(str(source), 2).flatMap(str.split).repartition(3).saveAsTextFile(str(output))


def counts(context: SparkContext, source: Path, output: Path) -> None:
    pairs = context.textFile(str(source), 4).filter(lambda word: word != "e").map(lambda word: (word, 1))
    pairs.reduceByKey(add, 2).saveAsTextFile(str(output))


def both(context: SparkContext, folder: Path) -> None:
    words(context, folder / "in.txt", folder / "words")
    counts(context, folder / "words", folder / "counts")


@pytest.mark.parametrize("is_one", [True, False], ids=["in one application", "in two"])
def test_a_count_is_traced_to_the_lines_that_its_words_were_in(
    kafka: Any, tmp_path: Path, is_one: bool
) -> None:
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in LINES))
    jobs: list[Any] = [lambda context: both(context, tmp_path)]
    if not is_one:
        jobs = [
            lambda context: words(context, tmp_path / "in.txt", tmp_path / "words"),
            lambda context: counts(context, tmp_path / "words", tmp_path / "counts"),
        ]
    store = DeltaFlowStore(tmp_path / "flows")
    applications = []
    for number, job in enumerate(jobs):
        _, application = run_application(kafka.bootstrap_servers, tmp_path / f"app-{number}", job)
        assert application is not None
        applications.append(application.application_id)
        for table, write, batch in (
            ("node", store.write_events, event_batch),
            ("flow", store.write_flows, flow_batch),
        ):
            sent = messages_of(kafka.bootstrap_servers, application.topics[table])
            write(batch(f"{number}/{table}", messages(*sent)))  # type: ignore[operator]
    questions = LineageQuestions(store, time_budget_s=60)

    expected = defaultdict(set)
    for row, line in enumerate(LINES):
        for word in set(line.split()) - {"e"}:
            expected[word].add(("in.txt", row))
    found = {}
    for part, row, text in part_rows(tmp_path / "counts"):
        query = TraceQuery(direction="backward", path=str(part), row=row)
        trace = questions.trace(applications[-1], query)
        assert trace.exact
        found[text.split("'")[1]] = {place for place in rows_at(trace, "source") if place[0] == "in.txt"}
    assert found == expected
    for row, line in enumerate(LINES):
        query = TraceQuery(direction="forward", path=str(tmp_path / "in.txt"), row=row)
        trace = questions.trace(applications[0], query)
        texts = {
            record.source.text
            for node in trace.nodes
            for record in node.records
            if node.kind == "sink" and record.source is not None and "/counts/" in record.source.path
        }
        assert {text.split("'")[1] for text in texts if text} == set(line.split()) - {"e"}
