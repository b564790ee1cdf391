from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_agent.worker.guard.paths import Unresolved, descriptor_path, exists, resolved

PARTS = ("a", "b", "up", "down", "root", "away", "loop", "new", ".", "..", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders with links up, down, to the root, to one another and to nothing."""
    folder = tmp_path_factory.mktemp("links").resolve()
    for place in (folder, folder / "a", folder / "a" / "b"):
        place.mkdir(exist_ok=True)
        (place / "up").symlink_to("..")
        (place / "down").symlink_to(folder / "a" / "b")
        (place / "root").symlink_to("/")
        (place / "away").symlink_to("missing/file")
    return folder


@given(
    parts=st.lists(st.sampled_from([part for part in PARTS if part != "loop"]), max_size=7),
    is_bytes=st.booleans(),
)
def test_a_path_is_resolved_as_the_system_does(folder: Path, parts: list[str], is_bytes: bool) -> None:
    path = "/".join((str(folder), *parts))
    expected = os.path.realpath(path)
    assert resolved(os.fsencode(path) if is_bytes else path) == expected


@given(parts=st.lists(st.sampled_from(("a", "b", "up", "down", "new", "..")), max_size=6))
def test_a_path_relative_to_an_open_folder(folder: Path, parts: list[str]) -> None:
    opened = os.open(folder / "a", os.O_RDONLY)
    try:
        assert resolved("/".join(parts) or ".", opened) == os.path.realpath(folder / "a" / "/".join(parts))
    finally:
        os.close(opened)


def test_a_name_is_not_followed(folder: Path) -> None:
    assert resolved(f"{folder}/down/up", follows=False) == f"{folder}/a/b/up"
    assert resolved(f"{folder}/a/up/", follows=False) == str(folder)


def test_relative_to_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "a")
    assert resolved("b/new") == f"{folder}/a/b/new"


def test_what_cannot_be_told(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    for path in (f"{folder}/loop/x", 3.5):
        with pytest.raises(Unresolved):
            resolved(path)


def test_the_file_of_a_descriptor(folder: Path) -> None:
    file = os.open(folder / "file", os.O_CREAT | os.O_WRONLY)
    read, write = os.pipe()
    try:
        assert descriptor_path(file) == f"{folder}/file"
        assert resolved(f"/proc/self/fd/{file}") == f"{folder}/file"
        assert not resolved(f"/proc/self/fd/{write}").startswith("/")
        assert descriptor_path(write) is None
        (folder / "file").unlink()
        assert descriptor_path(file) is None
    finally:
        for descriptor in (file, read, write):
            os.close(descriptor)


def test_a_broken_link_exists(folder: Path) -> None:
    assert exists(f"{folder}/away")
    assert not exists(f"{folder}/nothing")
    assert not exists(f"{folder}/nothing/at/all")
