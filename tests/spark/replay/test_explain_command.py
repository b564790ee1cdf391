"""`lineage explain --sufficient`, `--minimal` and `--save` with a real Spark, Kafka and store."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lineage_service.queries import StartQuery
from tests.support.spark import looped_program as looped
from tests.support.spark.replay_bench import Answer, ReplayBench, replay_bench, row_of, state_of

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(3600)]

DOCUMENTS, ROUNDS = 3_000, 10
SEED = int(os.environ.get("LINEAGE_TEST_SEED", "300"))
JOBS = int(os.environ.get("LINEAGE_TEST_REPLAYS", "3"))

OWN_WORDS = """import sys
from operator import add
from pyspark import SparkContext

context = SparkContext(appName="Own words")
rows = context.textFile(sys.argv[1], 3).map(lambda line: line.split("|"))
pairs = rows.flatMap(lambda row: [(word, row[0]) for word in set(row[1].split())])
counts = pairs.mapValues(lambda _: 1).reduceByKey(add)
own = counts.filter(lambda pair: pair[1] == 1).join(pairs)
numbers = own.map(lambda pair: (pair[1][1], 1)).reduceByKey(add)
numbers.map(lambda pair: f"{pair[0]},{pair[1]}").saveAsTextFile(sys.argv[2])
context.stop()
"""
#: Men propose to the best that has not rejected them, women keep the best.
MATCHING = """from pyspark import SparkContext

context = SparkContext(appName="Matching")
edges = context.textFile("edges.txt", 2).map(lambda line: tuple(map(int, line.split())))
left = edges.map(lambda edge: (edge[0], (edge[2], edge[1], edge[3])))
for turn in range(8):
    proposed = left.reduceByKey(min)
    kept = proposed.map(lambda one: (one[1][1], (one[1][2], one[0], one[1][0]))).reduceByKey(min)
    kept_edges = kept.map(lambda one: (one[1][1], (one[1][2], one[0], one[1][0])))
    left = left.subtract(proposed.subtract(kept_edges)).cache()
    left.count()
kept.map(lambda one: f"{one[1][1]} {one[0]}").saveAsTextFile("matched")
context.stop()
"""

#: Shops that have one large order; the query counts them.
FRAMES = """from pyspark.sql import SparkSession, functions

spark = SparkSession.builder.appName("Frames").getOrCreate()
orders = spark.read.csv("orders.csv", header=True, schema="shop STRING, amount INT")
large = orders.where("amount > 90").groupBy("shop").count().where("count = 1")
totals = orders.join(large.select("shop"), "shop").groupBy("shop").agg(functions.sum("amount").alias("total"))
totals.write.csv("totals")
spark.stop()
"""
#: Numbers the documents with an even number in their name.
NUMBERED = """import sys
from pyspark import SparkContext

context = SparkContext(appName="Numbered")
names = context.textFile(sys.argv[1], 3).map(lambda line: line.split("|")[0])
even = names.filter(lambda name: int(name[1:]) % 2 == 0).zipWithIndex()
even.map(lambda pair: f"{pair[1]} {pair[0]}").saveAsTextFile(sys.argv[2])
context.stop()
"""


@pytest.fixture(scope="module")
def bench(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayBench]:
    with replay_bench(kafka, tmp_path_factory.mktemp("explained"), uuid.uuid4().hex[:12]) as made:
        chosen = random.Random(30)
        words = [f"w{number}" for number in range(6_000)]
        weights = [1 / (rank + 1) for rank in range(len(words))]
        texts = [" ".join(chosen.choices(words, weights, k=20)) for _ in range(DOCUMENTS)]
        (made.folder / "documents.txt").write_text(
            "".join(f"d{number}|{text}\n" for number, text in enumerate(texts))
        )
        (made.folder / "own.py").write_text(OWN_WORDS)
        (made.folder / "numbered.py").write_text(NUMBERED)
        (made.folder / "frames.py").write_text(FRAMES)
        orders = [f"{chosen.choice('abcdefgh')},{chosen.randrange(100)}" for _ in range(60)]
        (made.folder / "orders.csv").write_text("".join(f"{line}\n" for line in ["shop,amount", *orders]))
        (made.folder / "matching.py").write_text(MATCHING)
        (made.folder / "edges.txt").write_text("".join(f"{' '.join(map(str, edge))}\n" for edge in edges()))
        yield made


def edges() -> list[tuple[int, int, int, int]]:
    """(man, woman, her rank for him, his rank for her)."""
    chosen, count = random.Random(7), 24
    made = []
    hers = {woman: chosen.sample(range(count), count) for woman in range(count)}
    for man in range(count):
        for rank, woman in enumerate(chosen.sample(range(count), 7)):
            made.append((man, 100 + woman, rank, hers[woman].index(man)))
    return made


@pytest.fixture(scope="module")
def own(bench: ReplayBench) -> str:
    return bench.job("own.py", "documents.txt", "own")


@pytest.fixture(scope="module")
def matching(bench: ReplayBench) -> str:
    return bench.job("matching.py")


def explain(bench: ReplayBench, application: str, *words: str, command: list[str]) -> Answer:
    before = state_of(bench.folder)
    answer = bench.lineage("explain", application, *words, "--json", "--", sys.executable, *command)
    assert state_of(bench.folder) == before
    print(answer.code, answer.out[:3_000], answer.err[-3_000:])
    return answer


def own_words_of(lines: list[str]) -> Counter[str]:
    documents = [line.split("|") for line in lines]
    counts = Counter(word for _, text in documents for word in set(text.split()))
    numbers = Counter(name for name, text in documents for word in set(text.split()) if counts[word] == 1)
    return Counter(f"{name},{number}" for name, number in numbers.items())


def run_saved(bench: ReplayBench, folder: Path) -> subprocess.CompletedProcess[str]:
    """`run.sh`, with stock Spark."""
    return subprocess.run(
        [str(folder / "run.sh")],
        env=bench.environment(has_lineage=False),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_words_of_one_document_are_explained_by_few_of_many_documents(
    bench: ReplayBench, own: str, tmp_path: Path
) -> None:
    lines = (bench.folder / "documents.txt").read_text().splitlines()
    largest = max(own_words_of(lines), key=lambda text: int(text.split(",")[1]))
    row, command = row_of(bench.folder / "own", largest), ["own.py", "documents.txt", "own"]
    folder = tmp_path / "repro"
    answer = explain(bench, own, row, "--sufficient", "--save", str(folder), command=command)
    assert answer.code == 0
    assert answer.json["kind"] == "verified"
    assert answer.json["verified"]["runs"] <= ROUNDS
    assert 1 < answer.json["total"] <= DOCUMENTS // 100
    rows = [entry["text"] for entry in answer.json["rows"]]
    assert own_words_of(rows)[largest] == 1
    assert (folder / "documents.txt").read_text().splitlines() == rows
    path, _, line = row.rpartition(":")
    [check] = bench.checks_of(own, StartQuery(path=path, row=int(line) - 1))
    assert (check.total, check.runs) == (answer.json["total"], answer.json["verified"]["runs"])
    assert check.added_total == answer.json["verified"]["added"]
    assert not check.these_rows
    assert {entry.text for entry in check.added} <= set(rows)
    for _ in range(2):
        ended = run_saved(bench, folder)
        assert ended.returncode == 0, ended.stderr
        assert f"=> {largest}" in ended.stdout.splitlines()
    minimal = explain(bench, own, row, "--minimal", "--runs", "200", command=command)
    assert minimal.json["verified"]["minimal"] is True
    fewest = [entry["text"] for entry in minimal.json["rows"]]
    assert own_words_of(fewest)[largest] == 1
    assert all(own_words_of([line for line in fewest if line != left])[largest] == 0 for left in fewest)


def test_a_number_is_explained_by_the_rows_before(bench: ReplayBench, tmp_path: Path) -> None:
    command = ["numbered.py", "documents.txt", "numbered"]
    application = bench.job(*command)
    row, folder = row_of(bench.folder / "numbered", "5 d10"), tmp_path / "repro"
    answer = explain(bench, application, row, "--sufficient", "--save", str(folder), command=command)
    assert answer.code == 0
    assert [entry["text"].split("|")[0] for entry in answer.json["rows"]] == [f"d{at}" for at in range(11)]
    assert answer.json["verified"] == {"runs": 2, "added": 10, "minimal": False}
    assert answer.json["reasons"][0].startswith("ZipWithIndex (numbered.py:6) counts all rows before it")
    ended = run_saved(bench, folder)
    assert "=> 5 d10" in ended.stdout.splitlines(), ended.stderr
    minimal = explain(bench, application, row, "--minimal", "--runs", "200", command=command)
    names = [entry["text"].split("|")[0] for entry in minimal.json["rows"]]
    assert names == ["d0", "d2", "d4", "d6", "d8", "d10"]
    assert minimal.json["verified"]["minimal"] is True


def test_matches_are_explained_with_the_whole_list_of_the_man(bench: ReplayBench, matching: str) -> None:
    matched = {}
    for part in sorted((bench.folder / "matched").glob("part-*")):
        for number, text in enumerate(part.read_text().splitlines(), 1):
            matched[tuple(map(int, text.split()))] = f"{part}:{number}"
    lists: dict[int, list[tuple[int, int]]] = {}
    for line, (man, woman, *_) in enumerate(edges(), 1):
        lists.setdefault(man, []).append((line, woman))
    rejected = {(man, woman): [of for _, of in lists[man]].index(woman) for man, woman in matched}
    (man, woman), _ = max(rejected.items(), key=lambda item: item[1])
    demanded = [word for line, _ in lists[man] for word in ("--with", f"edges.txt:{line}")]
    place = matched[man, woman]
    alone = explain(bench, matching, place, "--sufficient", command=["matching.py"])
    assert alone.json["kind"] == "verified"
    assert alone.json["total"] == 1
    answer = explain(bench, matching, place, "--sufficient", *demanded, command=["matching.py"])
    assert answer.code == 0
    assert answer.json["kind"] == "verified"
    assert answer.json["verified"]["runs"] <= ROUNDS + 1  # the last one reads the saved rows
    assert {entry["line"] for entry in answer.json["rows"]} >= {line for line, _ in lists[man]}


def test_rows_of_a_query_are_saved_with_their_header(bench: ReplayBench, tmp_path: Path) -> None:
    application = bench.job("frames.py")
    [(place, text), *_] = [
        (f"{part}:{number}", text)
        for part in sorted((bench.folder / "totals").glob("part-*.csv"))
        for number, text in enumerate(part.read_text().splitlines(), 1)
    ]
    folder = tmp_path / "repro"
    answer = explain(bench, application, place, "--sufficient", "--save", str(folder), command=["frames.py"])
    assert answer.code == 0
    assert answer.json["kind"] == "verified"
    header, *rows = (folder / "orders.csv").read_text().splitlines()
    assert header == "shop,amount"
    lines = (bench.folder / "orders.csv").read_text().splitlines()
    read_twice = sorted({entry["line"] for entry in answer.json["rows"]})
    assert rows == [lines[line - 1] for line in read_twice]
    ended = run_saved(bench, folder)
    assert ended.returncode == 0, ended.stderr
    assert f"=> {text}" in ended.stdout.splitlines()


def test_what_is_verified_comes_out_of_the_saved_rows_on_stock_spark(
    bench: ReplayBench, tmp_path: Path
) -> None:
    verdicts: Counter[str] = Counter()
    for seed in looped.seeds(SEED, JOBS):
        for name, lines in zip(("left", "right"), looped.lines_of(seed), strict=True):
            (bench.folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
        command = [looped.__file__, str(bench.folder), str(seed)]
        application = bench.job(*command)
        rows = [
            (f"{part}:{number}", text)
            for part in sorted((bench.folder / f"out-{seed}").glob("part-*"))
            for number, text in enumerate(part.read_text().splitlines(), 1)
        ]
        place, text = random.Random(seed).choice(rows)
        folder = tmp_path / str(seed)
        answer = explain(bench, application, place, "--sufficient", "--save", str(folder), command=command)
        assert answer.code in (0, 3)
        verdicts[answer.json["kind"]] += 1
        if answer.json["kind"] != "verified":
            assert any(reason.startswith("Not verified: ") for reason in answer.json["reasons"])
            continue
        saved = [(folder / f"{name}.txt").read_text().splitlines() for name in ("left", "right")]
        assert looped.plain(seed, *saved)[text] >= 1, (seed, text, saved)
        ended = run_saved(bench, folder)
        assert ended.returncode == 0, (seed, ended.stderr)
        assert f"=> {text}" in ended.stdout.splitlines()
    assert verdicts["verified"] >= 0.9 * verdicts.total(), verdicts
