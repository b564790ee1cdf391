"""The thesis's workloads on plain Spark and small files, against answers from loops over the lines."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]


def generate(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "perf.workloads.generate", *arguments], cwd=ROOT, check=True)


def output_of(job: str, *arguments: str | Path) -> list[str]:
    """Run a job as its user does and return the lines that it saved, in order."""
    submit = Path(sys.executable).with_name("spark-submit")
    settings = ["--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    run = subprocess.run(
        [submit, *settings, ROOT / f"perf/workloads/{job}.py", *arguments],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert run.returncode == 0, run.stdout[-4000:]
    output = next(Path(argument) for argument in arguments if Path(argument).name == "out")
    return [line for part in sorted(output.glob("part-*")) for line in part.read_text().splitlines()]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("words") / "words.txt"
    generate("words", "--megabytes", "1", "--seed", "4", "--out", path)
    return path


@pytest.fixture(scope="module")
def tweets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tweets") / "tweets.json"
    generate("tweets", "--megabytes", "20", "--seed", "4", "--out", path)
    return path


def test_a_generated_file_ends_with_the_line_that_reaches_the_size(words: Path, tweets: Path) -> None:
    for path, size in ((words, 1_000_000), (tweets, 20_000_000)):
        *_, last = path.read_bytes().splitlines(keepends=True)
        assert path.stat().st_size - len(last) < size <= path.stat().st_size
        assert last.endswith(b"\n")
        assert [other.name for other in path.parent.iterdir()] == [path.name]


def test_a_smaller_file_is_the_beginning_of_a_larger_one(words: Path, tmp_path: Path) -> None:
    generate("words", "--megabytes", "0.1", "--seed", "4", "--out", tmp_path / "small.txt")
    assert words.read_bytes().startswith((tmp_path / "small.txt").read_bytes())


@pytest.fixture(scope="module")
def purchases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("purchases") / "purchases.csv"
    generate("purchases", "--megabytes", "2", "--seed", "4", "--out", path)
    return path


@pytest.mark.parametrize("term", ["word128", "word7 "])
def test_grep_keeps_the_lines_with_the_term_in_their_order(words: Path, tmp_path: Path, term: str) -> None:
    expected = [line for line in words.read_text().splitlines() if re.search(re.escape(term), line)]
    assert expected
    arguments = [] if term == "word128" else [term]
    assert output_of("grep", words, tmp_path / "out", *arguments) == expected


def test_wordcount_counts_every_word(words: Path, tmp_path: Path) -> None:
    expected = Counter(words.read_text().split())
    counted = [ast.literal_eval(line) for line in output_of("wordcount", words, tmp_path / "out")]
    assert len(counted) == len(expected)
    assert dict(counted) == expected


def test_tweets_sums_praise_and_blame_by_movie_with_its_bug(tweets: Path, tmp_path: Path) -> None:
    movies = "badboys inception gangstar breakingbad matrix interstellar thegodfather pulpfiction fightclub"
    about, good, bad = Counter[str](), Counter[str](), Counter[str]()
    for line in tweets.read_text().splitlines():
        tweet = json.loads(line)
        if set(tweet["hashtags"]) & {"#movie", "#film", "#cinema", "#hollywood", "#blockbuster"}:
            text = tweet["text"].lower()
            for movie in (*movies.split(), "thedarkknight"):
                if movie in text:
                    about[movie] += 1
                    good[movie] += bool(re.search("incredible|great|top-notch|masterpiece|perfect", text))
                    bad[movie] += bool(re.search("confusing|overrated|unsatisfied|poor|bad|hard", text))
                    break
    assert len(about) == 10
    lines = output_of("tweets", tweets, tmp_path / "out")
    assert sorted(lines) == sorted(f"{movie},{good[movie]},{bad[movie]}" for movie in about)

    always_blamed = {movie for movie in about if bad[movie] == about[movie]}
    assert always_blamed == {"badboys", "breakingbad"}
    assert 0 < good["breakingbad"] < bad["breakingbad"]


def test_join_gives_each_purchase_the_country_of_its_customer(purchases: Path, tmp_path: Path) -> None:
    generate("customers", "--seed", "4", "--out", tmp_path / "customers.csv")
    countries = {
        customer: country
        for customer, _, country in (
            line.split(",") for line in (tmp_path / "customers.csv").read_text().splitlines()
        )
    }
    expected = Counter(
        f"{customer},{countries[customer]},{amount}"
        for _, customer, _, _, amount in (line.split(",") for line in purchases.read_text().splitlines())
    )
    assert Counter(output_of("join", purchases, tmp_path / "customers.csv", tmp_path / "out")) == expected


def test_group_gives_each_customer_a_count_and_a_median(purchases: Path, tmp_path: Path) -> None:
    amounts: dict[str, list[str]] = {}
    for line in purchases.read_text().splitlines():
        _, customer, _, _, amount = line.split(",")
        amounts.setdefault(customer, []).append(amount)
    expected = [
        f"{customer},{len(each)},{sorted(each, key=float)[(len(each) - 1) // 2]}"
        for customer, each in amounts.items()
    ]
    assert sorted(output_of("group", purchases, tmp_path / "out")) == sorted(expected)


def test_kept_counts_long_words_and_first_ones(words: Path, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for line in words.read_text().splitlines():
        each = line.split(" ")
        counts.update([each[0], *(word for word in each if len(word) > 5)])
    expected = [f"{word},{count}" for word, count in counts.items()]
    assert sorted(output_of("kept", words, tmp_path / "out")) == sorted(expected)
