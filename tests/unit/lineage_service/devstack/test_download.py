from __future__ import annotations

import functools
import hashlib
import http.server
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lineage_service.devstack import download
from lineage_service.devstack.download import fetch
from lineage_service.devstack.errors import DownloadError
from lineage_service.devstack.jars import Jar
from lineage_service.devstack.progress import Quiet


def make_jar(artifact: str, content: bytes) -> Jar:
    return Jar(
        group="org.example",
        artifact=artifact,
        version="1.2",
        classifier="",
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
    )


@dataclass
class Repository:
    """A Maven repository that remembers what it is asked for, and breaks a file off where told to."""

    folder: Path
    url: str = ""
    asked: list[str] = field(default_factory=list)
    cut: dict[str, int] = field(default_factory=dict)  # file name -> how many times still

    def publish(self, artifact: str, content: bytes) -> Jar:
        jar = make_jar(artifact, content)
        path = self.folder / jar.repository_path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return jar


class Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, repository: Repository, *args: object) -> None:
        self.repository = repository
        super().__init__(*args, directory=str(repository.folder))  # type: ignore[arg-type]

    def do_GET(self) -> None:
        name = Path(self.path).name
        if name.endswith(".jar"):
            self.repository.asked.append(name)
        if self.repository.cut.get(name, 0):
            self.repository.cut[name] -= 1
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half of it")
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    repository = Repository(tmp_path / "remote")
    repository.folder.mkdir()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, repository)) as server:
        repository.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield repository
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(download, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setenv("M2_REPO", str(tmp_path / "local"))
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def test_jars_are_downloaded_once(repository: Repository, tmp_path: Path) -> None:
    jars = [repository.publish(f"tool{number}", bytes([number]) * 1000) for number in range(20)]
    folder = tmp_path / "jars"
    paths = fetch(jars, folder, repository.url, Quiet())
    assert [path.name for path in paths] == [jar.file_name for jar in jars]
    assert all(jar.is_content_of(path) for jar, path in zip(jars, paths, strict=True))
    assert sorted(folder.glob("*.jar")) == sorted(folder.glob("[!.]*")) == sorted(paths)
    fetch(jars, folder, repository.url, Quiet())
    assert len(repository.asked) == 20


def test_two_who_fetch_at_once_download_once(repository: Repository, tmp_path: Path) -> None:
    jars = [repository.publish(f"tool{number}", bytes([number]) * 1000) for number in range(20)]
    both = [
        threading.Thread(target=fetch, args=(jars, tmp_path / "jars", repository.url, Quiet()))
        for _ in range(2)
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert sorted(repository.asked) == sorted(jar.file_name for jar in jars)


def test_what_the_local_maven_repository_has_is_not_downloaded(
    repository: Repository, tmp_path: Path
) -> None:
    here, there = repository.publish("here", b"here"), repository.publish("there", b"there")
    local = tmp_path / "local" / here.repository_path
    local.parent.mkdir(parents=True)
    local.write_bytes(b"here")
    damaged = tmp_path / "local" / there.repository_path
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"THERE")
    fetch([here, there], tmp_path / "jars", repository.url, Quiet())
    assert repository.asked == [there.file_name]


def test_only_what_is_missing_or_damaged_is_fetched_again(repository: Repository, tmp_path: Path) -> None:
    jars = [repository.publish(name, name.encode()) for name in ("whole", "half", "other", "missing")]
    folder = tmp_path / "jars"
    fetch(jars, folder, repository.url, Quiet())
    repository.asked.clear()
    (folder / "half-1.2.jar").write_bytes(b"ha")
    (folder / "other-1.2.jar").write_bytes(b"OTHER")
    (folder / "missing-1.2.jar").unlink()
    fetch(jars, folder, repository.url, Quiet())
    assert sorted(repository.asked) == ["half-1.2.jar", "missing-1.2.jar", "other-1.2.jar"]
    assert all(jar.is_content_of(folder / jar.file_name) for jar in jars)


def test_a_download_that_breaks_off_is_tried_again(repository: Repository, tmp_path: Path) -> None:
    jar = repository.publish("tool", b"tool")
    repository.cut["tool-1.2.jar"] = 2
    fetch([jar], tmp_path / "jars", repository.url, Quiet())
    assert repository.asked == ["tool-1.2.jar"] * 3


def test_a_download_that_keeps_breaking_off_leaves_no_half_jar(
    repository: Repository, tmp_path: Path
) -> None:
    jar = repository.publish("tool", b"tool")
    repository.cut["tool-1.2.jar"] = 99
    with pytest.raises(DownloadError, match=r"cannot download tool-1\.2\.jar from http://127"):
        fetch([jar], tmp_path / "jars", repository.url, Quiet())
    assert list((tmp_path / "jars").glob("*.jar")) == []


def test_another_content_than_the_locks_is_refused(repository: Repository, tmp_path: Path) -> None:
    repository.publish("tool", b"evil")
    with pytest.raises(DownloadError, match="not the file that the lock names"):
        fetch([make_jar("tool", b"tool")], tmp_path / "jars", repository.url, Quiet())
    assert list((tmp_path / "jars").glob("*.jar")) == []


def test_a_repository_without_the_jar_is_named(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="does not serve that file"):
        fetch([make_jar("tool", b"tool")], tmp_path / "jars", repository.url, Quiet())


def test_what_arrived_before_a_failure_is_kept(repository: Repository, tmp_path: Path) -> None:
    # With a thread for each, so that every good jar is on its way before the missing one has failed for good.
    good = [repository.publish(f"good{number}", b"good") for number in range(4)]
    with pytest.raises(DownloadError):
        fetch([*good, make_jar("missing", b"")], tmp_path / "jars", repository.url, Quiet())
    kept = {path.name for path in (tmp_path / "jars").glob("*.jar")}
    assert kept <= {jar.file_name for jar in good}
    repository.asked.clear()
    fetch(good, tmp_path / "jars", repository.url, Quiet())
    assert set(repository.asked) == {jar.file_name for jar in good} - kept


def test_no_network_says_what_to_do(tmp_path: Path) -> None:
    jars = [make_jar(f"tool{number}", b"tool") for number in range(20)]
    with pytest.raises(DownloadError, match=r"no connection.*--maven-repository") as caught:
        fetch(jars, tmp_path / "jars", "http://127.0.0.1:9", Quiet())
    assert "\n" not in str(caught.value)


def test_scratch_of_a_killed_download_is_removed_and_that_of_a_running_one_is_not(tmp_path: Path) -> None:
    old, new = tmp_path / ".incoming-old", tmp_path / ".incoming-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "half.jar").write_bytes(b"half")
    os.utime(old, (time.time() - 86_400, time.time() - 86_400))
    fetch([], tmp_path, "http://127.0.0.1:9", Quiet())
    assert not old.exists()
    assert new.exists()
