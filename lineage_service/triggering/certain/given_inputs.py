"""What a job was given to read, and where it writes: from the events of one execution. Pure.

An input is the paths, folders and patterns that the program named, not only the files that it found there. A
source that the job itself had written before is none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.partition_states import file_states
from lineage_service.tracing.model.elements import TopologyNode, is_below
from lineage_service.triggering.certain.executions import Execution
from spark_agent.contract.dataset_names import is_of_files, remote_parts

__all__ = ["GivenInput", "WrittenOutput", "inputs_of", "named_after_a_day", "outputs_of"]

#: Readers of RDDs, whose one argument may name several paths.
_SEVERAL = frozenset(
    (
        *("textFile", "wholeTextFiles", "binaryFiles", "binaryRecords", "pickleFile", "sequenceFile"),
        *("hadoopFile", "newAPIHadoopFile"),
    )
)
#: Formats of what Delta Lake reads and writes, and columns of its actions.
_DELTA = "delta"
_ACTIONS = frozenset(("add", "remove", "metaData", "protocol"))
_SIDE_EFFECTS = frozenset(("foreach", "foreachPartition"))
_BETWEEN_PATHS = re.compile(r",(?![^{]*\})")

FileStates = Mapping[str, tuple[int | None, int | None]]
"""Size in bytes and time in Unix ms of files, by their paths; None where they are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenInput:
    """`paths` are empty where `why` says why it is not known what to look at. `files` are those it read."""

    node: int
    name: str
    paths: tuple[str, ...] = ()
    why: str = ""
    is_file: bool = True
    location: str | None = None
    files: FileStates = field(default_factory=dict)

    def is_called(self, text: str) -> bool:
        """Do people mean it by this text: its name, its path, or an end of these?"""
        name, end = self.name.casefold(), text.strip().casefold().rstrip("/")
        return name == end or name.endswith((f"/{end}", f" {end}")) or name.startswith(f"{end} ")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenOutput:
    """`path` is None where `why` says why it cannot be looked at."""

    node: int
    name: str
    path: str | None
    why: str = ""
    appends: bool = False
    replaces_part: bool = False
    files: FileStates = field(default_factory=dict)


def inputs_of(execution: Execution) -> list[GivenInput]:
    """Each source by itself, in order."""
    written: list[tuple[int, str]] = [
        (sink.number, sink.location) for sink in execution.of_kind("sink") if sink.location is not None
    ]
    tables = _tables(execution)
    return [
        _input(execution, source)
        for source in execution.of_kind("source")
        if not _is_of_a_log(execution, source, tables)
        and not any(
            number < source.number and source.location is not None and is_below(source.location, location)
            for number, location in written
        )
    ]


def _tables(execution: Execution) -> set[str]:
    """The Delta tables that it read or wrote with Delta Lake's own reader or writer."""
    return {
        normal_path(node.location)
        for kind in ("source", "sink")
        for node in execution.of_kind(kind)
        if node.location and node.dataset is not None and node.dataset.format.startswith(_DELTA)
    }


def _is_of_a_log(execution: Execution, node: TopologyNode, tables: Collection[str]) -> bool:
    """Is it how Delta Lake itself finds the files of one of these tables? Its version says as much.

    It scans the log, by paths that no program named, and goes on with the actions that it has found there.
    """
    if not tables:
        return False
    root, log, _ = normal_path(node.location or "").partition("/_delta_log/")
    if log:
        return root in tables and execution.datasets.get(node.number, {}).get("paths") == []
    return node.name == "LogicalRDD" and {column.name for column in node.schema} >= _ACTIONS


def _input(execution: Execution, node: TopologyNode) -> GivenInput:
    dataset = execution.datasets.get(node.number, {})
    place = node.location or ""
    name = " ".join(dict.fromkeys(filter(None, (node.name, place or node.description))))
    if node.dataset is None or not place or not is_of_files(node.dataset.format):
        return GivenInput(node=node.number, name=name, is_file=False, why="is no file")
    is_table = node.dataset.format.startswith(_DELTA)  # which is called by its folder, or by a name for that
    paths = [place] if is_table else _paths(node, dataset.get("paths"), place)
    return GivenInput(
        node=node.number,
        name=name,
        paths=tuple(dict.fromkeys(map(normal_path, paths))),
        why="" if paths else "was read by several paths, or as a table: which ones it was given is not known",
        location=normal_path(place),
        files=_files(node, execution.ended),
    )


def _paths(node: TopologyNode, named: object, place: str) -> list[str]:
    """Empty where they are not known."""
    if isinstance(named, list):
        return [str(path) for path in named]
    parts = _BETWEEN_PATHS.split(node.description) if node.name in _SEVERAL else []
    if len(parts) < 2:
        return [place]
    # The place is that of all of the text, from the folder in which the program ran.
    folder = place[: -len(node.description)] if place.endswith(node.description) else None
    paths = []
    for part in map(str.strip, parts):
        if part.startswith(("/", "file:")) or remote_parts(part) is not None:
            paths.append(part)
        elif folder is not None:
            paths.append(f"{folder}{part}")
        else:
            return []
    return paths


def _files(node: TopologyNode, ended: int | None) -> FileStates:
    return {
        normal_path(path): (state.get("size"), state.get("modified"))
        for path, state in file_states(node, ended)
    }


def outputs_of(execution: Execution) -> list[WrittenOutput]:
    """Each place that it wrote to once, and each function that rows were handed to.

    What an action gave the program is no output.
    """
    outputs: dict[str, WrittenOutput] = {}
    for node in execution.of_kind("sink"):
        output = _output(execution, node)
        if output is None:
            continue
        key = output.path or f"#{node.number}"
        before = outputs.get(key)
        if before is not None:
            output = WrittenOutput(
                node=before.node,
                name=before.name,
                path=output.path,
                # Only of the first one it is other runs whose files stay.
                appends=before.appends,
                replaces_part=before.replaces_part,
                files={
                    **(before.files if output.appends or output.replaces_part else {}),
                    **output.files,
                },
            )
        outputs[key] = output
    return list(outputs.values())


def _output(execution: Execution, node: TopologyNode) -> WrittenOutput | None:
    if node.name in _SIDE_EFFECTS:
        why = "hands rows to a function, whose effects are not known"
        return WrittenOutput(node=node.number, name=node.name, path=None, why=why)
    if node.dataset is None or not node.dataset.name:
        return None
    place = node.location or node.dataset.name
    is_file = is_of_files(node.dataset.format)
    dataset = execution.datasets.get(node.number, {})
    return WrittenOutput(
        node=node.number,
        name=place,
        path=normal_path(place) if is_file else None,
        why="" if is_file else "is no file, so it cannot be seen whether it is still there",
        appends=dataset.get("appends") is True,
        replaces_part=dataset.get("replaces_part") is True,
        files=_files(node, execution.ended),
    )


def named_after_a_day(path: str, unix_ms: int) -> bool:
    """Does a path name the day of this time, or one beside it, as `dt=2026-11-25` does?"""
    today = datetime.fromtimestamp(unix_ms / 1000, timezone.utc)
    for days in (-1, 0, 1):
        day = today + timedelta(days=days)
        texts = (
            day.strftime("%Y-%m-%d"),
            day.strftime("%Y%m%d"),
            day.strftime("%Y/%m/%d"),
            day.strftime("%Y_%m_%d"),
        )
        parts = rf"year={day.year}/month=0?{day.month}/day=0?{day.day}(?!\d)"
        if any(text in path for text in texts) or re.search(parts, path):
            return True
    return False
