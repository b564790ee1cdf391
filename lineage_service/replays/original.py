"""The application that is run again, as the store has it: its sinks, and what they wrote.

Files that were written again since are said, and not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lineage_service.replays.agent_report import ReportedSink
from lineage_service.tracing.columns.application import StoreReader
from lineage_service.tracing.files.file_parts import normal_path, plain_path
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from lineage_service.tracing.files.row_formats import RowFormat, row_format_named, row_format_of
from lineage_service.tracing.files.source_rows import change_of
from lineage_service.tracing.model.elements import PartitionInfo, TopologyNode
from lineage_service.tracing.model.summaries import Receipts
from lineage_service.tracing.query.open_applications import OpenApplications

__all__ = ["Original", "WrittenOutput", "format_of_replay"]


@dataclass(frozen=True, slots=True)
class WrittenOutput:
    """What a sink of the original wrote."""

    node: TopologyNode
    path: str
    files: tuple[str, ...]
    bytes: int

    @property
    def format(self) -> RowFormat:
        return row_format_of(self.node)


class Original:
    """Raises UnknownApplicationError."""

    def __init__(self, store: StoreReader, application_id: str) -> None:
        self.application_id = application_id
        self._opened = OpenApplications(store, Receipts()).open(application_id)
        nodes = self._opened.graph.topology.nodes
        self.sinks: dict[int, TopologyNode] = {
            number: node for number, node in sorted(nodes.items()) if node.kind == "sink"
        }
        self.sources: dict[int, TopologyNode] = {
            number: node for number, node in sorted(nodes.items()) if node.kind == "source"
        }

    @property
    def is_complete(self) -> bool:
        return self._opened.application.complete

    @property
    def name(self) -> str:
        return self._opened.application.name

    def records(self, node: int, split: int) -> int | None:
        """How many records a partition of a source had; None if that is not known."""
        graph = self._opened.graph
        runs = [run for run in graph.holders(node) if run.partition == split]
        return graph.count(node, runs[0].number) if runs else None

    def place_of(self, sink: TopologyNode) -> str | None:
        """What it wrote; None of what gives rows to the program."""
        if sink.location is not None:
            return normal_path(sink.location)
        return None if sink.dataset is None or not sink.dataset.name else normal_path(sink.dataset.name)

    def output(self, sink: TopologyNode, files: FileSystems) -> WrittenOutput:
        """Raises UnreadableError where it is not as the run left it."""
        ended = self._opened.application.ended
        states: dict[str, int] = {}
        for info in sink.partitions.values():
            for path, part in _files_of(info):
                state = files.state(path)
                changed = change_of(state, part if part.get("size") is not None else {**part, "ended": ended})
                if changed is not None:
                    raise UnreadableError(f"{path}: {changed.partition(';')[0]}")
                states[path] = state.size
        return WrittenOutput(sink, self.place_of(sink) or "", tuple(states), sum(states.values()))

    def reported(self, sink: TopologyNode, sinks: Sequence[ReportedSink]) -> ReportedSink | None:
        """What a replay says of the same sink: by what it wrote, else by its number, else by its place."""
        place = self.place_of(sink)
        candidates = (
            [other for other in sinks if place is not None and _place_of(other) == place.rstrip("/")],
            [other for other in sinks if (other.node, other.name) == (sink.number, sink.name)],
            [other for other in sinks if (other.name, other.call_site) == (sink.name, sink.call_site)],
        )
        return next((same[0] for same in candidates if len(same) == 1), None)


def _place_of(reported: ReportedSink) -> str | None:
    return None if reported.path is None else normal_path(reported.path).rstrip("/")


def format_of_replay(original: RowFormat, reported: ReportedSink) -> RowFormat:
    """The replay writes as the original did, unless the script was changed."""
    named = row_format_named(reported.format)
    return original if named.name == original.name else named


def _files_of(info: PartitionInfo) -> list[tuple[str, PartitionInfo]]:
    """(path, what is known of it) of a partition of a sink."""
    parts = info.get("parts") or info.get("files") or ([info] if "path" in info else [])
    return [(plain_path(str(part["path"])), part) for part in parts]
