"""Judges what SQLite and dbm write, which their libraries do without asking Python.

Their modules are changed as a script imports them. Of SQLite each connection gets an authorizer, which judges
the databases that come in later (ATTACH), and those that are made of one (VACUUM INTO).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from spark_agent.worker.guard.file_events import FileEvents
from spark_agent.worker.guard.refusals import Refusals

__all__ = ["Databases"]

Judge = Callable[..., None]
_ADVICE = "open a copy below the temporary folder: SQLite writes beside a database that it only reads"
#: Answers of SQLite's authorizer, and the action of ATTACH.
_OK, _DENY, _ATTACH = 0, 1, 24
#: The place of `factory` among the arguments of `sqlite3.connect`, behind the database.
_FACTORY = 5


class Databases:
    """Judges by the territory of the file events."""

    def __init__(self, files: FileEvents, refusals: Refusals) -> None:
        self._files = files
        self._refusals = refusals
        self._waiting: dict[str, Callable[[Any], None]] = {
            "_sqlite3": self._change_sqlite,
            "_dbm": self._change_dbm,
            "_gdbm": self._change_dbm,
        }

    def judges(self) -> Mapping[str, Judge]:
        return {
            "import": self._import,
            "sqlite3.connect": self._open,
            "sqlite3.enable_load_extension": lambda own, is_on: self._extension(is_on),
            "sqlite3.load_extension": lambda own, path: self._extension(path),
        }

    def _import(self, name: str, *_: object) -> None:
        change = self._waiting.pop(name, None)
        if change is None:
            return
        try:
            module = sys.modules.get(name) or __import__(name)
        except ImportError:
            return  # which the script's own import says again
        change(module)

    # -- SQLite ---------------------------------------------------------------------------------------

    def _open(self, database: Any) -> None:
        text = os.fsdecode(database)
        if not _is_no_file(text):
            self._files.followed("open the database", _file_of(text), advice=_ADVICE)

    def _extension(self, which: object) -> None:
        if which:
            self._refusals.refuse("load an extension into SQLite", "" if which is True else str(which))

    def _change_sqlite(self, module: Any) -> None:
        may_attach, connect = self._may_attach, module.connect

        class Connection(module.Connection):  # type: ignore[misc]
            """SQLite's connection, whose authorizer judges first."""

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                self.set_authorizer(None)

            def set_authorizer(self, authorizer_callback: Callable[..., int] | None) -> None:
                others = authorizer_callback or (lambda *_: _OK)

                def authorize(action: int, path: str | None, *rest: object) -> int:
                    if action == _ATTACH and not may_attach(path):
                        return _DENY
                    return others(action, path, *rest)

                super().set_authorizer(authorize)

        def connecting(*args: Any, **kwargs: Any) -> Any:
            if len(args) <= _FACTORY:
                kwargs.setdefault("factory", Connection)
            return connect(*args, **kwargs)

        Connection.__qualname__ = Connection.__name__
        connecting.__name__ = connecting.__qualname__ = "connect"
        module.Connection, module.connect = Connection, connecting

    def _may_attach(self, path: str | None) -> bool:
        try:
            self._open(path or "")
        except PermissionError:
            return False
        return True

    # -- dbm ------------------------------------------------------------------------------------------

    def _change_dbm(self, module: Any) -> None:
        original = module.open

        def opening(path: Any, flags: str = "r", *mode: int) -> Any:
            if flags[:1] != "r":
                self._files.followed("open the database", os.fspath(path))
            return original(path, flags, *mode)

        module.open = opening


def _is_no_file(database: str) -> bool:
    return database in ("", ":memory:") or (
        database.startswith("file:") and (":memory:" in database or "mode=memory" in database)
    )


def _file_of(database: str) -> str:
    """The path that names a database; of a URI the path in it."""
    if not database.startswith("file:"):
        return database
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(database).path)
