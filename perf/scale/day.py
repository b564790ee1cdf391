"""A day of jobs, topic partitions and consumers, simulated in steps of some seconds from a seed.

Jobs come at random and send part of their messages in a burst at their end. Consumers share the partitions
as a consumer group does, take whole messages at a measured rate, die at random and come back. Nobody notices
a dead one until its session is over, and what it did in the step in which it died is done again. Promises
that every message that was sent is stored once or still waits, and that a seed gives one day.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]

#: How long a dead member keeps its partitions: `session.timeout.ms` of lineage_service.kafka.client.
SESSION_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What a day is made from. A consumer takes `messages_per_s`, whoever else is there.

    `burst` of a job's messages come in the last tenth of its time. `mtbf_s` is the mean time between two
    failures of one consumer, `restart_s` how long it is away then.
    """

    jobs: int
    messages_a_job: int
    job_s: float
    burst: float
    partitions: int
    messages_per_s: float
    mtbf_s: float
    restart_s: float
    day_s: float = 86_400.0
    step_s: float = 10.0
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """What became of it. Arrays have a row for each step and a column for each partition, cumulated."""

    model: Model
    consumers: int
    sent: Counts
    stored: Counts
    job_ends: Sequence[int]  # steps
    failures: int
    busy: float  # of the time that consumers were there

    @property
    def waiting(self) -> Counts:
        """Messages that wait at the end of each step."""
        return np.asarray((self.sent - self.stored).sum(axis=1))

    def queryable_s(self) -> list[float]:
        """For each job that ended: seconds until everything that was sent by then is stored.

        The rest of the day, where that did not come about. Half a step is the error.
        """
        delays = []
        for end in self.job_ends:
            sent = self.sent[end]
            # Per partition, the first step at which so many messages are stored.
            steps = [
                int(np.searchsorted(self.stored[:, number], sent[number]))
                for number in range(self.model.partitions)
            ]
            last = min(max(steps), len(self.stored) - 1)
            delays.append(max(last - end, 0) * self.model.step_s)
        return delays


def simulate(model: Model, consumers: int) -> Day:
    """One day with so many consumers. The jobs of a seed are the same for each number of consumers."""
    sent, ends = _jobs(model)
    rng = np.random.default_rng([model.seed, consumers])
    steps, partitions = sent.shape
    stored = np.zeros_like(sent)
    done = np.zeros(partitions, np.int64)
    back_at = np.zeros(consumers)  # when one that died is there again
    owner, noticed_at = _shared(range(consumers), partitions), -1.0
    spare = np.zeros(consumers)  # parts of a message that fitted no step so far
    failures, served_s, there_s = 0, 0.0, 0.0
    chance = model.step_s / model.mtbf_s
    for step in range(steps):
        now = step * model.step_s
        died = (back_at <= now) & (rng.random(consumers) < chance)
        back_at[died] = now + model.restart_s
        failures += int(died.sum())
        if died.any():
            noticed_at = now + SESSION_S
        alive = back_at <= now
        if noticed_at < 0 or now >= noticed_at:
            members = np.flatnonzero(alive)
            if len(members):
                owner = _shared(members, partitions)
        can = np.where(alive, model.messages_per_s * model.step_s + spare, 0.0)
        took = _took(sent[step] - done, owner, np.floor(can).astype(np.int64))
        done = done + took
        stored[step] = done
        by_owner = np.bincount(owner, took, minlength=consumers)
        # What is left of a step is lost, unless it is less than a message.
        spare = np.where(alive, np.minimum(can - by_owner, 1.0) % 1.0, 0.0)
        served_s += float(by_owner.sum()) / model.messages_per_s
        there_s += float(alive.sum()) * model.step_s
    return Day(
        model=model,
        consumers=consumers,
        sent=sent,
        stored=stored,
        job_ends=ends,
        failures=failures,
        busy=served_s / there_s if there_s else 0.0,
    )


@functools.lru_cache(maxsize=4)
def _jobs(model: Model) -> tuple[Counts, list[int]]:
    """(messages sent so far by step and partition, the steps in which jobs ended)."""
    rng = np.random.default_rng(model.seed)
    steps = int(model.day_s / model.step_s)
    sent = np.zeros((steps, model.partitions), np.int64)
    lasting = max(int(model.job_s / model.step_s), 1)
    tail = max(lasting // 10, 1)
    starts = np.sort(rng.integers(0, max(steps - lasting, 1), model.jobs))
    for start in starts:
        in_burst = int(model.messages_a_job * model.burst)
        spans = [(start, lasting, model.messages_a_job - in_burst), (start + lasting - tail, tail, in_burst)]
        for first, length, messages in spans:
            last = min(first + length, steps)
            cells = (last - first) * model.partitions
            drawn = rng.multinomial(messages, np.full(cells, 1 / cells))
            sent[first:last] += drawn.reshape(last - first, model.partitions)
    ends = [min(int(start) + lasting, steps) - 1 for start in starts]
    sent = np.cumsum(sent, axis=0)
    sent.flags.writeable = False
    return sent, ends


def _shared(members: Sequence[int] | Counts | range, partitions: int) -> Counts:
    """The member that owns each partition."""
    numbers = np.asarray(members, dtype=np.int64)
    return numbers[np.arange(partitions) % len(numbers)]


def _took(waiting: Counts, owner: Counts, can: Counts) -> Counts:
    """What each partition's owner takes from it: the fullest first, until the owner can no more."""
    order = np.lexsort((-waiting, owner))
    sizes, owners = waiting[order], owner[order]
    before = np.cumsum(sizes) - sizes
    first = np.searchsorted(owners, owners)  # where the owner's partitions begin
    left = can[owners] - (before - before[first])
    took = np.empty_like(waiting)
    took[order] = np.clip(left, 0, sizes)
    return took
