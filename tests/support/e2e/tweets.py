"""The story of the tweets, told once over the real stack, for tests that look at what it left.

A browser test begins at `Story.row_url`, the way of the row that is wondered at, or at `found["url"]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.support.e2e.platform import Platform, platform

MOVIE = "breakingbad"


@dataclass(frozen=True, kw_only=True)
class Story:
    """`found` is what `examples.tweets_story --json` wrote: application, url, path, row, trace, pairs, ..."""

    platform: Platform
    told: str
    found: dict[str, Any]
    tweets: list[dict[str, Any]]

    @property
    def row_url(self) -> str:
        """Where the page shows the way of the row."""
        start = urlencode({"path": self.found["path"], "row": self.found["row"], "direction": "backward"})
        return f"{self.found['url']}/#/app/{self.found['application']}/trace?{start}"

    @property
    def texts(self) -> list[str]:
        """The texts that the row must come from, by a loop over the tweets."""
        tags = {"#movie", "#film", "#cinema", "#hollywood", "#blockbuster"}
        about = [tweet["text"].lower() for tweet in self.tweets if tags & {*tweet["hashtags"]}]
        return sorted(text for text in about if MOVIE in text)


@contextmanager
def told(kafka: Any, neo4j: Any, folder: Path) -> Iterator[Story]:
    """The story, and the platform that it was told on, until the block ends."""
    with platform(kafka, neo4j, folder) as running:
        arguments = ["--folder", folder / "story", "--json", folder / "story.json"]
        printed = running.run("python", "-m", "examples.tweets_story", *arguments)
        lines = (folder / "story" / "tweets.json").read_text().splitlines()
        yield Story(
            platform=running,
            told=printed,
            found=json.loads((folder / "story.json").read_text()),
            tweets=[json.loads(line) for line in lines],
        )
