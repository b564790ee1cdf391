"""Values of a real job: which are kept, what of them leaves, and that the job does not notice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lineage_service.queries import RecordQuery
from spark_agent import contract
from spark_agent.worker import sampling_rules
from tests.support.spark.application import Application

Run = Callable[..., tuple[Any, Application]]
CARDS = ["4000111122223333", "4000555566667777"]
DETAILED = {"spark_lineage_detailed": "true"}
RESULT = [(CARDS[0], 3), (CARDS[1], 1)]


def job(context: Any) -> Any:
    paid = context.parallelize([(CARDS[0], 1), (CARDS[1], 1), (CARDS[0], 2)], 2)
    large = paid.map(lambda pair: {"card": pair[0], "amount": pair[1]}).keyBy(lambda row: row["card"])
    return sorted(large.mapValues(lambda row: row["amount"]).reduceByKey(lambda a, b: a + b, 2).collect())


def texts(application: Application, relation: str) -> list[list[str]]:
    return [
        list(text)
        for block in application.blocks
        if block.relation == relation
        for text in block.columns["text"]
    ]


def names_with_values(application: Application) -> list[str]:
    graph = application.questions.graph(application.application_id)
    return [node.name for node in graph.nodes if node.has_values]


def counters(application: Application) -> dict[str, int]:
    return application.questions.application(application.application_id).counters


@pytest.fixture
def privacy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """privacy(source): what makes a module with the function `redact` importable on the executors."""

    def make(source: str) -> str:
        folder = tmp_path / "modules"
        folder.mkdir()
        (folder / "card_privacy.py").write_text(source)
        return str(folder / "card_privacy.py")

    return make


def test_values_of_public_operations_are_kept_and_only_those(run: Run) -> None:
    result, application = run(job, **DETAILED)
    assert result == RESULT
    assert names_with_values(application) == ["map", "keyBy", "mapValues", "reduceByKey"]
    assert not [text for text in texts(application, contract.VALUES) if text[0] == "bytes"]
    assert (counters(application)["cut"], counters(application)["withheld"]) == (0, 0)


@pytest.mark.thorough
def test_filters_choose_operations(run: Run) -> None:
    _, application = run(job, **DETAILED, spark_lineage_values_nodes="*By*,!keyBy")
    assert names_with_values(application) == ["reduceByKey"]
    line = str(job.__code__.co_firstlineno + 2)
    _, application = run(job, **DETAILED, spark_lineage_values_call_sites=f"test_values.py:{line}")
    assert names_with_values(application) == ["map", "keyBy"]


def test_cut_values_are_counted_in_the_application(run: Run) -> None:
    conf = {"spark.lineage.values.max.characters": "12"}
    _, application = run(job, **DETAILED, **conf, spark_lineage_values_nodes="map")
    assert texts(application, contract.VALUES) == [["json", '{"card": "4…']] * 3
    assert counters(application)["cut"] == 3
    ended = [event for event in application.events if event["type"] == contract.APPLICATION_ENDED]
    assert ended[0]["counters"]["cut"] == 3


def with_module(path: str) -> Callable[[Any], Any]:
    def run(context: Any) -> Any:
        context.addPyFile(path)
        return job(context)

    return run


def everything(application: Application) -> str:
    return json.dumps(
        [application.events, [list(block.columns.items()) for block in application.blocks]], default=list
    )


def test_redaction_comes_before_anything_leaves(run: Run, privacy: Callable[[str], str]) -> None:
    path = privacy(
        "def redact(operation, kind, value):\n"
        "    if kind == 'key':\n"
        "        return operation + ' *' + value[-4:]\n"
        "    return {**value, 'card': '*'} if operation == 'map' else None\n"
    )
    result, application = run(with_module(path), **DETAILED, spark_lineage_redact="card_privacy:redact")
    assert result == RESULT
    assert not [card for card in CARDS if card in everything(application)]
    assert ["json", '{"card": "*", "amount": 2}'] in texts(application, contract.VALUES)
    assert sorted(texts(application, contract.KEYS)) == [
        ["str", "reduceByKey *3333"],
        ["str", "reduceByKey *7777"],
    ]
    assert counters(application)["withheld"] == 0
    trace = application.trace(
        direction="backward",
        node=next(
            n.node_id
            for n in application.questions.graph(application.application_id).nodes
            if n.name == "reduceByKey"
        ),
        key="reduceByKey *3333",
    )
    assert trace.nodes[-1].total == 2


@pytest.mark.parametrize(
    ("source", "name"),
    [
        pytest.param(
            "def redact(operation, kind, value):\n    raise ValueError(value)\n",
            "card_privacy:redact",
            id="raises",
        ),
        pytest.param(
            "import nowhere_to_be_found\n",
            "card_privacy:redact",
            id="import fails",
            marks=pytest.mark.thorough,
        ),
        pytest.param("", "card_privacy:redact", id="no function", marks=pytest.mark.thorough),
        pytest.param("", "no_such_module:redact", id="no module", marks=pytest.mark.thorough),
    ],
)
def test_what_cannot_be_redacted_does_not_leave(
    run: Run, privacy: Callable[[str], str], source: str, name: str
) -> None:
    result, application = run(with_module(privacy(source)), **DETAILED, spark_lineage_redact=name)
    assert result == RESULT
    assert not [card for card in CARDS if card in everything(application)]
    captured = texts(application, contract.VALUES) + texts(application, contract.KEYS)
    assert captured == [list(contract.WITHHELD)] * len(captured)
    assert counters(application)["withheld"] == len(captured) > 0
    assert application.questions.application(application.application_id).complete


def test_values_that_are_told_by_something_else_are_answered_as_ever(run: Run, tmp_path: Path) -> None:
    rows = [f'{{"words":["a","b {number % 3}"],"n":{number}.0}}' for number in range(40)]
    (tmp_path / "in.json").write_text("".join(f"{row}\n" for row in rows))

    def job(context: Any) -> Any:
        parsed = context.textFile(str(tmp_path / "in.json"), 2).map(json.loads)
        pairs = parsed.flatMap(lambda row: row["words"]).map(lambda word: (word, 1))
        return sorted(pairs.reduceByKey(lambda a, b: a + b, 2).collect())

    result, application = run(job, **DETAILED)
    assert result == [("a", 40), ("b 0", 14), ("b 1", 13), ("b 2", 13)]
    words = [word for row in rows for word in json.loads(row)["words"]]
    wanted = {
        "map": [json.dumps(json.loads(row)) for row in rows] + [json.dumps([word, 1]) for word in words],
        "flatMap": words,
        "reduceByKey": [json.dumps(pair) for pair in result],
    }
    found: dict[str, list[str | None]] = {}
    for node in application.questions.graph(application.application_id).nodes:
        if node.kind == "operator":
            query = RecordQuery(node=node.node_id, limit=1_000)
            records = application.questions.records(application.application_id, query).records
            found.setdefault(node.name, []).extend(record.value for record in records)
    assert {name: sorted(map(str, texts)) for name, texts in found.items()} == {
        name: sorted(texts) for name, texts in wanted.items()
    }


# -- sampling ---------------------------------------------------------------------------------------

SAMPLE = 0.2


def long_job(folder: Path) -> Callable[[Any], list[Any]]:
    """Narrow operators, two keyed shuffles of one branch, a join with another and a sort."""
    (folder / "in.txt").write_text("".join(f"{i % 7} {i} {i * i % 11}\n" for i in range(30)))

    def job(context: Any) -> list[Any]:
        numbers = context.textFile(str(folder / "in.txt"), 3).map(str.split)
        pairs = numbers.filter(lambda row: row[2] != "3").flatMap(lambda row: [(row[0], int(row[1]))] * 2)
        sums = pairs.reduceByKey(lambda a, b: a + b, 2)
        joined = sums.join(numbers.map(lambda row: (row[0], row[2])), 3)
        largest = joined.mapValues(lambda both: both[0] + int(both[1])).filter(lambda pair: pair[1] % 2)
        result: list[Any] = largest.sortBy(lambda pair: (pair[1], pair[0]), numPartitions=2).collect()
        return result

    return job


#: No Python has the values of what these put together.
IN_THE_JVM = {"union", "coalesce", "repartition", "cartesian"}


def keeping_job(folder: Path) -> Callable[[Any], list[Any]]:
    """What the JVM keeps, puts together and deals out: no key leads through it."""
    (folder / "in.txt").write_text("".join(f"{i % 7} {i}\n" for i in range(30)))

    def job(context: Any) -> list[Any]:
        lines = context.textFile(str(folder / "in.txt"), 3).map(str.split)
        pairs = lines.map(lambda row: (row[0], int(row[1]))).filter(lambda pair: pair[1] % 5).cache()
        pairs.count()
        both = pairs.union(pairs.flatMap(lambda pair: [pair] * (pair[1] % 3)))
        few = both.coalesce(2).map(lambda pair: (pair[0], pair[1] + 1)).persist()
        dealt = few.repartition(3).sortByKey(numPartitions=2).cache()
        grouped = dealt.cogroup(few.keyBy(lambda pair: pair[0]), numPartitions=2)
        sizes = grouped.map(lambda group: (group[0], len(list(group[1][0])))).coalesce(1)
        products = sizes.cartesian(pairs.filter(lambda pair: pair[0] == "3")).filter(
            lambda both: both[0][1] % 2
        )
        result: list[Any] = products.map(lambda both: both[0]).union(sizes).collect()
        return result + few.map(lambda pair: pair[1]).collect()

    return job


@pytest.mark.parametrize("made", [long_job, keeping_job])
@pytest.mark.thorough
def test_exactly_the_ways_of_chosen_rows_have_values(
    made: Callable[[Path], Callable[[Any], list[Any]]],
    run: Run,
    run_plain: Callable[..., Any],
    tmp_path: Path,
) -> None:
    job = made(tmp_path)
    result, application = run(job, **DETAILED, spark_lineage_values_sample=str(SAMPLE))
    assert result == run_plain(job)
    graph = application.questions.graph(application.application_id)
    (source,) = [node for node in graph.nodes if node.kind == "source"]
    on_the_way: set[tuple[str, str]] = set()
    chosen = 0
    for record in application.questions.records(
        application.application_id, RecordQuery(node=source.node_id, limit=1_000)
    ).records:
        if sampling_rules.is_chosen(record.partition, record.offset, int(SAMPLE * (1 << 32))):
            chosen += 1
            trace = application.trace(
                direction="forward",
                node=source.node_id,
                partition=record.partition,
                offset=record.offset,
            )
            assert trace.exact
            on_the_way |= {
                (node.node_id, record.record_id) for node in trace.nodes for record in node.records
            }
    assert 3 <= chosen <= 12
    operators = [node for node in graph.nodes if node.kind == "operator"]
    valued = [node for node in operators if node.has_values]
    assert {node.name for node in operators if not node.has_values} <= IN_THE_JVM
    records = {
        (node.node_id, record.record_id): record.value
        for node in valued
        for record in application.questions.records(
            application.application_id, RecordQuery(node=node.node_id, limit=1_000)
        ).records
    }
    captured = {place for place, value in records.items() if value is not None}
    assert captured == on_the_way & set(records)
    assert 0 < len(captured) < len(records)


@pytest.mark.thorough
def test_records_that_were_kept_have_their_values(run: Run, tmp_path: Path) -> None:
    _, application = run(keeping_job(tmp_path), **DETAILED)
    graph = application.questions.graph(application.application_id)
    valued = {node.node_id for node in graph.nodes if node.has_values}
    for node in graph.nodes:
        query = RecordQuery(node=node.node_id, limit=1_000)
        records = application.questions.records(application.application_id, query).records
        assert all((record.value is not None) == (node.node_id in valued) for record in records), node.name
    for partition, offset in ((0, 0), (1, 0)):
        trace = application.trace(
            direction="backward",
            node=graph.nodes[-1].node_id,
            partition=partition,
            offset=offset,
            values=True,
        )
        assert len({node.node_id for node in trace.nodes} & valued) > 3
        for traced in trace.nodes:
            values = [record.value for record in traced.records]
            assert (None not in values) == (traced.node_id in valued), (traced.name, values)


def test_positions_are_complete_while_values_are_sampled(run: Run, tmp_path: Path) -> None:
    job = long_job(tmp_path)
    counts = []
    for conf in ({**DETAILED, "spark_lineage_values_sample": "0.01"}, {}):
        _, application = run(job, **conf)
        assert application.questions.application(application.application_id).complete
        nodes = application.questions.graph(application.application_id).nodes
        counts.append([(node.name, node.records) for node in nodes])
    assert counts[0] == counts[1]


def test_a_fraction_that_cannot_be_is_told(run: Run) -> None:
    _, application = run(lambda context: context.parallelize([1]).collect(), spark_lineage_values_sample="0")
    (started,) = [event for event in application.events if event["type"] == contract.APPLICATION_STARTED]
    assert "spark.lineage.values.sample=0 is not above 0" in started["problems"][0]
    assert started["values_sample"] == 1
