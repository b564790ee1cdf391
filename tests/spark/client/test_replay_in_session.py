"""Replays in a running session: of outputs, of records of any operation, and without some rows."""

from __future__ import annotations

import gc
import operator
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spark_agent import TraceError, agent, explain, trace
from spark_agent.client.explanation import Verified
from tests.support.spark.application import part_rows
from tests.support.spark.pipelines import write
from tests.support.spark.sessions import Servers, session

pytestmark = pytest.mark.timeout(1800)

DOCUMENTS = [
    "a|the cat sat",
    "a|on the mat",
    "b|the dog sat",
    "b|the bird sang",
    "c|the cat sang and sang",
    "c|a fish",
]
#: Who offers, to whom, as how good, and how good that one finds it; less is better.
OFFERS = ["p1 a1 0 9", "p1 a2 1 9", "p2 a1 0 3", "p3 a1 0 5", "p3 a3 1 5"]
NAMES = ["a|Ann", "b|Bob", "c|Cem", "d|Dee"]


def name_and_word(line: str) -> list[tuple[str, str]]:
    name, _, text = line.partition("|")
    return [(word, name) for word in text.split()]


def name_and_text(line: str) -> tuple[str, str]:
    name, _, text = line.partition("|")
    return name, text


def by_offerer(offer: tuple[str, ...]) -> tuple[str, tuple[int, tuple[str, ...]]]:
    return offer[0], (int(offer[2]), offer)


def by_taker(offer: tuple[str, ...]) -> tuple[str, tuple[int, tuple[str, ...]]]:
    return offer[1], (int(offer[3]), offer)


def takers(offers: Any) -> Any:
    """A pair for each taker, when those that were refused have made their second offer."""
    for _ in range(2):
        made = offers.map(by_offerer).reduceByKey(min).map(lambda pair: pair[1][1])
        taken = made.map(by_taker).reduceByKey(min).map(lambda pair: pair[1][1])
        offers = offers.subtract(made.subtract(taken))
    return taken.map(lambda offer: f"{offer[0]},{offer[1]}")


@dataclass(frozen=True)
class Ran:
    """A job that has acted, in a session that goes on."""

    folder: Path
    context: Any
    words: Any
    counts: Any
    joined: Any
    own: Any
    behind: Any
    calls: Any

    def row(self, output: str, text: str) -> Any:
        """The records of the row of an output with this text."""
        ((path, row, _),) = [part for part in part_rows(self.folder / output) if part[2] == text]
        return trace(str(path)).row(row)


@pytest.fixture(scope="module")
def ran(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("words")
    documents, names = write(folder / "documents.txt", DOCUMENTS), write(folder / "names.txt", NAMES)
    with session({**servers.conf, "spark.default.parallelism": "3"}) as context:
        lines = context.textFile(str(documents), 3)
        words = lines.flatMap(name_and_word)
        counts = words.map(lambda pair: (pair[0], 1)).reduceByKey(operator.add, 2)
        counts.map(lambda pair: f"{pair[0]},{pair[1]}").saveAsTextFile(str(folder / "counts"))
        texts = lines.map(name_and_text).groupByKey().mapValues(list)
        joined = texts.join(context.textFile(str(names), 2).map(name_and_text))
        joined.map(lambda pair: f"{pair[1][1]}: {len(pair[1][0])}").saveAsTextFile(str(folder / "joined"))
        own = words.distinct().groupByKey().mapValues(list).filter(lambda pair: len(pair[1]) == 1)
        numbers = own.map(lambda pair: (pair[1][0], 1)).reduceByKey(operator.add)
        numbers.map(lambda pair: f"{pair[0]},{pair[1]}").saveAsTextFile(str(folder / "own"))
        once = counts.filter(lambda pair: pair[1] == 1).join(words).map(lambda pair: (pair[1][1], 1))
        of_name = once.reduceByKey(operator.add)
        of_name.map(lambda pair: f"{pair[0]},{pair[1]}").saveAsTextFile(str(folder / "once"))
        offers = context.textFile(str(write(folder / "offers.txt", OFFERS)), 2)
        takers(offers.map(lambda line: tuple(line.split()))).saveAsTextFile(str(folder / "takers"))
        limit = [len(DOCUMENTS[0])]
        lines.filter(lambda line: len(line) >= limit[0]).saveAsTextFile(str(folder / "long"))
        limit[0] = 0
        lines.zipWithIndex().map(lambda pair: f"{pair[1]} {pair[0]}").saveAsTextFile(str(folder / "numbered"))
        calls = context.accumulator(0)
        name_of = context.broadcast(dict(map(name_and_text, NAMES)))

        def mean(pair: Any) -> str:
            calls.add(1)
            return f"{name_of.value[pair[0]]},{sum(map(len, pair[1])) / (len(pair[1]) - 1)}"

        texts.map(mean).saveAsTextFile(str(folder / "means"))
        pairs = lines.map(name_and_text)
        twice = pairs.join(context.textFile(str(documents), 2).map(name_and_text))
        twice.map(lambda pair: " / ".join(pair[1])).saveAsTextFile(str(folder / "twice"))
        checkpointed = lines.map(name_and_text)
        checkpointed.localCheckpoint()
        behind = checkpointed.mapValues(len).reduceByKey(max)
        behind.saveAsTextFile(str(folder / "behind"))
        yield Ran(folder, context, words, counts, joined, own, behind, calls)


def published() -> tuple[int, int]:
    active = agent.active()
    assert active is not None
    return active.session.events.committed_runs, active.session.events.emitted_events


def test_an_output_comes_out_again_of_its_rows_alone(ran: Ran) -> None:
    before = published()
    again = ran.row("counts", "cat,2").replay()
    assert sorted(again.collect()) == ["and,1", "cat,2", "sang,2", "sat,1", "the,2"]
    report = again.report
    assert (report.mode, report.rows, report.of) == ("only", 2, len(DOCUMENTS))
    assert [source.way for source in report.sources] == ["literal"]
    assert (report.verdict, report.extra) == ("reproduced", 4)
    assert "replay of 2 of 6 rows" in str(report)
    # What a program makes of it is no part of the job, whatever it is.
    assert again.map(len).cache().distinct().count() == 2
    again.saveAsTextFile(str(ran.folder / "again"))
    assert sorted(text for *_, text in part_rows(ran.folder / "again")) == sorted(again.collect())
    assert again.take(1) == [again.first()]
    assert published() == before
    both = again.map(lambda text: text.split(",")[0]).union(ran.counts.keys())  # with an RDD of the job
    assert both.filter(lambda word: word == "cat").count() == 2


@pytest.mark.thorough
def test_both_sides_of_a_join_are_read_again(ran: Ran) -> None:
    again = ran.row("joined", "Bob: 2").replay()
    assert again.collect() == ["Bob: 2"]
    assert (again.report.rows, again.report.of, again.report.verdict) == (
        3,
        len(DOCUMENTS) + len(NAMES),
        "reproduced",
    )


def test_a_row_that_other_rows_decide_on_is_not_said_to_be_reproduced(ran: Ran) -> None:
    again = ran.row("own", "b,2").replay()
    assert again.collect() == ["b,5"]
    assert again.report.verdict == "changed"
    assert [(output.was, output.now) for output in again.report.outputs] == [("b,2", "b,5")]


def test_an_explanation_gets_the_rows_without_which_other_words_pass(ran: Ran) -> None:
    concise = explain(ran.row("once", "b,2"))
    assert [row.text for row in concise.collect()] == DOCUMENTS[2:4]
    assert concise.verified is None
    sufficient = concise.sufficient()
    assert sufficient.verified is not None, sufficient.reasons
    texts = [row.text for row in sufficient.collect()]
    assert (sufficient.kind, sufficient.count(), sufficient.verified.added) == ("verified", 4, 2)
    assert set(texts) >= {*DOCUMENTS[2:4]}
    words = Counter(word for line in texts for word, _ in name_and_word(str(line)))
    assert sorted(word for word in words if words[word] == 1 and word in "dog bird sat sang") == [
        "bird",
        "dog",
    ]
    cat = explain(ran.counts).key("cat").sufficient()
    assert cat.verified == Verified(runs=2, added=0, minimal=False)
    assert [row.text for row in cat.collect()] == [DOCUMENTS[0], DOCUMENTS[4]]
    others = explain(ran.counts).key("cat")
    assert (others.kind, others.verified) == ("verified", cat.verified)
    [check] = others.checks
    assert check["notes"][0] == "the operations of the session ran, and not the whole program"


def test_groups_of_a_group_by_key_get_rows_too(ran: Ran) -> None:
    sufficient = explain(ran.row("own", "b,2")).sufficient()
    assert sufficient.verified == Verified(runs=3, added=2, minimal=False)
    texts = [str(row.text) for row in sufficient.collect()]
    assert set(texts) >= {*DOCUMENTS[2:4]}
    names = Counter(word for word, _ in {pair for line in texts for pair in name_and_word(line)})
    assert (names["dog"], names["bird"]) == (1, 1)
    assert min(names[word] for word in ("the", "sat", "sang")) > 1


def test_a_row_that_must_be_there_brings_what_decided_against_it(ran: Ran) -> None:
    offers = str(ran.folder / "offers.txt")
    second = explain(ran.row("takers", "p1,a2"))
    assert [row.text for row in second.collect()] == [OFFERS[1]]
    sufficient = second.sufficient(including=[(offers, 0), (offers, 1)])
    assert sufficient.verified == Verified(runs=3, added=1, minimal=False)
    assert [row.text for row in sufficient.collect()] == [OFFERS[0], OFFERS[1], OFFERS[2]]
    quick = second.sufficient(including=[(offers, 0), (offers, 1)], by_spark=False)
    assert (quick.kind, quick.verified, quick.in_one_task) == ("bound", None, Verified(2, 1, minimal=False))
    assert quick.reasons[0].startswith("Not verified: they were seen to be enough in one task")
    assert [row.text for row in quick.collect()] == [row.text for row in sufficient.collect()]


def test_a_function_whose_values_were_changed_in_place_runs_with_those_of_then(ran: Ran) -> None:
    explained = explain(ran.row("long", DOCUMENTS[0])).sufficient()
    assert explained.verified == Verified(runs=2, added=0, minimal=False)
    assert explained.given_values[-1].startswith("limit as it was then, in filter at ")


@pytest.mark.thorough
def test_where_places_matter_all_rows_are_read(ran: Ran) -> None:
    again = ran.row("numbered", f"4 {DOCUMENTS[4]}").replay()
    assert again.count() == len(DOCUMENTS)
    assert again.report.mode == "all"
    assert again.report.verdict == "reproduced"
    assert "zipWithIndex" in str(again.report)


def test_the_records_of_an_operation_are_there_as_objects(ran: Ran) -> None:
    cat = ran.row("counts", "cat,2")
    before = published()
    assert cat.rdd().collect() == ["cat,2"]
    assert cat.go_back(2).rdd().collect() == [("cat", 2)]
    words = cat.go_back(4).rdd()
    assert sorted(words.collect()) == [("cat", "a"), ("cat", "c")]
    assert words.report.exact
    assert words.values().distinct().count() == 2
    assert cat.go_back_all().rdd().collect() == [DOCUMENTS[0], DOCUMENTS[4]]
    assert trace(ran.counts).key("sang").rdd().collect() == [("sang", 3)]
    third = trace(ran.words).at(0, 2).rdd()
    assert third.collect() == ran.words.glom().collect()[0][2:3]
    assert published()[1] > before[1]  # the collect of the job's own RDD
    ((name, (texts, person)),) = ran.row("joined", "Bob: 2").go_back(2).rdd().collect()
    assert (name, sorted(texts), person) == ("b", ["the bird sang", "the dog sat"], "Bob")


@pytest.mark.thorough
def test_what_other_rows_decide_on_is_not_exact(ran: Ran) -> None:
    own = ran.row("own", "b,2").rdd()
    assert own.collect() == ["b,5"]
    assert not own.report.exact
    assert "groupByKey" in str(own.report)


@pytest.mark.thorough
def test_each_step_of_a_way_is_shown(ran: Ran) -> None:
    steps = ran.row("counts", "cat,2").steps()
    assert [(step.name, sorted(step.records)) for step in steps] == [
        ("textFile", [DOCUMENTS[0], DOCUMENTS[4]]),
        ("flatMap", [("cat", "a"), ("cat", "c")]),
        ("map", [("cat", 1), ("cat", 1)]),
        ("reduceByKey", [("cat", 2)]),
        ("map", ["cat,2"]),
        ("saveAsTextFile", ["cat,2"]),
    ]
    assert all(step.report.exact for step in steps)
    assert "('cat', 2)" in str(steps[3])


@pytest.mark.thorough
def test_without_some_rows_the_whole_output_is_made_again(ran: Ran) -> None:
    cat = ran.row("counts", "cat,2")
    fewer = cat.replay(without=lambda text: text.startswith("c|"))
    assert fewer.report.mode == "without"
    assert fewer.report.rows == 1
    expected: dict[str, int] = {}
    for line in DOCUMENTS:
        for word, _ in name_and_word(line) if line != DOCUMENTS[4] else ():
            expected[word] = expected.get(word, 0) + 1
    assert sorted(fewer.collect()) == sorted(f"{word},{count}" for word, count in expected.items())
    same = cat.replay(without=trace(ran.folder / "documents.txt").row(4))
    assert sorted(same.collect()) == sorted(fewer.collect())


@pytest.mark.thorough
def test_a_side_of_a_join_is_gone_back_to(ran: Ran) -> None:
    bob = ran.row("joined", "Bob: 2").go_back(2)
    assert bob.go_back(path=1).go_back_all().rdd().collect() == [NAMES[1]]
    assert sorted(bob.go_back(path=0).go_back_all().rdd().collect()) == sorted(DOCUMENTS[2:4])
    assert ran.row("joined", "Bob: 2").go_back(3, path=1).rdd().collect() == [("b", "Bob")]


@pytest.mark.thorough
def test_a_dataframe_of_a_replay_is_no_part_of_the_job(ran: Ran, jar: Path) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    again = ran.row("counts", "cat,2").replay().map(lambda text: text.split(","))
    before = published()
    frame = spark.createDataFrame(again, "word string, count string")
    assert frame.where("word = 'cat'").count() == 1
    active = agent.active()
    assert active is not None
    active.spark_sessions.flush()
    assert published() == before


@pytest.mark.thorough
def test_a_query_runs_again_on_rows_of_parquet(ran: Ran, jar: Path) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    orders = [("North", 10), ("South", 7), ("North", 5), ("East", 3)]
    spark.createDataFrame(orders, "shop string, amount int").repartition(2).write.parquet(
        str(ran.folder / "orders")
    )
    read = spark.read.parquet(str(ran.folder / "orders"))
    read.groupBy("shop").sum("amount").write.csv(str(ran.folder / "sums"))
    records = ran.row("sums", "North,15")
    assert records.count() == 1
    before = published()
    again = records.replay()
    assert [tuple(row) for row in again.collect()] == [("North", 15)]
    assert again.where("shop = 'South'").count() == 0
    assert (again.report.mode, again.report.rows, again.report.of) == ("only", 2, 4)
    active = agent.active()
    assert active is not None
    active.spark_sessions.flush()
    assert published() == before
    assert read.where("shop = 'South'").count() == 1  # the job's own is captured as ever
    active.spark_sessions.flush()
    assert published() > before


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda ran: trace(ran.folder / "counts").go_back_all().go_next_all().replay(), "one operation"),
        (
            lambda ran: ran.row("counts", "cat,2").replay(without=lambda text: False),
            "nothing would be left out",
        ),
        (lambda ran: trace(ran.folder / "counts").replay(without=len), "choose records first"),
        (lambda ran: trace(ran.folder / "counts").filter(lambda text: False).replay(), "none were chosen"),
        (lambda ran: trace(ran.folder / "counts").filter(lambda text: False).rdd(), "none were chosen"),
        (lambda ran: ran.row("joined", "Bob: 2").go_back(3, path=2), "path= is from 0 to 1"),
        (lambda ran: trace(ran.counts).key("cat").go_back(path=0), "several inputs"),
    ],
)
def test_what_cannot_be_replayed_says_why(ran: Ran, ask: Any, text: str) -> None:
    with pytest.raises(TraceError, match=text):
        ask(ran)


@pytest.mark.thorough
def test_a_loop_keeps_no_recipes(ran: Ran) -> None:
    active = agent.active()
    assert active is not None
    gc.collect()
    before = len(active.session.recipes)
    data = ran.context.parallelize(range(10), 1)
    total = 0
    for turn in range(20):
        total += data.map(lambda number, turn=turn: number + turn).filter(bool).sum()
    assert total > 0
    gc.collect()
    assert len(active.session.recipes) <= before + 1
    numbers = data.map(str)
    number = numbers._lineage_node.number
    numbers.count()
    found_again = trace(numbers).at(0, 1)
    del numbers
    gc.collect()
    assert active.session.recipes.of(number) is None
    with pytest.raises(TraceError, match="keep it in a variable"):
        found_again.replay()


# -- influences and sifts ------------------------------------------------------------------------------------


def counts_of(documents: list[str]) -> dict[str, str]:
    words = Counter(word for line in documents for word, _ in name_and_word(line))
    return {word: f"{word},{count}" for word, count in words.items()}


def own_words_of(documents: list[str]) -> dict[str, str]:
    names: dict[str, set[str]] = {}
    for word, name in (pair for line in documents for pair in name_and_word(line)):
        names.setdefault(word, set()).add(name)
    own = Counter(name for of_word in names.values() if len(of_word) == 1 for name in of_word)
    return {name: f"{name},{count}" for name, count in own.items()}


def joined_of(documents: list[str]) -> dict[str, str]:
    texts = Counter(line.partition("|")[0] for line in documents)
    names = dict(line.split("|") for line in NAMES)
    return {names[name]: f"{names[name]}: {count}" for name, count in texts.items()}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("output", "key", "oracle", "way"),
    [
        ("counts", "the", counts_of, "folds"),
        ("own", "c", own_words_of, "runs"),
        ("joined", "Ann", joined_of, "runs"),
    ],
)
def test_an_influence_in_the_session_is_what_the_job_gives_without_each_row(
    ran: Ran, output: str, key: str, oracle: Any, way: str
) -> None:
    was = oracle(DOCUMENTS)[key]
    influence = ran.row(output, was).influence()
    assert (influence.output, influence.way, influence.exact) == (was, way, True), influence
    documents = [row for row in influence.inputs if row.path and row.path.endswith("documents.txt")]
    assert documents
    for row in documents:
        assert row.text == DOCUMENTS[row.row or 0]
        rest = [line for line in DOCUMENTS if line != row.text]
        assert row.without == oracle(rest).get(key), row
    names = [row for row in influence.inputs if row not in documents]
    assert [(row.text, row.without) for row in names] == ([("a|Ann", None)] if output == "joined" else [])
    assert str(influence).startswith(was)


def test_a_sift_in_the_session_gives_the_fewest_rows(ran: Ran) -> None:
    def fails(text: str) -> bool:
        return int(text.split(",")[1]) > 2

    ((path, row, _),) = [part for part in part_rows(ran.folder / "counts") if part[2] == "the,5"]
    sift = trace(str(path)).row(row).sift(fails)
    assert (len(sift.rows), sift.of, sift.minimal, sift.exact) == (3, 5, True, True), sift
    assert all("the" in (of.text or "") for of in sift.rows)
    assert sift.necessary is True
    assert "3 of 5 rows are enough" in str(sift)
    with pytest.raises(TraceError, match="the test holds for none"):
        trace(str(path)).row(row).sift(lambda text: False)
    with pytest.raises(TraceError, match="only rows of saveAsTextFile"):
        trace(ran.counts).key("cat").influence()


@pytest.mark.thorough
def test_runs_that_fail_are_no_errors_and_change_no_accumulator(ran: Ran) -> None:
    before = ran.calls.value
    mean = ran.row("means", f"Ann,{float(sum(len(line) - 2 for line in DOCUMENTS[:2]))}")
    influence = mean.influence()
    assert "broadcast variable" in influence.why
    assert [(row.failed, row.without) for row in influence.inputs] == [(True, None), (True, None)]
    assert not influence.exact
    assert "ZeroDivisionError" in influence.notes[0]
    sift = mean.sift(lambda text: text.startswith("Ann"))
    assert (len(sift.rows), sift.minimal, sift.exact) == (2, True, True)
    assert "ZeroDivisionError" in sift.notes[0]
    assert ran.calls.value == before > 0


@pytest.mark.thorough
def test_a_row_that_is_read_twice_is_left_out_of_each_source(ran: Ran) -> None:
    influence = ran.row("twice", "the cat sat / the cat sat").influence()
    assert [(row.text, row.without) for row in influence.inputs] == [(DOCUMENTS[0], None)]
    assert influence.exact


def test_what_stands_behind_a_checkpoint_is_not_left_out(ran: Ran) -> None:
    behind = ran.row("behind", "('c', 21)")
    for ask in (behind.influence, lambda: behind.sift(len)):
        with pytest.raises(TraceError, match="textFile is not read again: map is read whole"):
            ask()
