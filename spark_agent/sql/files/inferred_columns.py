"""Notices, in a replay, readers of DataFrames that look at the rows of files to know their columns.

They look at all rows, and not only at those that the replay keeps: so a type may be another one than of these
alone. Stands before PySpark's own methods, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver.call_sites import call_site
from spark_agent.driver.monkeypatch import Patches, like

#: Attribute of a reader: what the program has said of its format and its columns.
_SAID = "_lineage_said"
#: Formats whose columns are inferred unless they are given, and the option of the one that must be asked.
_INFERRED, _ASKED, _OPTION = ("json", "xml"), "csv", "inferschema"
_READING = ("csv", "json", "load", "xml")


def watch(patches: Patches, reader: Any, infers: Callable[[str], None]) -> None:
    """Tell `infers` which method of the class `reader` infers columns, and where it was called."""

    def replace(name: str, make: Callable[[Any], Callable[..., Any]]) -> None:
        if name in reader.__dict__:  # PySpark 3.5 has no xml
            original = reader.__dict__[name]
            patches.replace(reader, name, like(original, hiding(make(original))))

    for name in ("format", "schema"):
        replace(name, partial(_noting, name=name))
    replace("option", _noting_option)
    replace("options", _noting_options)
    for name in _READING:
        replace(name, partial(_reading, name=name, infers=infers))


def _said(reader: Any) -> dict[str, str]:
    said: dict[str, str] = vars(reader).setdefault(_SAID, {})
    return said


def _noting(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        _said(self)[name] = str(next(iter((*args, *kwargs.values())), "")).lower()
        return result

    return method


def _noting_option(original: Callable[..., Any]) -> Callable[..., Any]:
    def option(self: Any, key: Any, value: Any) -> Any:
        _note_options(self, {str(key): value})
        return original(self, key, value)

    return option


def _noting_options(original: Callable[..., Any]) -> Callable[..., Any]:
    def options(self: Any, **values: Any) -> Any:
        _note_options(self, values)
        return original(self, **values)

    return options


def _note_options(reader: Any, options: Mapping[str, Any]) -> None:
    for key, value in options.items():
        if key.lower() == _OPTION:
            _said(reader)[_OPTION] = str(value).lower()


def _reading(original: Callable[..., Any], name: str, infers: Callable[[str], None]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        said = _said(self)
        format = said.get("format", "") if name == "load" else name
        is_asked = format == _ASKED and said.get(_OPTION) == "true"
        if "schema" not in said and (is_asked or format in _INFERRED):
            place = call_site().rpartition("/")[2]
            infers(f"{format} ({place})" if place else format)
        return result

    return method
