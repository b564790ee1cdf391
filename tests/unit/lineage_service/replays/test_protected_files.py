from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lineage_service.replays.protected_files import changes, snapshot


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "in.txt").write_text("one\n")
    (folder / "deep" / "er" / "x").write_text("x")
    (folder / "link").symlink_to("in.txt")
    return folder


def keep_time(path: Path, act: Callable[[], object]) -> None:
    before = path.stat()
    act()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


HARM: dict[str, tuple[Callable[[Path], object], str]] = {
    "size": (
        lambda data: keep_time(data / "in.txt", lambda: (data / "in.txt").write_text("o")),
        "another size",
    ),
    "time": (lambda data: os.utime(data / "in.txt", ns=(1, 1)), "in.txt has another time of change"),
    "mode": (lambda data: (data / "in.txt").chmod(0o777), "in.txt has another mode"),
    "gone": (lambda data: (data / "deep" / "er" / "x").unlink(), "er/x is gone"),
    "new": (lambda data: (data / "deep" / "er" / "y").write_text(""), "er/y is new"),
    "renamed": (lambda data: (data / "deep" / "er").rename(data / "deep" / "z"), "deep/z/x is new"),
    "link": (lambda data: (data / "link").unlink(), "link is gone"),
    "replaced": (
        lambda data: ((data / "t").write_text("one\n"), (data / "t").replace(data / "in.txt")),
        "inode",
    ),
    "kind": (lambda data: ((data / "in.txt").unlink(), (data / "in.txt").mkdir()), "another kind of file"),
}


@pytest.mark.parametrize("name", HARM)
def test_each_change_is_named(data: Path, name: str) -> None:
    harm, sentence = HARM[name]
    before = snapshot([str(data)])
    harm(data)
    assert any(sentence in line for line in changes(before, snapshot([str(data)])))


@pytest.mark.parametrize("uri", ["{}", "file:{}", "file://{}", "{}/link", "{}/in.txt"])
def test_nothing_is_told_of_what_stays(data: Path, uri: str) -> None:
    before = snapshot([uri.format(data)])
    assert before.states
    (data / "in.txt").read_text()
    assert changes(before, snapshot([uri.format(data)])) == []


def test_what_a_link_leads_to_is_looked_at(data: Path) -> None:
    before = snapshot([str(data / "link")])
    (data / "in.txt").write_text("other")
    assert changes(before, snapshot([str(data / "link")]))


def test_what_comes_where_nothing_was_is_told_and_other_file_systems_are_passed_by(data: Path) -> None:
    paths = [str(data / "nothing"), "hdfs://host/x", "relative"]
    before = snapshot(paths)
    (data / "nothing").write_text("")
    assert changes(before, snapshot(paths)) == [f"{data}/nothing is new"]
