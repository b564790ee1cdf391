"""What an application wrote and read, by its graph."""

from __future__ import annotations

from collections.abc import Iterator

from lineage_service.datasets.uses import ApplicationDetails, ApplicationUses, Use, UseDetails
from lineage_service.outcomes import NodeOutcome, Outcome
from lineage_service.testing.memory.lineages import MemoryLineage
from spark_agent.contract.dataset_names import normal_name


def uses_of(lineage: MemoryLineage) -> ApplicationUses:
    """What an application wrote and read, by its graph: what ended is known of it, not when."""
    application, nodes = lineage.application, {node.node_id: node for node in lineage.graph.nodes}
    parents: dict[str, list[str]] = {}
    for edge in lineage.graph.edges:
        parents.setdefault(edge.target, []).append(edge.source)

    def behind(node_id: str) -> Iterator[tuple[int, bool]]:
        reached, stack = set[str](), [node_id]
        while stack:
            node = nodes[stack.pop()]
            if node.node_id not in reached:
                reached.add(node.node_id)
                stack += parents.get(node.node_id, ())
                if node.kind == "source":
                    yield node.node, True

    return ApplicationUses(
        application_id=application.application_id,
        name=application.name,
        began=application.started,
        outcome=Outcome(
            state=application.state, ended=application.ended, error=application.error, last_seen=None
        ),
        uses=tuple(
            Use(
                node=node.node,
                operation=node.name,
                call_site=node.call_site,
                is_write=node.kind == "sink",
                place=normal_name(node.dataset.namespace, node.dataset.name, node.dataset.format),
                format=node.dataset.format,
                at=application.ended or application.started if node.kind == "sink" else application.started,
                outcome=None if node.state is None else NodeOutcome(state=node.state, error=node.error),
                reason=node.reason,
                behind=tuple(behind(node.node_id)) if node.kind == "sink" else (),
            )
            for node in lineage.graph.nodes
            if node.dataset is not None
        ),
    )


def details_of(lineage: MemoryLineage) -> ApplicationDetails:
    uses = {node.node: UseDetails(node.records, node.exact, node.reason) for node in lineage.graph.nodes}
    return ApplicationDetails(complete=lineage.application.complete, uses=uses)
