"""What a topology is made of: nodes, task runs, and the links between these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lineage_service.lineage import Column, Dataset
from lineage_service.outcomes import NodeOutcome

__all__ = [
    "FailedRun",
    "Link",
    "PartitionInfo",
    "Scanned",
    "Site",
    "TaskRun",
    "TopologyNode",
    "have_files_in_common",
    "in_words",
    "is_below",
]

PartitionInfo = Mapping[str, Any]
"""What an event says of one partition of a node: its number, and the files that it is made of.

The names are those of docs/contract.md (`partitions`); the number is `split`.
"""


@dataclass(frozen=True, slots=True)
class Site:
    """Where in the program an operation was called."""

    path: tuple[str, ...]  # the call sites from the outermost to its own
    loops: tuple[str, ...] = ()  # those of the loops around it, the outermost first


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyNode:
    """One node as it was registered; `parents` by port."""

    number: int
    name: str
    description: str
    kind: str
    relation: str
    exact: bool
    reason: str
    call_site: str
    dataset: Dataset | None
    parents: tuple[int, ...]
    partitions: Mapping[int, PartitionInfo]
    by_id: bool = False
    limit: int | None = None  # only so many of its records are given on, of the first partitions
    operation: int | None = None  # the node of the operation that an internal node is a part of
    outcome: NodeOutcome | None = None  # of an action that has ended
    file_rows: Mapping[int, range] = field(default_factory=dict)  # partition -> rows of its file, where known
    #: Of a source or sink: what it read or wrote, as paths of files are written. A part of its dataset, say.
    location: str | None = None
    schema: tuple[Column, ...] = ()
    schema_note: str = ""  # why columns are missing there
    options: Mapping[str, str] | None = None  # of the reader or writer of CSV and JSON; None: not known
    expressions: Mapping[str, Any] | None = None  # what an operator of a query computes of a row
    site: Site | None = None  # of an operation; None: not known
    has_unknown_files: bool = False  # of a sink: is it not known of some rows in which file they are
    operation_of_rows: str | None = None  # what its statement did with each, if nothing says otherwise
    decided_by: str | None = None  # which rows of a group count, see `contract.DECISIONS`; None: not known

    @property
    def is_public(self) -> bool:
        return self.kind != "step"

    @property
    def is_text(self) -> bool:
        """Its records are rows of text files, if it has files."""
        return self.dataset is None or self.dataset.format == "text"


def have_files_in_common(node: TopologyNode, other: TopologyNode) -> bool:
    """Is the file or folder of one that of the other, or below it?"""
    mine, others = node.location, other.location
    return mine is not None and others is not None and (is_below(mine, others) or is_below(others, mine))


def is_below(path: str, folder: str) -> bool:
    """Is it in the folder, or the folder itself?"""
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    """One committed run (see docs/architecture/record-identity.md)."""

    number: int
    partition: int
    attempt: int
    action: int | None
    input: int
    nodes: tuple[int, ...]
    overridden: frozenset[int]
    inputs: int
    outputs: int
    counts: Mapping[int, int]  # outputs of the nodes that say nothing else about them
    execution: int = 0
    stage: int | None = None  # of Spark
    is_whole: bool = False  # its inputs are all records of its partition
    read: tuple[tuple[int, int, int], ...] = ()  # (run, first, count) that together are its inputs
    slow: tuple[tuple[int, int, int], ...] = ()  # (node, position of its input, ms)

    def node_before(self, node: int) -> int:
        """The node whose outputs are the inputs of `node`: the last one of the run if that is behind it."""
        nodes = (self.input, *self.nodes)
        return nodes[nodes.index(node) - 1] if node in self.nodes else nodes[-1]


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a task that failed had read of one partition of a scan, and the parts of files that this is."""

    node: int
    partition: int
    records: int
    parts: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRun:
    """A run that an error has ended, as it was reported. It counts nowhere; a trace may begin in it."""

    run: TaskRun
    node: int  # whose function failed
    position: int | None  # of the record that it failed on, among the outputs of the node before
    is_certain: bool
    error: str
    message: str
    frame: str | None
    record: tuple[str, str] | None  # (type, text)
    time: int
    event: int  # its number in the application; 0 where it has none
    blocks: int  # that its task has sent
    action: int | None = None  # the sink that it ran for
    first: int | None = None  # the record is one of those from this one to `position`
    reason: str = ""  # why it is not certain, where the agent has said so
    scans: Sequence[Scanned] = ()  # of a query
    is_stored: bool = False  # all of these are there

    @property
    def node_before(self) -> int:
        """The node whose output the record is."""
        return self.run.node_before(self.node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Inputs [start, start + count) of `run` at `node` are the outputs of `parent_run` at `parent_node`."""

    node: int
    run: int
    parent_node: int
    parent_run: int
    start: int
    count: int


def in_words(node: TopologyNode) -> str:
    """A node among others, for people who have to choose: number, name, and where it stands or its file."""
    place = ", ".join(site.rpartition("/")[2] for site in node.call_site.split(", "))
    return (
        f"{node.number} ({node.name} at {place})"
        if place
        else f"{node.number} ({node.name} {node.description})"
    )
