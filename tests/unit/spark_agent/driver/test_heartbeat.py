from __future__ import annotations

import threading

from spark_agent.driver.heartbeat import Heartbeat


def test_it_beats_at_once_and_again_and_not_after_it_was_stopped() -> None:
    beats, third = [0], threading.Event()

    def beat() -> None:
        beats[0] += 1
        if beats[0] == 3:
            third.set()

    heart = Heartbeat(beat, period_s=0.001)
    heart.start()
    assert third.wait(60)
    heart.stop()
    heart._thread.join(60)
    assert not heart._thread.is_alive()


def test_one_that_is_stopped_at_once_has_said_that_it_was_there() -> None:
    first = threading.Event()
    heart = Heartbeat(first.set)
    heart.start()
    heart.stop()
    assert first.wait(60)
    heart._thread.join(60)
    assert not heart._thread.is_alive()
