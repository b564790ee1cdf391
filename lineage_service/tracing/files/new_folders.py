"""New files and folders for one user alone: never in the place of something, and whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lineage_service.errors import InvalidQueryError, LineageError

__all__ = ["check_is_new", "new_file", "new_folder", "written_file"]


def check_is_new(folder: Path) -> None:
    """Raises InvalidQueryError where something stands at the place of a new folder that is no empty one."""
    if os.path.lexists(folder) and (
        folder.is_symlink() or not folder.is_dir() or next(folder.iterdir(), None) is not None
    ):
        raise InvalidQueryError(f"{folder} is there already: name a folder that is new, or empty")


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder beside it, which takes its name at the end; in an error it goes. Raises LineageError."""
    check_is_new(folder)
    beside: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name[:100]}.", dir=folder.parent))
        yield beside
        os.rename(beside, folder)  # noqa: PTH104 - over an empty folder at most
    except OSError as error:
        raise LineageError(f"{folder} cannot be written: {error.strerror or error}") from None
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file that was not there, also not as a link. Folders on its way are made."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        yield file


def written_file(path: Path, data: bytes) -> None:
    """Put data into a file of mode 0600, in the place of an earlier one. Raises LineageError."""
    beside = ""
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.absolute().parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(beside).replace(path)
    except OSError as error:
        raise LineageError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        if beside:
            Path(beside).unlink(missing_ok=True)
