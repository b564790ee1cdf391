"""The budget of waiting: how it is spent, shared and kept within its bound."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from spark_agent.delivery.wait_budget import MAX_PAUSE_S, PAUSE_S, QUICK_S, REFILL, WaitBudget


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def wait(wait_budget: WaitBudget, clock: Clock, seconds: float, *, is_answered: bool = False) -> float:
    """Wait as long as one may, at most `seconds`; how long it was."""
    begin, allowed = clock.now, wait_budget.allowed_s()
    clock.now += min(seconds, allowed)
    if allowed:
        wait_budget.charge(begin, is_answered=is_answered and seconds <= allowed)
    return clock.now - begin


def test_a_wait_in_vain_takes_all_and_begins_a_pause() -> None:
    clock = Clock()
    wait_budget = WaitBudget(2.0, clock=clock)
    assert wait(wait_budget, clock, 30.0) == 2.0
    assert wait_budget.is_paused
    assert [wait(wait_budget, clock, 30.0) for _ in range(5)] == [0.0] * 5


def test_after_each_pause_a_quick_wait_is_tried_and_pauses_get_longer() -> None:
    clock = Clock()
    wait_budget = WaitBudget(2.0, clock=clock)
    wait(wait_budget, clock, 30.0)
    for pause in (PAUSE_S, 2 * PAUSE_S, 4 * PAUSE_S):
        clock.now += pause - 1
        assert wait_budget.is_paused
        clock.now += 1.1
        assert 0 < wait(wait_budget, clock, 30.0) <= max(QUICK_S, REFILL * pause) + 0.01


def test_what_a_healthy_broker_takes_costs_nothing() -> None:
    clock = Clock()
    wait_budget = WaitBudget(2.0, clock=clock)
    for _ in range(1_000):
        wait(wait_budget, clock, QUICK_S / 2, is_answered=True)
    assert wait_budget.left_s == 2.0


def test_slow_answers_are_paid_for_too() -> None:
    clock = Clock()
    wait_budget = WaitBudget(2.0, clock=clock)
    waited = sum(wait(wait_budget, clock, 0.3, is_answered=True) for _ in range(100))
    assert 2.0 <= waited <= 2.0 + 2 * QUICK_S
    assert wait_budget.is_paused


def test_a_job_of_hours_beside_a_broker_that_is_late_now_and_then_keeps_its_patience() -> None:
    clock = Clock()
    wait_budget = WaitBudget(2.0, clock=clock)
    for _ in range(1_000):
        clock.now += 20.0
        assert wait(wait_budget, clock, 0.09, is_answered=True) > 0.08
    assert wait_budget.left_s > 1.5


def test_a_broker_that_takes_something_but_never_in_time_is_not_waited_for_again_and_again() -> None:
    clock = Clock()
    wait_budget, begin = WaitBudget(2.0, clock=clock), 1_000.0
    waited = 0.0
    while clock.now < begin + 3_600:
        waited += wait(wait_budget, clock, 30.0)
        wait_budget.answered()
        clock.now += 0.5
    assert waited < 2.0 + 0.01 * 3_600


def test_a_broker_that_comes_back_ends_the_pause_while_there_is_patience() -> None:
    clock = Clock()
    wait_budget = WaitBudget(2.0, clock=clock)
    wait_budget.pause()
    assert wait_budget.is_paused
    wait_budget.answered()
    assert not wait_budget.is_paused
    wait(wait_budget, clock, 30.0)
    wait_budget.answered()  # slow, not gone: it has had its two seconds
    assert wait_budget.is_paused


def test_one_process_waits_for_all_that_share_the_file(tmp_path: Path) -> None:
    clock, path = Clock(), str(tmp_path / "waits")
    first, second = (WaitBudget(2.0, path, clock=clock) for _ in range(2))
    assert wait(first, clock, 30.0) == 2.0
    assert second.is_paused
    assert WaitBudget(2.0, path, clock=clock).allowed_s() == 0.0
    clock.now += PAUSE_S
    assert QUICK_S <= second.allowed_s() <= REFILL * PAUSE_S + 1e-6


def test_waits_at_the_same_time_count_once(tmp_path: Path) -> None:
    clock, path = Clock(), str(tmp_path / "waits")
    shared = [WaitBudget(2.0, path, clock=clock) for _ in range(16)]
    begin = clock.now
    clock.now += 0.5
    for wait_budget in shared:
        wait_budget.charge(begin, is_answered=True)
    assert not shared[0].is_paused
    assert abs(shared[0].left_s - 1.5) < 1e-6
    clock.now += 0.4 / REFILL
    assert abs(shared[0].left_s - 1.9) < 1e-6


def test_a_folder_that_cannot_be_written_leaves_each_process_its_own_patience(tmp_path: Path) -> None:
    clock = Clock()
    wait_budget = WaitBudget(2.0, str(tmp_path / "missing" / "waits"), clock=clock)
    assert wait(wait_budget, clock, 30.0) == 2.0
    assert wait_budget.is_paused


def test_a_file_of_another_boot_or_of_a_stranger_does_no_harm(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "waits"
    for text in (
        "",
        "no json",
        "[1]",
        '["a", 0, 0, 0]',
        f"[0, 1e12, 1e12, {10 * MAX_PAUSE_S}]",
        "[null, 1, 1, 1]",
    ):
        path.write_text(text)
        wait_budget = WaitBudget(2.0, str(path), clock=clock)
        assert wait_budget.allowed_s() == 2.0, text
    target = tmp_path / "target"
    target.write_text("precious")
    path.unlink()
    path.symlink_to(target)
    wait(WaitBudget(2.0, str(path), clock=clock), clock, 30.0)
    assert target.read_text() == "precious"


def test_who_must_have_every_message_waits_for_answers_as_long_as_they_come() -> None:
    clock = Clock()
    wait_budget = WaitBudget(2.0, forgives_answers=True, clock=clock)
    assert [wait(wait_budget, clock, 1.5, is_answered=True) for _ in range(10)] == [1.5] * 10
    assert wait(wait_budget, clock, 30.0) == 2.0
    assert wait(wait_budget, clock, 30.0) == 0.0


@given(st.lists(st.tuples(st.floats(0, 10), st.booleans(), st.integers(0, 2), st.floats(0, 3)), max_size=60))
def test_all_waits_together_stay_within_the_budget(waits: list[tuple[float, bool, int, float]]) -> None:
    with TemporaryDirectory() as folder:
        clock, path = Clock(), f"{folder}/waits"
        processes = [WaitBudget(2.0, path, clock=clock) for _ in range(3)]
        charged, begin = 0.0, clock.now
        for seconds, is_answered, who, between in waits:
            waited = wait(processes[who], clock, seconds, is_answered=is_answered)
            charged += waited if waited > QUICK_S + 1e-9 else 0.0
            clock.now += between
        assert charged <= 2.0 + REFILL * (clock.now - begin) + 1e-6
