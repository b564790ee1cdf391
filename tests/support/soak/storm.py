"""The soak: applications without end, and something dies every few seconds, at random from a seed.

Who writes: several members of one group with Neo4j, one member of another group into a store of its own, one
of a third group into the same store as the first. When the time is over nothing is harmed any more; once no
group has lag, everything that is stored is compared with what was sent.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.support.soak.applications import FLOW_PARTITIONS, make
from tests.support.soak.applications import at_least_once as disordered
from tests.support.soak.oracle import answer_differences, graph_differences, is_whole, store_differences
from tests.support.soak.servers import Servers
from tests.support.soak.world import Member, World, wait_until

#: A member that is suspended for longer than its session (10 s) is a zombie when it wakes.
_SUSPENDED_S = 12.0
#: `make soak` compares after so long, and begins anew.
ROUND_SECONDS = 600.0
#: How many applications are sent at a time, their messages mixed.
_SIDE_BY_SIDE = 3
#: How many applications are asked about at the end, and about how many saved rows of each.
_ASKED, _ASKED_ROWS = 3, 6


@dataclass(slots=True)
class Report:
    seed: str
    seconds: float
    harm: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        done = ", ".join(f"{count} x {name}" for name, count in sorted(self.harm.items()))
        held = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        return f"seed {self.seed}, {self.seconds:.0f} s: {done}; {held}"


class Storm:
    """One soak in a world of its own."""

    def __init__(self, world: World, seed: str, seconds: float, say: Callable[[str], None] = print) -> None:
        self.world = world
        self._chance = Random(seed)
        self._seconds = seconds
        self._say = say
        self.report = Report(seed, seconds)
        # (group, store, settings) of each place of work; the first has several members.
        self._jobs: list[tuple[str, str, dict[str, object]]] = [
            (world.group, "flows", {}),
            (f"{world.group}-own-store", "own-store", {"neo4j_uri": ""}),
            (f"{world.group}-same-store", "flows", {"neo4j_uri": ""}),
        ]
        self._members: dict[int, list[Member]] = {0: [], 1: [], 2: []}
        self._waking: list[tuple[float, Member]] = []
        self._dying: list[tuple[float, Member]] = []
        self._leaving: list[Member] = []
        self._broker_starts = threading.Thread()
        self._is_over = threading.Event()
        self._prefix = f"soak-{world.group}-"
        self._fault: BaseException | None = None

    def run(self) -> Report:
        """Harm, calm, compare. The report has the differences."""
        producer = threading.Thread(target=self._produce, name="producer")
        producer.start()
        try:
            self._harm()
        finally:
            if self._broker_starts.ident is not None:
                self._broker_starts.join()
            self.world.servers.broker.revive()
            self._is_over.set()
            producer.join()
        if self._fault is not None:
            raise self._fault
        self._calm()
        self._compare()
        return self.report

    # -- what goes in --------------------------------------------------------------------------------

    def _produce(self) -> None:
        try:
            chance = Random(f"{self.report.seed} messages")
            while not self._is_over.is_set():
                self._send_some(chance)
            self.world.flush()
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits for this one
            self._fault = error

    def _send_some(self, chance: Random) -> None:
        streams = []
        for _ in range(_SIDE_BY_SIDE):
            name = f"{self._prefix}{len(self.world.applications)}"
            application = make(name, chance, rows=chance.choice((5, 30, 90)))
            self.world.applications.append(application)
            # Every message twice, now and then.
            copies = chance.choice((0.0, 0.2, 1.0))
            streams.append(disordered(application.messages, chance, copies)[::-1])
        while streams:
            stream = chance.choice(streams)
            self.world.send(stream.pop())
            self.report.counts["messages"] += 1
            if chance.random() < 0.002:
                self.world.send_poison(chance.randrange(FLOW_PARTITIONS))
            if not stream:
                streams.remove(stream)
            # A steady load, not a wait for a state; the applications that were begun are sent to their end.
            time.sleep(0.006)

    # -- what goes wrong -----------------------------------------------------------------------------

    def _harm(self) -> None:
        harms = {
            self._kill_member: 10,
            self._add_member: 4,
            self._end_member: 3,
            self._suspend_member: 2,
            self._kill_broker: 1,
            self._kill_graph: 1,
            self._kill_both: 1,
            self._maintain: 1,
        }
        # Each of the rare ones once at least, however short the storm.
        due = [self._kill_broker, self._kill_graph, self._kill_both, self._suspend_member, self._maintain]
        self._chance.shuffle(due)
        began, told = time.monotonic(), 0.0
        turn = 0
        while (passed := time.monotonic() - began) < self._seconds:
            self._man()
            share = (turn % 3 == 2) and due
            harm = due.pop() if share else self._chance.choices(list(harms), list(harms.values()))[0]
            harm()
            self.report.harm[harm.__name__.lstrip("_").replace("_", " ")] += 1
            turn += 1
            if passed - told > 60:
                told = passed
                self._say(f"{passed:.0f} s: {self.report}")
            time.sleep(self._chance.uniform(0.2, 3.0))  # how long things go well

    def _man(self) -> None:
        """Wake who was suspended for long, and see that every group has a member."""
        now = time.monotonic()
        for at, member in list(self._dying):
            if now >= at:
                member.kill()
                self._dying.remove((at, member))
        for at, member in list(self._waking):
            if now >= at:
                member.signal(signal.SIGCONT)
                self._waking.remove((at, member))
        for members in (*self._members.values(), self._leaving):
            for member in [member for member in members if not member.is_alive]:
                code = member.process.returncode
                # 1: no broker answered at its start. Whoever runs consumers starts it again.
                if (
                    code not in (0, -signal.SIGKILL, -signal.SIGTERM)
                    and "no Kafka broker answers" not in member.said()
                ):
                    raise AssertionError(f"{member.log.name} ended with {code} by itself:\n{member.said()}")
                members.remove(member)
        for job, members in self._members.items():
            while len(members) < (2 if job == 0 else 1):
                members.append(self._started(job))

    def _started(self, job: int) -> Member:
        group, store, settings = self._jobs[job]
        small = self._chance.choice((3_000, 50_000, 32_000_000))
        return self.world.start(store=store, group=group, batch_max_bytes=small, **settings)

    def _any_member(self) -> Member:
        awake = [member for members in self._members.values() for member in members if member.is_alive]
        return self._chance.choice(awake)

    def _kill_member(self) -> None:
        member = self._any_member()
        self._waking = [each for each in self._waking if each[1] is not member]
        member.kill()

    def _add_member(self) -> None:
        if len(self._members[0]) < 4:
            self._members[0].append(self._started(0))

    def _end_member(self) -> None:
        """Told to leave, one writes what it has taken; that may take until long after the storm."""
        member = self._any_member()
        member.signal(signal.SIGTERM)
        for members in self._members.values():
            if member in members:
                members.remove(member)
        self._leaving.append(member)

    def _suspend_member(self) -> None:
        member = self._any_member()
        member.signal(signal.SIGSTOP)
        self._waking.append((time.monotonic() + _SUSPENDED_S, member))

    def _kill_broker(self) -> None:
        self._restart_broker()

    def _kill_graph(self) -> None:
        self._restart_graph()

    def _kill_both(self) -> None:
        self._restart_graph()
        self._restart_broker()

    def _restart_broker(self) -> None:
        """Dead at once, and back when it is back: others die meanwhile."""
        if not self._broker_starts.is_alive():
            self.world.servers.broker.kill()
            self._broker_starts = threading.Thread(target=self.world.servers.broker.start, name="broker")
            self._broker_starts.start()

    def _restart_graph(self) -> None:
        self.world.servers.graph.kill()
        self.world.servers.graph.start(wait=False)

    def _maintain(self) -> None:
        """A compaction beside the consumers, of whatever is complete; it dies like all others."""
        command = ("lineage_service.cli.main", "maintain", "--quiet-hours", "0.001")
        dies_at = time.monotonic() + self._chance.choice((3.0, 5.0, 15.0))
        self._dying.append((dies_at, self.world.start(*command, neo4j_uri="")))

    # -- and then ------------------------------------------------------------------------------------

    def _calm(self) -> None:
        servers = self.world.servers
        for _, member in self._waking:
            member.signal(signal.SIGCONT)
        for _, member in self._dying:
            member.kill()
        servers.graph.wait()
        for member in self._leaving:
            member.wait()
        began = time.monotonic()
        self._man()
        groups = [group for group, _, _ in self._jobs]
        wait_until(
            lambda: self.world.has_no_lag(*groups),
            *(member for members in self._members.values() for member in members),
            deadline_s=180.0,
        )
        self.report.counts["seconds until no lag"] = round(time.monotonic() - began)
        wait_until(lambda: is_whole(servers.graph.uri, self._prefix), deadline_s=300.0)

    def _compare(self) -> None:
        world, report = self.world, self.report
        report.counts["applications"] = len(world.applications)
        report.counts["flow rows"] = sum(
            len(application.expected.flows) for application in world.applications
        )
        report.counts["dead letters"] = len(world.poison)
        for store in ("flows", "own-store"):
            report.differences += store_differences(world.folder / store, world.applications)
        uri = world.servers.graph.uri
        report.differences += graph_differences(uri, world.applications, self._prefix)
        if world.dead_letters() != world.poison:
            report.differences.append("the dead letters are not the poison that was sent")
        serve = world.start("lineage_service.cli.main", "serve", api_port=0)
        address = world.folder / "home" / "api.json"
        wait_until(address.exists, serve)
        api = json.loads(address.read_text())["url"]
        for application in self._chance.sample(world.applications, min(_ASKED, len(world.applications))):
            report.differences += answer_differences(api, uri, application, _ASKED_ROWS)
            report.counts["traces"] += min(_ASKED_ROWS, len(application.expected.backward))
        for member in world.members:
            if member.is_alive:
                member.end()


def soak(servers: Servers, folder: Path, seed: str, seconds: float, say: Callable[[str], None]) -> Report:
    """A storm; its report. Raises AssertionError where a process ends that should not, or lag stays."""
    say(f"the soak's seed: LINEAGE_SOAK_SEED={seed}")
    with World(servers, folder) as world:
        return Storm(world, seed, seconds, say).run()
