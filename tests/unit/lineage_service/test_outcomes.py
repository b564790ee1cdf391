from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.cli.query.output import error_text
from lineage_service.lineage import ApplicationError, NodeError
from lineage_service.monitoring.incomplete_applications import IncompleteWatch
from lineage_service.outcomes import LOST_AFTER_MS, actions_of, outcome_of
from lineage_service.testing.flow_store import MemoryFlowStore
from lineage_service.tracing.model.summaries import LOST, Summaries
from spark_agent import contract
from spark_agent.contract.event_checks import decode_event
from tests.support.flow_store_suite import events as batch_of
from tests.support.lineage_messages import APP, event

ERROR = {"type": "ValueError", "message": "no day", "frame": "job.py:5"}


def decoded(event_type: str, **fields: Any) -> dict[str, Any]:
    return decode_event(event(event_type, **fields))


STARTED = decoded(contract.APPLICATION_STARTED, event=0)
COUNT = decoded(contract.NODE_REGISTERED, node=4, name="count", kind="sink", call_site="job.py:4", event=1)
CSV = decoded(contract.NODE_REGISTERED, node=9, name="csv", kind="sink", event=2)


def ended(time: int = 100, **fields: Any) -> dict[str, Any]:
    return decoded(contract.APPLICATION_ENDED, time=time, **fields)


def action(node: int, time: int, state: str, **fields: Any) -> dict[str, Any]:
    return decoded(contract.ACTION_ENDED, node=node, time=time, state=state, **fields)


def test_an_end_without_a_state_is_a_good_one() -> None:
    assert outcome_of([STARTED, ended()]).state == "ended"
    assert outcome_of([STARTED, ended(state="succeeded")]).state == "ended"


def test_a_failed_end_has_its_error() -> None:
    found = outcome_of([STARTED, COUNT, ended(state="failed", error=ERROR)])
    assert (found.state, found.ended) == ("failed", 100)
    assert found.error == ApplicationError(**ERROR)


@given(
    st.permutations([ended(100, event=7, state="succeeded"), ended(100, event=8, state="failed"), STARTED])
)
def test_of_an_end_that_was_told_twice_the_later_word_counts(told: list[dict[str, Any]]) -> None:
    assert outcome_of(told).state == "failed"


def test_a_failure_that_was_taken_back_is_none() -> None:
    told = [STARTED, ended(100, state="failed", error=ERROR), ended(101, state="succeeded")]
    assert (outcome_of(told).state, outcome_of(told).error) == ("ended", None)


def test_the_action_that_failed_is_the_one_that_says_the_same() -> None:
    failed = action(4, 50, "failed", error=ERROR)
    later = action(9, 60, "failed", error={**ERROR, "message": "another"})
    found = outcome_of([STARTED, COUNT, CSV, later, failed, ended(state="failed", error=ERROR)])
    assert found.error == ApplicationError(**ERROR, node_id=f"{APP}#4", name="count", call_site="job.py:4")


def test_an_exit_behind_an_action_that_failed_names_that_action_and_one_behind_a_good_one_none() -> None:
    exit_ = {"type": "SystemExit", "message": "exit code 1", "frame": None}
    failed, fine = action(9, 50, "failed", error=ERROR), action(4, 60, "complete")
    told = [STARTED, COUNT, CSV, failed, ended(state="failed", error=exit_)]
    assert outcome_of(told).error == ApplicationError(
        type="SystemExit", message="exit code 1", node_id=f"{APP}#9", name="csv"
    )
    assert outcome_of([*told, fine]).error == ApplicationError(type="SystemExit", message="exit code 1")


def test_a_failed_action_does_not_make_a_good_end_a_bad_one() -> None:
    found = outcome_of([STARTED, COUNT, action(4, 50, "failed", error=ERROR), ended(state="succeeded")])
    assert (found.state, found.error) == ("ended", None)


def test_the_latest_execution_of_an_action_counts() -> None:
    first, second = action(4, 50, "failed", error=ERROR), action(4, 70, "complete")
    assert actions_of([second, first])[4].state == "complete"
    assert actions_of([first])[4].error == NodeError(**ERROR)


def test_a_driver_that_says_nothing_any_more_is_lost() -> None:
    told = [STARTED, decoded(contract.ALIVE, time=60_000)]
    found = outcome_of(told)
    assert found.state == "running"
    assert found.at(60_000 + LOST_AFTER_MS).state == "running"
    assert found.at(60_001 + LOST_AFTER_MS).state == "lost"
    # Whatever it says is a sign of life.
    assert outcome_of([*told, {**COUNT, "time": 500_000}]).at(60_001 + LOST_AFTER_MS).state == "running"
    # Not so what a command says of it later.
    checked = {**COUNT, "type": contract.EXPLANATION_CHECKED, "time": 500_000}
    assert outcome_of([*told, checked]).at(60_001 + LOST_AFTER_MS).state == "lost"


def test_one_that_never_sends_signs_of_life_runs_for_ever_and_one_that_ended_is_never_lost() -> None:
    assert outcome_of([STARTED]).at(10**15).state == "running"
    assert outcome_of([STARTED, decoded(contract.ALIVE), ended()]).at(10**15).state == "ended"


class Store(MemoryFlowStore):
    def files(self, table: str, application_id: str) -> list[str]:
        return []


def test_an_application_is_lost_in_answers_though_nothing_more_comes() -> None:
    store, now = Store(), [0.0]
    store.write_events(
        batch_of(event(contract.APPLICATION_STARTED, name="etl"), event(contract.ALIVE, time=1))
    )
    summaries = Summaries(store, now=lambda: now[0])
    unfinished = IncompleteWatch(lambda: store, now=lambda: now[0])
    assert summaries.of(APP).state == "running"
    assert [application.state for application in unfinished.look(9).applications] == ["running"]
    now[0] = LOST_AFTER_MS / 1000 + 1
    assert summaries.of(APP).state == "lost"
    assert summaries.of(APP).missing == f"{LOST}; its end has not arrived"
    assert [each.state for each in summaries.newest_first()] == ["lost"]
    assert [application.state for application in unfinished.look(9).applications] == ["lost"]
    late = event(contract.ALIVE, time=LOST_AFTER_MS)
    store.write_events(batch_of(late, first=2))
    assert summaries.of(APP).state == "running"


def test_an_error_is_one_line_for_people() -> None:
    assert error_text(NodeError(type="KeyError", message="", frame=None)) == "KeyError"
    assert error_text(NodeError(type="", message="")) == "it is not known why"
    assert error_text(ApplicationError(**ERROR, node_id="app#4", name="count", call_site="job.py:4")) == (
        "ValueError: no day at job.py:5, in 4 count (job.py:4)"
    )
