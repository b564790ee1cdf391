"""What an event says of the dataset that a source reads or a sink writes. Pure.

Names are normalised here, so that applications of agents of any age speak of the same datasets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lineage_service.lineage import Column, Dataset, Symlink
from spark_agent.contract.dataset_names import location_of, normal_name, partition_columns

__all__ = ["dataset_of", "schema_of"]


def dataset_of(said: object) -> Dataset | None:
    """`said` is the field `dataset` of a `node_registered` event."""
    if not isinstance(said, Mapping):
        return None
    namespace, name = normal_name(*(_text(said, field) for field in ("namespace", "name", "format")))
    of_folders = partition_columns(location_of(said))
    return Dataset(
        namespace=namespace,
        name=name,
        format=_text(said, "format"),
        partitions=tuple(dict.fromkeys((*of_folders, *(said.get("partitions") or ())))),
        symlinks=tuple(
            Symlink(namespace=link["namespace"], name=link["name"], type=link.get("type") or "TABLE")
            for link in said.get("symlinks") or ()
        ),
        version=said.get("version"),
    )


def schema_of(columns: Iterable[Mapping[str, Any]] | None) -> tuple[Column, ...]:
    """`columns` is the field `schema` of the event, or `fields` of a struct."""
    return tuple(
        Column(
            name=column["name"],
            type=column["type"],
            nullable=column.get("nullable"),
            fields=schema_of(column.get("fields")),
        )
        for column in columns or ()
    )


def _text(said: Mapping[str, Any], field: str) -> str:
    return str(said.get(field) or "")
