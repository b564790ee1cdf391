"""Reads from the events of one application what it wrote and read. Pure.

The order in which events came does not matter, nor how often each one came. In-memory sources (a list of the
program, `VALUES`) and actions that give rows to the program (`collect`) are no datasets.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from lineage_service.datasets.counted_rows import is_beside_version
from lineage_service.datasets.event_datasets import dataset_of, schema_of
from lineage_service.datasets.upstream import Upstream
from lineage_service.datasets.uses import ApplicationUses, Files, Unnamed, Use
from lineage_service.lineage import Column, Dataset
from lineage_service.outcomes import actions_of, outcome_of
from spark_agent import contract
from spark_agent.contract.dataset_names import DatasetName, is_of_files, partition_columns, place_named

__all__ = ["EVENT_TYPES", "uses_of"]

Event = Mapping[str, Any]

_ENDS = ("source", "sink")
#: Types of the events that say what an application wrote and read. Those of task runs, the most, are none.
EVENT_TYPES = (
    contract.APPLICATION_STARTED,
    contract.APPLICATION_ENDED,
    contract.ALIVE,
    contract.NODE_REGISTERED,
    contract.LINK,
    contract.DRIVER,
    contract.PARTITIONS,
    contract.ACTION_ENDED,
)


def uses_of(application_id: str, events: Sequence[Event]) -> ApplicationUses:
    """Of an application with at least one event. A replay of another application uses nothing."""
    in_order = sorted(events, key=lambda event: (event["time"], event.get("event", 0)))
    by_type: dict[str, list[Event]] = defaultdict(list)
    for event in in_order:
        by_type[event["type"]].append(event)
    started = by_type[contract.APPLICATION_STARTED]
    is_replay = any(event.get("replay") for event in started)
    reader = _Reader(by_type)
    return ApplicationUses(
        application_id=application_id,
        name=str(started[0]["name"]) if started else application_id,
        began=int((started or in_order)[0]["time"]),
        outcome=outcome_of(in_order),
        uses=() if is_replay else tuple(reader.uses()),
        unnamed=() if is_replay else tuple(reader.unnamed()),
    )


class _Reader:
    """The events of one application, by their types and in order."""

    def __init__(self, events: Mapping[str, Sequence[Event]]) -> None:
        self._nodes: dict[int, Event] = {}
        self._began: dict[int, int] = {}
        for event in events.get(contract.NODE_REGISTERED, ()):
            self._nodes[event["node"]] = event
            self._began.setdefault(event["node"], event["time"])
        self._datasets = {
            number: dataset for number, node in self._nodes.items() if (dataset := _dataset(node)) is not None
        }
        self._ended = {event["node"]: event for event in events.get(contract.ACTION_ENDED, ())}
        self._outcomes = actions_of(events.get(contract.ACTION_ENDED, ()))
        self._partitions: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
        for event in events.get(contract.PARTITIONS, ()):
            self._partitions[event["node"]] += event["partitions"]
        self._upstream = Upstream(
            self._nodes, [*events.get(contract.LINK, ()), *events.get(contract.DRIVER, ())]
        )

    def uses(self) -> Iterable[Use]:
        """By the numbers of their nodes."""
        written = {
            _made(node) for node in self._nodes.values() if _is_write(node) and not is_beside_version(node)
        }
        for number, node in sorted(self._nodes.items()):
            if number in self._datasets and not (is_beside_version(node) and _made(node) in written):
                yield self._use(number, node, self._datasets[number])

    def unnamed(self) -> Iterable[Unnamed]:
        """By the numbers of their nodes."""
        for number, node in sorted(self._nodes.items()):
            if node["kind"] in _ENDS and number not in self._datasets and not _is_followed(node):
                text = " ".join(dict.fromkeys((node["name"], node["description"]))).strip()
                yield Unnamed(
                    number, text, node["kind"] == "sink", self._at(number), node.get("reason") or ""
                )

    def _use(self, number: int, node: Event, dataset: Dataset) -> Use:
        is_write = node["kind"] == "sink"
        return Use(
            node=number,
            operation=node["name"],
            call_site=node.get("call_site") or "",
            is_write=is_write,
            place=DatasetName(dataset.namespace, dataset.name),
            # What follows says in which lines its rows are unlike the lines of a file.
            format=dataset.format.partition(" ")[0],
            at=self._at(number),
            files={} if is_write or not is_of_files(dataset.format) else self._files(number),
            outcome=self._outcomes.get(number),
            reason=node.get("reason") or "",
            is_followed=_is_followed(node),
            schema=_schema(node.get("schema")),
            partitions=dataset.partitions,
            aliases=tuple(_aliases(node, dataset)),
            behind=tuple(sorted(self._upstream.sources(number).items())) if is_write else (),
        )

    def _at(self, number: int) -> int:
        """When an action ended; else when it began, as others do."""
        ended = self._ended.get(number)
        return int(self._began[number] if ended is None else ended["time"])

    def _files(self, number: int) -> Files:
        by_folder: dict[str, dict[str, None]] = defaultdict(dict)
        for info in self._partitions.get(number, ()):
            for path in _paths(info):
                folder, _, file = path.rpartition("/")
                by_folder[folder][file] = None
        files: dict[DatasetName, tuple[str, ...]] = {}
        for folder, names in by_folder.items():
            table = place_named(folder or "/")
            # Of a file in its partitions only the table matters.
            files[table] = (*files.get(table, ()), *(() if partition_columns(folder) else names))
        return files


def _is_write(node: Event) -> bool:
    return node["kind"] == "sink" and bool(node.get("dataset"))


def _made(node: Event) -> tuple[str, ...]:
    """The version of a dataset that a sink made."""
    said = node["dataset"]
    return tuple(str(said.get(name) or "") for name in ("namespace", "name", "version"))


def _aliases(node: Event, dataset: Dataset) -> Iterator[str]:
    """Its names in catalogs; also with the name of the catalog, where the operation is described by that."""
    described = str(node.get("description") or "")
    for symlink in dataset.symlinks:
        yield symlink.name
        if "." in symlink.name and described.endswith(f".{symlink.name}") and "/" not in described:
            yield described


def _is_followed(node: Event) -> bool:
    return node["relation"] != contract.CARRIED or bool(node["exact"])


def _dataset(node: Event) -> Dataset | None:
    """What a source or sink names; None of what is in memory, or has a name for people only."""
    dataset = dataset_of(node.get("dataset")) if node["kind"] in _ENDS else None
    return dataset if dataset is not None and dataset.name else None


def _paths(info: Mapping[str, Any]) -> Iterable[str]:
    """The files of a partition, however it names them."""
    for name in ("files", "parts"):
        if name in info:
            return [str(file["path"]) for file in info[name]]
    return [str(info["path"])] if "path" in info else []


def _schema(columns: Any) -> tuple[Column, ...]:
    """Most uses of a dataset have one schema: it is held once."""
    return _same_schema(json.dumps(columns)) if columns else ()


@lru_cache(maxsize=10_000)
def _same_schema(text: str) -> tuple[Column, ...]:
    return schema_of(json.loads(text))
