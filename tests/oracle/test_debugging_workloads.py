"""Workloads with planted faults, and those of PigMix and Newt, against loops over the lines of small files.

Each as RDDs and in SQL. All run in one JVM, which is what takes the time.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest

from perf.workloads import crashing, movie_inputs, pigmix_inputs, planted_inputs
from perf.workloads.generate import KINDS, WHOLE_KINDS, write

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
FORMS = ("rdd", "sql")
SIZES = {
    "page-views": 150_000,
    "purchases": 300_000,
    "words": 60_000,
    "tail-words": 60_000,
    "ratings": 200_000,
}
PLANTED = ("layovers", "snowfalls", "students", "readings", "documents", "broken")
PIGMIX = ("L2", "L3", "L5", "L6", "L7", "L11")
CRASHING = ("map", "mapPartitions", "reduceByKey", "groupByKey", "partitionBy", "sql-cast", "sql-udf")
#: Of each workload its inputs.
JOBS = {
    "sift_airport": ("layovers",),
    "sift_weather": ("snowfalls",),
    "sift_student": ("students",),
    "nested": ("readings",),
    "holistic": ("readings",),
    "unique_words": ("documents",),
    "top_k": ("words",),
    "subtract": ("purchases", "customers"),
    "newt_movies": ("ratings", "movies", "movie-users"),
}
Rows = list[list[str]]


@dataclass(frozen=True)
class Done:
    """What the jobs have left in `folder`, and the errors of those that failed."""

    folder: Path
    errors: dict[str, str | None]

    def lines(self, kind: str) -> list[str]:
        return (self.folder / kind).read_text().splitlines()

    def rows(self, name: str, separator: str = ",") -> Rows:
        """The columns of the lines that a job has saved, in order."""
        assert self.errors[name.partition("/")[0]] is None
        parts = sorted((self.folder / "out" / name).glob("part-*"))
        lines = [line for part in parts for line in part.read_text().splitlines()]
        return [row or [""] for row in csv.reader(lines, delimiter=separator)]


def write_inputs(folder: Path) -> None:
    for kind, size in SIZES.items():
        write(folder / kind, KINDS[kind](4), size)
    for kind in PLANTED:
        lines = islice(KINDS[kind](4), 25 * planted_inputs.GROUP + 100)
        write(folder / kind, lines, float("inf"))
    for kind in ("customers", "pigmix-users", "power-users", "movies", "movie-users", "broken-movies"):
        write(folder / kind, WHOLE_KINDS[kind](4), float("inf"))
    right = [line for line in (folder / "broken").read_text().splitlines() if not line.endswith("none")]
    (folder / "mended").write_text("".join(f"{line}\n" for line in right))


def calls(folder: Path) -> dict[str, list[str]]:
    """Name -> job and arguments."""

    def call(job: str, name: str, inputs: Iterable[str], *after: str) -> list[str]:
        paths = [str(folder / kind) for kind in inputs]
        return [str(ROOT / f"perf/workloads/{job}.py"), *paths, str(folder / "out" / name), *after]

    by_name = {
        f"{job} {form}": call(job, f"{job} {form}", inputs, form)
        for job, inputs in JOBS.items()
        for form in FORMS
    }
    tables = ("page-views", "pigmix-users", "power-users")
    for query in PIGMIX:
        for form in FORMS:
            by_name[f"{query} {form}"] = call("pigmix", f"{query} {form}", tables, query, form)
    for form in FORMS:
        by_name[f"broken movies {form}"] = call(
            "newt_movies", f"broken movies {form}", ("ratings", "broken-movies", "movie-users"), form
        )
    for operation in CRASHING:
        by_name[f"broken {operation}"] = call("crashing", f"broken {operation}", ("broken",), operation)
        by_name[f"mended {operation}"] = call("crashing", f"mended {operation}", ("mended",), operation)
    for form, job in (("rdd", "wordcount"), ("sql", "dataframe_wordcount")):
        by_name[f"{job} {form}"] = call(job, f"{job} {form}", ("tail-words",))
    return by_name


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("workloads")
    write_inputs(folder)
    jobs = calls(folder)
    (folder / "jobs.json").write_text(json.dumps(list(jobs.values())))
    settings = {
        "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4", "spark.log.level": "OFF",
        "spark.default.parallelism": "4",
    }  # fmt: skip
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    run = subprocess.run(
        [
            Path(sys.executable).with_name("spark-submit"), "--master", "local[2]", *conf,
            ROOT / "tests/support/spark/workload_runs.py", folder / "jobs.json",
        ],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1_500,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-4000:]
    errors = json.loads((folder / "errors.json").read_text())
    return Done(folder, dict(zip(jobs, errors, strict=True)))


def number(text: str) -> float:
    return float(text) if text else 0.0


@pytest.mark.parametrize("form", FORMS)
def test_short_layovers_are_summed_and_one_behind_midnight_makes_the_sum_negative(
    done: Done, form: str
) -> None:
    expected: Counter[tuple[str, str]] = Counter()
    for line in done.lines("layovers"):
        _, airport, arrival, departure = line.split(",")
        begin, end = (int(clock[:2]) * 60 + int(clock[3:]) for clock in (arrival, departure))
        if end - begin < 45:
            expected[airport, arrival[:2]] += end - begin
    sums = {(airport, hour): int(sum_) for airport, hour, sum_ in done.rows(f"sift_airport {form}")}
    assert sums == expected
    wrong = {
        (airport, arrival[:2])
        for _, airport, arrival, _ in (
            line.split(",") for line in filter(planted_inputs.is_wrong_layover, done.lines("layovers"))
        )
    }
    assert {key for key, sum_ in sums.items() if sum_ < 0} == wrong != set()


@pytest.mark.parametrize("form", FORMS)
def test_snow_has_its_range_by_month_and_a_wrong_unit_makes_it_large(done: Done, form: str) -> None:
    falls: dict[tuple[str, str], list[float]] = defaultdict(list)
    wrong = set()
    for line in done.lines("snowfalls"):
        _, state, month, snow = line.split(",")
        falls[state, month].append(float(snow[:-2]) * (304.8 if snow[-2:] == "ft" else 1))
        if planted_inputs.is_wrong_snowfall(line):
            wrong.add((state, month))
    ranges = {(state, month): float(mm) for state, month, mm in done.rows(f"sift_weather {form}")}
    assert ranges == {key: pytest.approx(max(of_key) - min(of_key)) for key, of_key in falls.items()}
    assert {key for key, mm in ranges.items() if mm > 1_000} == wrong != set()


@pytest.mark.parametrize("form", FORMS)
def test_students_have_a_mean_age_and_a_year_makes_it_high(done: Done, form: str) -> None:
    ages: dict[tuple[str, str], list[int]] = defaultdict(list)
    for line in done.lines("students"):
        _, school, grade, age = line.split(",")
        ages[school, grade].append(int(age))
    means = {(school, grade): float(mean) for school, grade, mean in done.rows(f"sift_student {form}")}
    assert means == {key: pytest.approx(sum(of_key) / len(of_key)) for key, of_key in ages.items()}
    wrong = {key for key, of_key in ages.items() if max(of_key) > 100}
    assert {key for key, mean in means.items() if mean > 20} == wrong != set()


def readings_of(done: Done) -> dict[str, list[tuple[str, int]]]:
    readings: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for line in done.lines("readings"):
        region, station, reading = line.split(",")
        readings[region].append((station, int(reading)))
    return readings


@pytest.mark.parametrize("form", FORMS)
def test_the_largest_sum_of_a_station_is_wrong_where_a_reading_is(done: Done, form: str) -> None:
    expected, wrong = {}, set()
    for region, pairs in readings_of(done).items():
        sums: Counter[str] = Counter()
        for station, reading in pairs:
            sums[station] += reading
        expected[region] = max(sums.values())
        if any(reading >= 100_000 for _, reading in pairs):
            wrong.add(region)
    largest = {region: int(sum_) for region, sum_ in done.rows(f"nested {form}")}
    assert largest == expected
    assert {region for region, sum_ in largest.items() if sum_ > 10_000} == wrong != set()


@pytest.mark.parametrize("form", FORMS)
def test_a_percentile_is_wrong_where_four_readings_are(done: Done, form: str) -> None:
    expected = {}
    for region, pairs in readings_of(done).items():
        ordered = sorted(reading for _, reading in pairs)
        expected[region] = next(
            reading for at, reading in enumerate(ordered, start=1) if 100 * at >= 99 * len(ordered)
        )
    percentiles = {region: int(reading) for region, reading in done.rows(f"holistic {form}")}
    assert percentiles == expected
    wrong = {line.split(",")[0] for line in filter(planted_inputs.is_wrong_reading, done.lines("readings"))}
    assert {region for region, reading in percentiles.items() if reading > 1_000} == wrong != set()


@pytest.mark.parametrize("form", FORMS)
def test_unique_words_come_in_one_document(done: Done, form: str) -> None:
    documents: dict[str, set[str]] = defaultdict(set)
    for line in done.lines("documents"):
        document, text = line.split("\t")
        for word in text.split(" "):
            documents[word].add(document)
    unique = {word: document for word, document in done.rows(f"unique_words {form}")}  # noqa: C416
    assert unique == {word: min(of_word) for word, of_word in documents.items() if len(of_word) == 1}
    assert {word for word in documents if word.startswith("only")} <= unique.keys()
    assert not [word for word in unique if word.startswith("both") and len(documents[word]) > 1]


@pytest.mark.parametrize("form", FORMS)
def test_top_words_come_most_often_in_their_order(done: Done, form: str) -> None:
    counts = Counter(word for line in done.lines("words") for word in line.split(" "))
    ordered = sorted(counts.items(), key=lambda row: (-row[1], row[0]))[:10]
    assert done.rows(f"top_k {form}") == [[word, str(times)] for word, times in ordered]


@pytest.mark.parametrize("form", FORMS)
def test_customers_without_a_purchase_on_the_day(done: Done, form: str) -> None:
    buyers = set()
    for line in done.lines("purchases"):
        _, customer, _, day, _ = line.split(",")
        if day == "2024-01-15":
            buyers.add(customer)
    customers = [line.split(",") for line in done.lines("customers")]
    expected = sorted([customer, place] for customer, _, place in customers if customer not in buyers)
    assert buyers
    assert sorted(done.rows(f"subtract {form}")) == expected


# -- PigMix -------------------------------------------------------------------------------------------


def views_of(done: Done) -> list[list[str]]:
    return [line.split("\t") for line in done.lines("page-views")]


def names_of(done: Done, kind: str) -> set[str]:
    return {line.split("\t")[0] for line in done.lines(kind)}


@pytest.mark.parametrize("form", FORMS)
def test_l2_has_the_views_of_power_users(done: Done, form: str) -> None:
    powerful = names_of(done, "power-users")
    expected = Counter((view[0], number(view[6])) for view in views_of(done) if view[0] in powerful)
    assert expected
    assert Counter((user, number(revenue)) for user, revenue in done.rows(f"L2 {form}")) == expected


@pytest.mark.parametrize("form", FORMS)
def test_l3_sums_the_revenue_of_known_users(done: Done, form: str) -> None:
    known = names_of(done, "pigmix-users")
    expected: dict[str, float] = defaultdict(float)
    for view in views_of(done):
        if view[0] in known:
            expected[view[0]] += number(view[6])
    assert {user: number(sum_) for user, sum_ in done.rows(f"L3 {form}")} == expected


@pytest.mark.parametrize("form", FORMS)
def test_l5_has_the_users_who_are_not_known(done: Done, form: str) -> None:
    expected = {view[0] for view in views_of(done)} - names_of(done, "pigmix-users")
    rows = done.rows(f"L5 {form}")
    assert ({row[0] for row in rows}, len(rows)) == (expected, len(expected))
    assert len(expected) > 1


@pytest.mark.parametrize("form", FORMS)
def test_l6_sums_the_time_of_wide_groups(done: Done, form: str) -> None:
    expected: Counter[tuple[str, ...]] = Counter()
    for view in views_of(done):
        expected[view[0], view[3], view[4], view[5]] += int(view[2])
    rows = done.rows(f"L6 {form}")
    assert {tuple(key): int(sum_) for *key, sum_ in rows} == expected
    assert len(rows) == len(expected)


@pytest.mark.parametrize("form", FORMS)
def test_l7_counts_mornings_and_afternoons(done: Done, form: str) -> None:
    expected: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for view in views_of(done):
        expected[view[0]][int(view[5]) >= 43_200] += 1
    rows = done.rows(f"L7 {form}")
    assert {user: [int(morning), int(afternoon)] for user, morning, afternoon in rows} == expected


@pytest.mark.parametrize("form", FORMS)
def test_l11_has_every_user_once(done: Done, form: str) -> None:
    expected = {view[0] for view in views_of(done)} | names_of(done, "pigmix-users")
    rows = done.rows(f"L11 {form}")
    assert ({row[0] for row in rows}, len(rows)) == (expected, len(expected))
    assert len(expected) > pigmix_inputs.USERS


# -- Newt ---------------------------------------------------------------------------------------------


def test_words_with_a_long_tail_are_counted(done: Done) -> None:
    counts = Counter(word for line in done.lines("tail-words") for word in line.split(" "))
    assert {word: int(times) for word, times in done.rows("dataframe_wordcount sql")} == counts
    texts = ["".join(row) for row in done.rows("wordcount rdd", separator="\t")]
    assert sorted(texts) == sorted(str(row) for row in counts.items())


@pytest.mark.parametrize("form", FORMS)
def test_movies_end_with_ages_by_genre_and_children_of_a_year(done: Done, form: str) -> None:
    genres = {}
    for line in done.lines("movies"):
        movie, _, named = line.split("\t")
        genres[movie] = named.split("|")
    scores: dict[str, Counter[str]] = defaultdict(Counter)
    for line in done.lines("ratings"):
        _, user, movie, stars = line.split(",")
        for genre in genres[movie]:
            scores[user][genre] += int(stars)
    name = f"newt_movies {form}"
    assert {(user, genre): int(score) for user, genre, score in done.rows(f"{name}/scores", "\t")} == {
        (user, genre): score for user, of_user in scores.items() for genre, score in of_user.items()
    }
    top = {
        user: sorted(of_user, key=lambda genre: (-of_user[genre], genre))[:3]
        for user, of_user in scores.items()
    }
    assert {
        user: [genre for genre in three.split(",") if genre != "-"]
        for user, three in done.rows(f"{name}/top", "\t")
    } == top
    decades = {
        line.split(",")[0]: (2012 - int(line.split(",")[1][:4])) // 10 * 10
        for line in done.lines("movie-users")
    }
    ages = Counter((genre, decades[user]) for user, of_user in top.items() for genre in of_user)
    assert {(genre, int(decade)): int(users) for genre, decade, users in done.rows(f"{name}/ages")} == ages
    registered = {
        line.split(",")[0] for line in filter(movie_inputs.is_registration, done.lines("movie-users"))
    }
    assert {user for user in top if decades[user] == 0} == registered & top.keys() != set()


@pytest.mark.parametrize("form", FORMS)
def test_a_genre_with_a_comma_makes_the_last_job_fail(done: Done, form: str) -> None:
    assert "too many values to unpack" in (done.errors[f"broken movies {form}"] or "")
    folder = done.folder / "out" / f"broken movies {form}"
    assert (folder / "top" / "_SUCCESS").exists()
    assert not (folder / "ages" / "_SUCCESS").exists()
    lines = [line for part in folder.glob("top/part-*") for line in part.read_text().splitlines()]
    assert any(movie_inputs.COMMA in line for line in lines)


# -- jobs that fail -----------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", CRASHING)
def test_a_value_that_is_no_number_makes_the_job_fail(done: Done, operation: str) -> None:
    assert done.errors[f"mended {operation}"] is None
    error = done.errors[f"broken {operation}"] or ""
    assert "none" in error
    assert {*crashing.OPERATIONS, *crashing.QUERIES} >= set(CRASHING)
