"""Fits of a library: which task runs are theirs, and what is published of them."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace
from typing import Any

import pytest

from spark_agent import contract
from spark_agent.driver.nodes import Node
from spark_agent.sql.runtime import fits as module
from spark_agent.sql.runtime.fits import TAKER, Fits
from spark_agent.sql.runtime.planned_query import PlanningCall

QUERY, OTHER = 3, 4


class Frame:
    """A DataFrame that is none of Spark Connect's."""


class Estimator:
    def __init__(self, work: Any = lambda: None) -> None:
        self.work = work

    def fit(self, dataset: Any, params: Any = None) -> Any:
        if isinstance(params, list):
            return [self.fit(dataset, one) for one in params]
        return self.work()


class Recorded:
    """A session, and what was published in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, is_pinned: bool = True) -> None:
        monkeypatch.setattr(module, "frame_class", lambda: Frame)
        self.properties: dict[str, str | None] = {}
        self.runs: list[dict[str, Any]] = []
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.ended: list[tuple[int, str, BaseException | None]] = []
        self.gaps: list[str] = []
        self.lines: list[str] = []
        numbers = itertools.count(10)
        self.scope = SimpleNamespace(
            actions=0, new_node=lambda name, **fields: Node(next(numbers), name, **fields)
        )
        session: Any = SimpleNamespace(
            context=SimpleNamespace(
                _jsc=object(),
                getLocalProperty=self.properties.get,
                setLocalProperty=self.properties.__setitem__,
            ),
            scope=self.scope,
            nodes=SimpleNamespace(register=lambda node: self._emit(contract.NODE_REGISTERED, **node.event())),
            events=SimpleNamespace(
                emit=self._emit,
                publish_manifest=self.runs.append,
                action_ended=lambda *ended: self.ended.append(ended),
                raise_if_lost=lambda: None,
                gap=self.gaps.append,
            ),
        )
        self.fits = Fits(session, self.lines.append, is_pinned=is_pinned)
        self.estimator = type("Line", (Estimator,), {"fit": self.fits._fit(Estimator.fit)})

    def _emit(self, event: str, **fields: Any) -> None:
        self.events.append((event, fields))

    def take_lines(self) -> None:
        for line in self.lines:
            self.fits.ended(json.loads(line)["number"])
        self.lines.clear()

    def sinks(self) -> list[dict[str, Any]]:
        """As they were registered last."""
        nodes = {fields["node"]: fields for event, fields in self.events if event == contract.NODE_REGISTERED}
        return list(nodes.values())

    def parents(self) -> list[tuple[int, int]]:
        return [
            (fields["source"], fields["target"]) for event, fields in self.events if event == contract.LINK
        ]

    def run(self, node: int, split: int, outputs: int, dropped: int = 0) -> dict[str, Any]:
        """As a task of the job that runs now reports it."""
        taker = self.properties.get(TAKER)
        run = {"input": node, "split": split, "outputs": outputs, "dropped": dropped, "action": None}
        return run if taker is None else {**run, "taker": int(taker)}


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    return Recorded(monkeypatch)


def test_a_fit_is_a_sink_with_one_record_made_of_the_runs_of_its_jobs(record: Recorded) -> None:
    def work() -> str:
        record.fits.give(QUERY, int(record.properties[TAKER] or -1))
        assert record.fits.takes(record.run(QUERY, 0, 5))
        assert record.fits.takes(record.run(QUERY, 1, 2))
        return "model"

    assert record.estimator(work).fit(Frame()) == "model"
    assert record.properties[TAKER] is None
    assert record.runs == []
    record.take_lines()
    [sink] = record.sinks()
    assert (sink["name"], sink["kind"], sink["relation"]) == ("fit", "sink", contract.AGGREGATE)
    assert (sink["description"], sink["exact"]) == ("Line", True)
    assert record.parents() == [(QUERY, sink["node"])]
    assert [(run["split"], run["action"]) for run in record.runs] == [(0, sink["node"]), (1, sink["node"])]
    assert (contract.PARTITIONS, {"node": sink["node"], "partitions": [{"split": 0}]}) in record.events
    assert record.ended == [(sink["node"], "fit", None)]


def test_of_several_runs_of_one_partition_the_one_with_most_rows_that_was_delivered_counts(
    record: Recorded,
) -> None:
    def work() -> None:
        record.fits.give(QUERY, None)
        for outputs, dropped in ((2, 0), (9, 1), (7, 0), (3, 0)):
            record.fits.takes(record.run(QUERY, 0, outputs, dropped))

    record.estimator(work).fit(Frame())
    record.take_lines()
    assert [run["outputs"] for run in record.runs] == [7]


def test_rows_that_no_library_was_given_are_nobodys(record: Recorded) -> None:
    """A cache that is filled by a task of the fit, say."""
    run: dict[str, Any] = {}

    def work() -> None:
        run.update(record.run(OTHER, 0, 5))
        assert not record.fits.takes(run)

    record.estimator(work).fit(Frame())
    assert "taker" not in run
    assert not record.fits.takes(record.run(QUERY, 0, 5))


def test_a_plan_that_was_made_before_gives_its_rows_all_the_same(record: Recorded) -> None:
    record.fits.give(QUERY, None)
    record.estimator(lambda: record.fits.takes(record.run(QUERY, 0, 5))).fit(Frame())
    record.take_lines()
    assert len(record.parents()) == len(record.runs) == 1


def test_an_estimator_inside_of_another_one_is_a_part_of_it(record: Recorded) -> None:
    inner = record.estimator(lambda: record.fits.takes(record.run(QUERY, 0, 5)))
    record.fits.give(QUERY, None)
    record.estimator(lambda: [inner.fit(Frame()), inner.fit(Frame())]).fit(Frame())
    record.take_lines()
    assert len(record.sinks()) == 1


def test_each_of_several_maps_of_parameters_has_a_model_of_its_own(record: Recorded) -> None:
    record.estimator().fit(Frame(), [{}, {}])
    record.take_lines()
    assert len(record.sinks()) == 2


def test_a_fit_that_fails_fails_as_ever_and_has_no_record(record: Recorded) -> None:
    def fails() -> None:
        raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose"):
        record.estimator(fails).fit(Frame())
    record.take_lines()
    [sink] = record.sinks()
    assert not sink["exact"]
    assert "fit failed" in sink["reason"]
    assert contract.PARTITIONS not in [event for event, _ in record.events]
    assert isinstance(record.ended[0][2], ZeroDivisionError)
    assert record.properties[TAKER] is None


def test_rows_that_are_not_followed_make_it_a_bound(record: Recorded) -> None:
    record.estimator(lambda: record.fits.give_unknown(0, "Window is not covered")).fit(Frame())
    record.take_lines()
    [sink] = record.sinks()
    assert (sink["exact"], "Window is not covered" in sink["reason"]) == (False, True)


def test_an_action_on_an_rdd_inside_makes_it_a_bound(record: Recorded) -> None:
    def work() -> None:
        record.scope.actions += 1

    record.estimator(work).fit(Frame())
    record.take_lines()
    [sink] = record.sinks()
    assert (sink["exact"], "an action on an RDD" in sink["reason"]) == (False, True)


def test_what_is_no_dataframe_of_this_process_is_left_alone(record: Recorded) -> None:
    assert record.estimator(lambda: record.properties.get(TAKER)).fit(object()) is None
    assert record.lines == []


def test_arguments_that_are_wrong_are_told_as_ever(record: Recorded) -> None:
    with pytest.raises(TypeError, match="no_such_argument"):
        record.estimator().fit(Frame(), no_such_argument=1)


def test_without_threads_of_their_own_there_are_no_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    record = Recorded(monkeypatch, is_pinned=False)
    assert record.estimator(lambda: record.properties.get(TAKER)).fit(Frame()) is None
    assert record.lines == []


def test_a_context_that_has_gone_costs_the_fit_alone(record: Recorded) -> None:
    def gone(*args: Any) -> None:
        raise ConnectionError

    record.fits._session.context.getLocalProperty = gone
    assert record.estimator(lambda: "model").fit(Frame()) == "model"
    assert record.sinks() == []


def test_what_waits_at_the_end_is_published(record: Recorded) -> None:
    record.fits.give(QUERY, None)
    record.estimator(lambda: record.fits.takes(record.run(QUERY, 0, 5))).fit(Frame())
    record.lines.clear()  # the JVM has gone
    record.fits.end_all()
    [run] = record.runs
    assert run["action"] == record.sinks()[0]["node"]


def test_rows_that_become_an_rdd_name_the_node_that_gave_them(record: Recorded) -> None:
    with record.fits.rows_given("toJSON") as nodes:
        number = int(record.properties[TAKER] or -1)
        call = PlanningCall("Dataset.toJavaRDD", False, 17, number)
        assert record.fits.part_name(call) == "toJSON"
        record.fits.give(QUERY, number)
    assert record.fits.part_name(call) == "toJavaRDD"
    assert nodes == [QUERY]
    assert record.properties[TAKER] is None
    assert record.sinks() == []


@pytest.mark.parametrize(
    ("entry", "call"),
    [
        ("Dataset.count@17#3", PlanningCall("Dataset.count", False, 17, 3)),
        ("cached:Dataset.count#3", PlanningCall("Dataset.count", True, None, 3)),
        ("Dataset.rdd@17", PlanningCall("Dataset.rdd", False, 17, None)),
        ("#x", PlanningCall("", False, None, None)),
    ],
)
def test_an_entry_says_which_call_of_a_library_it_is_of(entry: str, call: PlanningCall) -> None:
    assert PlanningCall.parse(entry) == call
