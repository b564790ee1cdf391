"""What a program may have put into records by itself: results of actions, and sources that it read aside.

No record says which values of a program went into it. So all that the program had before is named, whether it
has used it or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from lineage_service.lineage import GivenValues
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.model.topology import Topology
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.query.row_sets import sources_of
from lineage_service.tracing.walk.result import Position, nodes_before
from spark_agent import contract

__all__ = ["given_values"]

#: What actions begin with that give the program nothing.
_GIVE_NOTHING = ("foreach", "save", "show")


def given_values(opened: Opened, starts: Sequence[Position]) -> Iterator[GivenValues]:
    """The actions that ended before the starts were made, and sources on no way to these, by call site."""
    topology = opened.graph.topology
    behind = nodes_before(topology, (start.node for start in starts))
    by_site: dict[tuple[str, str], list[TopologyNode]] = defaultdict(list)
    if any(topology.nodes[node].kind != "source" for node in behind):
        for action in _results_before(topology, starts):
            by_site[action.name, action.call_site].append(action)
    for actions in by_site.values():
        yield _given(opened, actions[0], results=len(actions))
    aside: dict[tuple[str, str, str | None], GivenValues] = {}
    for node in sources_of(opened):
        if node.number not in behind:
            source = _given(opened, node)
            aside.setdefault((source.name, source.call_site, source.path), source)  # each turn makes it anew
    yield from aside.values()


def _results_before(topology: Topology, starts: Sequence[Position]) -> Iterator[TopologyNode]:
    """The actions, in order, whose results the program had when the last action of these began."""
    until = max(_action_of(topology, start) for start in starts)
    for number, node in sorted(topology.nodes.items()):
        if number < until and node.kind == "sink" and node.dataset is None and node.location is None:
            has_failed = node.outcome is not None and node.outcome.state == "failed"
            if not has_failed and not node.name.startswith(_GIVE_NOTHING):
                yield node


def _action_of(topology: Topology, start: Position) -> int:
    """The action that made a record; where that is not known, one behind all."""
    if topology.nodes[start.node].kind == "sink":
        return start.node
    run = topology.runs.get(start.run)
    return max(topology.nodes) + 1 if run is None or run.action is None else run.action


def _given(opened: Opened, node: TopologyNode, *, results: int | None = None) -> GivenValues:
    return GivenValues(
        node_id=contract.node_id(opened.application.application_id, node.number),
        name=node.name,
        call_site=node.call_site,
        path=None if results is not None else node.location or node.description or None,
        results=results,
    )
