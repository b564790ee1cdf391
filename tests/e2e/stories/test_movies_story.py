"""The story of the movies over the real stack, against loops over its files, and in its document."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.e2e.platform import Platform, platform

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, kw_only=True)
class Story:
    platform: Platform
    folder: Path
    told: str
    found: dict[str, Any]

    def lines(self, name: str) -> list[str]:
        return (self.folder / f"{name}.txt").read_text().splitlines()

    def rows(self, output: str) -> list[list[str]]:
        parts = sorted((self.folder / output).glob("part-*"))
        return [re.split(r"[\t,]", line) for part in parts for line in part.read_text().splitlines()]

    def ratings_of(self, user: str) -> list[str]:
        return [line for line in self.lines("ratings") if line.split(",")[1] == user]

    def movies_of(self, ratings: list[str], name: str) -> list[str]:
        movies = {line.split(",")[2] for line in ratings}
        return [line for line in self.lines(name) if line.split("\t")[0] in movies]


@pytest.fixture(scope="module")
def story(kafka: Any, neo4j: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("movies")
    with platform(kafka, neo4j, folder) as running:
        arguments = ["--folder", folder / "story", "--json", folder / "story.json"]
        told = running.run("python", "-m", "examples.movies_story", *arguments)
        found = json.loads((folder / "story.json").read_text())
        yield Story(platform=running, folder=folder / "story", told=told, found=found)


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return [row["text"] for row in rows]


def test_the_failure_names_the_record_and_the_movies_behind_it(story: Story) -> None:
    crash = story.found["crash"]
    failure = crash["failure"]
    assert (failure["error"], failure["exact"]) == ("ValueError", True)
    assert failure["message"].startswith("too many values to unpack")
    by_file = {Path(row["path"]).name: row["text"] for row in failure["sources"]}
    birthday = by_file.pop("users.txt")
    (top,) = by_file.values()
    user, genres = top.split("\t")
    assert birthday.split(",")[0] == user
    assert genres.count(",") > 2
    rated = story.movies_of(story.ratings_of(user), "broken-movies")
    assert (texts(crash["movies"]), crash["exact"]) == (rated, True)
    assert any("Crime, noir" in line for line in rated)
    printed = story.platform.run("lineage", "failures", crash["application"])
    assert f"ValueError: {failure['message']}" in printed
    assert top.replace("\t", "\\t") in printed


def test_the_steps_of_the_failure_end_in_it_and_show_the_user(story: Story) -> None:
    crash, replay = story.found["crash"], story.found["steps"]
    assert (replay["verdict"], replay["rows"]) == ("reproduced", 2)
    values = [
        (step["name"], step["kind"], record["value"])
        for step in replay["steps"]
        for record in step["records"]
    ]
    sources = {text for _, kind, text in values if kind == "source"}
    assert sources == {row["text"] for row in crash["failure"]["sources"]}
    error = crash["failure"]
    assert values[-1] == ("flatMap", "operator", f"{error['error']}: {error['message']}")
    birthday = next(text for text in sources if "\t" not in text)
    user, genres = next(text for text in sources if "\t" in text).split("\t")
    decade = (2012 - int(birthday.split(",")[1][:4])) // 10 * 10
    assert [json.loads(text) for name, _, text in values if name == "join"] == [[user, [genres, decade]]]


def test_the_children_are_users_with_the_day_of_their_registration(story: Story) -> None:
    liking = {
        line.split("\t")[0]
        for part in (story.folder / "second" / "top").glob("part-*")
        for line in part.read_text().splitlines()
        if "Drama" in line.split("\t")[1].split(",")
    }
    registered = [line for line in story.lines("users") if line.split(",")[1].startswith("2011")]
    expected = [line for line in registered if line.split(",")[0] in liking]
    children = story.found["children"]
    assert (texts(children["users"]), children["exact"]) == (expected, True)
    row = next(row for row in story.rows("second/ages") if row[:2] == ["Drama", "0"])
    assert int(row[2]) == len(expected) > 1


def test_without_the_children_the_result_is_that_of_the_other_users(story: Story) -> None:
    """The last job, by loops, on what the one before has written."""
    left_out = set(texts(story.found["children"]["users"]))
    decades = {
        line.split(",")[0]: (2012 - int(line.split(",")[1][:4])) // 10 * 10
        for line in story.lines("users")
        if line not in left_out
    }
    counts = Counter(
        (genre, decades[user])
        for user, *genres in story.rows("second/top")
        for genre in genres
        if genre != "-" and user in decades
    )
    expected = Counter(f"{genre},{decade},{count}" for (genre, decade), count in counts.items())
    before = Counter(",".join(row) for row in story.rows("second/ages"))
    replay = story.found["without"]
    [diff] = replay["diff"]
    assert replay["rows"] == len(left_out)
    gone = Counter(diff["gone"]) + Counter(row["was"] for row in diff["changed"])
    new = Counter(diff["new"]) + Counter(row["is"] for row in diff["changed"])
    assert (gone, new) == (before - expected, expected - before)
    assert any(text.startswith("Drama,0,") for text in gone)


def test_the_highest_score_is_made_of_a_movie_that_names_a_genre_five_times(story: Story) -> None:
    score = story.found["score"]
    user, genre, sum_ = score["text"].split("\t")
    rated = story.ratings_of(user)
    genres = {line.split("\t")[0]: line.split("\t")[2].split("|") for line in story.lines("movies")}
    expected = [line for line in rated if genre in genres[line.split(",")[2]]]
    assert (texts(score["ratings"]), score["exact"]) == (expected, True)
    assert texts(score["movies"]) == story.movies_of(expected, "movies")
    stars = Counter({line.split(",")[2]: int(line.split(",")[3]) for line in expected})
    assert (
        sum(stars[movie] * genres[movie].count(genre) for movie in stars) == int(sum_) > sum(stars.values())
    )


def test_mended_inputs_leave_no_children(story: Story) -> None:
    children = [",".join(row) for row in story.rows("second/ages") if row[1] == "0"]
    assert story.found["compared"]["children"] == sorted(children)
    assert not [row for row in story.rows("third/ages") if row[1] == "0"]
    counts: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for output in ("second", "third"):
        counts[output].update(map(tuple, story.rows(f"{output}/ages")))
    assert story.found["compared"]["compared"]["same"] == (counts["second"] & counts["third"]).total()


def test_the_document_tells_what_is_found(story: Story) -> None:
    """Its blocks of output are this run's, but for ids and places."""
    page = (ROOT / "docs" / "movies-story.md").read_text("utf-8")
    blocks = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line != "..."]
    assert lines
    for line in lines:
        assert line in story.told, line
