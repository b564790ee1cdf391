"""Explanations of a loop of DataFrames: connected components, whose labels each turn keeps for the next."""

from __future__ import annotations

from inspect import getsourcelines
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lineage_service.lineage import Explanation
from lineage_service.queries import ExplanationQuery, StartQuery
from spark_agent import contract
from tests.support.label_propagation import Label, propagated
from tests.support.lanes import sampled
from tests.support.spark.application import Application, run_application

pytestmark = pytest.mark.timeout(600)

TURNS = 4
#: Two components, with edges that carry the same label by longer ways, too.
EDGES = [
    (0, 3),
    (3, 7),
    (7, 2),
    (2, 9),
    (0, 5),
    (5, 6),
    (6, 9),
    (9, 6),
    (7, 3),
    (4, 8),
    (8, 4),
    (8, 1),
    (1, 8),
]
NODES = range(10)
KEEPING = {
    "local checkpoints": lambda frame: frame.localCheckpoint(),
    "caches": lambda frame: frame.cache(),
}


def job(context: Any, folder: Path, keep: Any) -> None:
    read = SparkSession.builder.getOrCreate().read
    nodes = read.schema("id int").csv(str(folder / "nodes.csv"))
    edges = read.schema("source int, target int").csv(str(folder / "edges.csv"))
    labels = nodes.select("id", F.col("id").alias("label")).cache()
    for _ in range(TURNS):
        sent = labels.join(edges, labels.id == edges.source).select(F.col("target").alias("id"), "label")
        labels = keep(labels.union(sent).groupBy("id").agg(F.min("label").alias("label")))
    labels.write.csv(str(folder / "out"))


def run(servers: str, folder: Path, keep: Any, **conf: str) -> Application:
    folder.mkdir(exist_ok=True)
    (folder / "nodes.csv").write_text("".join(f"{node}\n" for node in NODES))
    (folder / "edges.csv").write_text("".join(f"{source},{target}\n" for source, target in EDGES))
    _, application = run_application(
        servers, folder / "store", lambda context: job(context, folder, keep), **conf
    )
    assert application is not None
    return application


def places(folder: Path) -> dict[Label, StartQuery]:
    """Label in the output -> its row."""
    return {
        eval(line): StartQuery(path=str(path), row=at)
        for path in sorted((folder / "out").glob("part-*"))
        for at, line in enumerate(path.read_text().splitlines())
    }


def explained(application: Application, start: StartQuery) -> Explanation:
    query = ExplanationQuery(starts=(start,), limit=1000)
    return application.questions.explanation(application.application_id, query)


def rows_of(explanation: Explanation) -> tuple[list[int], list[tuple[int, int]]]:
    nodes = [int(row.text or "") for row in explanation.rows if str(row.path).endswith("nodes.csv")]
    edges = [eval(row.text or "") for row in explanation.rows if str(row.path).endswith("edges.csv")]
    assert len(nodes) + len(edges) == explanation.total
    return nodes, edges


@pytest.fixture(scope="module", params=sampled(KEEPING, 2))
def ran(
    request: pytest.FixtureRequest, kafka: Any, jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Application]:
    folder = tmp_path_factory.mktemp("labels")
    return folder, run(kafka.bootstrap_servers, folder, KEEPING[request.param])


def test_each_label_is_there_again_on_the_rows_that_explain_it(ran: tuple[Path, Application]) -> None:
    folder, application = ran
    labels = places(folder)
    assert set(labels) == propagated(NODES, EDGES, TURNS)
    for label, start in labels.items():
        explanation = explained(application, start)
        nodes, edges = rows_of(explanation)
        assert (explanation.kind, explanation.reasons) == ("concise", ())
        assert label in propagated(nodes, edges, TURNS)
        assert len(nodes) == 1


def test_a_label_that_came_in_turn_three_is_explained_by_the_edges_of_three_turns(
    ran: tuple[Path, Application],
) -> None:
    folder, application = ran
    explanation = explained(application, places(folder)[2, 0])
    nodes, edges = rows_of(explanation)
    assert (nodes, sorted(edges)) == ([0], [(0, 3), (3, 7), (7, 2)])
    turns = [(turn.turn, turn.until) for turn in explanation.turns]
    assert turns == [(0, (0,)), (1, (1,)), (2, (2,)), (3, (TURNS,))]
    lines, first = getsourcelines(job)
    [line] = [at for at, text in enumerate(lines, first) if "in range(TURNS)" in text]
    assert {turn.loop for turn in explanation.turns} == {f"test_explained_loops.py:{line}"}
    assert [len(turn.rows) for turn in explanation.turns] == [1, 1, 1, 1]


def kept(application: Application) -> list[dict[str, Any]]:
    nodes = {
        event["node"]: event for event in application.events if event["type"] == contract.NODE_REGISTERED
    }
    return [node for node in nodes.values() if node.get("site") and node["relation"] == contract.FLOWS]


def test_only_what_a_loop_keeps_has_digests(ran: tuple[Path, Application]) -> None:
    _, application = ran
    first, *of_loop = kept(application)
    assert first["site"]["loops"] == []
    assert [node["site"]["visit"] for node in of_loop] == list(range(TURNS))
    digested = {block.node for block in application.blocks if block.relation == contract.DIGESTS}
    assert digested == {node["node"] for node in of_loop}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "conf", [{"spark_lineage_explain": "off"}, {"spark_lineage_redact": "builtins:repr"}]
)
def test_where_nobody_wants_it_nothing_of_it_is_sent(
    kafka: Any, jar: Path, tmp_path: Path, conf: Any
) -> None:
    application = run(kafka.bootstrap_servers, tmp_path, KEEPING["caches"], **conf)
    relations = {block.relation for block in application.blocks}
    assert contract.DIGESTS not in relations
    assert (contract.WINNERS in relations) is ("spark_lineage_redact" in conf)
    explanation = explained(application, places(tmp_path)[2, 0])
    assert (explanation.kind == "concise") is ("spark_lineage_redact" in conf)
    assert explanation.reasons
    assert (2, 0) in propagated(*rows_of(explanation), TURNS)
