"""By what records of an operation are told from others: of recipes, without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_agent.client.chosen_records import ChosenRecords
from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.rebuilt_rdds import RowsOfSource, SourceRead
from spark_agent.worker.record_choices import OfKeys, OfTexts

SPLITS = [{"split": 0, "positions": [[2, 2]]}]


class Rdd:
    """Notes what is done with it."""

    def __init__(self) -> None:
        self.done: Any = None

    def filter(self, choice: Any) -> Rdd:
        self.done = choice
        return self

    def mapPartitionsWithIndex(self, keep: Any, preserves: bool) -> Rdd:
        self.done = keep
        return self


class Job:
    """A recipe as a chosen set of records has it; notes how it is made again."""

    def __init__(self, recipe: Recipe, *, whole: bool = False, redact: str = "") -> None:
        self.recipe, self.node_id, self.starts = recipe, f"app#{recipe.number}", ((("key", "k"),),)
        self.application = SimpleNamespace(id="app")
        self.session = SimpleNamespace(settings=SimpleNamespace(redact=redact))
        source = {"whole": whole, "splits": SPLITS}
        rows = {step.number: RowsOfSource(source) for step in recipe.lineage() if step.source is not None}
        self.rows = SimpleNamespace(of_source=rows, how=(), count=2, of=9)
        self.made_with: Any = None

    def again(self, **arguments: Any) -> Any:
        self.made_with = arguments
        return SimpleNamespace(rdd=Rdd(), sources=(SourceRead(0, "textFile", "literal"),))

    def again_of_all(self) -> Any:
        self.made_with = "all"
        return SimpleNamespace(rdd=Rdd(), sources=(SourceRead(0, "textFile", "whole"),))


def chain(*names: str, source: Any = "file") -> Recipe:
    recipe = Recipe(0, "textFile", source=source)
    for number, name in enumerate(names, 1):
        recipe = Recipe(number, name, (recipe, len))
    return recipe


def asked(*records: dict[str, Any], texts: tuple[str | None, ...] = (), reached: Any = ()) -> Any:
    def traced(direction: str, node_id: str, starts: Any) -> Any:
        traced.asked = (direction, node_id, len(starts))  # type: ignore[attr-defined]
        return reached

    def choose(job: Job) -> tuple[Any, Any]:
        rdd = ChosenRecords(job, records, texts, traced).rdd()  # type: ignore[arg-type]
        return rdd, getattr(traced, "asked", None)

    return choose


def record(offset: int, key: str | None = None) -> dict[str, Any]:
    return {"partition": 0, "offset": offset} | ({} if key is None else {"key": key})


def test_of_a_chain_of_single_records_places_count_from_their_rows() -> None:
    job = Job(chain("map", "flatMap"))
    rdd, traced = asked(record(7), reached=[record(9), record(7), record(6)])(job)
    assert traced == ("forward", "app#2", 2)
    assert rdd.done.positions == {0: [[1, 1]]}
    assert job.made_with == {"keeps_places": True}
    assert rdd.report.exact


def test_of_a_source_they_are_its_rows() -> None:
    job = Job(chain())
    rdd, traced = asked(record(2), record(3))(job)
    assert (rdd.done, traced, job.made_with) == (None, None, {})
    assert rdd.report.exact


def test_where_all_is_read_places_are_as_they_were() -> None:
    job = Job(chain("map", "zipWithIndex"))
    rdd, _ = asked(record(7), record(8))(job)
    assert job.made_with == "all"
    assert rdd.done.positions == {0: [[7, 2]]}
    assert rdd.report.exact


def test_of_a_source_whose_rows_cannot_be_named_no_place_is_sure() -> None:
    rdd, _ = asked(record(7))(Job(chain("map"), whole=True))
    assert rdd.done is None
    assert not rdd.report.exact


def test_records_of_groups_are_told_by_their_keys() -> None:
    job = Job(chain("map", "reduceByKey"))
    rdd, traced = asked(record(0, "a"), record(1, "b"))(job)
    (choice,) = job.made_with["chosen"].items()
    assert (choice[0], choice[1].keys, traced) == (2, {"a", "b"}, None)
    assert job.made_with["keeps_places"]
    assert rdd.report.exact


def test_behind_a_group_its_key_tells_them() -> None:
    job = Job(chain("groupByKey", "mapValues", "filter", "values"))
    rdd, traced = asked(record(0), reached=[record(5, "a")])(job)
    assert traced == ("backward", "app#1", 1)
    ((number, choice),) = job.made_with["chosen"].items()
    assert (number, choice.keys) == (1, {"a"})
    assert rdd.report.exact


@pytest.mark.parametrize(
    ("names", "records", "texts", "kind", "note"),
    [
        (("reduceByKey", "flatMap"), [record(0, "a")], (), OfKeys, "same keys"),
        (("reduceByKey", "flatMap"), [record(0)], ("a,1",), OfTexts, "same texts"),
        (("reduceByKey", "flatMap"), [record(0)], ("a,1", None), None, "that the rows give"),
        (("distinct",), [record(0)], (), None, "that the rows give"),
        (("sample", "map"), [record(0)], (), None, "that the rows give"),
        (("groupByKey", "mapPartitions"), [record(0)], (), None, "that the rows give"),
    ],
)
def test_otherwise_others_may_be_among_them(
    names: tuple[str, ...], records: Any, texts: Any, kind: Any, note: str
) -> None:
    job = Job(chain(*names))
    rdd, _ = asked(*records, texts=texts)(job)
    assert (type(rdd.done) if kind else rdd.done) == kind
    assert not rdd.report.exact
    assert note in rdd.report.notes[-1]


@pytest.mark.parametrize(
    ("below", "is_exact"),
    [
        (("map", "filter", "distinct", "flatMap", "sortBy"), True),
        (("reduceByKey", "map"), False),
        (("groupByKey", "filter", "map"), False),
        (("mapPartitions",), False),
        (("subtractByKey",), False),
        (("leftOuterJoin",), False),
    ],
)
def test_a_group_behind_what_other_rows_decide_is_not_exact(below: tuple[str, ...], is_exact: bool) -> None:
    job = Job(chain(*below, "reduceByKey"))
    rdd, _ = asked(record(0, "a"))(job)
    assert rdd.report.exact is is_exact
    assert is_exact or below[0] in rdd.report.notes[-1]


def test_groups_without_known_keys_are_not_told_apart() -> None:
    rdd, _ = asked(record(0), reached=[record(5)])(Job(chain("groupByKey", "mapValues")))
    assert not rdd.report.exact


@pytest.mark.parametrize(
    ("key", "redact"), [("a", "rules:redact"), ("<Shop object at 0x7f30>", ""), ("a long one…", "")]
)
def test_keys_that_may_have_another_text_now_tell_nothing(key: str, redact: str) -> None:
    job = Job(chain("map", "reduceByKey"), redact=redact)
    rdd, _ = asked(record(0, key))(job)
    assert rdd.done is None
    assert not rdd.report.exact
    assert "all records" in rdd.report.notes[-1]


def test_a_record_that_its_rows_do_not_reach_has_no_place() -> None:
    rdd, _ = asked(record(7), reached=[record(6)])(Job(chain("map")))
    assert rdd.done is None
    assert not rdd.report.exact
