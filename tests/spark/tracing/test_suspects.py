"""Who behaves oddly in real jobs: planted faults are ranked first, by the input rows that were planted."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest

from lineage_service.lineage import Suspects
from lineage_service.queries import ContrastQuery, StartQuery, SuspectsQuery
from perf.workloads.newt_suspects import job, write_inputs
from tests.support.spark.application import Application, run_application

PEOPLE = 600
FAULTS = {"offenses": ("L00017", 10), "balances": ("N00042", 10)}
#: Tasks of the four maps and the three joins.
TASKS = 42


def ran(kafka: Any, folder: Path, seed: int, selectivity: str, faults: Any) -> Application:
    folder.mkdir(exist_ok=True)
    write_inputs(folder, PEOPLE, seed)
    _, application = run_application(
        kafka.bootstrap_servers,
        folder / "store",
        lambda context: job(context, str(folder), str(folder / "out"), faults, selectivity),
    )
    assert application is not None
    return application


def suspects_of(application: Application, **query: Any) -> Suspects:
    return application.questions.suspects(application.application_id, SuspectsQuery(limit=1000, **query))


@pytest.fixture(scope="module")
def faulty(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Application, Path]:
    folder = tmp_path_factory.mktemp("newt")
    return ran(kafka, folder, 1, "constant", FAULTS), folder


def test_the_faulty_maps_are_among_the_first_with_their_lines(faulty: tuple[Application, Path]) -> None:
    suspects = suspects_of(faulty[0])
    named = {row.text.split(",")[0] for one in suspects.suspects[:6] for row in one.sources if row.text}
    assert {"L00017", "N00042"} <= named
    maps = [one for one in suspects.suspects if one.name == "flatMap" and one.unusual]
    assert [one.sources[0].text.split(",")[0] for one in maps if one.sources[0].text]  # their own lines
    assert {"offenses", "balances"} == {Path(one.sources[0].path).name for one in maps}
    assert suspects.complete


def output_rows(folder: Path, name: str) -> list[StartQuery]:
    return [
        StartQuery(path=str(part), row=row)
        for part in sorted((folder / "out").glob("part-*"))
        for row, line in enumerate(part.read_text().splitlines())
        if line.startswith(name)
    ]


def test_with_bad_and_good_outputs_the_faulty_map_is_first(faulty: tuple[Application, Path]) -> None:
    application, folder = faulty
    good = tuple(output_rows(folder, f"P{person:05}")[0] for person in (1, 2, 3, 5, 8, 13, 21))
    suspects = suspects_of(application, bad=(output_rows(folder, "P00017")[0],), good=good)
    first = [one for one in suspects.suspects if one.rank == 1]
    assert "flatMap" in {one.name for one in first}
    assert all(one.leads_to_bad for one in first)


def test_contrast_names_what_the_rows_of_bad_outputs_share(faulty: tuple[Application, Path]) -> None:
    application, folder = faulty
    bad = tuple(output_rows(folder, "P00017")[:8])
    good = tuple(output_rows(folder, f"P{person:05}")[0] for person in range(18, 34))
    query = ContrastQuery(bad=bad, good=good, limit=1000)
    contrast = application.questions.contrast(application.application_id, query)
    shared = {one.property: (one.bad, one.good) for one in contrast.properties if one.score == 1}
    assert any("L00017" in words for words in shared), shared


def percentiles(application: Application, faults: Any, suspects: Suspects) -> list[float]:
    """Of the faulty maps among all tasks of maps and joins."""
    graph = application.questions.graph(application.application_id)
    joins = {node.node_id for node in graph.nodes if node.name in ("flatMap", "join")}
    tasks = [one for one in suspects.suspects if one.node_id in joins and one.partition is not None]
    found = []
    for source, (key, _) in faults.items():
        score = max(
            (
                one.score
                for one in tasks
                if one.name == "flatMap" and any((row.text or "").startswith(key) for row in one.sources)
            ),
            default=0.0,
        )
        assert source
        more = sum(one.score > score for one in tasks)
        equal = sum(one.score == score for one in tasks) - 1 if score else TASKS - len(tasks) - 1
        found.append(100 * (TASKS - 1 - more - equal / 2) / (TASKS - 1))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(("selectivity", "magnitude"), [("constant", 5), ("binomial", 15)])
def test_faults_are_at_the_95th_percentile(
    selectivity: str, magnitude: int, kafka: Any, tmp_path: Path
) -> None:
    figures = []
    for seed in range(3):
        faults = {"offenses": (f"L{seed:05}", magnitude), "balances": (f"N{100 + seed:05}", magnitude)}
        application = ran(kafka, tmp_path / str(seed), seed, selectivity, faults)
        figures += percentiles(application, faults, suspects_of(application))
    assert statistics.mean(figures) >= 95
