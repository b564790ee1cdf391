"""The bytes of an answer as JSON, straight from the answer: those that its model (models.py) is dumped as.

Large answers are made of values that the service made itself and typed: to read them into models first and
have these validated would take longer than all else that HTTP does. A test compares the bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import orjson

from lineage_api import models
from lineage_service import lineage

__all__ = ["body"]

Fields = Callable[[Any], dict[str, Any]]


def body(answer: lineage.Trace | lineage.RecordPage | lineage.Graph) -> bytes:
    """UTF-8."""
    return orjson.dumps(answer, _fields_of, orjson.OPT_PASSTHROUGH_DATACLASS)


def _fields_of(value: object) -> dict[str, Any]:
    return _FIELDS[type(value)](value)


def _reader(answer: type, model: type[models.Answer]) -> Fields:
    """Of the fields in the model's order, without those that are left out where they are absent."""
    absent = tuple(name for name, field in model.model_fields.items() if field.exclude_if is not None)
    names = tuple(model.model_fields)
    assert set(names) == {each.name for each in dataclasses.fields(answer)}
    always = tuple(name for name in names if name not in absent)
    assert names == always + absent
    values_of = attrgetter(*always)  # of several: a tuple
    assert len(always) > 1
    if not absent:
        return lambda value: dict(zip(always, values_of(value), strict=True))

    def read(value: object) -> dict[str, Any]:
        found = dict(zip(always, values_of(value), strict=True))
        for name in absent:
            held = getattr(value, name)
            if held is not None:
                found[name] = held
        return found

    return read


_FIELDS: dict[type, Fields] = {
    answer: _reader(answer, getattr(models, answer.__name__))
    for answer in (
        *(lineage.Trace, lineage.TracedNode, lineage.Record, lineage.SourceRow, lineage.Flow),
        *(lineage.RecordPage, lineage.Graph, lineage.Node, lineage.Edge, lineage.Dataset),
    )
}
