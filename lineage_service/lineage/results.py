"""The base of all results, and what describes a field of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from operator import is_
from typing import Any, Literal


def doc(text: str, *, omit_none: bool = False, name: str | None = None) -> Mapping[str, Any]:
    """Metadata of a field, by the names that pydantic reads. `text` is its description in OpenAPI.

    JSON omits a field with `omit_none` if it is None. Any other field is then null. `name` is that in JSON,
    where Python cannot say it.
    """
    alias = {} if name is None else {"serialization_alias": name, "validation_alias": name}
    return {"description": text, **({"exclude_if": partial(is_, None)} if omit_none else {}), **alias}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The base of all results."""

    @classmethod
    def required_fields(cls) -> list[str]:
        """The names of the fields that JSON never omits."""
        return [
            field.metadata.get("serialization_alias", field.name)
            for field in fields(cls)
            if "exclude_if" not in field.metadata
        ]


Direction = Literal["backward", "forward"]
