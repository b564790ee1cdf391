"""The story of the customers over the real stack: against loops over its files, at a terminal, on a page."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Page, expect

from examples.customer_clusters import blocks_of, match
from tests.support.e2e.platform import Platform, platform

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, kw_only=True)
class Story:
    platform: Platform
    folder: Path
    told: str
    found: dict[str, Any]

    def lines(self, output: str) -> list[str]:
        parts = sorted((self.folder / output).glob("part-*"))
        return [line for part in parts for line in part.read_text().splitlines()]

    def place_of(self, line: str) -> tuple[Path, int]:
        """(file, line from 1) of a line of the first clusters."""
        for part in (self.folder / "first" / "clusters").glob("part-*"):
            lines = part.read_text().splitlines()
            if line in lines:
                return part, lines.index(line) + 1
        raise AssertionError(line)

    def asked(self) -> list[tuple[Path, int]]:
        return [self.place_of(f"{record},{self.found['asked'][0]}") for record in self.found["asked"]]


@pytest.fixture(scope="module")
def story(kafka: Any, neo4j: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("customers")
    with platform(kafka, neo4j, folder) as running:
        arguments = ["--folder", folder / "story", "--json", folder / "story.json"]
        told = running.run("python", "-m", "examples.customers_story", *arguments)
        found = json.loads((folder / "story.json").read_text())
        yield Story(platform=running, folder=folder / "story", told=told, found=found)


def pairs_of(customers: Path) -> dict[tuple[str, str], str]:
    """The pairs that match and why, by a loop over each block."""
    blocks = defaultdict(list)
    for line in customers.read_text().splitlines():
        record = tuple(line.split(","))
        for block, _ in blocks_of(record):
            blocks[block].append(record)
    reasons: dict[tuple[str, str], tuple[int, str]] = {}
    for block, records in blocks.items():
        for one in records:
            for other in records:
                for pair, reason in match((block, (one, other))):
                    reasons[pair] = min(reasons.get(pair, reason), reason)
    return {pair: reason for pair, (_, reason) in reasons.items()}


def clusters_of(customers: Path, pairs: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """The first record that each one is connected with, by a search from each first one."""
    neighbours = defaultdict(set)
    for one, other in pairs:
        neighbours[one].add(other)
        neighbours[other].add(one)
    clusters: dict[str, str] = {}
    for line in customers.read_text().splitlines():
        first = line.split(",")[0]
        stack = [] if first in clusters else [first]
        while stack:
            clusters[(record := stack.pop())] = first
            stack += [other for other in neighbours[record] if other not in clusters]
    return clusters


def test_the_job_finds_the_pairs_and_clusters_of_loops(story: Story) -> None:
    customers = story.folder / "customers.csv"
    pairs = pairs_of(customers)
    assert sorted(story.lines("first/pairs")) == sorted(
        f"{one},{other},{reason}" for (one, other), reason in pairs.items()
    )
    clusters = clusters_of(customers, pairs)
    assert sorted(story.lines("first/clusters")) == sorted(map(",".join, clusters.items()))


def test_the_explanation_is_a_way_of_few_pairs_between_the_two(story: Story) -> None:
    one, other = story.found["asked"]
    explanation = story.found["explanation"]
    assert (explanation["kind"], explanation["exact"], explanation["complete"]) == ("concise", True, True)
    texts = [row["text"] for row in explanation["rows"]]
    pairs = [tuple(text.split(",")[:2]) for text in texts if text.count(",") == 2]
    assert [text for text in texts if text.count(",") != 2] == [
        line for line in (story.folder / "customers.csv").read_text().splitlines() if line.startswith(one)
    ]
    assert 2 <= len(pairs) <= 3
    place = one
    for _ in pairs:  # each leads on from where the one before has ended, in some order
        (following,) = [pair for pair in pairs if place in pair][:1]
        pairs = [pair for pair in pairs if pair != following]
        place = following[1] if following[0] == place else following[0]
    assert place == other
    assert explanation["plain_total"] is None or explanation["plain_total"] > 10 * len(texts)
    rows = [row["text"] for turn in explanation["turns"] for row in turn["rows"]]
    assert sorted(rows) == sorted(texts)


def test_the_records_behind_the_wrong_pair_have_the_number_of_the_hotel(story: Story) -> None:
    records = story.found["records"]
    one, other, reason = records["pair"].split(",")
    assert reason == f"same phone {records['number']}"
    assert [row["text"].split(",")[0] for row in records["rows"]] == [one, other]
    assert all(row["text"].split(",")[3] == records["number"] for row in records["rows"])
    mended = story.folder / "mended.csv"
    clusters = clusters_of(mended, pairs_of(mended))
    assert story.found["mended"] == {record: clusters[record] for record in story.found["asked"]}
    assert len(set(story.found["mended"].values())) == 2


def test_a_terminal_says_the_same(story: Story) -> None:
    places = [f"{path}:{line}" for path, line in story.asked()]
    printed = story.platform.run("lineage", "explain", story.found["clusters"], "--same", *places)
    explanation = story.found["explanation"]
    assert f"{explanation['total']} of {explanation['of']:,} input rows" in printed
    for row in explanation["rows"]:
        assert row["text"] in printed
    assert f"Both have field 2 '{story.found['asked'][0]}'" in printed
    assert re.search(r"loop at customer_clusters\.py:\d+", printed)


def test_the_page_shows_the_pairs_turn_by_turn(story: Story, page: Page) -> None:
    (first, first_line), (path, line) = story.asked()
    place = urlencode({"path": path, "row": line - 1})
    address = f"#/app/{story.found['clusters']}/explanation?{place}"
    assert f"{address}&{urlencode({'same': f'{first}:{first_line}'})}" in story.told
    page.goto(f"{story.platform.url}/{address}")
    page.get_by_text("Ask more about it").click()
    page.get_by_label("Why is it one with this record").fill(f"{first}:{first_line}")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("h1")).to_have_text("Why are these two one?")
    pair = page.get_by_label("The two records")
    expect(pair).to_contain_text(f"Both have field 2 '{story.found['asked'][0]}'")
    for record in story.found["asked"]:
        expect(pair).to_contain_text(f"{record},{story.found['asked'][0]}")
    rows = page.locator(".input-row:visible")
    expect(rows).to_have_count(story.found["explanation"]["total"])
    for row in story.found["explanation"]["rows"]:
        expect(page.locator("main")).to_contain_text(row["text"])
    expect(page.locator(".loop h2")).to_contain_text("customer_clusters.py")


def test_the_document_tells_what_is_found(story: Story) -> None:
    """Its blocks of output are this run's, but for ids and places."""
    document = (ROOT / "docs" / "customers-story.md").read_text("utf-8")
    blocks = re.findall(r"^```text\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line != "..."]
    assert lines
    for line in lines:
        assert line in story.told, line
