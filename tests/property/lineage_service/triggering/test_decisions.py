"""`decide` never raises and never skips where it cannot know; a wave that has an answer keeps it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.completeness import Receipt
from lineage_service.errors import LineageError
from lineage_service.store.errors import StoreConflictError, StoreUnavailableError
from lineage_service.triggering.certain.answers import Answer
from lineage_service.triggering.certain.evidence import Evidence
from lineage_service.triggering.decisions import Decider
from lineage_service.triggering.learning.terms import Terms
from lineage_service.triggering.waves.question import Question
from lineage_service.triggering.waves.wave_history import Wave
from lineage_service.triggering.weighing.weigher import Weighed
from spark_agent import contract
from tests.support.dataset_applications import Job, dataset
from tests.support.lineage_messages import APP

ERRORS = (
    LineageError,
    StoreUnavailableError,
    OSError,
    ValueError,
    KeyError,
    RecursionError,
    ZeroDivisionError,
)
METHODS = ("version", "versions", "events", "events_of", "latest", "blocks", "rows")


class History:
    """In memory. `conflicts` are the answers that another one comes before."""

    def __init__(self, conflicts: int = 0) -> None:
        self.added: list[Wave] = []
        self._conflicts = conflicts

    def count(self, job: str) -> int:
        return len(self.added)

    def waves(self, job: str) -> list[Wave]:
        return list(self.added)

    def add(self, wave: Wave, count: int) -> None:
        if self._conflicts:
            self._conflicts -= 1
            self.added.append(replace(wave, why="the other one's"))
        if count != len(self.added):
            raise StoreConflictError("another one was faster")
        self.added.append(wave)

    def is_run_next(self, job: str, waves: Sequence[Wave]) -> bool:
        return False


class Store:
    """One application with these events. The methods in `broken` raise."""

    def __init__(self, events: Sequence[Mapping[str, Any]], broken: Mapping[str, type[Exception]]) -> None:
        self._events, self._broken = events, broken

    def _check(self, method: str) -> None:
        if method in self._broken:
            raise self._broken[method]("broken")

    def version(self) -> object:
        return 0

    def versions(self, table: str) -> Mapping[str, object]:
        return {APP: 0}

    def latest(self) -> Mapping[str, int | None]:
        self._check("latest")
        return {APP: None}

    def events(self, application_id: str) -> Sequence[Mapping[str, Any]]:
        self._check("events")
        return self._events

    def events_of(
        self, application_ids: Sequence[str], types: Collection[str] | None = None
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        self._check("events_of")
        return {APP: self._events}

    def blocks(self, application_id: str) -> Collection[Receipt]:
        self._check("blocks")
        return []

    def rows(self, application_id: str) -> Mapping[str, int]:
        self._check("rows")
        return {}


PATHS = st.sampled_from(
    ["/nowhere/in", "/proc/self/nothing", "s3://", "x:", "/a\\*", "/in{", "", "\0", "/in,/b"]
)


@st.composite
def events(draw: st.DrawFn) -> list[Mapping[str, Any]]:
    job = Job(APP, "job", began=draw(st.integers(0, 2_000_000_000_000)))
    for _ in range(draw(st.integers(0, 3))):
        path = draw(PATHS)
        if "\0" in path:
            continue
        name = draw(st.sampled_from(["textFile", "Scan csv", "parallelize", "foreach"]))
        named = draw(st.sampled_from([{}, {"paths": []}, {"paths": [path]}, {"appends": True}]))
        kind = draw(st.sampled_from(["source", "sink"]))
        node = job.node(
            kind, contract.SOURCE, name=name, description=path, dataset=dataset(path, "csv", **named)
        )
        part = {"split": 0, "path": path, "start": 0, "size": draw(st.integers(0, 9)), "modified": None}
        job.tell(contract.PARTITIONS, node=node, partitions=[part])
    if draw(st.booleans()):
        job.end()
    return [json.loads(message) for message in job.events]


questions = st.builds(
    Question,
    job=st.sampled_from(["job", "", "other", "\ud800"]),
    wave=st.none() | st.sampled_from(["w1", "", "w" * 600]),
    at_least_every_s=st.sampled_from([1.0, 1e12, 0.0, float("nan"), float("inf")]),
    code=st.none() | st.just("v1"),
    inputs=st.lists(PATHS, max_size=2).map(tuple),
    ignored=st.lists(st.sampled_from(["csv", "/nowhere/in"]), max_size=1).map(tuple),
    missing_is_fine=st.booleans(),
    is_steady=st.booleans(),
    terms=st.none()
    | st.builds(
        Terms,
        bound=st.sampled_from([0.05, -1.0, float("nan")]),
        error=st.sampled_from(["rows", "relative:x", "worse"]),
    ),
)


@given(
    events(),
    st.dictionaries(st.sampled_from(METHODS), st.sampled_from(ERRORS), max_size=2),
    questions,
    st.integers(0, 12),
    st.none() | st.sampled_from(ERRORS),
)
def test_whatever_is_wrong_is_a_reason_to_run(
    stored: list[Mapping[str, Any]],
    broken: Mapping[str, type[Exception]],
    question: Question,
    conflicts: int,
    unweighed: type[Exception] | None,
) -> None:
    def weigh(evidence: Evidence, answer: Answer, number: int) -> Weighed:
        if unweighed is not None:
            raise unweighed("broken")
        return Weighed(answer=answer)

    answer = Decider(Store(stored, broken), History(conflicts), weigh).decide(question)
    assert answer.decision == "run"  # none of these jobs has an output that is there
    assert answer.why


@given(events(), questions, st.integers(0, 2))
def test_a_wave_keeps_its_answer(stored: list[Mapping[str, Any]], question: Question, conflicts: int) -> None:
    history = History(conflicts)
    decider = Decider(Store(stored, {}), history)
    first = decider.decide(question)
    again = Decider(Store([], dict.fromkeys(METHODS, OSError)), history).decide(
        replace(question, wave=first.wave)
    )
    if history.added:
        assert replace(again, repeated=False) == replace(first, repeated=False)
        assert again.repeated
