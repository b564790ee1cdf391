"""Trials of interpreters, with shell scripts in the place of Pythons."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lineage_service.replays.errors import CommandError
from lineage_service.replays.launcher import Interpreter
from lineage_service.replays.sandbox import SPEC_FILE, Sandbox
from lineage_service.replays.trials import Trials, check_guarded


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    sandbox = Sandbox(tmp_path / "replays" / "7")
    sandbox.folder.mkdir(parents=True)
    sandbox.write(SPEC_FILE, {"sandbox": str(sandbox.folder), "replay": "7"})
    return sandbox


def program(path: Path, text: str) -> Interpreter:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return Interpreter(str(path))


def test_a_trial_has_the_spec_of_the_sandbox_and_a_folder_of_its_own(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    (sandbox.folder / "notes.jsonl").write_text("of another process")
    python = program(
        tmp_path / "python", f'cat "$LINEAGE_REPLAY" > {tmp_path}/spec; dirname "$3" >&2; exit 0'
    )
    check_guarded([python], {"PATH": "/usr/bin:/bin"}, sandbox)
    spec = json.loads((tmp_path / "spec").read_text())
    assert spec == {"sandbox": str(sandbox.folder / "trial"), "replay": "7"}
    assert not (sandbox.folder / "trial").exists()
    assert (sandbox.folder / "notes.jsonl").read_text() == "of another process"


def test_the_file_that_is_refused_is_beside_the_sandbox_and_does_not_stay(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    python = program(tmp_path / "python", f'touch "$3"; echo "$3" > {tmp_path}/file; exit 0')
    check_guarded([python], {"PATH": "/usr/bin:/bin"}, sandbox)
    file = Path((tmp_path / "file").read_text().strip())
    assert file.parent == sandbox.folder.parent
    assert not file.exists()


def test_all_are_tried_at_once_and_each_once(tmp_path: Path, sandbox: Sandbox) -> None:
    waits = "touch {0}/{1}; echo {1} >> {0}/begun; while [ ! -e {0}/{2} ]; do sleep 0.01; done"
    one = program(tmp_path / "one", waits.format(tmp_path, "is-1", "is-2"))
    other = program(tmp_path / "other", waits.format(tmp_path, "is-2", "is-1"))
    with Trials([one, other, one], {"PATH": "/usr/bin:/bin"}, sandbox) as trials:
        trials.check()
    assert sorted((tmp_path / "begun").read_text().split()) == ["is-1", "is-2"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 86", "does not load the lineage agent"),
        ("echo one >&2; echo its reason >&2; exit 3", "cannot run a replay: its reason"),
        ("exit 3", "cannot run a replay: no reason was given"),
    ],
)
def test_one_that_does_not_refuse_is_said(tmp_path: Path, sandbox: Sandbox, script: str, why: str) -> None:
    good, bad = program(tmp_path / "good", "exit 0"), program(tmp_path / "bad", script)
    with pytest.raises(CommandError, match=why):
        check_guarded([good, bad], {"PATH": "/usr/bin:/bin"}, sandbox)
    assert not (sandbox.folder / "trial").exists()


def test_one_that_cannot_be_started_is_said(tmp_path: Path, sandbox: Sandbox) -> None:
    good = program(tmp_path / "good", "sleep 60")
    with pytest.raises(CommandError, match="cannot be started"):
        check_guarded([good, Interpreter(str(tmp_path / "none"))], {"PATH": "/usr/bin:/bin"}, sandbox)


def test_a_trial_does_not_outlive_its_block(tmp_path: Path, sandbox: Sandbox) -> None:
    slow = program(tmp_path / "slow", "exec sleep 60")
    with Trials([slow], {"PATH": "/usr/bin:/bin"}, sandbox) as trials:
        ((_, process),) = trials._running
    assert process.returncode == -9
