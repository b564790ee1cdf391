"""Loop variables: which nodes are the versions of one collection that the turns of a loop read.

The same operation, called again at the same site, reads another node each time: X0, X1, X2 and so on, each
made of the one before it. These are versions of one loop variable, if X0 was made outside of the loop. What
turns read again as it was, such as the edges of a graph, has one version only. What each turn makes for
itself has none outside of the loop.

Of DataFrames, the versions are what is cached or checkpointed at one site of a loop, turn by turn, each made
of the one before it; and what the first of them was made of, where that was cached, too.

Pure. Found in the topology, by the sites of operations; nothing is said of applications without sites.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.model.topology import Topology
from spark_agent import contract

__all__ = ["Families", "Family", "families_of", "nodes_between"]

_Key = tuple[tuple[str, ...], str]
"""The site of an operation and its name: several may stand in one line."""


@dataclass(frozen=True, slots=True)
class Family:
    """One loop variable. Version 0 is what the loop began with, version k is what turn k made."""

    loop: str  # where the loop is
    versions: tuple[int, ...]  # nodes, ascending
    first: int = 0  # the turn of the first version: 1 where what the loop began with is not known


class Families:
    """The loop variables of an application."""

    def __init__(self, families: Sequence[Family]) -> None:
        self.families = families
        places = [
            (version > 0, -number, node, version)
            for number, family in enumerate(families)
            for version, node in enumerate(family.versions)
        ]
        #: Version -> (number of its family, which version it is there). Of several families, the longest that
        #: does not begin with it.
        self.place_of: Mapping[int, tuple[int, int]] = {
            node: (-number, version) for _, number, node, version in sorted(places)
        }

    def turn(self, node: int) -> int:
        """The turn that made a version."""
        number, version = self.place_of[node]
        return self.families[number].first + version

    def before(self, node: int) -> int | None:
        """The version before a version; None of the first one, and of other nodes."""
        number, version = self.place_of.get(node, (0, 0))
        return self.families[number].versions[version - 1] if version else None


def families_of(topology: Topology) -> Families:
    """The longest first."""
    calls = _calls(topology)
    nodes_of: dict[tuple[int, ...], Family] = {}
    for operations in calls.values():
        reader = topology.nodes[operations[0]]
        reads = [_nodes_read(topology, node) for node in operations]
        for port in range(max(map(len, reads))):
            for versions in _versions(topology, [read[port] for read in reads if port < len(read)]):
                if _is_variable(topology, reader, versions):
                    whole = (*versions, *_last(topology, calls, versions))
                    nodes_of.setdefault(whole, Family(_loop(reader), whole))
    for family in _kept_families(topology):
        nodes_of.setdefault(family.versions, family)
    families = sorted(nodes_of.values(), key=lambda family: (-len(family.versions), family.versions))
    return Families(_without_parts(families))


def _calls(topology: Topology) -> dict[_Key, list[int]]:
    """The operations that were called at each site, in order."""
    calls: dict[_Key, list[int]] = defaultdict(list)
    for number in sorted(topology.nodes):
        key = _key(topology.nodes[number])
        if key is not None:
            calls[key].append(number)
    return calls


def _key(node: TopologyNode) -> _Key | None:
    if node.site is None or not node.is_public or _is_kept(node):
        return None
    return node.site.path, node.name


def _is_kept(node: TopologyNode) -> bool:
    """Is it a DataFrame that was cached or checkpointed?"""
    return node.kind == "operator" and node.by_id and node.relation == contract.FLOWS


def _kept_families(topology: Topology) -> Iterator[Family]:
    """Those of DataFrames."""
    kept: dict[_Key, list[int]] = defaultdict(list)
    for number, node in sorted(topology.nodes.items()):
        if _is_kept(node) and node.site is not None:
            kept[node.site.path, node.name].append(number)
    for nodes in kept.values():
        for versions in _versions(topology, nodes):
            if len(versions) > 1:
                begun = _kept_below(topology, versions[0]) - _kept_below(topology, versions[1])
                is_known = len(begun) == 1
                whole = (*begun, *versions) if is_known else tuple(versions)
                yield Family(_loop(topology.nodes[versions[0]]), whole, first=0 if is_known else 1)


def _kept_below(topology: Topology, number: int) -> set[int]:
    """The cached and checkpointed DataFrames that a query reads."""
    below, seen = set[int](), set[int]()
    stack = [*topology.nodes[number].parents]
    while stack:
        parent = stack.pop()
        node = topology.nodes.get(parent)
        if node is None or parent in seen:
            continue
        seen.add(parent)
        if _is_kept(node):
            below.add(parent)
        else:
            stack += node.parents
    return below


def _loop(node: TopologyNode) -> str:
    """Where the innermost loop around an operation is; of recursion, where it is itself."""
    assert node.site is not None
    if node.site.loops:
        return _in_short(node.site.loops[-1])
    return _in_short(node.call_site or node.site.path[-1].rpartition("@")[0])


def _in_short(place: str) -> str:
    return place.rpartition("/")[2]


def _nodes_read(topology: Topology, number: int) -> list[int]:
    """The public nodes that an operation reads, in the order in which it does."""
    read: list[int] = []
    seen: set[int] = set()
    stack = list(reversed(topology.nodes[number].parents))
    while stack:
        parent = stack.pop()
        node = topology.nodes.get(parent)
        if node is None:
            continue
        if node.is_public:
            read.append(parent)
        elif parent not in seen:
            seen.add(parent)
            stack += reversed(node.parents)
    return read


def _versions(topology: Topology, read: Iterable[int]) -> Iterator[list[int]]:
    """Those of the nodes read by the calls of a site of which each is made of the one before it."""
    versions: list[int] = []
    for node in read:
        if versions and node == versions[-1]:
            continue
        if versions and not nodes_between(topology, versions[-1], node):
            yield versions
            versions = []
        versions.append(node)
    yield versions


def _is_variable(topology: Topology, reader: TopologyNode, versions: Sequence[int]) -> bool:
    """Does the first come from outside of the loop? What each turn makes for itself begins within."""
    if len(versions) < 2 or reader.site is None:
        return False
    first, second = (topology.nodes[node] for node in versions[:2])
    around = reader.site.loops
    if first.site is None or not around:
        return _key(first) != _key(second)
    return first.site.loops[: len(around)] != around


def _last(
    topology: Topology, calls: Mapping[_Key, Sequence[int]], versions: Sequence[int]
) -> tuple[int, ...]:
    """What the last turn made, which no turn reads: the next call of the site that made the last version."""
    made_at = _key(topology.nodes[versions[-1]])
    if made_at is None or any(_key(topology.nodes[node]) != made_at for node in versions[1:]):
        return ()
    later = next((node for node in calls[made_at] if node > versions[-1]), None)
    return () if later is None or not nodes_between(topology, versions[-1], later) else (later,)


def _without_parts(families: Iterable[Family]) -> list[Family]:
    """Without families all of whose versions are versions of a longer one."""
    whole: list[Family] = []
    holders: dict[int, set[int]] = defaultdict(set)
    for family in families:
        if not set.intersection(*(holders[node] for node in family.versions)):
            for node in family.versions:
                holders[node].add(len(whole))
            whole.append(family)
    return whole


def nodes_between(topology: Topology, low: int, high: int) -> frozenset[int]:
    """The nodes on the ways from `low` to `high`, both without `low`; none where there is no way.

    An operation has a larger number than what it reads, so nothing outside of the two is looked at.
    """
    above: set[int] = set()
    stack = [high] if high > low else []
    while stack:
        number = stack.pop()
        if number not in above and number in topology.nodes:
            above.add(number)
            stack += [before for before in _before(topology, number) if before > low]
    between: set[int] = set()
    for number in sorted(above):
        if any(before == low or before in between for before in _before(topology, number)):
            between.add(number)
    return frozenset(between) if high in between else frozenset()


def _before(topology: Topology, number: int) -> tuple[int, ...]:
    return (*topology.nodes[number].parents, *topology.id_sources.get(number, ()))
