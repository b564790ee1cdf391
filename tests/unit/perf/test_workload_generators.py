"""The inputs that perf/workloads generates: same seed same lines, the promised shares, the bug in reach."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from perf.workloads import tweets as tweets_job
from perf.workloads.generate import (
    BAD,
    CUSTOMERS,
    GOOD,
    MOVIE_TAGS,
    MOVIES,
    PHRASES,
    Urn,
    customers,
    purchases,
    tweets,
    words,
    write,
)

TWEET_FIELDS = [
    "id", "username", "location", "text", "timestamp", "likes", "retweets", "replies", "hashtags",
    "language", "device", "is_verified", "follower_count", "following_count",
]  # fmt: skip


@pytest.fixture(scope="module")
def movie_texts() -> dict[str, list[str]]:
    """Lower-cased texts by the movie that they are about, found by whole words."""
    texts: dict[str, list[str]] = {movie.lower(): [] for movie in MOVIES}
    for line in islice(tweets(seed=7), 100_000):
        text = json.loads(line)["text"].lower()
        for word in text.split():
            if word in texts:
                texts[word].append(text)
    return texts


@pytest.mark.parametrize(
    ("lines", "digest"),
    [
        (lambda seed: words(seed), "a3fbf76126f686de"),
        (lambda seed: words(seed, "uniform"), "ab067170860e19ce"),
        (lambda seed: tweets(seed), "fef6e8678a6bef59"),
        (lambda seed: purchases(seed), "fe901f5b8b7adaa5"),
        (lambda seed: customers(seed), "32a255abeddcd816"),
    ],
    ids=["words", "uniform words", "tweets", "purchases", "customers"],
)
def test_a_seed_fixes_every_byte_on_every_platform(
    lines: Callable[[int], Iterator[str]], digest: str
) -> None:
    text = "\n".join(islice(lines(1), 12_000))
    assert hashlib.sha256(text.encode("ascii")).hexdigest()[:16] == digest
    assert "\n".join(islice(lines(2), 12_000)) != text


def test_lines_have_8_to_12_words_equally_often() -> None:
    lengths = Counter(len(line.split(" ")) for line in islice(words(seed=3), 50_000))
    assert sorted(lengths) == [8, 9, 10, 11, 12]
    assert all(share == pytest.approx(10_000, rel=0.05) for share in lengths.values())


def test_words_follow_zipf_2_into_the_tail() -> None:
    counts = Counter(word for line in islice(words(seed=3), 100_000) for word in line.split(" "))
    total = counts.total()
    weight = sum(1 / rank**2 for rank in range(1, 8001))
    for rank in (1, 2, 3, 10):
        assert counts[f"word{rank}"] / total == pytest.approx(1 / rank**2 / weight, rel=0.05)
    for first, last in ((100, 255), (256, 999), (1000, 8000)):  # below and above one slot of the table
        expected = sum(1 / rank**2 for rank in range(first, last + 1)) / weight
        seen = sum(counts[f"word{rank}"] for rank in range(first, last + 1)) / total
        assert seen == pytest.approx(expected, rel=0.1)


def test_uniform_words_use_the_whole_vocabulary_evenly() -> None:
    counts = Counter(word for line in islice(words(seed=3, keys="uniform"), 100_000) for word in line.split())
    assert counts.keys() == {f"word{rank}" for rank in range(1, 8001)}
    mean = counts.total() / 8000
    # Poisson with mean 125: eight standard deviations either side.
    assert all(abs(count - mean) < 8 * mean**0.5 for count in counts.values())


def test_an_urn_of_even_weights_needs_no_second_draw() -> None:
    drawn = Counter(Urn(["heads", "tails"], [1, 1]).draw(random.Random(5), 10_000))
    assert drawn["heads"] == pytest.approx(5_000, rel=0.05)
    assert drawn.total() == 10_000


def test_a_tweet_has_the_fields_and_the_size_of_the_thesis() -> None:
    lines = list(islice(tweets(seed=7), 5_000))
    assert all(list(json.loads(line)) == TWEET_FIELDS for line in lines)
    assert sum(map(len, lines)) / len(lines) == pytest.approx(420, rel=0.03)


def test_one_tweet_in_a_hundred_is_about_a_movie(movie_texts: dict[str, list[str]]) -> None:
    assert sum(map(len, movie_texts.values())) == pytest.approx(1_000, rel=0.1)
    tagged = sum(
        not tweets_job.HASHTAGS.isdisjoint(json.loads(line)["hashtags"])
        for line in islice(tweets(seed=7), 100_000)
    )
    assert tagged == sum(map(len, movie_texts.values()))


def test_only_the_two_titles_that_hold_bad_are_always_blamed(movie_texts: dict[str, list[str]]) -> None:
    for movie, texts in movie_texts.items():
        by_substring = sum(any(word in text for word in BAD) for text in texts)
        by_word = sum(any(word in text.split() for word in BAD) for text in texts)
        assert by_word < 0.4 * len(texts)
        if movie in ("breakingbad", "badboys"):
            assert by_substring == len(texts)
        else:
            assert by_substring == by_word


def test_generator_and_job_mean_the_same_words() -> None:
    assert tuple(movie.lower() for movie in MOVIES) == tweets_job.MOVIES
    assert (GOOD, BAD) == (tweets_job.GOOD, tweets_job.BAD)
    assert set(MOVIE_TAGS) == tweets_job.HASHTAGS
    terms = (*tweets_job.MOVIES, *GOOD, *BAD)
    assert not [phrase for phrase in PHRASES if any(term in phrase.lower() for term in terms)]


def test_every_purchase_is_a_customers(tmp_path: Path) -> None:
    write(tmp_path / "customers.csv", customers(seed=3), float("inf"))
    rows = [line.split(",") for line in (tmp_path / "customers.csv").read_text().splitlines()]
    assert len({customer for customer, _, _ in rows}) == len(rows) == CUSTOMERS
    bought = [line.split(",") for line in islice(purchases(seed=3), 50_000)]
    assert {customer for _, customer, _, _, _ in bought} <= {customer for customer, _, _ in rows}
    assert all(1 <= float(amount) < 500 for *_, amount in bought)
