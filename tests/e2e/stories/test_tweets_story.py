"""The story of the tweets over the real stack: over HTTP, at a terminal, in Neo4j, and in its document."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import neo4j as driver
import pytest

import lineage_cypher
from tests.support.e2e.tweets import MOVIE, Story, told

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[3]
#: The job's words of blame; "bad" is also how the movie's name ends.
BLAME = re.compile("confusing|overrated|unsatisfied|poor|bad|hard")


@pytest.fixture(scope="module")
def story(kafka: Any, neo4j: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with told(kafka, neo4j, tmp_path_factory.mktemp("tweets")) as story:
        yield story


@pytest.fixture(scope="module")
def texts(story: Story) -> list[str]:
    assert len(story.texts) >= 5
    return story.texts


def test_the_row_is_made_of_the_tweets_about_the_movie(story: Story, texts: list[str]) -> None:
    trace = story.found["trace"]
    assert (trace["complete"], trace["exact"], trace["truncated"], trace["how"]) == (True, True, False, "")
    (source,) = [node for node in trace["nodes"] if node["kind"] == "source"]
    read = [json.loads(record["source"]["text"])["text"].lower() for record in source["records"]]
    assert sorted(read) == texts


def test_every_text_is_blamed_and_some_for_no_other_word_than_the_movies_name(
    story: Story, texts: list[str]
) -> None:
    pairs = [(json.loads(before), json.loads(after)) for before, after in story.found["pairs"]]
    assert [before for before, _ in pairs] == [[MOVIE, text] for text in texts]
    assert all(after[0] == MOVIE and after[1][1] == 1 for _, after in pairs)
    wronged = [before[1] for before, _ in pairs if not BLAME.search(before[1].replace(MOVIE, ""))]
    assert len(wronged) > len(texts) / 2
    praise = sum(after[1][0] for _, after in pairs)
    assert f"{MOVIE},{praise},{len(texts)}    <- nobody likes it?" in story.told
    for before, after in story.found["pairs"]:
        assert f"{after}  {before}" in story.told


def test_a_terminal_tells_the_same(story: Story, texts: list[str]) -> None:
    row = f"{story.found['path']}:{story.found['row'] + 1}"
    (command,) = re.findall(r"lineage (trace .* --values --in-application)$", story.told, re.MULTILINE)
    assert command == f"trace {story.found['application']} backward {row} --values --in-application"
    answer = story.platform.run("lineage", *command.split(), "--limit", "1000")
    opinions = re.findall(rf'^  [\d#]+  value (\["{MOVIE}", \[\d, \d\]\])$', answer, re.MULTILINE)
    assert sorted(opinions) == sorted(after for _, after in story.found["pairs"])
    for text in texts:
        assert text in answer
    (record,) = story.found["trace"]["start"]
    values = story.platform.run("lineage", "values", story.found["application"], record["record_id"])
    assert f"{MOVIE}," in values


def test_neo4j_shows_it_with_the_saved_query(story: Story, neo4j: Any) -> None:
    auth = (neo4j.user, neo4j.password) if neo4j.password else None
    with driver.GraphDatabase.driver(neo4j.uri, auth=auth, notifications_min_severity="OFF") as graph:
        deadline = time.monotonic() + 240
        while True:  # `lineage consume` puts it there a moment after it is complete
            state = graph.execute_query(
                "MATCH (a:LineageApplication {applicationId: $app}) RETURN a.flows",
                app=story.found["application"],
            ).records
            if state and state[0][0] == "all":
                break
            assert time.monotonic() < deadline, state
            time.sleep(0.2)
        query = lineage_cypher.pasted(
            "show/step", flowId=story.found["flow_id"], nodeId=story.found["suspect"]
        )
        assert query == "\n".join(
            line.removeprefix("    ")
            for line in story.told.partition("In Neo4j Browser")[2].splitlines()[1:]
            if line.startswith("    ")
        )
        shown = graph.execute_query(query).records
        assert sorted((each["wentIn"], each["cameOut"]) for each in shown) == [
            tuple(pair) for pair in story.found["pairs"]
        ]
        found = graph.execute_query(
            lineage_cypher.pasted("show/search", applicationId=story.found["application"], text=MOVIE)
        ).records
        assert {each["name"] for each in found} >= {"map", "filter", "keyBy", "mapValues", "reduceByKey"}


def test_the_document_tells_what_is_found(story: Story) -> None:
    """Its blocks of output are this run's, but for ids and places."""
    page = (ROOT / "docs" / "tweets-story.md").read_text("utf-8")
    lines = re.findall(r"^\[\"breakingbad\".*$|^breakingbad,\d+,\d+.*$", page, re.MULTILINE)
    assert lines
    for line in lines:
        assert line in story.told, line
    query = lineage_cypher.body("show/step")
    assert query in page


def test_the_page_shows_a_tweet_that_praises_and_is_blamed_for_the_movies_name(
    story: Story, texts: list[str], page: Any
) -> None:
    from playwright.sync_api import expect

    filters = [node["node_id"] for node in story.found["trace"]["nodes"] if node["name"] == "filter"]
    before = f"filter ({max(int(each.rpartition('#')[2]) for each in filters)})"
    wronged = [text for text in texts if not BLAME.search(text.replace(MOVIE, ""))]

    page.goto(story.row_url)
    expect(page.locator("h1")).to_contain_text(f"{MOVIE},")
    page.get_by_role("link", name="Whole trace").click()
    opinions, films = (page.locator(".trace-list .part", has_text=name) for name in ("mapValues (", before))
    for part in (films, opinions):
        part.get_by_role("button", name=re.compile(r"^\+\d+ more")).click()
        expect(part.locator("tbody tr")).to_have_count(len(texts))
    blamed = films.locator("tbody tr", has_text=wronged[0])
    expect(blamed).to_have_count(wronged.count(wronged[0]))
    # Praised and blamed at once: which text was that?
    opinions.locator("tbody tr", has_text=f'["{MOVIE}", [1, 1]]').first.get_by_role("link").click()
    expect(page.locator(".trace-list .part", has_text="the selected record")).to_contain_text("mapValues (")
    expect(films.locator("tbody tr")).to_have_count(1)
    shown = " ".join((films.text_content() or "").split())
    assert any(" ".join(text.split()) in shown for text in texts), shown
