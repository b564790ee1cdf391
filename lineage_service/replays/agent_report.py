"""What the agent says of a replay: the driver's report, and the notes of all its processes, read leniently.

They are written by processes of the job, so nothing of them is trusted to have a shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lineage_service.lineage import Refusal

__all__ = ["AgentReport", "ReportedSink", "ReportedSource", "read_report"]


@dataclass(frozen=True, slots=True)
class ReportedSink:
    """What an action wrote, and where instead; `values` of what it gave the program."""

    node: int | None
    name: str
    call_site: str
    path: str | None
    to: str | None
    format: str
    values: tuple[str, ...] | None
    total: int | None


@dataclass(frozen=True, slots=True)
class ReportedSource:
    """How a source was restricted: `literal`, `filter`, or `whole` with the reason."""

    node: int | None
    name: str
    way: str
    why: str


@dataclass(frozen=True, slots=True)
class AgentReport:
    """Empty where the agent said nothing."""

    is_there: bool = False
    application: str | None = None
    sources: tuple[ReportedSource, ...] = ()
    sinks: tuple[ReportedSink, ...] = ()
    refused: tuple[Refusal, ...] = ()
    connections: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    skipped_total: int = 0
    #: (node, partition, offset) in the replay of the records that were left out.
    skipped_records: tuple[tuple[int, int, int], ...] = ()
    differences: tuple[str, ...] = ()
    #: Readers of DataFrames that looked at rows of their files to know the columns.
    inferred: tuple[str, ...] = ()


def read_report(report: Any, notes: Mapping[str, Any] | None = None) -> AgentReport:
    """Of the JSON of the report, None of what is not there, and of the notes by kind."""
    is_there = isinstance(report, Mapping)
    report = report if is_there else {}
    notes = notes or {}
    skipped = tuple(map(_skipped, _objects(report.get("skipped"))))
    return AgentReport(
        is_there=is_there,
        application=_text(report.get("application")) or None,
        sources=tuple(map(_source, _objects(report.get("sources")))),
        sinks=tuple(map(_sink, _objects(report.get("sinks")))),
        refused=tuple(
            dict.fromkeys(map(_refusal, (*_objects(report.get("refused")), *_objects(notes.get("refused")))))
        ),
        connections=_joined(report.get("connections"), notes.get("connections")),
        skipped=skipped,
        skipped_records=tuple(_places(_objects(report.get("skipped")))),
        skipped_total=max(_number(report.get("skipped_total")) or 0, len(skipped)),
        differences=_joined(report.get("differences"), notes.get("remarks")),
        inferred=_joined(report.get("inferred")),
    )


def _refusal(entry: Mapping[str, Any]) -> Refusal:
    return Refusal(
        what=_text(entry.get("what")) or "something",
        path=_text(entry.get("path")) or None,
        where=_text(entry.get("where")) or None,
    )


def _source(entry: Mapping[str, Any]) -> ReportedSource:
    return ReportedSource(
        _number(entry.get("node")),
        _text(entry.get("name")),
        _text(entry.get("way")),
        _text(entry.get("why")),
    )


def _sink(entry: Mapping[str, Any]) -> ReportedSink:
    values = entry.get("values")
    return ReportedSink(
        node=_number(entry.get("node")),
        name=_text(entry.get("name")),
        call_site=_text(entry.get("call_site")),
        path=_text(entry.get("path")) or None,
        to=_text(entry.get("to")) or None,
        format=_text(entry.get("format")) or "text",
        values=tuple(_value(value) for value in values) if isinstance(values, list) else None,
        total=_number(entry.get("total")),
    )


def _skipped(entry: Mapping[str, Any]) -> str:
    """A failure that was left out, as a sentence."""
    record = entry.get("record")
    value = record.get("value") if isinstance(record, Mapping) else None
    error = ": ".join(filter(None, (_text(entry.get("error")), _text(entry.get("message")))))
    name, site = _text(entry.get("name")), _text(entry.get("frame")) or _text(entry.get("call_site"))
    place = " at ".join(filter(None, (name, site.rpartition("/")[2])))
    which = "" if value is None else f"; the record {_value(value)}"
    return f"{error or 'an error'} in {place or 'an operation'}{which}"


def _places(entries: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, int, int]]:
    for entry in entries:
        record = entry.get("record")
        if not isinstance(record, Mapping):
            continue
        node, (partition, _, offset) = (
            _number(record.get("node")),
            _text(record.get("record_id")).partition("#"),
        )
        if node is not None and partition.isdecimal() and offset.isdecimal():
            yield node, int(partition), int(offset)


def _value(value: Any) -> str:
    """The text of [type, text]."""
    if isinstance(value, list | tuple) and len(value) == 2:
        return _text(value[1])
    return _text(value)


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (entry for entry in value if isinstance(entry, Mapping)) if isinstance(value, list) else ()


def _joined(*lists: Any) -> tuple[str, ...]:
    """The texts in several lists, each once."""
    texts = (entry for value in lists if isinstance(value, list) for entry in value)
    return tuple(dict.fromkeys(entry for entry in texts if isinstance(entry, str)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
