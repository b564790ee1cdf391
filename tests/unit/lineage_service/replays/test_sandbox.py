from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from lineage_service.replays.errors import SandboxError
from lineage_service.replays.sandbox import KEPT_S, SPEC_FILE, Sandboxes


def test_two_replays_at_once_have_two_sandboxes_that_only_their_user_reads(tmp_path: Path) -> None:
    sandboxes = Sandboxes(tmp_path)
    with sandboxes.new() as one, sandboxes.new() as other:
        assert [one.id, other.id] == ["1", "2"]
        for folder in (sandboxes.folder, one.folder, one.outputs, one.folder / "tmp"):
            assert folder.stat().st_mode & 0o777 == 0o700
        path = one.write(SPEC_FILE, {"a": 1})
        assert path.stat().st_mode & 0o777 == 0o600
        assert one.read(SPEC_FILE) == {"a": 1}


def test_what_is_no_json_is_read_as_nothing(tmp_path: Path) -> None:
    with Sandboxes(tmp_path).new() as sandbox:
        assert sandbox.read("report.json") is None
        for text in (b"", b"{", b"\xff", b"[" * 100_000):
            sandbox.write_text("report.json", text)
            assert sandbox.read("report.json") is None


def test_a_further_round_begins_without_what_the_one_before_left(tmp_path: Path) -> None:
    with Sandboxes(tmp_path).new() as sandbox:
        (sandbox.outputs / "part-00000").write_text("1\n")
        sandbox.write_text("report.json", b"{}")
        sandbox.next_round(1)
        assert not sandbox.report.exists()
        assert list(sandbox.outputs.iterdir()) == []
        assert (sandbox.folder / "rounds/1/out/part-00000").read_text() == "1\n"


def test_sandboxes_are_removed_but_those_that_somebody_works_in(tmp_path: Path) -> None:
    sandboxes = Sandboxes(tmp_path)
    with sandboxes.new():
        pass
    with sandboxes.new() as running:
        assert sandboxes.clean() == ["1"]
        with pytest.raises(SandboxError, match="replay 2 is running: end it first"):
            sandboxes.clean("2")
        assert running.folder.is_dir()
    assert sandboxes.clean("2") == ["2"]
    with pytest.raises(SandboxError, match="there is no replay '2'"):
        sandboxes.clean("2")
    assert sandboxes.clean() == []


def test_names_that_are_no_numbers_and_links_are_never_removed(tmp_path: Path) -> None:
    outside = tmp_path / "data"
    outside.mkdir()
    (outside / "rows").write_text("1")
    sandboxes = Sandboxes(tmp_path)
    sandboxes.folder.mkdir()
    (sandboxes.folder / "mine").mkdir()
    (sandboxes.folder / "7").symlink_to(outside)
    with pytest.raises(SandboxError, match="no replay"):
        sandboxes.clean("../data")
    assert sandboxes.clean() == []
    assert (outside / "rows").read_text() == "1"
    assert (sandboxes.folder / "mine").is_dir()


def test_a_link_in_a_sandbox_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    outside = tmp_path / "data"
    outside.mkdir()
    (outside / "rows").write_text("1")
    sandboxes = Sandboxes(tmp_path)
    with sandboxes.new() as sandbox:
        (sandbox.outputs / "link").symlink_to(outside)
    assert sandboxes.clean() == ["1"]
    assert (outside / "rows").read_text() == "1"


def test_after_a_day_a_sandbox_goes_unless_it_was_to_be_kept(tmp_path: Path) -> None:
    sandboxes = Sandboxes(tmp_path)
    with sandboxes.new():
        pass
    with sandboxes.new() as kept:
        kept.keep()
    now = time.time()
    assert sandboxes.expire(now + KEPT_S - 60) == []
    assert sandboxes.expire(now + KEPT_S + 60) == ["1"]
    assert [sandbox.id for sandbox in sandboxes.all()] == ["2"]


class _Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: _Usage(1 << 40, 1 << 40, 5 << 20))
    with pytest.raises(SandboxError, match=r"its disk is full \(5 MB are free\).*lineage replay --clean"):
        with Sandboxes(tmp_path).new():
            pass


def test_a_disk_that_gets_full_names_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Sandboxes(tmp_path).new() as sandbox:

        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "open", full)
        with pytest.raises(SandboxError, match=rf"{sandbox.folder} .*No space left.*--clean 1"):
            sandbox.write(SPEC_FILE, {})


def test_a_home_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "replays").write_text("a file")
    with pytest.raises(SandboxError, match=r"no sandbox can be made in .*replays"):
        with Sandboxes(tmp_path).new():
            pass
