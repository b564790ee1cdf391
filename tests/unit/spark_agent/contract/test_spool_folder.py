"""Where the spool is: beside Spark's local folders, and outside of what goes with an application."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_agent.contract.spool_folder import lasting_folder, make_folder, spool_folder

UUID = "0a1b2c3d-0000-4444-8888-0123456789ab"
#: Also what `tests/spark/jvm/test_spool.py` asks the Java code.
FOLDERS = {
    f"/tmp/blockmgr-{UUID}": "/tmp",
    f"/tmp/spark-{UUID}/pyspark-{UUID}": "/tmp",
    f"/data/spark-{UUID}/executor-{UUID}/blockmgr-{UUID}": "/data",
    "/yarn/usercache/ann/appcache/application_1700000000000_0001/blockmgr-" + UUID: "/yarn/usercache/ann",
    "/srv/app-20261126050000-0001/1/scratch": "/srv",
    "/data/spark-data/local": "/data/spark-data/local",
    "/": "/",
}


@pytest.mark.parametrize(("folder", "lasting"), FOLDERS.items())
def test_the_spool_outlives_the_application(folder: str, lasting: str) -> None:
    assert lasting_folder(folder) == lasting


def test_of_several_local_folders_all_processes_take_the_same() -> None:
    own = f"lineage-spool-{os.getuid()}"
    assert spool_folder("", f"/b/blockmgr-{UUID}, /a/blockmgr-{UUID}") == f"/a/{own}"
    assert spool_folder("", "").endswith(own)
    assert spool_folder("~/spool", "/a") == str(Path("~/spool").expanduser())
    assert spool_folder("file:///shared/spool", "/a") == "/shared/spool"


def test_a_folder_of_our_own_is_readable_by_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    assert make_folder(str(folder), is_own=True) == ""
    assert folder.stat().st_mode & 0o777 == 0o700
    assert make_folder(str(folder), is_own=True) == ""


def test_a_folder_that_cannot_be_had_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot be made" in make_folder(str(tmp_path / "file" / "spool"), is_own=True)
    (tmp_path / "link").symlink_to(tmp_path)
    assert "name one with spark.lineage.spool.dir" in make_folder(str(tmp_path / "link"), is_own=True)
