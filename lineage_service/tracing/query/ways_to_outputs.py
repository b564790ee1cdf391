"""To which outputs rows are followed: of the application that read them, or of readers of what it wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lineage_service.errors import InvalidQueryError, LineageError, NotFoundError
from lineage_service.queries import MissingQuery
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.missing.endings import sinks_behind
from lineage_service.tracing.model.elements import TopologyNode, in_words
from lineage_service.tracing.query.missing_starts import outputs_named
from lineage_service.tracing.walk.dataset_links import FilesOfApplications

__all__ = ["MOST_APPLICATIONS", "Way", "WaysToOutputs"]

Opened = OpenedApplication[Snapshot]
#: Applications that are looked at one behind the other.
MOST_APPLICATIONS = 8


@dataclass(frozen=True, slots=True)
class Way:
    """Where rows are followed to. `outputs` None: to each output. `meant`: only these, by application.

    `named` is an output of an application that reads others.
    """

    outputs: Sequence[int] | None = None
    is_followed: bool = False
    meant: dict[str, tuple[int, ...]] | None = None
    named: str | None = None

    def outputs_in(self, reader: Opened) -> tuple[int, ...] | None:
        """Of an application that read an output; none where it is not meant."""
        if self.meant is not None:
            return self.meant.get(reader.application.application_id, ())
        if self.named is None:
            return None
        try:
            return tuple(outputs_named(reader, self.named))
        except NotFoundError:
            return ()


class WaysToOutputs:
    """Of one flow store."""

    def __init__(self, open_application: Callable[[str], Opened], files: FilesOfApplications) -> None:
        self._open, self._files = open_application, files

    def to(self, opened: Opened, query: MissingQuery) -> Way:
        """To an output of this application, or of one that read what it wrote. Raises NotFoundError."""
        if query.output is None:
            return Way(is_followed=query.across)
        try:
            return Way(outputs_named(opened, query.output))
        except NotFoundError as error:
            if not query.across:
                raise
            sinks = [node.number for node in opened.graph.topology.nodes.values() if node.kind == "sink"]
            return self._beyond(opened, query.output, error, sinks)

    def _beyond(self, opened: Opened, output: str, error: LineageError, sinks: Sequence[int]) -> Way:
        """By what sinks wrote that others read who have such an output. Raises the error where none have."""
        application_id = opened.application.application_id
        read = [sink for sink in sinks if self._readers_of(application_id, sink)]
        way = Way(read, is_followed=True, named=output)
        if not any(way.outputs_in(self._open(name)) for name in self._reading(application_id, read)):
            raise error
        return way

    def _readers_of(self, application_id: str, sink: int) -> set[str]:
        """The applications that read what it wrote."""
        written = self._files.of(application_id, sink)
        return {read.application_id for file in written for read in self._files.readers_of(file)}

    def _reading(self, application_id: str, sinks: Sequence[int]) -> list[str]:
        """The applications that read these outputs, and those that read theirs."""
        waiting = sorted({name for sink in sinks for name in self._readers_of(application_id, sink)})
        seen: dict[str, None] = {}
        while waiting and len(seen) < MOST_APPLICATIONS:
            name = waiting.pop(0)
            if name in seen:
                continue
            seen[name] = None
            nodes = self._open(name).graph.topology.nodes.values()
            for node in nodes:
                if node.kind == "sink":
                    waiting += sorted(self._readers_of(name, node.number) - seen.keys())
        return list(seen)

    def leading(
        self, opened: Opened, nodes: Sequence[TopologyNode], way: Way, query: MissingQuery
    ) -> tuple[list[TopologyNode], Way]:
        """Those whose records may go there, if need be by what others have read. Raises InvalidQueryError."""
        try:
            return _leading(opened, nodes, way.outputs), way
        except InvalidQueryError as error:
            if query.output is None or not query.across or way.named is not None:
                raise
            sinks = sorted({sink for node in nodes for sink in sinks_behind(opened.snapshot, node.number)})
            return list(nodes), self._beyond(opened, query.output, error, sinks)


def _leading(
    opened: Opened, nodes: Sequence[TopologyNode], outputs: Sequence[int] | None
) -> list[TopologyNode]:
    """Those whose records may go into one of the outputs. Raises InvalidQueryError where none do."""
    if outputs is None:
        return list(nodes)
    leading = [
        node for node in nodes if not set(outputs).isdisjoint(sinks_behind(opened.snapshot, node.number))
    ]
    if not leading:
        names = ", ".join(in_words(opened.graph.topology.nodes[sink]) for sink in outputs)
        raise InvalidQueryError(f"{names} is not made of rows of this input")
    return leading
