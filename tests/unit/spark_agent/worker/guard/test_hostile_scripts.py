from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from spark_agent.worker.guard import kernel
from tests.support.replay.hostile_scripts import FRIENDLY, HOSTILE, PRELUDE, UNSEEN
from tests.support.replay.playground import Outcome, Playground

#: With the kernel's fence, and with Python's alone.
FENCES = [True, False] if kernel.is_offered() else [False]
SCRIPTS = {
    **{name: text for name, (text, _) in HOSTILE.items()},
    **{f"friendly_{name}": text for name, text in FRIENDLY.items()},
    **UNSEEN,
}
#: Those that `make test` runs, with one fence; `make test-all` runs them all.
QUICK = (
    "open_w",
    "rmtree",
    "rename_into_sandbox",
    "chdir",
    "utime",
    "dir_fd_open",
    "proc_self_fd",
    "hardlink_existing",
)
QUICK += (
    "sqlite_attach",
    "ctypes_unlink",
    "subprocess",
    "multiprocessing_spawn",
    "atexit",
    "false_gateway",
    "mkfifo",
)
QUICK += ("parquet", "friendly_temporary", "friendly_processes_of_python", "friendly_standard_streams")
Get = Callable[[str, bool], Outcome]


def runs(names: Iterable[str], fences: Sequence[bool] = FENCES) -> pytest.MarkDecorator:
    """Each script with each fence; of the quick ones `make test` runs one."""
    return pytest.mark.parametrize(
        ("name", "is_confined"),
        [
            pytest.param(
                name,
                is_confined,
                marks=()
                if name in QUICK and is_confined is FENCES[len(name) % len(FENCES)]
                else pytest.mark.thorough,
            )
            for name in names
            for is_confined in fences
        ],
    )


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Get]:
    """outcome(name, is_confined): how that script ended. All run at the same time as others do."""
    asked = {
        (item.callspec.params["name"], item.callspec.params["is_confined"])
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    }

    def run(name: str, is_confined: bool) -> Outcome:
        # A short name: the path of a socket in the sandbox has at most 107 characters.
        playground = Playground(tmp_path_factory.mktemp("run"))
        return playground.run(PRELUDE + SCRIPTS[name], is_confined=is_confined, timeout=60)

    with ThreadPoolExecutor(4) as pool:
        futures = {key: pool.submit(run, *key) for key in sorted(asked)}
        yield lambda name, is_confined: futures[name, is_confined].result()


@runs(HOSTILE)
def test_a_hostile_script_changes_nothing_and_is_told_what_was_refused(
    outcome: Get, name: str, is_confined: bool
) -> None:
    ended = outcome(name, is_confined)
    assert not ended.changed
    assert HOSTILE[name][1] in ended.refused, (ended.output, ended.notes)


@runs(UNSEEN, [is_confined for is_confined in FENCES if is_confined])
def test_what_a_library_in_c_writes_is_stopped_by_the_kernel(
    outcome: Get, name: str, is_confined: bool
) -> None:
    ended = outcome(name, is_confined)
    assert not ended.changed
    assert ended.exit_code == 1, ended.output


@runs([f"friendly_{name}" for name in FRIENDLY])
def test_a_friendly_script_ends_well(outcome: Get, name: str, is_confined: bool) -> None:
    ended = outcome(name, is_confined)
    assert (ended.exit_code, ended.notes["refused"], ended.changed) == (0, [], {}), ended.output
