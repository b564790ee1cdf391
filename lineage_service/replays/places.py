"""Operations whose outputs depend on the places of records, not on the records alone. Pure.

With fewer rows the same record has another place there. So such an application is run again on all rows.
Where no operation can tell in which partition a record is, a run on few rows needs few partitions.
"""

from __future__ import annotations

from collections.abc import Iterable

from lineage_service.lineage import Graph, Node
from spark_agent.contract.record_groups import NARROW

__all__ = ["counts_rows_before", "depends_on_places", "tells_partitions"]

_BY_PLACE = frozenset(
    (
        "zipWithIndex",
        "zipWithUniqueId",
        "zip",
        "sample",
        "sampleByKey",
        "takeSample",
        "randomSplit",
        "take",
        "first",
        "limit",
        "offset",
        "monotonically_increasing_id",
    )
)


def depends_on_places(graph: Graph, nodes: Iterable[int]) -> Node | None:
    """The first such operation on the way to these nodes; None if there is none."""
    return next((node for node in _on_the_way(graph, nodes) if _is_by_place(node)), None)


def counts_rows_before(graph: Graph, nodes: Iterable[int]) -> bool:
    """Do the rows before a record, and nothing else of places, decide what comes to these nodes?

    So it is where `zipWithIndex` is the only operation by places, and reads records in the order of a source.
    """
    on_the_way = _on_the_way(graph, nodes)
    indexes = {node.node for node in on_the_way if node.name == "zipWithIndex"}
    if any(_is_by_place(node) and node.node not in indexes for node in on_the_way):
        return False
    before = _on_the_way(graph, indexes)
    return all(
        node.node in indexes or node.kind == "source" or node.name in _KEEPING_ORDER for node in before
    )


def _on_the_way(graph: Graph, nodes: Iterable[int]) -> list[Node]:
    """These nodes and all before them, in the order of the program."""
    by_id = {node.node_id: node for node in graph.nodes}
    before: dict[str, list[str]] = {}
    for edge in graph.edges:
        before.setdefault(edge.target, []).append(edge.source)
    chosen = set(nodes)
    todo = [node.node_id for node in graph.nodes if node.node in chosen]
    seen = set(todo)
    while todo:
        node_id = todo.pop()
        for source in before.get(node_id, ()):
            if source not in seen:
                seen.add(source)
                todo.append(source)
    return sorted((by_id[node_id] for node_id in seen if node_id in by_id), key=lambda node: node.node)


def tells_partitions(graph: Graph) -> bool:
    """May an operation of the application tell in which partition a record is, or with which others?

    Actions that give records to the program give them in the order of partitions.
    """
    order_kept: dict[str, bool] = {}
    for node in sorted(graph.nodes, key=lambda node: node.node):
        before = [order_kept.get(edge.source, False) for edge in graph.edges if edge.target == node.node_id]
        if node.kind == "source":
            is_known, order_kept[node.node_id] = node.name == "textFile", True
        elif node.kind == "sink":
            is_known = node.name in _WITHOUT_ORDER or (node.name in _IN_ORDER and all(before))
        else:
            is_known = node.exact and (node.name in NARROW | _GROUPING_RDDS)
            order_kept[node.node_id] = node.name in _KEEPING_ORDER and all(before)
        if not is_known:
            return True
    return False


def _is_by_place(node: Node) -> bool:
    return node.name.lower() in _FOLDED


#: Actions whose results do not depend on the order of records, and those that give records in it.
_WITHOUT_ORDER = frozenset(("saveAsTextFile", "count", "countByKey", "countByValue", "isEmpty"))
_IN_ORDER = frozenset(("first", "take", "collect"))
_KEEPING_ORDER = frozenset(
    ("map", "filter", "flatMap", "mapValues", "flatMapValues", "keyBy", "keys", "values", "union")
)
_GROUPING_RDDS = frozenset(
    (
        *("reduceByKey", "foldByKey", "aggregateByKey", "combineByKey", "groupByKey", "groupBy", "distinct"),
        *("cogroup", "groupWith", "join", "leftOuterJoin", "rightOuterJoin", "fullOuterJoin", "subtract"),
        *("subtractByKey", "intersection"),
    )
)
_FOLDED = frozenset(name.lower() for name in _BY_PLACE)
