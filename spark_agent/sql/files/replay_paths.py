"""The paths that DataFrames are written to and read from, in a replay: writers write into the sandbox.

Stands before PySpark's own methods, and changes their path alone. What writes without a path (a table, a
database) is not seen here: the replay's guard refuses it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver.call_sites import call_site
from spark_agent.driver.monkeypatch import like
from spark_agent.sql.files import inferred_columns

if TYPE_CHECKING:
    from spark_agent.driver.replay.replay import Replay
    from spark_agent.driver.session import Session

Move = Callable[[Any, str, Any], Any]
"""(a path, or whatever the argument is; the method's name; the reader or writer) -> what takes its place."""

#: Attribute of a writer: its mode.
_MODE = "_lineage_mode"
_WRITERS = ("csv", "json", "orc", "parquet", "save", "text", "xml")
#: In these modes a writer finds what was written to its path before.
_MORE = ("append", "ignore", "overwrite")
#: Method -> the parameter that names what is read, if it is one parameter.
_READERS = {
    "csv": "path",
    "json": "path",
    "load": "path",
    "orc": "path",
    "parquet": None,
    "text": "paths",
    "xml": "path",
}


def install(session: Session, replay: Replay) -> None:
    """Patch the writers and readers of DataFrames for the session of a replay."""
    from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

    def written(path: Any, name: str, writer: Any) -> Any:
        if not isinstance(path, str):
            return path
        is_more = str(getattr(writer, _MODE, "")).lower() in _MORE
        format = "" if name == "save" else name
        return replay.redirected_frame(name, call_site(), path, format, is_more=is_more)

    def read(path: Any, _name: str, _reader: Any) -> Any:
        return replay.outputs.with_copies(path)

    for owner, methods, move in (
        (DataFrameWriter, dict.fromkeys(_WRITERS, "path"), written),
        (DataFrameReader, _READERS, read),
    ):
        for name, parameter in methods.items():
            if name in owner.__dict__:  # PySpark 3.5 has no xml
                _replace(session, owner, name, _moving(owner.__dict__[name], name, parameter, move))
        _replace(session, owner, "option", _moving_option(owner.__dict__["option"], move))
        _replace(session, owner, "options", _moving_options(owner.__dict__["options"], move))
    _replace(session, DataFrameWriter, "mode", _noting_mode(DataFrameWriter.__dict__["mode"]))
    inferred_columns.watch(session.patches, DataFrameReader, replay.report.infers)


def _replace(session: Session, owner: Any, name: str, method: Callable[..., Any]) -> None:
    session.patches.replace(owner, name, method)


def _moving(original: Callable[..., Any], name: str, parameter: str | None, move: Move) -> Callable[..., Any]:
    """`original` with other paths: its first argument, or all where they have no parameter."""

    mode_at = {"save": 2, "text": sys.maxsize}.get(name, 1)  # behind the path

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        mode = kwargs.get("mode", args[mode_at] if len(args) > mode_at else None)
        if parameter == "path" and isinstance(mode, str):
            setattr(self, _MODE, mode)
        if parameter is None:
            args = tuple(move(path, name, self) for path in args)
        elif args:
            args = (move(args[0], name, self), *args[1:])
        elif parameter in kwargs:
            kwargs = {**kwargs, parameter: move(kwargs[parameter], name, self)}
        return original(self, *args, **kwargs)

    return like(original, hiding(method))


def _noting_mode(original: Callable[..., Any]) -> Callable[..., Any]:
    def mode(self: Any, saveMode: Any) -> Any:
        if saveMode is not None:
            setattr(self, _MODE, saveMode)
        return original(self, saveMode)

    return like(original, hiding(mode))


def _moving_option(original: Callable[..., Any], move: Move) -> Callable[..., Any]:
    def option(self: Any, key: Any, value: Any) -> Any:
        is_path = isinstance(key, str) and key.lower() == "path"
        return original(self, key, move(value, "save", self) if is_path else value)

    return like(original, hiding(option))


def _moving_options(original: Callable[..., Any], move: Move) -> Callable[..., Any]:
    def options(self: Any, **values: Any) -> Any:
        moved = {
            key: move(value, "save", self) if key.lower() == "path" else value
            for key, value in values.items()
        }
        return original(self, **moved)

    return like(original, hiding(options))
