"""One of two outputs that are compared, with what is known of its records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from lineage_service.comparison.outputs import Output
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.open_applications import Opened
from spark_agent import contract

__all__ = ["ComparedOutput"]


@dataclass(frozen=True, slots=True)
class ComparedOutput:
    """The output of one run."""

    output: Output
    opened: Opened
    node: TopologyNode
    runs: dict[int, int]  # partition -> the task run that is shown

    @property
    def rows(self) -> int:
        return sum(self.counts.values())

    @property
    def node_id(self) -> str:
        return contract.node_id(self.opened.application.application_id, self.node.number)

    @classmethod
    def of(cls, output: Output, opened: Opened) -> ComparedOutput:
        node = opened.graph.topology.nodes[output.write.use.node]
        return cls(
            output=output,
            opened=opened,
            node=node,
            runs={run.partition: run.number for run in opened.graph.holders(node.number)},
        )

    @property
    def counts(self) -> dict[int, int]:
        """How many records each partition has."""
        return self.counts_of(self.node)

    def counts_of(self, node: TopologyNode) -> dict[int, int]:
        """The same of another node of its application."""
        graph = self.opened.graph
        return {run.partition: graph.count(node.number, run.number) for run in graph.holders(node.number)}

    def unreadable(self, error: UnreadableError) -> str:
        """Why its rows cannot be read: a later run may have written again."""
        application, again = self.opened.application, self.output.written_again
        name = f"rows of {application.application_id} ({application.name})"
        if again is None:
            return f"{name} cannot be read: {error}"
        when = datetime.fromtimestamp(again.use.at / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
        return (
            f"{name} are gone: {self.output.entry.path} was written again by "
            f"{again.application.application_id} at {when} UTC ({error}). Only counts are known; let each "
            "run write into a folder of its own"
        )
