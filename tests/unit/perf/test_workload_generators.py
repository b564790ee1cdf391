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

from perf.workloads import movie_inputs, pigmix_inputs, planted_inputs
from perf.workloads import tweets as tweets_job
from perf.workloads.generate import (
    BAD,
    CUSTOMERS,
    GOOD,
    KINDS,
    MOVIE_TAGS,
    MOVIES,
    PHRASES,
    WHOLE_KINDS,
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
        (KINDS["tail-words"], "25f81c5f043aefe7"),
        (KINDS["tweets"], "fef6e8678a6bef59"),
        (KINDS["purchases"], "fe901f5b8b7adaa5"),
        (KINDS["page-views"], "1e4f183edee6f346"),
        (KINDS["ratings"], "c72fc51e0c108e34"),
        (KINDS["layovers"], "eddd4a57fb14c06f"),
        (KINDS["snowfalls"], "1fd5cf224461c918"),
        (KINDS["students"], "c1fd9038186c3c07"),
        (KINDS["readings"], "d2fa51528c0d0816"),
        (KINDS["broken"], "e77de7b3644084fb"),
        (KINDS["documents"], "9e86daf0d501d519"),
        (KINDS["zipf-documents"], "0cb6d1a377edf8ed"),
        (KINDS["edges"], "5e4c3a83b8607869"),
        (KINDS["grown-edges"], "5011490508480e24"),
        (WHOLE_KINDS["customers"], "32a255abeddcd816"),
        (WHOLE_KINDS["customer-records"], "8ac6cc2051de81a0"),
        (WHOLE_KINDS["ranked-pairs"], "3dd54f262fc19e0b"),
        (WHOLE_KINDS["pigmix-users"], "9ef57b420fd3aa98"),
        (WHOLE_KINDS["power-users"], "37cc8b438cbd50ae"),
        (WHOLE_KINDS["movies"], "30ff919e0ebf17df"),
        (WHOLE_KINDS["broken-movies"], "7fc3c96f490126de"),
        (WHOLE_KINDS["movie-users"], "0cd903599c47cb64"),
    ],
    ids=["words", "uniform words", *list(KINDS)[1:], *WHOLE_KINDS],
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


def test_a_tail_of_words_has_the_share_of_newt() -> None:
    """635,000 lines had 1.17 million words; of a tenth of the lines it is nearly a tenth of the rare ones."""
    lines = list(islice(KINDS["tail-words"](3), 63_500))
    assert all(8 <= len(line.split(" ")) <= 12 for line in lines)
    rare = {word for line in lines for word in line.split(" ") if word.startswith("rare")}
    assert len(rare) == pytest.approx(8_000_000 * (1 - (1 - 1 / 8_000_000) ** 127_000), rel=0.01)


def test_page_views_have_the_shares_of_pigmix() -> None:
    views = [line.split("\t") for line in islice(KINDS["page-views"](3), 50_000)]
    assert {len(view) for view in views} == {9}
    for column, share in ((0, 0.07), (3, 0.20), (6, 0.05)):
        missing = sum(view[column] == "" for view in views) / len(views)
        assert missing == pytest.approx(share, rel=0.1)
    known = {line.split("\t")[0] for line in WHOLE_KINDS["pigmix-users"](3)}
    assert len(known) == pigmix_inputs.USERS
    named = [view[0] for view in views if view[0]]
    assert sum(name in known for name in named) / len(named) == pytest.approx(0.79, rel=0.05)
    assert {line.split("\t")[0] for line in WHOLE_KINDS["power-users"](4)} < known


def test_a_draw_by_zipf_gives_every_rank() -> None:
    draw = pigmix_inputs.zipf(random.Random(3), 20)
    counts = Counter(draw() for _ in range(20_000))
    assert counts.keys() == set(range(1, 21))
    assert counts[1] > counts[2] > counts[4] > counts[16]


@pytest.mark.parametrize(
    ("kind", "is_wrong", "in_group"),
    [
        ("snowfalls", planted_inputs.is_wrong_snowfall, 1),
        ("students", planted_inputs.is_wrong_student, 1),
        ("readings", planted_inputs.is_wrong_reading, planted_inputs.WRONG_READINGS),
        ("broken", planted_inputs.is_wrong_value, 1),
    ],
)
def test_each_tenth_group_has_its_wrong_lines(
    kind: str, is_wrong: Callable[[str], bool], in_group: int
) -> None:
    lines = list(islice(KINDS[kind](3), 100 * planted_inputs.GROUP))
    wrong = Counter(at // planted_inputs.GROUP for at, line in enumerate(lines) if is_wrong(line))
    assert wrong == dict.fromkeys(range(0, 100, planted_inputs.PLANTED), in_group)


def test_one_layover_of_each_second_airport_ends_behind_midnight() -> None:
    lines = list(islice(KINDS["layovers"](3), 48 * planted_inputs.GROUP))
    (wrong,) = filter(planted_inputs.is_wrong_layover, lines)
    _, airport, arrival, _ = wrong.split(",")
    assert (airport, arrival[:2]) == ("A0000", "23")


def test_movies_have_their_three_faults() -> None:
    users = list(WHOLE_KINDS["movie-users"](3))
    assert sum(map(movie_inputs.is_registration, users)) == len(users) // movie_inputs.REGISTERED
    movies, broken = list(WHOLE_KINDS["movies"](3)), list(WHOLE_KINDS["broken-movies"](3))
    assert sum(map(movie_inputs.repeats_genre, movies)) == len(movies) // movie_inputs.REPEATED
    assert sum(movie_inputs.COMMA in line for line in broken) == len(movies) // movie_inputs.COMMAS
    assert [line for line in broken if movie_inputs.COMMA not in line] == [
        line for line, other in zip(movies, broken, strict=True) if movie_inputs.COMMA not in other
    ]
