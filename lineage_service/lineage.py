"""The results of queries: applications, graphs, records, traces, values, the lag.

Plain frozen data, in the words of the API (docs/api.md has the HTTP shapes). Knows nothing of HTTP,
of stores or of how a trace is found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["backward", "forward"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Where the records of a source or sink live. `format` is `text` for now."""

    namespace: str
    name: str
    format: str


#: `ended`: well. `lost`: its driver sends signs of life, and has sent nothing for minutes, nor an end.
ApplicationState = Literal["running", "ended", "failed", "lost"]
ActionState = Literal["complete", "failed", "aborted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeError:
    """Why an action failed. `frame` is FILE:LINE of the program, if known."""

    type: str
    message: str
    frame: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationError:
    """Why an application failed, and the action that did, if one did: its node id, name and call site."""

    type: str
    message: str
    frame: str | None = None
    node_id: str | None = None
    name: str | None = None
    call_site: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """One Spark application. `complete`: it ended and every block of every committed run is stored."""

    application_id: str
    name: str
    state: ApplicationState
    started: int  # Unix time in milliseconds
    ended: int | None
    complete: bool
    missing_blocks: int
    #: runs, blocks, flows, dropped, missing_runs, missing_events, gaps, lost_rows, cut and withheld texts,
    #: and what the agent reported.
    counters: dict[str, int]
    missing: str = ""  # what is missing, for people; empty when it is complete
    error: ApplicationError | None = None  # of one that failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One operation. `records` is None where the agent could not count them."""

    node_id: str
    node: int
    name: str
    description: str
    kind: Literal["source", "operator", "sink"]
    call_site: str
    exact: bool
    reason: str  # why it is not exact, or why traces end at this source; else ""
    dataset: Dataset | None
    records: int | None
    has_values: bool
    #: Of an action that has ended: `complete`, `failed` or `aborted`; null of others.
    state: ActionState | None = None
    error: NodeError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """`source` sends records to `target`; `flows` is None where no count is known.

    `shuffle`: on the way the records move between tasks, so that a stage of Spark ends there.
    """

    source: str
    target: str
    flows: int | None
    shuffle: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    application_id: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A physical row of a file; `row` counts from 0 with header lines, `line` = row + 1."""

    path: str
    row: int
    line: int
    text: str | None  # None when it cannot be read
    warning: str | None  # why there is no text, or why this may not be the row: what to do


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    record_id: str
    partition: int
    offset: int
    key: str | None = None
    value: str | None = None
    value_type: str | None = (
        None  # where there is a value: see contract.md; `withheld` for one that did not leave
    )
    source: SourceRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedNode:
    """The records of one node that a trace reached; `total` is never the truncated count."""

    node_id: str
    name: str
    kind: str
    exact: bool
    total: int
    records: tuple[Record, ...]
    reason: str = ""  # as in Node; forward also that a query which was not followed read the records
    state: ActionState | None = None  # as in Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """`hash_in` went into `node_id` and came out as `hash_out`; both are NODE_ID#RECORD_ID."""

    hash_in: str
    hash_out: str
    node_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    direction: Direction
    start: tuple[Record, ...]
    start_node: str
    complete: bool
    exact: bool
    truncated: bool
    nodes: tuple[TracedNode, ...]  # in the order of the way, the start's node first
    flows: tuple[Flow, ...]  # between the records that are listed
    next: str | None
    how: str = ""  # what to do to see the values that were asked for and are not there


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage:
    """`total` is None where finding the page did not count all that match. A search that its time ended has a
    `next` behind a page that is not full."""

    node_id: str
    total: int | None
    records: tuple[Record, ...]
    next: str | None
    warnings: tuple[str, ...] = ()  # what a search could not look at


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueStep:
    """What the record looked like at one node of its way."""

    node_id: str
    name: str
    record_id: str
    type: str  # as in contract.md; `text` for a row of a file
    value: str
    cut: bool = False  # to its greatest length


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    node_id: str
    record_id: str
    captured: bool
    how: str  # what to do to see what the steps lack or what was cut or withheld, else ""
    steps: tuple[ValueStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """What waits in one topic partition: messages from `committed` (else `first`) to `next`.

    `committed` is None where the group never committed; `seconds` is the age of the first message that waits,
    0 where none does, None where it could not be read in time.
    """

    topic: str
    partition: int
    committed: int | None
    first: int
    next: int
    messages: int
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """What waits for a consumer group. `seconds` is the largest of the partitions.

    `rate` and `incoming_rate` are messages a second that the group consumed and that came, between two looks;
    None at the first. `drain_seconds` is when nothing will wait if both stay as they are; None where what
    waits does not get less, or no rate is known. `dead_letters` are the messages in their topic.
    """

    name: str
    members: int | None
    messages: int
    seconds: float | None
    rate: float | None
    incoming_rate: float | None
    drain_seconds: float | None
    dead_letters: int
    partitions: tuple[PartitionLag, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationLag:
    """An application that runs or is not complete.

    `messages` are those that it announced, that are not stored and that may still come; `seconds` is how long
    ago the first of them was announced, 0 where there is none.
    """

    application_id: str
    name: str
    state: ApplicationState
    messages: int
    seconds: float
    incomplete_runs: int
    missing_blocks: int
    missing_runs: int
    missing_events: int
    dropped: int
    missing: str  # what is missing, for people
    gaps: int = 0  # reasons why something was not followed


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """`unread_applications` are those that there was no time to look at since something of them came."""

    group: GroupLag
    applications: tuple[ApplicationLag, ...]
    unread_applications: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialized:
    """How much of a trace now stands in Neo4j as LineageFlow nodes and `flow` links."""

    records: int
    links: int
    truncated: bool
    query: str = field(default="")  # Cypher that shows it in Neo4j Browser
