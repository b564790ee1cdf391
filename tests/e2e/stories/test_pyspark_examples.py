"""Examples with loops that PySpark brings, unmodified: each is explained, or the answer says why not."""

from __future__ import annotations

import json
import random
import re
import runpy
import time
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyspark
import pytest

from tests.support.e2e.platform import Platform, platform

pytestmark = pytest.mark.thorough

FOLDER = Path(pyspark.__file__).parent / "examples" / "src" / "main" / "python"
#: Without it the closure has twice as many partitions in each turn.
FLAGS = ("--conf", "spark.lineage.enabled=true", "--conf", "spark.default.parallelism=2")
TURNS = 3
_ARRIVAL_S = 120.0
#: Two parts, so that the rank of a page has nothing to do with some of the lines.
LINKS = ["1 2", "2 3", "3 1", "1 3", "4 1", "2 4", "11 12", "12 11", "12 13", "13 11"]


@dataclass(frozen=True, kw_only=True)
class Ran:
    """An example that has run: what it printed, and what is stored of it."""

    platform: Platform
    application: str
    printed: str

    def get(self, what: str, **parameters: object) -> dict[str, Any]:
        address = f"{self.platform.url}/api/applications/{self.application}{what}"
        with urllib.request.urlopen(f"{address}?{urllib.parse.urlencode(parameters)}") as answer:
            return dict(json.load(answer))

    def last(self, name: str) -> int:
        """The number of the last operation of that name."""
        nodes = self.get("/graph")["nodes"]
        return max(node["node"] for node in nodes if node["name"] == name)

    def records(self, node: int) -> list[str]:
        return [record["record_id"] for record in self.get(f"/nodes/{node}/records", limit=1_000)["records"]]

    def explained(self, node: int, **start: str) -> dict[str, Any]:
        explanation = self.get("/explanation", node=node, limit=10_000, **start)
        assert explanation["complete"]
        assert explanation["total"] == len(explanation["rows"])
        return explanation

    def first_lines(self, node: int, record: str) -> list[str]:
        """What a terminal shows before the rows."""
        shown = self.platform.run("lineage", "explain", self.application, record, "--node", str(node))
        return shown.splitlines()[1:4]


@pytest.fixture(scope="module")
def running(kafka: Any, neo4j: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    if not FOLDER.is_dir():
        pytest.skip(f"PySpark {pyspark.__version__} brings no examples")
    with platform(kafka, neo4j, tmp_path_factory.mktemp("examples")) as started:
        yield started


def ran(running: Platform, name: str, *arguments: object) -> Ran:
    began = time.time()
    printed = running.run("spark-submit", *FLAGS, FOLDER / f"{name}.py", *map(str, arguments))
    deadline = time.monotonic() + _ARRIVAL_S
    while time.monotonic() < deadline:
        with urllib.request.urlopen(f"{running.url}/api/applications") as answer:
            for application in json.load(answer)["applications"]:
                if application["started"] >= began * 1000 and application["complete"]:
                    return Ran(platform=running, application=application["application_id"], printed=printed)
        time.sleep(0.3)
    raise AssertionError(f"{name}: not complete after {_ARRIVAL_S} s")


def given_by(explanation: dict[str, Any]) -> dict[str, int]:
    """Action -> how many of its results the program had before."""
    return {values["name"]: values["results"] for values in explanation["given"] if values["results"]}


def texts(explanation: dict[str, Any]) -> list[str]:
    return [row["text"] for row in explanation["rows"]]


def ranks_of(lines: Iterable[str]) -> dict[str, float]:
    """What pagerank.py gives for these lines, by loops."""
    links = defaultdict(set)
    for line in lines:
        url, neighbour = line.split()
        links[url].add(neighbour)
    ranks = dict.fromkeys(links, 1.0)
    for _ in range(TURNS):
        sums: dict[str, float] = defaultdict(float)
        for url, neighbours in links.items():
            for neighbour in neighbours if url in ranks else ():
                sums[neighbour] += ranks[url] / len(neighbours)
        ranks = {url: 0.85 * rank + 0.15 for url, rank in sums.items()}
    return ranks


def test_the_rank_of_a_page_needs_all_that_leads_to_it_and_says_so(running: Platform, tmp_path: Path) -> None:
    (tmp_path / "links.txt").write_text("".join(f"{line}\n" for line in LINKS))
    job = ran(running, "pagerank", tmp_path / "links.txt", TURNS)
    printed = dict(re.findall(r"(\d+) has rank: ([\d.]+)\.", job.printed))
    assert len(printed) == 7
    for url, rank in printed.items():
        explanation = job.explained(job.last("reduceByKey"), key=url)
        rows = texts(explanation)
        assert (explanation["kind"], explanation["exact"]) == ("concise", True)
        assert ranks_of(rows)[url] == pytest.approx(float(rank), abs=1e-9)
        assert set(rows) == {line for line in LINKS if (len(line.split()[0]) > 1) == (len(url) > 1)}
        assert explanation["total"] == explanation["plain_total"]
        assert any("Each turn of the loop at" in reason for reason in explanation["reasons"])


def test_a_path_of_a_closure_is_explained_by_edges_that_make_it_again(running: Platform) -> None:
    edges = list(runpy.run_path(str(FOLDER / "transitive_closure.py"))["generateGraph"]())
    halves = edges[: len(edges) // 2], edges[len(edges) // 2 :]  # as `parallelize` cuts them
    job = ran(running, "transitive_closure", 2)
    distinct = job.last("distinct")
    assert f"TC has {len(closure(edges))} edges" in job.printed
    chosen = random.Random(1)
    paths = set()
    for record in chosen.sample(job.records(distinct), 40):
        explanation = job.explained(distinct, record=record)
        assert (explanation["kind"], explanation["exact"]) == ("concise", True)
        assert {values["name"] for values in explanation["given"]} == {"count"}
        rows = [row["record_id"].split("#")[1:] for row in explanation["rows"]]
        by = [halves[int(split)][int(at)] for split, at in rows]
        assert len(by) <= 20  # never more than a path has edges
        ends = {start for start, _ in by} ^ {end for _, end in by}
        assert len(ends) in (0, 2)  # a path without a detour: of two ends, or from a node to itself
        paths.add(frozenset(by))
        assert closure(by) <= closure(edges)
    assert len(paths) > 20
    count = job.last("count")
    assert job.explained(count, record="write#0#0")["total"] == len(edges)


def closure(edges: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    following = defaultdict(set)
    for start, end in edges:
        following[start].add(end)
    paths = set()
    for start in list(following):
        stack = [start]
        while stack:
            for end in following.get(stack.pop(), ()):
                if (start, end) not in paths:
                    paths.add((start, end))
                    stack.append(end)
    return paths


def test_a_centre_has_the_points_of_its_last_turn_and_names_what_was_given(
    running: Platform, tmp_path: Path
) -> None:
    rng = random.Random(2)
    lines = [
        f"{10 * at + rng.random():.3f} {10 * at + rng.random():.3f}" for _ in range(9) for at in range(3)
    ]
    (tmp_path / "points.txt").write_text("".join(f"{line}\n" for line in lines))
    job = ran(running, "kmeans", tmp_path / "points.txt", 3, 0.001)
    collect = job.last("collect")
    numbers = [
        float(number) for number in re.findall(r"-?\d+\.\d+", job.printed.partition("Final centers")[2])
    ]
    centres = sorted(zip(numbers[::2], numbers[1::2], strict=True))
    means, listed = [], []
    for record in job.records(collect):
        explanation = job.explained(collect, record=record)
        points = np.array([[float(number) for number in text.split()] for text in texts(explanation)])
        means.append(tuple(points.mean(axis=0)))
        listed += texts(explanation)
        turns = given_by(explanation)["collect"]
        assert given_by(explanation) == {"takeSample": 1, "collect": turns}
        assert turns >= 1
    assert np.allclose(sorted(means), centres, atol=1e-6)
    assert sorted(listed) == sorted(lines)
    said = job.first_lines(collect, "write#0#0")
    assert any("given: 1 result of takeSample at kmeans.py" in line for line in said), said


def test_a_row_of_a_factor_is_one_index_and_all_else_is_given(running: Platform) -> None:
    job = ran(running, "als", 8, 12, 3, 2, 2)
    explanation = job.explained(job.last("collect"), record="write#0#3")
    assert [row["record_id"] for row in explanation["rows"]] == ["read#0#3"]
    assert sum(values["results"] or 0 for values in explanation["given"]) == 3
    assert any(
        "given: " in line and "of collect at als.py" in line
        for line in job.first_lines(job.last("collect"), "write#0#3")
    )


def test_a_gradient_needs_all_points_and_the_weights_are_given(running: Platform, tmp_path: Path) -> None:
    rng = random.Random(3)
    lines = [
        " ".join([rng.choice(("1", "-1")), *(f"{rng.random():.3f}" for _ in range(10))]) for _ in range(30)
    ]
    (tmp_path / "points.txt").write_text("".join(f"{line}\n" for line in lines))
    job = ran(running, "logistic_regression", tmp_path / "points.txt", TURNS)
    explanation = job.explained(job.last("reduce"), record="write#0#0")
    assert sorted(texts(explanation)) == sorted(lines)
    assert (explanation["kind"], explanation["exact"]) == ("bound", False)
    assert any("mapPartitions" in reason for reason in explanation["reasons"])
    assert given_by(explanation) == {"reduce": TURNS - 1}
