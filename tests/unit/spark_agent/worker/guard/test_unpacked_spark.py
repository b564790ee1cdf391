from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spark_agent.worker.guard.unpacked_spark import folder_of


def installation(home: Path, package: Path, version: str) -> Path:
    """An installation of Spark, and its archive."""
    for folder in (home / "python" / "lib", package):
        folder.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(f"version = {version!r}\nimport pyspark.worker\n")
    (package / "worker.py").touch()
    archive = home / "python" / "lib" / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("pyspark/__init__.py", f"version = {version!r}\n")
    return archive


def imported(*path: Path) -> list[str]:
    """The version and the file of PySpark, for a Python with this path."""
    program = (
        f"import sys; sys.path[:0] = {[*map(str, path)]!r}\n"
        "from spark_agent.worker.guard.unpacked_spark import import_pyspark\n"
        "before = list(sys.path); import_pyspark(sys.path); assert sys.path == before\n"
        "import pyspark; print(pyspark.version); print(pyspark.__file__)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return ended.stdout.splitlines()


@pytest.mark.parametrize("is_installed", [True, False])
def test_the_folder_of_the_same_installation_stands_in_for_the_archive(
    tmp_path: Path, *, is_installed: bool
) -> None:
    home = tmp_path / "packages" / "pyspark" if is_installed else tmp_path / "spark-4"
    package = home if is_installed else home / "python" / "pyspark"
    archive = installation(home, package, "4")
    assert folder_of(str(archive)) == str(package.parent)
    assert imported(archive) == ["4", str(package / "__init__.py")]


def test_an_archive_without_its_folder_is_read(tmp_path: Path) -> None:
    home = tmp_path / "spark-4"
    archive = installation(home, home / "python" / "pyspark", "4")
    (home / "python" / "pyspark" / "__init__.py").unlink()
    assert imported(archive) == ["4", str(archive / "pyspark" / "__init__.py")]
    elsewhere = tmp_path / "pyspark.zip"
    archive.rename(elsewhere)
    assert folder_of(str(elsewhere)) == ""
    assert imported(elsewhere) == ["4", str(elsewhere / "pyspark" / "__init__.py")]


def test_a_package_before_the_archive_stays_the_first(tmp_path: Path) -> None:
    home = tmp_path / "packages" / "pyspark"
    archive = installation(home, home, "4")
    own = tmp_path / "own" / "pyspark"
    own.mkdir(parents=True)
    (own / "__init__.py").write_text("version = 'own'")
    assert imported(own.parent, archive)[0] == "own"
