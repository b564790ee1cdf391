"""`lineage replay` with a real Spark, Kafka and store: a job whose lineage alone reproduces nothing."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark.replay_bench import ReplayBench, replay_bench, row_of, state_of

pytestmark = pytest.mark.thorough

JOB = """import sys
from pyspark import SparkContext

context = SparkContext(appName="Own words")
rows = context.textFile("documents.txt", 3).map(lambda line: line.split("|"))
pairs = rows.flatMap(lambda row: [(word, row[0]) for word in row[1].split()]).distinct()
own = pairs.groupByKey().mapValues(list).filter(lambda pair: len(pair[1]) == 1)
counts = own.map(lambda pair: (pair[1][0], 1)).reduceByKey(lambda one, other: one + other)
counts.map(lambda pair: f"{pair[0]},{pair[1]}").saveAsTextFile("own")
lengths = rows.map(lambda row: (row[0], len(row[1]) / 3)).reduceByKey(lambda one, other: one + other)
lengths.map(lambda pair: f"{pair[0]};{pair[1]}").saveAsTextFile("lengths")
if len(sys.argv) > 1:
    print(open(sys.argv[1], "w"))
context.stop()
"""
FAILS = """from pyspark import SparkContext

context = SparkContext(appName="Shares")
numbers = context.textFile("numbers.txt", 2)


def share(text):
    return 100 / int(text)


numbers.map(share).map(str).saveAsTextFile("shares")
"""
NUMBERED = """from pyspark import SparkContext

context = SparkContext(appName="Numbered")
lines = context.textFile("documents.txt", 3).filter(lambda line: line > "a|the")
texts = lines.map(lambda line: line.split("|")[1]).zipWithIndex()
texts.map(lambda pair: f"{pair[1]} {pair[0]}").saveAsTextFile("numbered")
context.stop()
"""
HEADED = """from pyspark import SparkContext


class BadRow(Exception):
    pass


def parse(line):
    shop, amount = line.split(",")
    if amount == "broken":
        raise BadRow(shop)
    return shop, int(amount)


context = SparkContext(appName="Headed")
for name in ("good", "bad"):
    lines = context.textFile(f"{name}.csv", 2)
    header = lines.first()
    rows = lines.filter(lambda line: line != header).map(parse)
    sums = rows.reduceByKey(lambda one, other: one + other)
    sums.map(lambda pair: f"{pair[0]} {pair[1]}").saveAsTextFile(f"{name}_sums")
"""
DOCUMENTS = """a|the cat sat
a|on the mat
b|the dog sat
b|the bird sang
c|the cat sang and sang
c|a fish
d|the fish and the cat
"""


@pytest.fixture(scope="module")
def bench(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayBench]:
    with replay_bench(kafka, tmp_path_factory.mktemp("replays"), uuid.uuid4().hex[:12]) as made:
        (made.folder / "documents.txt").write_text(DOCUMENTS)
        (made.folder / "numbers.txt").write_text("1\n2\n0\n4\n0\n5\n")
        (made.folder / "job.py").write_text(JOB)
        (made.folder / "fails.py").write_text(FAILS)
        (made.folder / "numbered.py").write_text(NUMBERED)
        (made.folder / "headed.py").write_text(HEADED)
        good = ["shop,amount", "Graz,1", "Linz,2", "Graz,4", "Wien,8", "Graz,16"]
        (made.folder / "good.csv").write_text("".join(f"{line}\n" for line in good))
        (made.folder / "bad.csv").write_text("".join(f"{line}\n" for line in [*good, "Wien,broken"]))
        yield made


@pytest.fixture(scope="module")
def application(bench: ReplayBench) -> str:
    return bench.job("job.py")


@pytest.fixture(scope="module")
def failed(bench: ReplayBench) -> str:
    return bench.job("fails.py")


@pytest.fixture(scope="module")
def numbered(bench: ReplayBench) -> str:
    return bench.job("numbered.py")


@pytest.fixture(scope="module")
def headed(bench: ReplayBench) -> str:
    return bench.job("headed.py")


@pytest.fixture(autouse=True)
def _untouched(
    bench: ReplayBench, application: str, failed: str, numbered: str, headed: str
) -> Iterator[None]:
    """Not a byte, a name or a time in the folder of the jobs changes."""
    before = state_of(bench.folder)
    yield
    assert state_of(bench.folder) == before


def test_a_sum_comes_out_again_from_the_rows_of_its_lineage(bench: ReplayBench, application: str) -> None:
    row = row_of(bench.folder / "lengths", "b;")
    answer = bench.replay(application, row, "--json", command=["job.py"])
    assert answer.code == 0, answer.err
    assert (answer.json["verdict"], answer.json["strategy"], answer.json["rounds"]) == (
        "reproduced",
        "rows",
        1,
    )
    assert (answer.json["rows"], answer.json["of"]) == (2, 7)
    assert answer.json["used"][0]["rows"] == [[2, 2]]


def test_a_count_behind_a_filter_of_groups_is_repaired(bench: ReplayBench, application: str) -> None:
    for document in "ab":
        row = row_of(bench.folder / "own", f"{document},")
        answer = bench.replay(application, row, "--json", command=["job.py"])
        assert answer.code == 0, (answer.out, answer.err)
        replay = answer.json
        assert (replay["verdict"], replay["strategy"]) == ("reproduced", "repair"), replay
        assert 2 <= replay["rounds"] <= 5
        assert 2 <= replay["rows"] <= 7
        assert any("another way at" in note for note in replay["notes"])


def test_a_header_that_the_program_took_is_replayed_with_the_rows(bench: ReplayBench, headed: str) -> None:
    row = row_of(bench.folder / "good_sums", "Graz")
    answer = bench.replay(headed, row, "--json", command=["headed.py"])
    assert answer.code == 0, (answer.out, answer.err)
    assert (answer.json["verdict"], answer.json["rounds"], answer.json["rows"]) == ("reproduced", 1, 4)
    assert "1 row was added that the program took by first (headed.py:18)" in answer.json["notes"]


def test_a_record_behind_a_header_fails_again(bench: ReplayBench, headed: str) -> None:
    answer = bench.replay(headed, "--failure", "1", "--json", command=["headed.py"])
    assert answer.code == 0, (answer.out, answer.err)
    [output] = answer.json["outputs"]
    assert (output["verdict"], output["was"]) == ("reproduced", "BadRow: Wien")


def test_any_row_can_be_left_out_though_an_action_read_only_the_first(
    bench: ReplayBench, headed: str
) -> None:
    rows = f"{bench.folder / 'good.csv'}:2,4"
    answer = bench.replay(headed, "--without", rows, "--json", command=["headed.py"])
    sums = next(diff for diff in answer.json["diff"] if diff["path"].endswith("good_sums"))
    assert sums["changed"] == [{"was": "Graz 21", "is": "Graz 16", "key": None}], (answer.out, answer.err)
    assert sums["same"] == 2


def test_steps_show_what_went_in_and_came_out(bench: ReplayBench, application: str) -> None:
    row = row_of(bench.folder / "lengths", "b;")
    answer = bench.replay(application, row, "--step", "--json", command=["job.py"])
    assert answer.code == 0, (answer.out, answer.err)
    steps = answer.json["steps"]
    assert [step["name"] for step in steps] == [
        "textFile",
        "map",
        "map",
        "reduceByKey",
        "map",
        "saveAsTextFile",
    ]
    values = [[record["value"] for record in step["records"]] for step in steps]
    lines = DOCUMENTS.splitlines()[2:4]
    words = [line.split("|") for line in lines]
    shares = [len(text) / 3 for _, text in words]
    assert values[0] == lines
    assert [json.loads(value) for value in values[1]] == words
    assert [json.loads(value) for value in values[2]] == [["b", share] for share in shares]
    assert [json.loads(value) for value in values[3]] == [["b", sum(shares)]]
    assert values[4] == values[5] == [f"b;{sum(shares)}"]
    names = [[f"{step['node_id']}#{record['record_id']}" for record in step["records"]] for step in steps]
    for step, before in zip(steps[1:], names, strict=False):
        made_of = [name for record in step["records"] for name in record["made_of"]]
        assert sorted(made_of) == sorted(before), step
    assert "job.py:5" in steps[0]["call_site"]


def test_steps_of_a_repaired_count_have_no_other_words(bench: ReplayBench, application: str) -> None:
    row = row_of(bench.folder / "own", "b,")
    answer = bench.replay(application, row, "--step", "--json", command=["job.py"])
    assert answer.code == 0, (answer.out, answer.err)
    steps = {step["node_id"].rpartition("#")[2]: step for step in answer.json["steps"]}
    last = max(steps, key=int)
    assert [record["value"] for record in steps[last]["records"]] == ["b,2"]
    [own] = [step for step in steps.values() if step["name"] == "filter"]
    assert sorted(json.loads(record["value"])[0] for record in own["records"]) == ["bird", "dog"]


def test_steps_of_all_rows_follow_the_ways_of_the_lineage_alone(bench: ReplayBench, numbered: str) -> None:
    row = row_of(bench.folder / "numbered", "1 the dog sat")
    answer = bench.replay(numbered, row, "--step", "--json", command=["numbered.py"])
    assert answer.code == 0, (answer.out, answer.err)
    replay = answer.json
    assert (replay["strategy"], replay["verdict"]) == ("watch", "reproduced")
    values = {step["name"]: [record["value"] for record in step["records"]] for step in replay["steps"]}
    assert values["textFile"] == ["b|the dog sat"]
    assert [json.loads(value) for value in values["zipWithIndex"]] == [["the dog sat", 1]]
    # Of a record that is not on the way no value was captured.
    assert len(bench.values_of(replay["application"])["zipWithIndex"]) == 1
    assert not bench.values_of(numbered)


def test_two_runs_and_the_list_of_replays(
    bench: ReplayBench, application: str, failed: str, numbered: str
) -> None:
    row = row_of(bench.folder / "lengths", "a;")
    before = bench.lineage("apps", "--json").json["applications"]
    answer = bench.replay(application, row, "--twice", "--json", command=["job.py"])
    assert answer.code == 0, (answer.out, answer.err)
    assert "both runs gave the same rows" in answer.json["notes"]
    listed = bench.lineage("apps", "--json").json["applications"]
    assert {application, failed, numbered} <= {app["application_id"] for app in listed}
    assert [app["application_id"] for app in listed] == [app["application_id"] for app in before]


def test_without_a_row_the_outputs_differ_as_on_an_edited_input(bench: ReplayBench, application: str) -> None:
    answer = bench.replay(
        application, "--without", f"{bench.folder}/documents.txt:7", "--json", command=["job.py"]
    )
    assert answer.code == 0, (answer.out, answer.err)
    own, lengths = sorted(answer.json["diff"], key=lambda diff: diff["path"], reverse=True)
    assert own["path"].endswith("/own")
    # Without d, the words fish and and are c's own.
    assert {(row["was"], row["is"]) for row in own["changed"]} == {("c,1", "c,3")}
    assert lengths["gone"] == ["d;6.666666666666667"]
    assert (lengths["new"], lengths["changed"], lengths["same"]) == ([], [], 3)


def test_a_replaced_row_is_read_in_place_of_the_old_one(bench: ReplayBench, application: str) -> None:
    answer = bench.replay(
        application, "--replace", f"{bench.folder}/documents.txt:3=b|it", "--json", command=["job.py"]
    )
    assert answer.code == 0, (answer.out, answer.err)
    lengths = next(diff for diff in answer.json["diff"] if diff["path"].endswith("/lengths"))
    assert [row["key"] for row in lengths["changed"]] == ["b"]


def test_a_script_that_writes_elsewhere_is_refused(bench: ReplayBench, application: str) -> None:
    row = row_of(bench.folder / "lengths", "b;")
    answer = bench.replay(application, row, "--json", command=["job.py", "documents.txt"])
    assert answer.code == 1, (answer.out, answer.err)
    assert answer.json["verdict"] == "refused"
    assert "documents.txt" in answer.json["refused"][0]["path"]


def test_a_failure_is_reproduced_by_its_record_alone(bench: ReplayBench, failed: str) -> None:
    answer = bench.replay(failed, "--failure", "1", "--json", command=["fails.py"])
    assert answer.code == 0, (answer.out, answer.err)
    assert (answer.json["verdict"], answer.json["rows"]) == ("reproduced", 1)
    assert answer.json["outputs"][0]["was"] == "ZeroDivisionError: division by zero"
    assert answer.json["steps"] is None
    answer = bench.replay(failed, "--failure", "1", "--step", "--json", command=["fails.py"])
    assert answer.code == 0, (answer.out, answer.err)
    assert [[record["value"] for record in step["records"]] for step in answer.json["steps"]] == [
        ["0"],
        ["ZeroDivisionError: division by zero"],
    ]
    assert answer.json["steps"][1]["name"] == "map"
    answer = bench.replay(failed, "--skip-failing", "--json", command=["fails.py"])
    assert len(answer.json["skipped"]) == 2, (answer.out, answer.err)
    [rows] = [note.rpartition(" ")[2] for note in answer.json["notes"] if "for --without" in note]
    [source] = json.loads(Path(rows).read_text())["sources"]
    assert source["files"][0]["rows"] == [[2, 1], [4, 1]]
    answer = bench.replay(failed, "--without", rows, "--json", command=["fails.py"])
    assert (answer.code, answer.json["exit_code"]) == (0, 0), (answer.out, answer.err)
