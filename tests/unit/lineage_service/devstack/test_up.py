from __future__ import annotations

import socket
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import psutil
import pytest

from lineage_service.cli.stack import up
from lineage_service.cli.stack.down import stop
from lineage_service.cli.stack.up import start
from lineage_service.devstack import process, servers
from lineage_service.devstack.errors import HomeError, ServerError
from lineage_service.devstack.kafka import accepts
from lineage_service.devstack.server import Place
from lineage_service.devstack.state import StackState, read_state
from lineage_service.settings import Settings
from tests.support.processes import still_running

#: A server of three lines: listens at once, or dies at once with a word, or does nothing.
LISTENS = (
    "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[2]))); time.sleep(60)"
)
DIES = "print('the disk is upside down'); raise SystemExit(1)"
HANGS = "import time; time.sleep(60)"


class TinyServer:
    version = "1.0"

    def __init__(self, name: str) -> None:
        self.name = name
        self.title = name.title()
        self.ports: Mapping[str, int] = {"main": 23_000 + len(name)}
        self.program = LISTENS
        self.prepared = 0

    def addresses(self, ports: Mapping[str, int]) -> dict[str, str]:
        return {"bolt": f"127.0.0.1:{ports['main']}"}

    def logs(self, place: Place) -> Sequence[Path]:
        return [place.logs / f"{self.name}.log"]

    def prepare(self, java: Path, jars: Sequence[Path], place: Place, ports: Mapping[str, int]) -> list[str]:
        self.prepared += 1
        return [sys.executable, "-I", "-S", "-c", self.program, place.mark, str(ports["main"])]

    def is_ready(self, addresses: Mapping[str, str]) -> bool:
        return accepts(addresses["bolt"])


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    waiting = up.Quiet.waiting


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[tuple[TinyServer, TinyServer]]:
    pair = (TinyServer("short"), TinyServer("longer"))
    monkeypatch.setattr(servers, "SERVERS", pair)
    monkeypatch.setattr(up, "read_lock", lambda name: ())
    monkeypatch.setattr(up, "find_java", lambda: Path("java"))
    yield pair
    stop(home)


def pids(state: StackState) -> dict[str, int]:
    return {name: started.pid for name, started in state.servers.items()}


@pytest.mark.usefixtures("tiny")
def test_up_starts_both_and_writes_where_they_are(home: Path) -> None:
    state = start(Settings(home=home))
    assert set(state.servers) == {"short", "longer"}
    assert read_state(home) == state
    assert all(accepts(started.addresses["bolt"]) for started in state.servers.values())


@pytest.mark.usefixtures("tiny")
def test_a_second_up_changes_nothing_and_says_so(home: Path) -> None:
    first = start(Settings(home=home))
    heard = Heard()
    assert start(Settings(home=home), reporter=heard) == first
    assert [line.partition(" at ")[0] for line in heard.lines] == [
        "Short 1.0 is already up",
        "Longer 1.0 is already up",
    ]


def test_only_the_one_that_died_is_started_again_at_its_old_port(
    tiny: tuple[TinyServer, TinyServer], home: Path
) -> None:
    first = start(Settings(home=home))
    killed = psutil.Process(first.servers["longer"].pid)
    killed.kill()
    killed.wait()
    second = start(Settings(home=home))
    assert second.servers["short"] == first.servers["short"]
    assert second.servers["longer"].pid != first.servers["longer"].pid
    assert second.servers["longer"].ports == first.servers["longer"].ports
    assert [server.prepared for server in tiny] == [1, 2]


@pytest.mark.usefixtures("tiny")
def test_only_one_is_started_when_asked_for(home: Path) -> None:
    assert set(start(Settings(home=home), only="short").servers) == {"short"}
    assert set(start(Settings(home=home)).servers) == {"short", "longer"}


def test_a_port_in_use_is_gone_round(tiny: tuple[TinyServer, TinyServer], home: Path) -> None:
    wanted = tiny[0].ports["main"]
    with socket.create_server(("127.0.0.1", wanted)):
        state = start(Settings(home=home), only="short")
    assert state.servers["short"].ports["main"] != wanted
    moved_to = state.servers["short"].ports
    stop(home)
    assert start(Settings(home=home), only="short").servers["short"].ports == moved_to


def test_why_a_server_listens_elsewhere_is_said(tiny: tuple[TinyServer, TinyServer], home: Path) -> None:
    wanted, heard = tiny[0].ports["main"], Heard()
    with socket.create_server(("127.0.0.1", wanted)):
        moved_to = start(Settings(home=home), only="short", reporter=heard).servers["short"].ports["main"]
    assert heard.lines[0] == f"{wanted} is taken by another program; Short's main listens on {moved_to}"
    stop(home)
    heard.lines.clear()
    start(Settings(home=home), only="short", reporter=heard)
    assert heard.lines[0] == (
        f"its port of before was another than the usual {wanted}; Short's main listens on {moved_to}"
    )


def test_what_answers_at_a_port_that_was_lost_meanwhile_is_not_taken_for_its_own(
    tiny: tuple[TinyServer, TinyServer], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = tiny[0].ports["main"]
    really_free, asked = up.choose_port, []

    def choose(purpose: str, preferred: Collection[int], taken: Collection[int] = ()) -> int:
        asked.append(preferred)
        return wanted if len(asked) == 1 else really_free(purpose, preferred, taken)

    monkeypatch.setattr(up, "choose_port", choose)
    heard = Heard()
    with socket.create_server(("127.0.0.1", wanted)):
        state = start(Settings(home=home), only="short", reporter=heard)
        own = state.servers["short"]
        assert own.ports["main"] != wanted
        assert process.listens(psutil.Process(own.pid), own.ports["main"])
        assert not process.listens(psutil.Process(own.pid), wanted)
    assert heard.lines[0].startswith(f"{wanted} is taken by another program")


def test_a_server_that_loses_its_port_again_and_again_is_given_up(
    tiny: tuple[TinyServer, TinyServer], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = tiny[0].ports["main"]
    monkeypatch.setattr(up, "choose_port", lambda *_, **__: wanted)
    with (
        socket.create_server(("127.0.0.1", wanted)),
        pytest.raises(ServerError, match="ended while it started"),
    ):
        start(Settings(home=home), only="short")
    assert tiny[0].prepared == 3
    assert read_state(home).servers == {}


def test_a_server_that_dies_is_said_with_its_last_words_and_the_others_are_stopped(
    tiny: tuple[TinyServer, TinyServer], home: Path
) -> None:
    tiny[1].program = DIES
    with pytest.raises(
        ServerError, match=r"ended while it started; last lines of .*\n.*the disk is upside down"
    ):
        start(Settings(home=home))
    assert read_state(home).servers == {}
    assert not accepts(f"127.0.0.1:{tiny[0].ports['main']}")


def test_a_failed_start_leaves_what_was_up_before(tiny: tuple[TinyServer, TinyServer], home: Path) -> None:
    before = start(Settings(home=home), only="short")
    tiny[1].program = DIES
    with pytest.raises(ServerError):
        start(Settings(home=home))
    assert pids(read_state(home)) == pids(before)
    assert accepts(before.servers["short"].addresses["bolt"])


def test_a_server_that_never_answers_is_given_up(
    tiny: tuple[TinyServer, TinyServer], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "_READY_DEADLINE_S", 0.3)
    tiny[0].program = HANGS
    with pytest.raises(ServerError, match="did not answer within"):
        start(Settings(home=home), only="short")
    assert read_state(home).servers == {}


def test_an_interrupted_start_stops_what_it_began(
    tiny: tuple[TinyServer, TinyServer], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid: list[int] = []

    def interrupt(addresses: Mapping[str, str]) -> bool:
        pid.extend(pids(read_state(home)).values())
        raise KeyboardInterrupt

    monkeypatch.setattr(tiny[0], "is_ready", interrupt)
    with pytest.raises(KeyboardInterrupt):
        start(Settings(home=home), only="short")
    assert len(pid) == 1
    assert not still_running(pid)
    assert read_state(home).servers == {}


def test_a_server_left_starting_by_a_killed_up_is_waited_for(
    tiny: tuple[TinyServer, TinyServer], home: Path
) -> None:
    first = start(Settings(home=home), only="short")
    answers = iter([False, False, True])
    tiny[0].is_ready = lambda addresses: next(answers)  # type: ignore[method-assign]
    assert start(Settings(home=home), only="short") == first
    assert next(answers, None) is None


def test_down_stops_only_what_was_asked_for(tiny: tuple[TinyServer, TinyServer], home: Path) -> None:
    first = start(Settings(home=home))
    assert stop(home, only="short") == ["short"]
    assert pids(read_state(home)) == {"longer": first.servers["longer"].pid}
    assert stop(home) == ["longer"]
    assert stop(home) == []


def test_down_does_not_touch_a_stranger_with_the_same_pid(
    tiny: tuple[TinyServer, TinyServer], home: Path
) -> None:
    state = start(Settings(home=home), only="short")
    text = (home / "stack.json").read_text()
    created = state.servers["short"].created
    (home / "stack.json").write_text(text.replace(str(created), str(created - 3600)))
    assert stop(home) == []
    assert accepts(state.servers["short"].addresses["bolt"])
    psutil.Process(state.servers["short"].pid).kill()


@pytest.mark.parametrize("name", ["hömé", "a:b", "50%", "a*"])
def test_a_home_that_java_cannot_live_in_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="cannot live in a folder of this name"):
        start(Settings(home=tmp_path / name))
    assert not (tmp_path / name).exists()


def test_an_unwritable_home_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HomeError, match=r"cannot use .*/file/home"):
        start(Settings(home=tmp_path / "file" / "home"))
